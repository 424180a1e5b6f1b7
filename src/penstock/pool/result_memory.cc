#include "penstock/pool/result_memory.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include "absl/strings/str_cat.h"

namespace penstock::pool {
namespace {

constexpr uint64_t kMaxReadBytes = uint64_t{4} << 30;

}  // namespace

absl::StatusOr<Buffer> MapOf(const Descriptor& memory, uint64_t bytes) {
  void* data =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory.get(), 0);
  if (data == MAP_FAILED) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot map ", bytes, " bytes of a result"));
  }
  return Buffer(Owner(data, [bytes](void* at) { munmap(at, bytes); }), data,
                bytes);
}

absl::StatusOr<Buffer> ReadFrom(const Descriptor& memory, uint64_t bytes) {
  // Before there is memory for it: what is said may be anything.
  struct stat found;
  if (fstat(memory.get(), &found) != 0 || !S_ISREG(found.st_mode) ||
      static_cast<uint64_t>(found.st_size) < bytes || bytes > kMaxReadBytes) {
    return absl::InternalError(
        absl::StrCat("a Python process must give ", bytes,
                     " bytes, at most 4 GiB; it gave other memory"));
  }
  Buffer buffer = Buffer::Allocate(bytes);
  for (uint64_t at = 0; at < bytes;) {
    const ssize_t got = pread(memory.get(), buffer.MutableAs<char>() + at,
                              bytes - at, static_cast<off_t>(at));
    if (got <= 0) {
      return absl::InternalError("a Python process gave too little");
    }
    at += static_cast<uint64_t>(got);
  }
  return buffer;
}

Buffer CopyOf(const Buffer& from) {
  Buffer copy = Buffer::Allocate(from.size());
  std::memcpy(copy.MutableAs<char>(), from.As<char>(), from.size());
  return copy;
}

}  // namespace penstock::pool
