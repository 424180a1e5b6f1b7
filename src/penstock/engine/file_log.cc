#include "penstock/engine/file_log.h"

#include <algorithm>

#include "penstock/base/hash.h"

namespace penstock::engine {
namespace {

constexpr io::FileStamp kNothing = {.size = -1};

io::FileStamp StampOf(const absl::StatusOr<std::vector<std::string>>& names) {
  if (!names.ok()) return kNothing;
  uint64_t hash = 0;
  for (const std::string& name : *names) hash = HashBytes(name, hash);
  return {.size = static_cast<int64_t>(names->size()), .inode = hash};
}

}  // namespace

bool IsUnchanged(io::FileSystem& files, const FileManifest& manifest) {
  return std::all_of(manifest.begin(), manifest.end(), [&](const auto& each) {
    const auto& [file, stamp] = each;
    const io::FileStamp now = file.is_pattern ? StampOf(files.Glob(file.name))
                                              : files.Stamp(file.name);
    return now == stamp;
  });
}

absl::StatusOr<std::unique_ptr<io::File>> FileLog::Open(std::string_view path) {
  absl::StatusOr<std::unique_ptr<io::File>> file = files_.Open(path);
  Write({.is_pattern = false, .name = std::string(path)},
        file.ok() ? (*file)->stamp() : kNothing);
  return file;
}

absl::StatusOr<std::vector<std::string>> FileLog::Glob(
    std::string_view pattern) {
  absl::StatusOr<std::vector<std::string>> names = files_.Glob(pattern);
  Write({.is_pattern = true, .name = std::string(pattern)}, StampOf(names));
  return names;
}

void FileLog::Write(FileName name, const io::FileStamp& stamp) {
  MutexLock lock(&mutex_);
  const auto found = last_.find(name);
  if (found != last_.end() && found->second == stamp) return;
  if (records_.size() >= kMaxNames) {
    has_too_many_ = true;
    return;
  }
  const Place place = last_.insert_or_assign(found, std::move(name), stamp);
  records_.emplace_back(place, stamp);
}

std::optional<std::vector<FileLog::Record>> FileLog::Since(size_t from) const {
  MutexLock lock(&mutex_);
  if (has_too_many_) return std::nullopt;
  std::vector<Record> records;
  for (size_t i = from; i < records_.size(); ++i) {
    records.emplace_back(records_[i].first->first, records_[i].second);
  }
  return records;
}

}  // namespace penstock::engine
