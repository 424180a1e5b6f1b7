#include "penstock/service/worker/epoch_files.h"

#include <algorithm>

#include "penstock/base/status.h"

namespace penstock::service {

absl::StatusOr<EpochFilesPtr> EpochFilesStore::Get(const std::string& directory,
                                                   uint64_t manifest) {
  const Key key(manifest, directory);
  {
    MutexLock lock(&mutex_);
    const auto found = kept_.find(key);
    if (found != kept_.end()) {
      found->second.used = ++uses_;
      return found->second.files;
    }
  }
  PENSTOCK_ASSIGN_OR_RETURN(const std::string bytes, fetch_(manifest));
  auto files = std::make_shared<EpochFiles>();
  if (!files->manifest.ParseFromString(bytes)) {
    return absl::DataLossError("damaged manifest: it cannot be read");
  }
  EpochFilesPtr dropped;  // goes without the lock
  MutexLock lock(&mutex_);
  // Somebody else may have been faster.
  Entry& entry = kept_[key];
  entry.used = ++uses_;
  if (entry.files != nullptr) return entry.files;
  files->files = &frozen_.emplace_back(files_, directory, files->manifest);
  entry.files = files;
  if (kept_.size() > max_kept_) {
    const auto oldest = std::min_element(kept_.begin(), kept_.end(),
                                         [](const auto& a, const auto& b) {
                                           return a.second.used < b.second.used;
                                         });
    dropped = std::move(oldest->second.files);
    kept_.erase(oldest);
  }
  return files;
}

}  // namespace penstock::service
