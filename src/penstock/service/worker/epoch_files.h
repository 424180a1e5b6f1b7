// Manifests of the epochs that this worker computes bundles of.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "penstock/base/mutex.h"
#include "penstock/service.pb.h"
#include "penstock/service/worker/frozen_files.h"

namespace penstock::service {

// A manifest, and the files as it says that they are.
struct EpochFiles {
  Manifest manifest;
  FrozenFiles* files = nullptr;

  ~EpochFiles() {
    if (files != nullptr) files->Forget();
  }
};
using EpochFilesPtr = std::shared_ptr<const EpochFiles>;

// Keeps those that were used last. Thread-safe.
class EpochFilesStore final {
 public:
  // Gets a Manifest's bytes by its hash; may wait.
  using Fetch = std::function<absl::StatusOr<std::string>(uint64_t manifest)>;

  EpochFilesStore(io::FileSystem& files, Fetch fetch, size_t max_kept = 16)
      : files_(files), fetch_(std::move(fetch)), max_kept_(max_kept) {}

  // Names that are relative start from `directory`. Waits until it is here.
  absl::StatusOr<EpochFilesPtr> Get(const std::string& directory,
                                    uint64_t manifest)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  using Key = std::pair<uint64_t, std::string>;
  struct Entry {
    EpochFilesPtr files;
    uint64_t used = 0;
  };

  io::FileSystem& files_;
  const Fetch fetch_;
  const size_t max_kept_;
  Mutex mutex_;
  // All that there ever were, most of them empty: files that are being opened
  // may outlast their run.
  std::deque<FrozenFiles> frozen_ ABSL_GUARDED_BY(mutex_);
  std::map<Key, Entry> kept_ ABSL_GUARDED_BY(mutex_);
  uint64_t uses_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace penstock::service
