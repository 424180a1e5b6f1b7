#include "penstock/service/worker/frozen_files.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "penstock/base/status.h"
#include "penstock/io/relative_files.h"

namespace penstock::service {
namespace {

std::string Described(int64_t size, int64_t changed_ns) {
  return absl::StrCat(
      size, " bytes of ",
      absl::FormatTime(absl::FromUnixNanos(changed_ns), absl::UTCTimeZone()));
}

}  // namespace

FrozenFiles::FrozenFiles(io::FileSystem& files, const std::string& directory,
                         const Manifest& manifest)
    : files_(io::MakeRelativeFileSystem(files, directory)) {
  auto table = std::make_shared<Table>();
  for (const Manifest::File& file : manifest.files()) {
    table->files[file.name()] = {static_cast<int64_t>(file.size()),
                                 file.changed_ns()};
  }
  for (const Manifest::Listing& listing : manifest.listings()) {
    std::vector<std::string>& names = table->listings[listing.pattern()];
    for (const uint32_t file : listing.files()) {
      // A manifest comes over the net.
      if (file >= static_cast<uint32_t>(manifest.files_size())) continue;
      names.push_back(manifest.files(static_cast<int>(file)).name());
    }
  }
  MutexLock lock(&mutex_);
  table_ = std::move(table);
}

void FrozenFiles::Forget() {
  MutexLock lock(&mutex_);
  table_ = std::make_shared<Table>();
}

absl::StatusOr<std::unique_ptr<io::File>> FrozenFiles::Open(
    std::string_view path) {
  PENSTOCK_ASSIGN_OR_RETURN(std::unique_ptr<io::File> file, files_->Open(path));
  const std::shared_ptr<const Table> table = this->table();
  const auto found = table->files.find(path);
  if (found == table->files.end()) return file;
  const Then& then = found->second;
  const io::FileStamp now = file->stamp();
  if (now.size == then.size && now.changed_ns == then.changed_ns) return file;
  return absl::FailedPreconditionError(absl::StrCat(
      "files must stay as they are while an epoch is read; '",
      std::string(path), "' had ", Described(then.size, then.changed_ns),
      " and now has ", Described(now.size, now.changed_ns),
      "\n  Write new data under new names, and start the job again."));
}

absl::StatusOr<std::vector<std::string>> FrozenFiles::Glob(
    std::string_view pattern) {
  const std::shared_ptr<const Table> table = this->table();
  const auto found = table->listings.find(pattern);
  if (found != table->listings.end()) return found->second;
  return files_->Glob(pattern);
}

}  // namespace penstock::service
