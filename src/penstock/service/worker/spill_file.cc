#include "penstock/service/worker/spill_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"
#include "penstock/io/crc32c.h"

namespace penstock::service {
namespace {

// So that what is freed is whole blocks.
constexpr int64_t kBlock = 4096;

int64_t RoundUp(size_t size) {
  return (static_cast<int64_t>(size) + kBlock - 1) / kBlock * kBlock;
}

}  // namespace

absl::StatusOr<std::shared_ptr<SpillFile>> SpillFile::Make(
    int64_t limit_bytes) {
  std::error_code error;
  std::string path =
      (std::filesystem::temp_directory_path(error) / "penstock-spill-XXXXXX")
          .string();
  Descriptor file(mkostemp(path.data(), O_CLOEXEC));
  if (error || !file.is_open()) {
    return absl::UnavailableError(absl::StrCat(
        "cannot make a file for --spill at ", path, ": ", std::strerror(errno),
        "\n  Set TMPDIR to a folder that "
        "can be written to."));
  }
  unlink(path.c_str());
  return std::shared_ptr<SpillFile>(
      new SpillFile(std::move(file), limit_bytes / kBlock * kBlock));
}

int64_t SpillFile::Allocate(int64_t size) {
  MutexLock lock(&mutex_);
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    const auto [offset, bytes] = *it;
    if (bytes < size) continue;
    free_.erase(it);
    if (bytes > size) free_[offset + size] = bytes - size;
    used_bytes_ += size;
    return offset;
  }
  return -1;
}

void SpillFile::Free(int64_t offset, int64_t size) {
  // If the disk cannot have it back, it is written over later.
  (void)fallocate(file_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                  offset, size);
  MutexLock lock(&mutex_);
  used_bytes_ -= size;
  auto next = free_.lower_bound(offset);
  if (next != free_.end() && next->first == offset + size) {
    size += next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == offset) {
      before->second += size;
      return;
    }
  }
  free_[offset] = size;
}

int64_t SpillFile::used_bytes() const {
  MutexLock lock(&mutex_);
  return used_bytes_;
}

absl::StatusOr<std::shared_ptr<const SpillFile::Piece>> SpillFile::Write(
    const std::byte* data, size_t size) {
  const int64_t offset = Allocate(RoundUp(size));
  if (offset < 0) {
    return absl::ResourceExhaustedError(absl::StrCat(
        size, " bytes more than the ", limit_bytes_, " that may be on disk"));
  }
  auto piece = std::make_shared<const Piece>(
      shared_from_this(), offset, size,
      io::Crc32c({reinterpret_cast<const char*>(data), size}));
  for (size_t at = 0; at < size;) {
    const ssize_t wrote =
        pwrite(file_.get(), data + at, size - at,
               static_cast<off_t>(offset + static_cast<int64_t>(at)));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) {
      return absl::ResourceExhaustedError(
          absl::StrCat("cannot write to disk: ", std::strerror(errno)));
    }
    at += static_cast<size_t>(wrote);
  }
  return piece;
}

SpillFile::Piece::~Piece() { file_->Free(offset_, RoundUp(size_)); }

absl::StatusOr<Buffer> SpillFile::Piece::Read() const {
  Buffer bytes = Buffer::Allocate(size_);
  auto* to = bytes.MutableAs<char>();
  for (size_t at = 0; at < size_;) {
    const ssize_t got =
        pread(file_->file_.get(), to + at, size_ - at,
              static_cast<off_t>(offset_ + static_cast<int64_t>(at)));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return absl::DataLossError("cannot read back from disk");
    at += static_cast<size_t>(got);
  }
  if (io::Crc32c({to, size_}) != crc_) {
    return absl::DataLossError("what was read back from disk is damaged");
  }
  return bytes;
}

}  // namespace penstock::service
