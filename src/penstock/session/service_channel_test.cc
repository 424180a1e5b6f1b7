#include "penstock/session/service_channel.h"

#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "penstock/base/mutex.h"
#include "penstock/base/socket_testing.h"
#include "penstock/data/encode.h"
#include "penstock/session.pb.h"

namespace penstock::session {
namespace {

using ::testing::HasSubstr;

struct Header {
  uint32_t kind;
  uint32_t size;
  uint64_t id;
};

struct Message {
  Header header{};
  std::string payload;
};

std::string Encoded(const Chunk& chunk) {
  std::string bytes(EncodedSize(chunk), '\0');
  Encode(chunk, reinterpret_cast<std::byte*>(bytes.data()));
  return bytes;
}

Chunk Ints(const std::vector<int64_t>& values) {
  Chunk chunk;
  chunk.rows = static_cast<int64_t>(values.size());
  chunk.columns.push_back(MakeColumn<int64_t>(values));
  return chunk;
}

// The trainer's end of the socket.
class FakeTrainer final {
 public:
  explicit FakeTrainer(Descriptor socket) : socket_(std::move(socket)) {}

  Message Read() {
    Message message;
    const std::string head = ReadExactly(socket_.get(), sizeof(Header));
    if (head.size() < sizeof(Header)) return message;
    std::memcpy(&message.header, head.data(), sizeof(Header));
    message.payload = ReadExactly(socket_.get(), message.header.size);
    return message;
  }
  void Send(uint32_t kind, uint64_t id, const std::string& payload) {
    const Header header{kind, static_cast<uint32_t>(payload.size()), id};
    std::string bytes(reinterpret_cast<const char*>(&header), sizeof(header));
    EXPECT_TRUE(SendAll(socket_.get(), bytes + payload).ok());
  }
  int fd() const { return socket_.get(); }
  void Close() { socket_ = Descriptor(); }

 private:
  Descriptor socket_;
};

class CountingWaker final : public engine::Wakeable {
 public:
  void Wake() override {
    MutexLock lock(&mutex_);
    ++wakes_;
    woken_.SignalAll();
  }
  void WaitFor(int wakes) {
    MutexLock lock(&mutex_);
    while (wakes_ < wakes) woken_.Wait(&mutex_);
  }

 private:
  Mutex mutex_;
  CondVar woken_;
  int wakes_ ABSL_GUARDED_BY(mutex_) = 0;
};

class ServiceChannelTest : public ::testing::Test {
 protected:
  ServiceChannelTest() : ServiceChannelTest(SocketPair()) {}
  explicit ServiceChannelTest(std::pair<Descriptor, Descriptor> sockets)
      : channel_(std::move(sockets.first)),
        trainer_(std::move(sockets.second)) {}

  std::unique_ptr<engine::RowSource> Open(const Chunk& args = {}) {
    auto source = channel_.Open("mine", args);
    EXPECT_TRUE(source.ok());
    opened_ = trainer_.Read();
    EXPECT_EQ(opened_.header.kind, GENERATOR_OPEN);
    return *std::move(source);
  }
  absl::StatusOr<engine::Pull> Next(engine::RowSource& source, int64_t rows) {
    return source.Next({rows, waker_});
  }

