#include "penstock/service/client/worker_socket.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>
#include <future>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "penstock/base/socket.h"
#include "penstock/io/crc32c.h"
#include "penstock/service/protocol/frame_socket.h"

namespace penstock::service {
namespace {

class Reader final : public PieceReader {
 public:
  std::optional<Buffer> OnPieceStart(const FrameHeader& head) override {
    if (!wants) return std::nullopt;
    piece = Buffer::Allocate(head.piece_bytes());
    return piece;
  }
  void OnPieceHere(const FrameHeader& head) override {
    here.set_value(std::string(piece.As<char>(), piece.size()));
  }
  void OnSocketEnd(const absl::Status& why) override { end.set_value(why); }

  bool wants = true;
  Buffer piece;
  std::promise<std::string> here;
  std::promise<absl::Status> end;
};

// A worker of which the test says what it sends.
class WorkerSocketTest : public testing::Test {
 protected:
  WorkerSocketTest()
      : listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* raw = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(bind(listener_.get(), raw, size), 0);
    EXPECT_EQ(listen(listener_.get(), 4), 0);
    EXPECT_EQ(getsockname(listener_.get(), raw, &size), 0);
    port_ = ntohs(address.sin_port);
  }

  std::shared_ptr<WorkerSocket> Connect() {
    auto connected = std::async(std::launch::async, [this] {
      return WorkerSocket::Connect("127.0.0.1:1", port_, 10'000);
    });
    worker_ = Descriptor(accept4(listener_.get(), nullptr, nullptr, 0));
    const uint32_t head[2] = {kFrameMagic, kFrameKeyBytes};
    Say({reinterpret_cast<const char*>(head), sizeof(head)});
    Say(std::string(kFrameKeyBytes, 'k'));
    auto socket = connected.get();
    EXPECT_TRUE(socket.ok()) << socket.status();
    return *socket;
  }
  void Say(std::string_view bytes) {
    EXPECT_TRUE(SendAll(worker_.get(), bytes).ok());
  }
  void SayPiece(uint64_t reading, std::string_view piece, uint32_t damage = 0) {
    FrameHeader header;
    header.set_piece_bytes(piece.size());
    const std::string bytes = header.SerializeAsString();
    const PieceStart start = {reading, static_cast<uint32_t>(bytes.size()),
                              io::Crc32c(bytes) ^ damage};
    Say({reinterpret_cast<const char*>(&start), sizeof(start)});
    Say(bytes);
    Say(piece);
  }

  const Descriptor listener_;
  uint16_t port_ = 0;
  Descriptor worker_;
};

TEST_F(WorkerSocketTest, PiecesGoToTheirReaders) {
  const std::shared_ptr<WorkerSocket> socket = Connect();
  EXPECT_EQ(socket->key(), std::string(kFrameKeyBytes, 'k'));
  const auto first = std::make_shared<Reader>();
  const auto second = std::make_shared<Reader>();
  const auto third = std::make_shared<Reader>();
  const uint64_t one = *socket->Add(first);
  const uint64_t two = *socket->Add(second);
  const uint64_t three = *socket->Add(third);
  socket->Remove(two);
  third->wants = false;
  SayPiece(two, std::string(200'000, 'x'));  // nobody's any more
  SayPiece(three, "not wanted");
  SayPiece(99, "never asked for");
  SayPiece(one, "hello");
  EXPECT_EQ(first->here.get_future().get(), "hello");
}

TEST_F(WorkerSocketTest, ItsReadersHearThatItHasEnded) {
  const std::shared_ptr<WorkerSocket> socket = Connect();
  const auto reader = std::make_shared<Reader>();
  ASSERT_TRUE(socket->Add(reader).has_value());
  worker_ = Descriptor();
  EXPECT_TRUE(absl::IsUnavailable(reader->end.get_future().get()));
  EXPECT_FALSE(socket->is_open());
  EXPECT_FALSE(socket->Add(reader).has_value());
}

TEST_F(WorkerSocketTest, WhatComesDamagedEndsIt) {
  const std::shared_ptr<WorkerSocket> socket = Connect();
  const auto reader = std::make_shared<Reader>();
  SayPiece(*socket->Add(reader), "hello", /*damage=*/1);
  EXPECT_TRUE(absl::IsUnavailable(reader->end.get_future().get()));
}

TEST_F(WorkerSocketTest, WhoSaysNothingIsNotWaitedFor) {
  EXPECT_TRUE(absl::IsDeadlineExceeded(
      WorkerSocket::Connect("127.0.0.1:1", port_, /*patience_ms=*/50)
          .status()));
}

TEST_F(WorkerSocketTest, NobodyIsThere) {
  const absl::Status status =
      WorkerSocket::Connect("[::1]:5", /*port=*/1, /*patience_ms=*/500)
          .status();
  EXPECT_FALSE(status.ok());
}

}  // namespace
}  // namespace penstock::service
