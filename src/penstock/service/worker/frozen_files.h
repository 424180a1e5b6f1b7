// Files as they were when an epoch opened.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/base/mutex.h"
#include "penstock/io/file_system.h"
#include "penstock/service.pb.h"

namespace penstock::service {

// The files of a manifest: what a pattern stands for is what it stood for then,
// whatever has come or gone since, and a file that is not the same any more
// (by its size or its time) is refused with FailedPrecondition. Patterns and
// files that the manifest does not have are those of the machine.
//
// Names that do not begin with a '/' start from `directory`. Thread-safe.
class FrozenFiles final : public io::FileSystem {
 public:
  FrozenFiles(io::FileSystem& files, const std::string& directory,
              const Manifest& manifest);

  // What it knows of the manifest is forgotten. For when no run is left that
  // uses it: files that are being opened may outlast theirs.
  void Forget() ABSL_LOCKS_EXCLUDED(mutex_);

  absl::StatusOr<std::unique_ptr<io::File>> Open(
      std::string_view path) override;
  absl::StatusOr<std::vector<std::string>> Glob(
      std::string_view pattern) override;

  absl::StatusOr<std::unique_ptr<io::WritableFile>> Create(
      std::string_view path) override {
    return files_->Create(path);
  }
  absl::Status Rename(std::string_view from, std::string_view to) override {
    return files_->Rename(from, to);
  }
  absl::Status Remove(std::string_view path) override {
    return files_->Remove(path);
  }
  absl::StatusOr<std::unique_ptr<io::FileLock>> Lock(
      std::string_view path) override {
    return files_->Lock(path);
  }
  absl::StatusOr<bool> Exists(std::string_view path) override {
    return files_->Exists(path);
  }
  absl::StatusOr<bool> IsDirectory(std::string_view path) override {
    return files_->IsDirectory(path);
  }
  io::FileStamp Stamp(std::string_view path) override {
    return files_->Stamp(path);
  }

 private:
  struct Then {
    int64_t size;
    int64_t changed_ns;
  };
  struct Table {
    std::map<std::string, Then, std::less<>> files;
    std::map<std::string, std::vector<std::string>, std::less<>> listings;
  };
  std::shared_ptr<const Table> table() const ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    return table_;
  }

  const std::unique_ptr<io::FileSystem> files_;
  mutable Mutex mutex_;
  std::shared_ptr<const Table> table_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace penstock::service
