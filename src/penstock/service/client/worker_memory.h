// A worker's memory, where it is on the same host: frames are looked at where
// they lie instead of being sent. The worker's side says what goes over the
// socket (service/protocol/local_socket.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "penstock/base/mutex.h"
#include "penstock/base/socket.h"
#include "penstock/data/buffer.h"
#include "penstock/data/frame_memory.h"

namespace penstock::service {

// Thread-safe. Lives as long as the last buffer over it.
class WorkerMemory final : public Lender,
                           public std::enable_shared_from_this<WorkerMemory> {
 public:
  // What the worker's socket of this name gives. Unavailable if there is none
  // that this process can reach, as on another host. `frames`, which may be
  // null, hands on to the trainer what is as the worker made it. A worker that
  // hangs must not hang its readers, whose beats find another: nothing takes
  // longer than `patience_ms`.
  static absl::StatusOr<std::shared_ptr<WorkerMemory>> Connect(
      const std::string& name, const std::shared_ptr<FrameMemory>& frames,
      int patience_ms = 2'000);
  ~WorkerMemory() override;

  // The word that shows a worker that its memory is at hand here.
  const std::string& key() const { return key_; }

  // `size` bytes of a segment: frame `frame`, which goes back to the worker
  // when the last holder of the buffer has gone.
  absl::StatusOr<Buffer> Find(uint32_t segment, uint64_t offset, uint64_t size,
                              uint64_t frame) ABSL_LOCKS_EXCLUDED(mutex_);

  int connection() const override { return socket_.get(); }
  void Keep(const std::byte* data) override ABSL_LOCKS_EXCLUDED(kept_mutex_);

 private:
  struct Segment {
    std::shared_ptr<const std::byte> data;
    uint64_t size = 0;
  };
  WorkerMemory(Descriptor socket, std::string key,
               const std::shared_ptr<FrameMemory>& frames, int patience_ms)
      : socket_(std::move(socket)),
        key_(std::move(key)),
        frames_(frames),
        patience_ms_(patience_ms) {}
  absl::StatusOr<Segment> Map(uint32_t segment)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Release(const std::byte* data, uint64_t frame)
      ABSL_LOCKS_EXCLUDED(send_mutex_, kept_mutex_);

  const Descriptor socket_;
  const std::string key_;
  const std::weak_ptr<FrameMemory> frames_;
  const int patience_ms_;
  Mutex send_mutex_;
  // Frames that the worker is still to be told of.
  std::deque<uint64_t> released_ ABSL_GUARDED_BY(send_mutex_);
  Mutex kept_mutex_;
  std::set<const std::byte*> kept_ ABSL_GUARDED_BY(kept_mutex_);
  Mutex mutex_;
  std::map<uint32_t, Segment> segments_ ABSL_GUARDED_BY(mutex_);
  // What is behind them, and their numbers among the trainer's.
  std::vector<Descriptor> descriptors_ ABSL_GUARDED_BY(mutex_);
  std::vector<uint32_t> adopted_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace penstock::service
