#include "penstock/service/worker/local_frames.h"

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "penstock/base/socket_testing.h"
#include "penstock/data/chunk_testing.h"
#include "penstock/data/encode.h"
#include "penstock/service/worker/local_client_testing.h"

namespace penstock::service {
namespace {

class LocalFramesTest : public testing::Test {
 protected:
  void SetUp() override {
    auto local = LocalFrames::Start(memory_);
    ASSERT_TRUE(local.ok()) << local.status();
    local_ = *std::move(local);
  }
  std::unique_ptr<LocalClient> Connect() {
    auto client = LocalClient::Connect(local_->name());
    EXPECT_TRUE(client.ok()) << client.status();
    return *std::move(client);
  }
  void AwaitUsed(size_t bytes) {
    while (memory_->arena().used_bytes() != bytes) std::this_thread::yield();
  }

  const std::shared_ptr<FrameMemory> memory_ = FrameMemory::Make(64 << 20);
  std::unique_ptr<LocalFrames> local_;
};

TEST_F(LocalFramesTest, AClientSeesTheFramesWhereTheyAre) {
  const auto client = Connect();
  const std::shared_ptr<LocalPeer> peer = local_->Find(client->key());
  ASSERT_NE(peer, nullptr);
  EXPECT_EQ(local_->Find("another"), nullptr);
  const Chunk chunk =
      ChunkOf({MakeColumn<int64_t>(std::vector<int64_t>{1, 2, 3})});
  auto frame = memory_->Make(chunk, "", false);
  ASSERT_TRUE(frame.ok());
  const uint64_t number = *peer->Lend(std::move(frame->memory));
  const auto bytes =
      client->Look(frame->segment, frame->offset, frame->chunk_bytes);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_EQ(ToText(*Decode(*bytes)), (std::vector<std::string>{"1", "2", "3"}));
  EXPECT_GT(memory_->arena().used_bytes(), 0);
  ASSERT_TRUE(client->Release(number + 100).ok());  // none of its own
  ASSERT_TRUE(client->Release(number).ok());
  AwaitUsed(0);
  EXPECT_EQ(client->Look(77, 0, 1).status().code(),
            absl::StatusCode::kNotFound);
}

TEST_F(LocalFramesTest, TheEndOfAConnectionFreesItsFrames) {
  auto client = Connect();
  const auto other = Connect();
  EXPECT_NE(client->key(), other->key());
  const std::shared_ptr<LocalPeer> peer = local_->Find(client->key());
  const Chunk chunk = ChunkOf({MakeColumn<int64_t>(std::vector<int64_t>{1})});
  auto frame = memory_->Make(chunk, "", false);
  ASSERT_TRUE(peer->Lend(std::move(frame->memory)).has_value());
  const std::string key = client->key();
  client.reset();
  AwaitUsed(0);
  EXPECT_EQ(local_->Find(key), nullptr);
  EXPECT_FALSE(peer->Lend(Owner()).has_value());
  EXPECT_NE(local_->Find(other->key()), nullptr);
}

TEST_F(LocalFramesTest, WhoDoesNotSpeakItIsCutOff) {
  const auto client = Connect();
  ASSERT_TRUE(client->Send(99, 0).ok());
  ASSERT_TRUE(IsReadable(client->fd()));
  char byte;
  EXPECT_EQ(recv(client->fd(), &byte, 1, 0), 0) << "the end";
}

}  // namespace
}  // namespace penstock::service
