#include "penstock/service/client/worker_memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "penstock/base/socket.h"
#include "penstock/service/protocol/local_socket.h"

namespace penstock::service {
namespace {

constexpr int kPatienceMillis = 50;

// A worker's socket of which the test says what it does, and no more:
// connecting needs nobody who accepts.
class WorkerMemoryTest : public testing::Test {
 protected:
  WorkerMemoryTest()
      : listener_(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)),
        name_(absl::StrCat("penstock-worker-memory-test-", getpid())) {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, name_.data(), name_.size());
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) +
                                             1 + name_.size());
    EXPECT_EQ(
        bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(listener_.get(), 4), 0);
  }

  auto Connect() {
    return WorkerMemory::Connect(name_, nullptr, kPatienceMillis);
  }

  const Descriptor listener_;
  const std::string name_;
};

TEST_F(WorkerMemoryTest, AWorkerThatHangsIsNotWaitedFor) {
  EXPECT_EQ(Connect().status().code(), absl::StatusCode::kDeadlineExceeded);
}

TEST_F(WorkerMemoryTest, FramesAreReleasedWithoutWaitingForTheWorker) {
  Descriptor end;
  std::shared_ptr<WorkerMemory> memory;
  {
    std::thread worker([&] {
      end =
          Descriptor(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      const uint32_t head[2] = {kLocalMagic, kLocalKeyBytes};
      EXPECT_TRUE(SendAll(end.get(),
                          {reinterpret_cast<const char*>(head), sizeof(head)})
                      .ok());
      EXPECT_TRUE(SendAll(end.get(), std::string(kLocalKeyBytes, 'k')).ok());
      const Descriptor segment(memfd_create("test", MFD_CLOEXEC));
      EXPECT_EQ(ftruncate(segment.get(), 4096), 0);
      LocalMessage asked = {};
      EXPECT_TRUE(
          ReceiveAll(end.get(), reinterpret_cast<char*>(&asked), sizeof(asked))
              .ok());
      const LocalMessage answer = {kWantSegment, 3, 4096};
      EXPECT_TRUE(
          SendAll(end.get(),
                  {reinterpret_cast<const char*>(&answer), sizeof(answer)},
                  {segment.get()})
              .ok());
    });
    absl::StatusOr<std::shared_ptr<WorkerMemory>> connected =
        WorkerMemory::Connect(name_, nullptr, /*patience_ms=*/10'000);
    ASSERT_TRUE(connected.ok()) << connected.status();
    memory = *connected;
    EXPECT_TRUE(memory->Find(3, 0, 64, 0).ok());
    worker.join();
  }
  // It hangs from here on, with more to read than the kernel keeps for it.
  constexpr uint64_t kFrames = 20'000;
  for (uint64_t frame = 1; frame < kFrames; ++frame) {
    ASSERT_TRUE(memory->Find(3, 0, 64, frame).ok());
  }
  // Once it goes on, it hears of all of them: what is left, with the next.
  uint64_t last = kFrames;
  for (uint64_t next = 0; next < kFrames;) {
    LocalMessage message = {};
    if (!ReceiveAll(end.get(), reinterpret_cast<char*>(&message),
                    sizeof(message), nullptr, /*patience_ms=*/0)
             .ok()) {
      ASSERT_LT(last, 2 * kFrames);
      ASSERT_TRUE(memory->Find(3, 0, 64, last++).ok());
      continue;
    }
    EXPECT_EQ(message.kind, kReleaseFrame);
    ASSERT_EQ(message.value, next++);
  }
}

}  // namespace
}  // namespace penstock::service
