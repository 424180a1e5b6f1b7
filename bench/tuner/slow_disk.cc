// A disk that is slow in a known way: a FUSE file system that shows the files
// of a directory, with direct I/O, so that no page cache hides it.
//
//   slow_disk SOURCE MOUNTPOINT [--open-ms=0] [--read-ms=0]
//             [--mb-per-second=0] [--seek-ms=0] [--writable=0]
//
//   open-ms        each open takes this long
//   read-ms        each read takes this long; those under way overlap
//   mb-per-second  that all readers share; 0: without limit
//   seek-ms        there is one head. Reads are served one at a time, and one
//                  that does not begin where the one before it ended, in the
//                  same file, takes this long more. Of those that wait, one
//                  that goes on where the head is comes first, as disks do.
//   writable       1: what is written goes into SOURCE, as fast as that takes:
//                  only reading is slow
//
// Stays in the foreground; unmounts on SIGTERM, and when stdin is closed.
// bench/tuner/slow_disk.py builds, mounts and unmounts it.
#define FUSE_USE_VERSION 312

#include <dirent.h>
#include <fcntl.h>
#include <fuse3/fuse.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

struct Slowness {
  Seconds open{0};
  Seconds read{0};
  Seconds seek{0};
  double bytes_per_second = 0;  // 0: without limit
};

Clock::duration Ticks(Seconds seconds) {
  return std::chrono::duration_cast<Clock::duration>(seconds);
}

// Makes its callers wait as long as the disk would take. Thread-safe.
class Disk final {
 public:
  explicit Disk(const Slowness& slowness) : slowness_(slowness) {}

  void Open() const { std::this_thread::sleep_for(slowness_.open); }

  void Read(uint64_t file, uint64_t offset, uint64_t bytes) {
    std::this_thread::sleep_for(slowness_.read);
    if (slowness_.seek.count() > 0) {
      Serve(file, offset, bytes);
    } else if (slowness_.bytes_per_second > 0) {
      Share(bytes);
    }
  }

 private:
  struct Waiting {
    uint64_t file;
    uint64_t offset;
    Clock::time_point since;
    bool is_chosen = false;
  };

  Clock::duration TransferOf(uint64_t bytes) const {
    if (slowness_.bytes_per_second <= 0) return {};
    return Ticks(
        Seconds(static_cast<double>(bytes) / slowness_.bytes_per_second));
  }

  void Share(uint64_t bytes) {
    Clock::time_point done;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      free_at_ = std::max(free_at_, Clock::now()) + TransferOf(bytes);
      done = free_at_;
    }
    std::this_thread::sleep_until(done);
  }

  void Serve(uint64_t file, uint64_t offset, uint64_t bytes) {
    std::unique_lock<std::mutex> lock(mutex_);
    const auto mine =
        waiting_.insert(waiting_.end(), {file, offset, Clock::now()});
    if (!is_serving_) Choose();
    chosen_.wait(lock, [&] { return mine->is_chosen; });
    // From when the head could have begun: a sleeper that wakes late does not
    // make the disk slower.
    Clock::time_point done = std::max(free_at_, mine->since);
    waiting_.erase(mine);
    if (file != head_file_ || offset != head_offset_) {
      done += Ticks(slowness_.seek);
    }
    done += TransferOf(bytes);
    lock.unlock();
    std::this_thread::sleep_until(done);
    lock.lock();
    free_at_ = done;
    head_file_ = file;
    head_offset_ = offset + bytes;
    is_serving_ = false;
    Choose();
  }

  // The next one that waits, if any; mutex_ is held.
  void Choose() {
    if (waiting_.empty()) return;
    auto next = std::find_if(
        waiting_.begin(), waiting_.end(), [&](const Waiting& each) {
          return each.file == head_file_ && each.offset == head_offset_;
        });
    if (next == waiting_.end()) next = waiting_.begin();
    next->is_chosen = true;
    is_serving_ = true;
    chosen_.notify_all();
  }

  const Slowness slowness_;

  std::mutex mutex_;
  std::condition_variable chosen_;
  // All below: guarded by mutex_.
  Clock::time_point free_at_;
  std::list<Waiting> waiting_;
  bool is_serving_ = false;
  uint64_t head_file_ = 0;
  uint64_t head_offset_ = 0;
};

std::string source;
std::unique_ptr<Disk> disk;
bool is_writable = false;

struct OpenFile {
  int descriptor;
  uint64_t inode;
};

std::string PathOf(const char* path) { return source + path; }

OpenFile* FileOf(const fuse_file_info* info) {
  // fuse keeps a word for us.
  return reinterpret_cast<OpenFile*>(info->fh);  // NOLINT
}

void* Init(fuse_conn_info* connection, fuse_config* config) {
  config->direct_io = 1;
  config->use_ino = 1;
  connection->max_background = 128;
  connection->congestion_threshold = 128;
  return nullptr;
}

