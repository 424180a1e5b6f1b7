#include "penstock/io/relative_files.h"

#include <utility>

#include "penstock/base/status.h"

namespace penstock::io {
namespace {

class RelativeFileSystem final : public FileSystem {
 public:
  RelativeFileSystem(FileSystem& files, std::string directory)
      : files_(files), prefix_(std::move(directory)) {
    if (!prefix_.empty() && prefix_.back() != '/') prefix_.push_back('/');
  }

  absl::StatusOr<std::unique_ptr<File>> Open(std::string_view path) override {
    return files_.Open(Absolute(path));
  }
  absl::StatusOr<std::unique_ptr<WritableFile>> Create(
      std::string_view path) override {
    return files_.Create(Absolute(path));
  }
  absl::Status Rename(std::string_view from, std::string_view to) override {
    return files_.Rename(Absolute(from), Absolute(to));
  }
  absl::Status Remove(std::string_view path) override {
    return files_.Remove(Absolute(path));
  }
  absl::StatusOr<std::unique_ptr<FileLock>> Lock(
      std::string_view path) override {
    return files_.Lock(Absolute(path));
  }
  absl::StatusOr<bool> Exists(std::string_view path) override {
    return files_.Exists(Absolute(path));
  }
  absl::StatusOr<bool> IsDirectory(std::string_view path) override {
    return files_.IsDirectory(Absolute(path));
  }
  FileStamp Stamp(std::string_view path) override {
    return files_.Stamp(Absolute(path));
  }

  absl::StatusOr<std::vector<std::string>> Glob(
      std::string_view pattern) override {
    if (!IsRelative(pattern)) return files_.Glob(pattern);
    // The directory's own name is no pattern.
    std::string escaped;
    for (char c : prefix_) {
      if (c == '*' || c == '?' || c == '[' || c == '\\') escaped += '\\';
      escaped += c;
    }
    PENSTOCK_ASSIGN_OR_RETURN(std::vector<std::string> paths,
                              files_.Glob(escaped.append(pattern)));
    for (std::string& path : paths) path.erase(0, prefix_.size());
    return paths;
  }

 private:
  static bool IsRelative(std::string_view path) {
    return path.empty() || path.front() != '/';
  }
  std::string Absolute(std::string_view path) const {
    if (!IsRelative(path) || path.empty()) return std::string(path);
    return prefix_ + std::string(path);
  }

  FileSystem& files_;
  std::string prefix_;
};

}  // namespace

std::unique_ptr<FileSystem> MakeRelativeFileSystem(FileSystem& files,
                                                   std::string directory) {
  return std::make_unique<RelativeFileSystem>(files, std::move(directory));
}

}  // namespace penstock::io
