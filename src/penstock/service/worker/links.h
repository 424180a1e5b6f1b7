// The ways to the hosts that read here, and how frames go there.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "penstock/base/mutex.h"
#include "penstock/service/worker/compress.h"
#include "penstock/worker.pb.h"

namespace penstock::service {

// One of them. What one reading has found out, the next one knows: bundles are
// short. Thread-safe.
class Link final {
 public:
  explicit Link(std::string host) : host_(std::move(host)) {}

  const std::string& host() const { return host_; }
  bool is_this_host() const;

  // Readings that are under way.
  void OnBegin() ABSL_LOCKS_EXCLUDED(mutex_);
  void OnEnd() ABSL_LOCKS_EXCLUDED(mutex_);

  // How to send the next frame, of what its reader can read.
  Compression Next(absl::Span<const Compression> allowed)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void OnCompressed(Compression compression, size_t plain_bytes,
                    size_t frame_bytes, int64_t nanos)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Bytes are given to the network, and it has taken them.
  void OnWrite(int64_t now_ns) ABSL_LOCKS_EXCLUDED(mutex_);
  void OnWritten(size_t bytes, int64_t now_ns) ABSL_LOCKS_EXCLUDED(mutex_);
  // A frame was begun.
  void OnSent(Compression compression, size_t plain_bytes, size_t frame_bytes)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // A frame was shown where it lies.
  void OnShown(size_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);

  WorkerReport::Link Describe() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  const std::string host_;
  mutable Mutex mutex_;
  CompressionChoice choice_ ABSL_GUARDED_BY(mutex_);
  WorkerReport::Link report_ ABSL_GUARDED_BY(mutex_);
  uint32_t readings_ ABSL_GUARDED_BY(mutex_) = 0;
  // What was written since the rate was last noted, and how long any of it was
  // on its way.
  uint32_t writes_ ABSL_GUARDED_BY(mutex_) = 0;  // under way
  int64_t since_ns_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t busy_ns_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t written_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Thread-safe.
class Links final {
 public:
  // The way to a caller, as gRPC names it ("ipv4:10.0.0.7:50432").
  std::shared_ptr<Link> To(std::string_view peer) ABSL_LOCKS_EXCLUDED(mutex_);
  // Of the hosts that were last heard of.
  std::vector<WorkerReport::Link> Describe() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  mutable Mutex mutex_;
  std::list<std::shared_ptr<Link>> links_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace penstock::service
