// What the engine wants of the trainer's process: log lines, and the rows of
// its generators.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "penstock/base/mutex.h"
#include "penstock/base/socket.h"
#include "penstock/engine/row_source.h"

namespace penstock::session {

// One run of a generator: what was asked and what came.
class GeneratorRun;

// Thread-safe, but for OnReadable(), which one thread calls.
class ServiceChannel final : public engine::RowSources {
 public:
  explicit ServiceChannel(Descriptor socket);
  ~ServiceChannel() override;

  int fd() const { return socket_.get(); }

  // Reads one message and passes it on. Cancelled when the trainer is gone.
  absl::Status OnReadable() ABSL_LOCKS_EXCLUDED(mutex_);

  // `level` as in Python's logging. Dropped if nobody reads.
  void Log(int level, std::string_view text) ABSL_LOCKS_EXCLUDED(send_mutex_);

  void AddCapture(const std::string& id, Buffer bytes)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void DropCapture(const std::string& id) ABSL_LOCKS_EXCLUDED(mutex_);

  absl::StatusOr<std::unique_ptr<engine::RowSource>> Open(
      const std::string& capture, const Chunk& args) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<Buffer> Capture(const std::string& id) override
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  friend class ChannelSource;
  absl::Status Send(uint32_t kind, uint64_t id, std::string_view payload)
      ABSL_LOCKS_EXCLUDED(send_mutex_);
  void Close(uint64_t id) ABSL_LOCKS_EXCLUDED(mutex_);

  const Descriptor socket_;
  Mutex send_mutex_;
  Mutex mutex_;
  std::map<std::string, Buffer> captures_ ABSL_GUARDED_BY(mutex_);
  std::map<uint64_t, std::shared_ptr<GeneratorRun>> runs_
      ABSL_GUARDED_BY(mutex_);
  uint64_t next_id_ ABSL_GUARDED_BY(mutex_) = 1;
};

}  // namespace penstock::session
