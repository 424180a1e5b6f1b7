// Which files rows came from, and whether those are still the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "penstock/base/mutex.h"
#include "penstock/io/file_system.h"

namespace penstock::engine {

// A file that was opened, or a pattern that was listed.
struct FileName {
  bool is_pattern = false;
  std::string name;

  friend auto operator<=>(const FileName&, const FileName&) = default;
};

// Files as they were. Of a pattern: the number of names, and a word for them.
using FileManifest = std::map<FileName, io::FileStamp>;

// Whether all is as `manifest` says. Waits for storage.
bool IsUnchanged(io::FileSystem& files, const FileManifest& manifest);

// Files, and a list of what was opened and listed in them, with what was found:
// also nothing. Thread-safe.
class FileLog final : public io::FileSystem {
 public:
  // More names than this are not written down.
  static constexpr size_t kMaxNames = 200'000;

  // REQUIRES: `files` outlives it.
  explicit FileLog(io::FileSystem* files) : files_(*files) {}

  using Record = std::pair<FileName, io::FileStamp>;
  // What came after the first `from` records; a file that was found changed has
  // another one. Nullopt: there were too many names.
  std::optional<std::vector<Record>> Since(size_t from) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  absl::StatusOr<std::unique_ptr<io::File>> Open(
      std::string_view path) override;
  absl::StatusOr<std::vector<std::string>> Glob(
      std::string_view pattern) override;

  absl::StatusOr<std::unique_ptr<io::WritableFile>> Create(
      std::string_view path) override {
    return files_.Create(path);
  }
  absl::Status Rename(std::string_view from, std::string_view to) override {
    return files_.Rename(from, to);
  }
  absl::Status Remove(std::string_view path) override {
    return files_.Remove(path);
  }
  absl::StatusOr<std::unique_ptr<io::FileLock>> Lock(
      std::string_view path) override {
    return files_.Lock(path);
  }
  absl::StatusOr<bool> Exists(std::string_view path) override {
    return files_.Exists(path);
  }
  absl::StatusOr<bool> IsDirectory(std::string_view path) override {
    return files_.IsDirectory(path);
  }
  io::FileStamp Stamp(std::string_view path) override {
    return files_.Stamp(path);
  }

 private:
  void Write(FileName name, const io::FileStamp& stamp)
      ABSL_LOCKS_EXCLUDED(mutex_);

  io::FileSystem& files_;
  mutable Mutex mutex_;
  // The last record of each name.
  std::map<FileName, io::FileStamp> last_ ABSL_GUARDED_BY(mutex_);
  using Place = std::map<FileName, io::FileStamp>::const_iterator;
  std::vector<std::pair<Place, io::FileStamp>> records_ ABSL_GUARDED_BY(mutex_);
  bool has_too_many_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace penstock::engine