  ServiceChannel channel_;
  FakeTrainer trainer_;
  std::shared_ptr<CountingWaker> counter_ = std::make_shared<CountingWaker>();
  const engine::Waker waker_ = counter_;
  Message opened_;
};

TEST_F(ServiceChannelTest, OpensWithNameAndArguments) {
  const Chunk args = Ints({7});
  auto source = Open(args);
  uint32_t size;
  ASSERT_GE(opened_.payload.size(), 8u);
  std::memcpy(&size, opened_.payload.data(), sizeof(size));
  EXPECT_EQ(opened_.payload.substr(4, size), "mine");
  EXPECT_EQ(opened_.payload.substr(4 + size), Encoded(args));
}

TEST_F(ServiceChannelTest, AsksOnceAndGivesWhatComes) {
  auto source = Open();
  EXPECT_TRUE(Next(*source, 3)->is_blocked());
  EXPECT_TRUE(Next(*source, 3)->is_blocked());  // asks for no more
  const Message asked = trainer_.Read();
  EXPECT_EQ(asked.header.kind, GENERATOR_NEXT);
  uint64_t wanted;
  std::memcpy(&wanted, asked.payload.data(), sizeof(wanted));
  EXPECT_EQ(wanted, 3);
  EXPECT_EQ(BytesToRead(trainer_.fd()), 0);

  trainer_.Send(GENERATOR_ROWS, asked.header.id, Encoded(Ints({4, 5, 6})));
  ASSERT_TRUE(channel_.OnReadable().ok());
  counter_->WaitFor(1);
  const absl::StatusOr<engine::Pull> first = Next(*source, 2);
  ASSERT_TRUE(first.ok() && first->has_rows());
  EXPECT_EQ(first->chunk.rows, 2);
  EXPECT_EQ(*first->chunk.columns[0].Row<int64_t>(1), 5);
  const absl::StatusOr<engine::Pull> second = Next(*source, 2);
  EXPECT_EQ(*second->chunk.columns[0].Row<int64_t>(0), 6);

  EXPECT_TRUE(Next(*source, 2)->is_blocked());
  trainer_.Read();
  trainer_.Send(GENERATOR_END, asked.header.id, "");
  ASSERT_TRUE(channel_.OnReadable().ok());
  EXPECT_TRUE(Next(*source, 2)->is_end());
  EXPECT_TRUE(Next(*source, 2)->is_end());
}

TEST_F(ServiceChannelTest, ATrainerInAThread) {
  auto source = Open();
  std::thread trainer([this] {
    for (int64_t i = 0; i < 100; ++i) {
      const Message asked = trainer_.Read();
      trainer_.Send(GENERATOR_ROWS, asked.header.id, Encoded(Ints({i})));
    }
    trainer_.Send(GENERATOR_END, trainer_.Read().header.id, "");
  });
  std::thread loop([this] {
    for (int i = 0; i < 101; ++i) EXPECT_TRUE(channel_.OnReadable().ok());
  });
  std::vector<int64_t> got;
  int wakes = 0;
  while (true) {
    const absl::StatusOr<engine::Pull> pull = Next(*source, 8);
    ASSERT_TRUE(pull.ok());
    if (pull->is_end()) break;
    if (pull->is_blocked()) {
      counter_->WaitFor(++wakes);
      continue;
    }
    got.push_back(*pull->chunk.columns[0].Row<int64_t>(0));
  }
  trainer.join();
  loop.join();
  ASSERT_EQ(got.size(), 100);
  for (int64_t i = 0; i < 100; ++i) EXPECT_EQ(got[i], i);
}

TEST_F(ServiceChannelTest, DamagedRowsEndTheRun) {
  auto source = Open();
  EXPECT_TRUE(Next(*source, 1)->is_blocked());
  const uint64_t id = trainer_.Read().header.id;
  trainer_.Send(GENERATOR_ROWS, id, "no chunk at all");
  ASSERT_TRUE(channel_.OnReadable().ok());
  EXPECT_TRUE(absl::IsDataLoss(Next(*source, 1).status()));
  EXPECT_TRUE(absl::IsDataLoss(Next(*source, 1).status()));
}

TEST_F(ServiceChannelTest, DroppingItClosesItAndLateRowsAreNothing) {
  auto source = Open();
  const uint64_t id = opened_.header.id;
  source.reset();
  EXPECT_EQ(trainer_.Read().header.kind, GENERATOR_CLOSE);
  trainer_.Send(GENERATOR_ROWS, id, Encoded(Ints({1})));
  EXPECT_TRUE(channel_.OnReadable().ok());
}

TEST_F(ServiceChannelTest, SourcesAreToldApart) {
  auto a = Open();
  const uint64_t a_id = opened_.header.id;
  auto b = Open();
  const uint64_t b_id = opened_.header.id;
  EXPECT_NE(a_id, b_id);
  EXPECT_TRUE(Next(*a, 1)->is_blocked());
  EXPECT_TRUE(Next(*b, 1)->is_blocked());
  trainer_.Send(GENERATOR_ROWS, b_id, Encoded(Ints({2})));
  ASSERT_TRUE(channel_.OnReadable().ok());
  EXPECT_TRUE(Next(*a, 1)->is_blocked());
  EXPECT_TRUE(Next(*b, 1)->has_rows());
}

TEST_F(ServiceChannelTest, ATrainerThatIsGoneIsCancelled) {
  auto source = Open();
  trainer_.Close();
  EXPECT_TRUE(absl::IsCancelled(channel_.OnReadable()));
  EXPECT_TRUE(absl::IsCancelled(Next(*source, 1).status()));
  EXPECT_FALSE(channel_.Open("another", {}).ok());
  channel_.Log(30, "nobody hears it");
}

TEST_F(ServiceChannelTest, LogsCarryTheirLevel) {
  channel_.Log(30, "mind the gap");
  const Message message = trainer_.Read();
  EXPECT_EQ(message.header.kind, LOG);
  EXPECT_EQ(message.payload, "\x03mind the gap");
}

TEST_F(ServiceChannelTest, CapturesAreThereUntilDropped) {
  channel_.AddCapture("rows", Buffer::Allocate(10));
  EXPECT_EQ(channel_.Capture("rows")->size(), 10);
  channel_.DropCapture("rows");
  const absl::Status gone = channel_.Capture("rows").status();
  EXPECT_TRUE(absl::IsFailedPrecondition(gone));
  EXPECT_THAT(std::string(gone.message()), HasSubstr("rows"));
}

}  // namespace
}  // namespace penstock::session
