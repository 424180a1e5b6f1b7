#include "penstock/data/arena.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"
#include "penstock/data/align.h"

namespace penstock {
namespace {

// Memory is only taken when touched, so a segment may be large.
constexpr size_t kSegmentBytes = size_t{64} << 20;

// A descriptor for anonymous shared memory: memfd, or an unlinked file where a
// sandbox forbids that.
absl::StatusOr<int> AnonymousFile(size_t size) {
  int fd = memfd_create("penstock", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  const bool is_memfd = fd >= 0;
  if (!is_memfd) {
    const char* dir = std::getenv("TMPDIR");
    std::string path =
        absl::StrCat(dir != nullptr ? dir : "/tmp", "/penstock-XXXXXX");
    fd = mkostemp(path.data(), O_CLOEXEC);
    if (fd >= 0) unlink(path.c_str());
  }
  if (fd < 0 || ftruncate(fd, static_cast<off_t>(size)) != 0) {
    const std::string why = std::strerror(errno);
    if (fd >= 0) close(fd);
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot make ", size, " bytes of shared memory: ", why));
  }
  if (is_memfd) fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK);
  return fd;
}

}  // namespace

Arena::Arena(size_t limit_bytes) : limit_bytes_(limit_bytes) {}

Arena::~Arena() {
  for (Mapping& mapping : segments_) {
    munmap(mapping.data, mapping.size);
    close(mapping.fd);
  }
}

absl::Status Arena::AddSegment(size_t size, bool may_exceed) {
  const size_t left = limit_bytes_ - std::min(mapped_bytes_, limit_bytes_);
  if (size > (may_exceed ? limit_bytes_ : left)) {
    return absl::ResourceExhaustedError(
        absl::StrCat("a frame needs ", size, " bytes; ", left, " of the ",
                     limit_bytes_, " bytes for frames are left"));
  }
  PENSTOCK_ASSIGN_OR_RETURN(const int fd, AnonymousFile(size));
  void* data = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (data == MAP_FAILED) {
    const std::string why = std::strerror(errno);
    close(fd);
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot map ", size, " bytes of shared memory: ", why));
  }
  Mapping mapping{fd, static_cast<std::byte*>(data), size, {}};
  mapping.free[0] = size;
  segments_.push_back(std::move(mapping));
  mapped_bytes_ += size;
  return absl::OkStatus();
}

absl::StatusOr<Arena::Region> Arena::Allocate(size_t size, bool may_exceed) {
  if (size > limit_bytes_) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "a frame needs ", size, " bytes; ", limit_bytes_, " are for frames"));
  }
  const size_t rounded = RoundUp(std::max<size_t>(size, 1));
  MutexLock lock(&mutex_);
  for (size_t attempt = 0; attempt < 2; ++attempt) {
    for (size_t s = 0; s < segments_.size(); ++s) {
      Mapping& mapping = segments_[s];
      for (auto it = mapping.free.begin(); it != mapping.free.end(); ++it) {
        const auto [offset, bytes] = *it;
        if (bytes < rounded) continue;
        mapping.free.erase(it);
        if (bytes > rounded) mapping.free[offset + rounded] = bytes - rounded;
        used_bytes_ += rounded;
        return Region{static_cast<uint32_t>(s), offset, rounded,
                      mapping.data + offset};
      }
    }
    const size_t left = limit_bytes_ - std::min(mapped_bytes_, limit_bytes_);
    const size_t wanted = std::max(
        rounded, std::min(kSegmentBytes, left / kAlignment * kAlignment));
    PENSTOCK_RETURN_IF_ERROR(AddSegment(wanted, may_exceed));
  }
  return absl::InternalError("a new segment did not hold the frame");
}

void Arena::Free(const Region& region) {
  MutexLock lock(&mutex_);
  used_bytes_ -= region.size;
  std::map<uint64_t, uint64_t>& free = segments_[region.segment].free;
  auto next = free.lower_bound(region.offset);
  uint64_t begin = region.offset;
  uint64_t end = region.offset + region.size;
  if (next != free.end() && next->first == end) {
    end += next->second;
    next = free.erase(next);
  }
  if (next != free.begin()) {
    auto previous = std::prev(next);
    if (previous->first + previous->second == begin) {
      begin = previous->first;
      free.erase(previous);
    }
  }
  free[begin] = end - begin;
}

absl::StatusOr<Arena::SegmentInfo> Arena::Segment(uint32_t segment) const {
  MutexLock lock(&mutex_);
  if (segment >= segments_.size()) {
    return absl::NotFoundError(absl::StrCat("no arena segment ", segment));
  }
  return SegmentInfo{segments_[segment].fd, segments_[segment].size};
}

size_t Arena::used_bytes() const {
  MutexLock lock(&mutex_);
  return used_bytes_;
}

}  // namespace penstock