int GetAttributes(const char* path, struct stat* out, fuse_file_info* info) {
  const int failed = info != nullptr ? fstat(FileOf(info)->descriptor, out)
                                     : lstat(PathOf(path).c_str(), out);
  return failed != 0 ? -errno : 0;
}

int ReadLink(const char* path, char* out, size_t bytes) {
  if (bytes == 0) return -EINVAL;
  const ssize_t length = readlink(PathOf(path).c_str(), out, bytes - 1);
  if (length < 0) return -errno;
  out[length] = '\0';
  return 0;
}

int ReadDirectory(const char* path, void* out, fuse_fill_dir_t fill, off_t,
                  fuse_file_info*, fuse_readdir_flags) {
  DIR* const directory = opendir(PathOf(path).c_str());
  if (directory == nullptr) return -errno;
  while (const dirent* entry = readdir(directory)) {
    struct stat about = {};
    about.st_ino = entry->d_ino;
    about.st_mode = static_cast<mode_t>(DTTOIF(entry->d_type));
    if (fill(out, entry->d_name, &about, 0, fuse_fill_dir_flags{}) != 0) break;
  }
  closedir(directory);
  return 0;
}

int OpenDirectory(const char* path, fuse_file_info*) {
  return access(PathOf(path).c_str(), R_OK) != 0 ? -errno : 0;
}

// The open file becomes that of `info`.
int Adopt(int descriptor, fuse_file_info* info) {
  if (descriptor < 0) return -errno;
  struct stat about = {};
  fstat(descriptor, &about);
  info->direct_io = 1;
  info->fh = reinterpret_cast<uint64_t>(  // NOLINT
      new OpenFile{descriptor, about.st_ino});
  return 0;
}

int Open(const char* path, fuse_file_info* info) {
  disk->Open();
  // Which way it may be used is the kernel's to check: of a disk that is not
  // writable, it opens nothing for writing.
  const int flags = info->flags & (O_ACCMODE | O_TRUNC | O_APPEND);
  return Adopt(open(PathOf(path).c_str(), flags | O_CLOEXEC), info);
}

int Create(const char* path, mode_t mode, fuse_file_info* info) {
  const int flags = info->flags & (O_ACCMODE | O_TRUNC | O_APPEND | O_EXCL);
  return Adopt(open(PathOf(path).c_str(), flags | O_CREAT | O_CLOEXEC, mode),
               info);
}

int Read(const char*, char* out, size_t bytes, off_t offset,
         fuse_file_info* info) {
  const OpenFile* const file = FileOf(info);
  const ssize_t got = pread(file->descriptor, out, bytes, offset);
  if (got < 0) return -errno;
  // What is known to be past the end takes no disk.
  if (got > 0) {
    disk->Read(file->inode, static_cast<uint64_t>(offset),
               static_cast<uint64_t>(got));
  }
  return static_cast<int>(got);
}

int Write(const char*, const char* bytes, size_t count, off_t offset,
          fuse_file_info* info) {
  const ssize_t put = pwrite(FileOf(info)->descriptor, bytes, count, offset);
  return put < 0 ? -errno : static_cast<int>(put);
}

int Synchronize(const char*, int, fuse_file_info* info) {
  return fsync(FileOf(info)->descriptor) != 0 ? -errno : 0;
}

int Truncate(const char* path, off_t bytes, fuse_file_info* info) {
  const int failed = info != nullptr
                         ? ftruncate(FileOf(info)->descriptor, bytes)
                         : truncate(PathOf(path).c_str(), bytes);
  return failed != 0 ? -errno : 0;
}

int Rename(const char* from, const char* to, unsigned flags) {
  if (flags != 0) return -EINVAL;
  const int failed = rename(PathOf(from).c_str(), PathOf(to).c_str());
  return failed != 0 ? -errno : 0;
}

int Remove(const char* path) {
  return unlink(PathOf(path).c_str()) != 0 ? -errno : 0;
}

int MakeDirectory(const char* path, mode_t mode) {
  return mkdir(PathOf(path).c_str(), mode) != 0 ? -errno : 0;
}

int RemoveDirectory(const char* path) {
  return rmdir(PathOf(path).c_str()) != 0 ? -errno : 0;
}

int SetTimes(const char* path, const timespec times[2], fuse_file_info*) {
  const int failed =
      utimensat(AT_FDCWD, PathOf(path).c_str(), times, AT_SYMLINK_NOFOLLOW);
  return failed != 0 ? -errno : 0;
}

int Release(const char*, fuse_file_info* info) {
  const std::unique_ptr<OpenFile> file(FileOf(info));
  close(file->descriptor);
  return 0;
}

int StatFileSystem(const char*, struct statvfs* out) {
  return statvfs(source.c_str(), out) != 0 ? -errno : 0;
}

