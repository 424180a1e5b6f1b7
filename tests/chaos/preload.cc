// Loaded into a part of the service (LD_PRELOAD) to have its disk fail, or to
// keep it away from other processes' memory.
//
//   CHAOS_DISK=CONTROL:FOLDER  while the first byte of CONTROL is 'e', writes
//       and syncs of files in FOLDER fail with EIO; while it is 'f', writes
//       that need space fail with ENOSPC; while it is 's', syncs take 300 ms
//   CHAOS_NO_LOCAL=1           no connection to a worker's Unix socket, so that
//       rows come over TCP
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

template <typename Function>
Function* Real(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

struct Disk {
  const volatile char* control = nullptr;
  char folder[4096] = {};

  Disk() {
    const char* said = std::getenv("CHAOS_DISK");
    const char* colon = said == nullptr ? nullptr : std::strchr(said, ':');
    if (colon == nullptr) return;
    char path[4096] = {};
    std::memcpy(path, said, static_cast<size_t>(colon - said));
    std::snprintf(folder, sizeof(folder), "%s/", colon + 1);
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    void* mapped = mmap(nullptr, 1, PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (mapped != MAP_FAILED) control = static_cast<const char*>(mapped);
  }
};

// What is wrong with the disk that `file` is on; 0: nothing.
char Fault(int file) {
  static const Disk* const disk = new Disk;
  if (disk->control == nullptr) return 0;
  const char fault = *disk->control;
  if (fault != 'e' && fault != 'f' && fault != 's') return 0;
  char link[64];
  char path[4096];
  std::snprintf(link, sizeof(link), "/proc/self/fd/%d", file);
  const ssize_t size = readlink(link, path, sizeof(path));
  const size_t least = std::strlen(disk->folder);
  if (size < static_cast<ssize_t>(least)) return 0;
  return std::memcmp(path, disk->folder, least) == 0 ? fault : 0;
}

// Sets errno if a write fails.
bool MayWrite(int file) {
  const char fault = Fault(file);
  if (fault == 'e') errno = EIO;
  if (fault == 'f') errno = ENOSPC;
  return fault != 'e' && fault != 'f';
}

bool MaySync(int file) {
  const char fault = Fault(file);
  if (fault == 's') usleep(300'000);
  if (fault == 'e') errno = EIO;
  return fault != 'e';
}

}  // namespace

extern "C" {

ssize_t write(int file, const void* data, size_t size) {
  static const auto real = Real<ssize_t(int, const void*, size_t)>("write");
  return MayWrite(file) ? real(file, data, size) : -1;
}

ssize_t pwrite(int file, const void* data, size_t size, off_t at) {
  static const auto real =
      Real<ssize_t(int, const void*, size_t, off_t)>("pwrite");
  return MayWrite(file) ? real(file, data, size, at) : -1;
}

ssize_t pwrite64(int file, const void* data, size_t size, off64_t at) {
  static const auto real =
      Real<ssize_t(int, const void*, size_t, off64_t)>("pwrite64");
  return MayWrite(file) ? real(file, data, size, at) : -1;
}

int fallocate(int file, int mode, off_t at, off_t size) {
  static const auto real = Real<int(int, int, off_t, off_t)>("fallocate");
  return MayWrite(file) ? real(file, mode, at, size) : -1;
}

int posix_fallocate(int file, off_t at, off_t size) {
  static const auto real = Real<int(int, off_t, off_t)>("posix_fallocate");
  return MayWrite(file) ? real(file, at, size) : errno;
}

int posix_fallocate64(int file, off64_t at, off64_t size) {
  static const auto real =
      Real<int(int, off64_t, off64_t)>("posix_fallocate64");
  return MayWrite(file) ? real(file, at, size) : errno;
}

int fsync(int file) {
  static const auto real = Real<int(int)>("fsync");
  return MaySync(file) ? real(file) : -1;
}

int fdatasync(int file) {
  static const auto real = Real<int(int)>("fdatasync");
  return MaySync(file) ? real(file) : -1;
}

int connect(int socket, const sockaddr* address, socklen_t size) {
  static const auto real =
      Real<int(int, const sockaddr*, socklen_t)>("connect");
  static const bool is_apart = std::getenv("CHAOS_NO_LOCAL") != nullptr;
  if (is_apart && address->sa_family == AF_UNIX &&
      reinterpret_cast<const sockaddr_un*>(address)->sun_path[0] == '\0') {
    errno = ECONNREFUSED;
    return -1;
  }
  return real(socket, address, size);
}

}  // extern "C"
