#include "penstock/service/worker/frame_sockets.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "penstock/base/socket.h"
#include "penstock/io/crc32c.h"
#include "penstock/service/protocol/frame_socket.h"

namespace penstock::service {
namespace {

Descriptor Connect(uint16_t port) {
  Descriptor opened(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  EXPECT_EQ(connect(opened.get(), reinterpret_cast<sockaddr*>(&address),
                    sizeof(address)),
            0);
  return opened;
}

std::string Receive(const Descriptor& from, size_t size) {
  std::string bytes(size, '\0');
  const absl::Status status = ReceiveAll(from.get(), bytes.data(), size);
  EXPECT_TRUE(status.ok()) << status;
  return bytes;
}

class FrameSocketsTest : public testing::Test {
 protected:
  FrameSocketsTest() {
    auto started = FrameSockets::Start("127.0.0.1", 0);
    EXPECT_TRUE(started.ok()) << started.status();
    sockets_ = *std::move(started);
    client_ = Connect(sockets_->port());
    uint32_t head[2];
    std::memcpy(head, Receive(client_, sizeof(head)).data(), sizeof(head));
    EXPECT_EQ(head[0], kFrameMagic);
    key_ = Receive(client_, head[1]);
  }

  // Whether it was sent, once that is known; false at once if it cannot be.
  std::future<bool> Send(FrameSocket& socket, uint64_t reading,
                         const std::shared_ptr<const std::string>& bytes) {
    auto sent = std::make_shared<std::promise<bool>>();
    std::future<bool> is_sent = sent->get_future();
    FrameSocket::Frame frame;
    frame.reading = reading;
    frame.header.set_position(reading);
    frame.header.set_frame_bytes(bytes->size());
    frame.memory = bytes;
    auto parts = std::make_shared<FrameParts>();
    parts->parts = {Buffer(nullptr, bytes->data(), bytes->size())};
    parts->bytes = bytes->size();
    frame.bytes = std::move(parts);
    frame.done = [sent](bool ok) { sent->set_value(ok); };
    if (!socket.Send(std::move(frame))) sent->set_value(false);
    return is_sent;
  }

  std::unique_ptr<FrameSockets> sockets_;
  Descriptor client_;
  std::string key_;
};

TEST_F(FrameSocketsTest, FramesComeInPiecesWithTheirSums) {
  const std::shared_ptr<FrameSocket> socket = sockets_->Find(key_);
  ASSERT_NE(socket, nullptr);
  auto bytes = std::make_shared<std::string>(2 * kFramePieceBytes + 5, '\0');
  for (size_t i = 0; i < bytes->size(); ++i) (*bytes)[i] = static_cast<char>(i);
  std::future<bool> large = Send(*socket, 7, bytes);
  std::future<bool> empty = Send(*socket, 8, std::make_shared<std::string>());
  std::string got;
  for (const size_t size :
       {kFramePieceBytes, kFramePieceBytes, size_t{5}, size_t{0}}) {
    PieceStart start;
    std::memcpy(&start, Receive(client_, sizeof(start)).data(), sizeof(start));
    const std::string header = Receive(client_, start.header_bytes);
    EXPECT_EQ(io::Crc32c(header), start.header_crc32c);
    FrameHeader head;
    ASSERT_TRUE(head.ParseFromString(header));
    EXPECT_EQ(start.reading, size > 0 ? 7 : 8);
    EXPECT_EQ(head.position(), start.reading);
    ASSERT_EQ(head.piece_bytes(), size);
    EXPECT_EQ(head.piece_offset(), size > 0 ? got.size() : 0);
    const std::string piece = Receive(client_, size);
    EXPECT_EQ(head.crc32c(), io::Crc32c(piece));
    got += piece;
  }
  EXPECT_EQ(got, *bytes);
  EXPECT_TRUE(large.get());
  EXPECT_TRUE(empty.get());
}

TEST_F(FrameSocketsTest, SumsThatAreKnownAreNotMadeAgain) {
  const std::shared_ptr<FrameSocket> socket = sockets_->Find(key_);
  ASSERT_NE(socket, nullptr);
  const std::string head(100, 'h');
  const std::string rows(700, 'r');
  const auto* at = reinterpret_cast<const std::byte*>(rows.data());
  auto parts = std::make_shared<FrameParts>();
  parts->parts = {Buffer(nullptr, head.data(), head.size()),
                  Buffer(nullptr, rows.data(), rows.size())};
  // Of the last it says more than there is: that is not for this part.
  parts->sums = {{at, {300, 1}}, {at + 300, {300, 2}}, {at + 600, {300, 3}}};
  parts->bytes = 800;
  FrameSocket::Frame frame;
  frame.bytes = std::move(parts);
  std::promise<bool> sent;
  frame.done = [&sent](bool ok) { sent.set_value(ok); };
  ASSERT_TRUE(socket->Send(std::move(frame)));
  const std::vector<std::pair<size_t, uint32_t>> pieces = {
      {100, io::Crc32c(head)},
      {300, 1},
      {300, 2},
      {100, io::Crc32c(rows.substr(600))}};
  size_t offset = 0;
  for (const auto& [size, crc] : pieces) {
    PieceStart start;
    std::memcpy(&start, Receive(client_, sizeof(start)).data(), sizeof(start));
    FrameHeader found;
    ASSERT_TRUE(found.ParseFromString(Receive(client_, start.header_bytes)));
    EXPECT_EQ(found.piece_offset(), offset);
    ASSERT_EQ(found.piece_bytes(), size);
    EXPECT_EQ(found.crc32c(), crc);
    Receive(client_, size);
    offset += size;
  }
  // Until then the bytes are the sender's.
  EXPECT_TRUE(sent.get_future().get());
}

TEST_F(FrameSocketsTest, WhoHasGoneIsSentNothing) {
  const std::shared_ptr<FrameSocket> socket = sockets_->Find(key_);
  ASSERT_NE(socket, nullptr);
  // More than the kernel keeps: the thread waits for room that never comes.
  const auto bytes = std::make_shared<std::string>(64 << 20, 'x');
  std::future<bool> first = Send(*socket, 1, bytes);
  std::future<bool> second = Send(*socket, 2, bytes);
  Receive(client_, 1);
  client_ = Descriptor();
  EXPECT_FALSE(first.get());
  EXPECT_FALSE(second.get());
  EXPECT_FALSE(Send(*socket, 3, bytes).get());
  EXPECT_EQ(bytes.use_count(), 1) << "nobody holds it any more";
  while (sockets_->Find(key_) != nullptr) std::this_thread::yield();
}

TEST_F(FrameSocketsTest, EndsThoughAClientTakesNothing) {
  const std::shared_ptr<FrameSocket> socket = sockets_->Find(key_);
  std::future<bool> sent =
      Send(*socket, 1, std::make_shared<std::string>(64 << 20, 'x'));
  sockets_.reset();
  EXPECT_FALSE(sent.get());
}

TEST_F(FrameSocketsTest, KeysAreOfOneConnection) {
  const Descriptor other = Connect(sockets_->port());
  const std::string greeting = Receive(other, 8 + kFrameKeyBytes);
  EXPECT_NE(greeting.substr(8), key_);
  EXPECT_EQ(sockets_->Find("another"), nullptr);
}

}  // namespace
}  // namespace penstock::service