[[noreturn]] void RefuseArguments(const std::string& why) {
  std::fprintf(stderr,
               "slow_disk: %s\n"
               "usage: slow_disk SOURCE MOUNTPOINT [--open-ms=0] [--read-ms=0] "
               "[--mb-per-second=0] [--seek-ms=0] [--writable=0]\n",
               why.c_str());
  std::exit(2);
}

// The value of `--name=`, if `argument` is that.
bool Parse(const std::string& argument, const std::string& name, double& out) {
  const std::string start = "--" + name + "=";
  if (argument.rfind(start, 0) != 0) return false;
  const std::string value = argument.substr(start.size());
  char* end = nullptr;
  out = std::strtod(value.c_str(), &end);
  if (value.empty() || *end != '\0' || !(out >= 0) || !(out < 1e9)) {
    RefuseArguments("expected a number from 0; got " + argument);
  }
  return true;
}

// Ends the process, the way SIGTERM does, once stdin is closed.
void WatchStdin() {
  std::thread([] {
    char byte;
    while (true) {
      const ssize_t got = read(STDIN_FILENO, &byte, 1);
      if (got == 0 || (got < 0 && errno != EINTR)) break;
    }
    kill(getpid(), SIGTERM);
  }).detach();
}

int Run(const char* program, const std::string& mountpoint) {
  fuse_operations operations = {};
  operations.init = Init;
  operations.getattr = GetAttributes;
  operations.readlink = ReadLink;
  operations.opendir = OpenDirectory;
  operations.readdir = ReadDirectory;
  operations.open = Open;
  operations.read = Read;
  operations.release = Release;
  operations.statfs = StatFileSystem;
  operations.create = Create;
  operations.write = Write;
  operations.fsync = Synchronize;
  operations.truncate = Truncate;
  operations.rename = Rename;
  operations.unlink = Remove;
  operations.mkdir = MakeDirectory;
  operations.rmdir = RemoveDirectory;
  operations.utimens = SetTimes;
  std::string name = program;
  std::string option = is_writable ? "-orw" : "-oro";
  option += ",fsname=slow_disk,subtype=slow_disk";
  char* arguments[] = {name.data(), option.data()};
  fuse_args args = FUSE_ARGS_INIT(2, arguments);
  fuse* const files = fuse_new(&args, &operations, sizeof(operations), nullptr);
  if (files == nullptr) return 1;
  if (fuse_mount(files, mountpoint.c_str()) != 0) {
    fuse_destroy(files);
    return 1;
  }
  fuse_session* const session = fuse_get_session(files);
  int failed = fuse_set_signal_handlers(session);
  if (failed == 0) {
    // Signals are for the main thread: it is the one that ends the loop.
    sigset_t end;
    sigset_t before;
    sigemptyset(&end);
    sigaddset(&end, SIGTERM);
    sigaddset(&end, SIGINT);
    sigaddset(&end, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &end, &before);
    WatchStdin();
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    fuse_loop_config* const config = fuse_loop_cfg_create();
    fuse_loop_cfg_set_max_threads(config, 256);
    fuse_loop_cfg_set_idle_threads(config, 256);
    failed = fuse_loop_mt(files, config);
    fuse_loop_cfg_destroy(config);
    fuse_remove_signal_handlers(session);
  }
  fuse_unmount(files);
  fuse_destroy(files);
  return failed < 0 ? 1 : 0;  // over 0: the signal that ended it
}

}  // namespace

int main(int argc, char** argv) {
  std::string mountpoint;
  Slowness slowness;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    double value = 0;
    if (Parse(argument, "open-ms", value)) {
      slowness.open = Seconds(value / 1e3);
    } else if (Parse(argument, "read-ms", value)) {
      slowness.read = Seconds(value / 1e3);
    } else if (Parse(argument, "seek-ms", value)) {
      slowness.seek = Seconds(value / 1e3);
    } else if (Parse(argument, "mb-per-second", value)) {
      slowness.bytes_per_second = value * 1e6;
    } else if (Parse(argument, "writable", value)) {
      is_writable = value != 0;
    } else if (argument.rfind("--", 0) == 0) {
      RefuseArguments("expected an option that there is; got " + argument);
    } else if (source.empty()) {
      source = argument;
    } else if (mountpoint.empty()) {
      mountpoint = argument;
    } else {
      RefuseArguments("expected two directories; got " + argument + ", too");
    }
  }
  if (mountpoint.empty()) RefuseArguments("expected two directories");
  // FUSE changes nothing of where relative names start, but may be asked to.
  char* const absolute = realpath(source.c_str(), nullptr);
  if (absolute == nullptr) {
    RefuseArguments("expected a directory; got " + source + ": " +
                    std::strerror(errno));
  }
  source = absolute;
  std::free(absolute);
  disk = std::make_unique<Disk>(slowness);
  return Run(argv[0], mountpoint);
}
