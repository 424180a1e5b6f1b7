#include "penstock/service/store/store_files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"
#include "penstock/service/store/record_check.h"

namespace penstock::store {
namespace {

constexpr mode_t kFileMode = S_IRUSR | S_IWUSR;
constexpr mode_t kDirectoryMode = S_IRWXU;

// What the file "acknowledged" holds, in the machine's own byte order: a store
// does not change machines between a crash and the start after it.
struct Mark {
  char magic[8];
  uint64_t sequence;
  uint64_t crc;
};
constexpr char kMagic[8] = {'P', 'S', 'A', 'C', 'K', '0', '0', '1'};

uint64_t CrcOf(const Mark& mark) {
  return Crc32c({reinterpret_cast<const char*>(&mark), offsetof(Mark, crc)});
}

absl::Status SystemError(int number, const std::string& what,
                         const std::string& path) {
  const std::string message = absl::StrCat(
      what, ": ", std::generic_category().message(number), ": ", path);
  switch (number) {
    case ENOENT:
    case ENOTDIR:
      return absl::NotFoundError(message);
    case EACCES:
    case EPERM:
    case EROFS:
      return absl::PermissionDeniedError(message);
    case ENOSPC:
    case EDQUOT:
      return absl::ResourceExhaustedError(message);
    default:
      return absl::InternalError(message);
  }
}

std::string LockPath(const std::string& directory) {
  return directory + "/lock";
}

std::string MarkPath(const std::string& directory) {
  return directory + "/acknowledged";
}

std::string ReadSmallFile(int fd) {
  char text[64];
  const ssize_t n = pread(fd, text, sizeof(text), 0);
  return n > 0 ? std::string(text, static_cast<size_t>(n)) : std::string();
}

// Whether `path` still names the file that is open as `fd`.
bool IsSameFile(int fd, const std::string& path) {
  struct stat open_file;
  struct stat named;
  return fstat(fd, &open_file) == 0 && stat(path.c_str(), &named) == 0 &&
         open_file.st_dev == named.st_dev && open_file.st_ino == named.st_ino;
}

}  // namespace

std::string DatabasePath(const std::string& directory) {
  return directory + "/store.db";
}

std::string WalPath(const std::string& directory) {
  return DatabasePath(directory) + "-wal";
}

std::optional<uint64_t> FileBytes(const std::string& path) {
  struct stat found;
  if (stat(path.c_str(), &found) != 0) return std::nullopt;
  return static_cast<uint64_t>(found.st_size);
}

absl::Status MakeDirectory(const std::string& directory) {
  if (mkdir(directory.c_str(), kDirectoryMode) == 0) {
    return SyncDirectory(directory + "/..");
  }
  if (errno != EEXIST) {
    return SystemError(errno, "cannot make the store's directory", directory);
  }
  struct stat found;
  if (stat(directory.c_str(), &found) != 0 || !S_ISDIR(found.st_mode)) {
    return absl::FailedPreconditionError(
        absl::StrCat("expected a directory; found a file: ", directory));
  }
  return absl::OkStatus();
}

absl::Status MakeEmptyFile(const std::string& path) {
  const Descriptor file(
      open(path.c_str(), O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, kFileMode));
  if (file.is_open()) return absl::OkStatus();
  return SystemError(errno, "cannot make the file", path);
}

absl::Status SyncDirectory(const std::string& directory) {
  const Descriptor fd(
      open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.is_open()) {
    return SystemError(errno, "cannot open the directory", directory);
  }
  if (fsync(fd.get()) == 0) return absl::OkStatus();
  return SystemError(errno, "cannot make the directory durable", directory);
}

absl::Status Publish(const std::string& directory, const std::string& from,
                     const std::string& to) {
  const Descriptor file(open(from.c_str(), O_RDWR | O_CLOEXEC));
  if (!file.is_open()) {
    return SystemError(errno, "cannot open the file", from);
  }
  if (fsync(file.get()) != 0) {
    return SystemError(errno, "cannot make the file durable", from);
  }
  if (rename(from.c_str(), to.c_str()) != 0) {
    return SystemError(errno, "cannot rename the file", from);
  }
  return SyncDirectory(directory);
}

absl::StatusOr<Descriptor> LockDirectory(const std::string& directory) {
  const std::string path = LockPath(directory);
  for (;;) {
    Descriptor file(
        open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, kFileMode));
    if (!file.is_open()) {
      return SystemError(errno, "cannot open the lock file", path);
    }
    if (flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EINTR) continue;
      if (errno != EWOULDBLOCK) {
        return SystemError(errno, "cannot lock the file", path);
      }
      return absl::FailedPreconditionError(absl::StrCat(
          "expected to be the only process with the store ", directory,
          " open; process ", ReadSmallFile(file.get()),
          " has it. Stop that dispatcher, or give this one another "
          "directory."));
    }
    // Somebody may have removed the file between the two calls: then this is a
    // lock that nobody sees.
    if (!IsSameFile(file.get(), path)) continue;
    const std::string id = absl::StrCat(getpid());
    // For people only: a full disk is no reason to refuse.
    if (ftruncate(file.get(), 0) == 0) {
      (void)!pwrite(file.get(), id.data(), id.size(), 0);
    }
    return file;
  }
}

uint64_t Acknowledged::Read(const std::string& directory) {
  const Descriptor file(
      open(MarkPath(directory).c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.is_open()) return 0;
  Mark mark;
  if (pread(file.get(), &mark, sizeof(mark), 0) != sizeof(mark)) return 0;
  const bool is_whole = std::memcmp(mark.magic, kMagic, sizeof(kMagic)) == 0 &&
                        mark.crc == CrcOf(mark);
  return is_whole ? mark.sequence : 0;
}

absl::Status Acknowledged::Open(const std::string& directory) {
  const std::string path = MarkPath(directory);
  file_ =
      Descriptor(open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, kFileMode));
  if (file_.is_open()) return absl::OkStatus();
  return SystemError(errno, "cannot open the file", path);
}

void Acknowledged::Write(uint64_t sequence) {
  Mark mark;
  std::memcpy(mark.magic, kMagic, sizeof(kMagic));
  mark.sequence = sequence;
  mark.crc = CrcOf(mark);
  (void)!pwrite(file_.get(), &mark, sizeof(mark), 0);
}

Reserve::Reserve(const std::string& directory, size_t num_bytes)
    : path_(directory + "/reserve"), num_bytes_(num_bytes) {}

bool Reserve::Take() {
  if (is_held_) return true;
  const Descriptor file(
      open(path_.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, kFileMode));
  if (!file.is_open()) return false;
  if (num_bytes_ > 0 &&
      posix_fallocate(file.get(), 0, static_cast<off_t>(num_bytes_)) != 0) {
    (void)!ftruncate(file.get(), 0);
    return false;
  }
  is_held_ = true;
  return true;
}

bool Reserve::Free() {
  is_held_ = false;
  const std::optional<uint64_t> num_bytes = FileBytes(path_);
  return num_bytes.value_or(0) > 0 && truncate(path_.c_str(), 0) == 0;
}

}  // namespace penstock::store
