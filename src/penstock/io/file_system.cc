#include "penstock/io/file_system.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"
#include "penstock/io/glob.h"
#include "penstock/io/opened_file.h"
#include "penstock/io/system_error.h"

namespace penstock::io {
namespace {

FileStamp StampOf(const struct stat& info) {
  return {.size = info.st_size,
          .changed_ns = info.st_mtim.tv_sec * int64_t{1'000'000'000} +
                        info.st_mtim.tv_nsec,
          .inode = info.st_ino};
}

class LocalFile final : public File {
 public:
  LocalFile(std::string path, Descriptor fd, const FileStamp& stamp)
      : path_(std::move(path)), fd_(std::move(fd)), stamp_(stamp) {}

  int64_t size() const override { return stamp_.size; }
  FileStamp stamp() const override { return stamp_; }

  absl::StatusOr<size_t> ReadAt(int64_t offset, char* dst,
                                size_t num_bytes) override {
    size_t done = 0;
    while (done < num_bytes) {
      const ssize_t n = pread(fd_.get(), dst + done, num_bytes - done,
                              offset + static_cast<int64_t>(done));
      if (n == 0) break;
      if (n < 0) {
        if (errno == EINTR) continue;
        return SystemError(errno, "cannot read the file", path_);
      }
      done += static_cast<size_t>(n);
    }
    return done;
  }

  absl::StatusOr<std::optional<size_t>> TryReadAt(int64_t offset, char* dst,
                                                  size_t num_bytes) override {
    iovec range = {.iov_base = dst, .iov_len = num_bytes};
    for (;;) {
      const ssize_t n = preadv2(fd_.get(), &range, 1, offset, RWF_NOWAIT);
      if (n >= 0) return static_cast<size_t>(n);
      if (errno == EINTR) continue;
      if (errno == EAGAIN || errno == EOPNOTSUPP || errno == ENOSYS) {
        return std::nullopt;
      }
      return SystemError(errno, "cannot read the file", path_);
    }
  }

  void Forget(int64_t offset, int64_t num_bytes) override {
    posix_fadvise(fd_.get(), offset, num_bytes, POSIX_FADV_DONTNEED);
  }

 private:
  const std::string path_;
  const Descriptor fd_;
  const FileStamp stamp_;
};

class LocalWritableFile final : public WritableFile {
 public:
  LocalWritableFile(std::string path, Descriptor fd)
      : path_(std::move(path)), fd_(std::move(fd)) {}

  absl::Status Append(std::string_view bytes) override {
    while (!bytes.empty()) {
      const ssize_t n = write(fd_.get(), bytes.data(), bytes.size());
      if (n < 0) {
        if (errno == EINTR) continue;
        return SystemError(errno, "cannot write the file", path_);
      }
      bytes.remove_prefix(static_cast<size_t>(n));
    }
    return absl::OkStatus();
  }

  absl::Status Close() override {
    if (close(fd_.Release()) == 0) return absl::OkStatus();
    return SystemError(errno, "cannot write the file", path_);
  }

 private:
  const std::string path_;
  Descriptor fd_;
};

class LocalFileLock final : public FileLock {
 public:
  explicit LocalFileLock(Descriptor fd) : fd_(std::move(fd)) {}

 private:
  const Descriptor fd_;
};

class LocalFiles final : public FileSystem {
 public:
  absl::StatusOr<std::unique_ptr<File>> Open(
      std::string_view path_view) override {
    const std::string path(path_view);
    if (path.find('\0') != std::string::npos) {
      return absl::InvalidArgumentError(
          absl::StrCat("a file's name must have no zero byte; got ",
                       absl::CHexEscape(path)));
    }
    // Not waiting matters for a FIFO alone, which would otherwise hold the
    // caller until a writer comes.
    Descriptor fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (fd.get() < 0) return SystemError(errno, "cannot open the file", path);
    return FileOf(std::move(fd), path);
  }

  absl::StatusOr<std::unique_ptr<WritableFile>> Create(
      std::string_view path_view) override {
    const std::string path(path_view);
    Descriptor fd(
        open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    if (fd.get() < 0) return SystemError(errno, "cannot create the file", path);
    return std::make_unique<LocalWritableFile>(path, std::move(fd));
  }

  absl::Status Rename(std::string_view from, std::string_view to) override {
    const std::string path(from);
    Descriptor fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (fd.get() < 0 || fsync(fd.get()) != 0 ||
        rename(path.c_str(), std::string(to).c_str()) != 0) {
      return SystemError(errno, "cannot rename the file", path);
    }
    return absl::OkStatus();
  }

  absl::Status Remove(std::string_view path) override {
    if (unlink(std::string(path).c_str()) == 0) return absl::OkStatus();
    return SystemError(errno, "cannot remove the file", path);
  }

  absl::StatusOr<std::unique_ptr<FileLock>> Lock(
      std::string_view path_view) override {
    const std::string path(path_view);
    Descriptor fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
    if (fd.get() < 0) return SystemError(errno, "cannot create the file", path);
    if (flock(fd.get(), LOCK_EX | LOCK_NB) == 0) {
      return std::make_unique<LocalFileLock>(std::move(fd));
    }
    if (errno == EWOULDBLOCK) {
      return absl::AlreadyExistsError(
          absl::StrCat("the file is locked by another: ", path));
    }
    return SystemError(errno, "cannot lock the file", path);
  }

  absl::StatusOr<std::vector<std::string>> Glob(
      std::string_view pattern) override {
    return LocalGlob(pattern);
  }

  absl::StatusOr<bool> Exists(std::string_view path) override {
    PENSTOCK_ASSIGN_OR_RETURN(const std::optional<mode_t> mode, Mode(path));
    return mode.has_value();
  }

  absl::StatusOr<bool> IsDirectory(std::string_view path) override {
    PENSTOCK_ASSIGN_OR_RETURN(const std::optional<mode_t> mode, Mode(path));
    return mode.has_value() && S_ISDIR(*mode);
  }

  FileStamp Stamp(std::string_view path) override {
    struct stat info;
    if (stat(std::string(path).c_str(), &info) != 0 || !S_ISREG(info.st_mode)) {
      return {.size = -1};
    }
    return StampOf(info);
  }

 private:
  static absl::StatusOr<std::optional<mode_t>> Mode(std::string_view path) {
    struct stat info;
    if (stat(std::string(path).c_str(), &info) == 0) return info.st_mode;
    if (errno == ENOENT || errno == ENOTDIR) return std::nullopt;
    return SystemError(errno, "cannot look at", path);
  }
};

}  // namespace

FileStamp FileSystem::Stamp(std::string_view path) {
  const absl::StatusOr<std::unique_ptr<File>> file = Open(path);
  return file.ok() ? (*file)->stamp() : FileStamp{.size = -1};
}

absl::StatusOr<std::unique_ptr<File>> FileOf(Descriptor fd, std::string path) {
  struct stat info;
  if (fstat(fd.get(), &info) != 0) {
    return SystemError(errno, "cannot open the file", path);
  }
  if (S_ISDIR(info.st_mode)) {
    return SystemError(EISDIR, "cannot open the file", path);
  }
  if (!S_ISREG(info.st_mode)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "expected a regular file; found a pipe, socket or device: ", path));
  }
  posix_fadvise(fd.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
  return std::make_unique<LocalFile>(std::move(path), std::move(fd),
                                     StampOf(info));
}

FileSystem& LocalFileSystem() {
  static LocalFiles* const files = new LocalFiles;
  return *files;
}

absl::StatusOr<std::string> ReadFile(FileSystem& files, std::string_view path) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::unique_ptr<File> file, files.Open(path));
  std::string contents(static_cast<size_t>(file->size()), '\0');
  PENSTOCK_ASSIGN_OR_RETURN(const size_t n,
                            file->ReadAt(0, contents.data(), contents.size()));
  contents.resize(n);
  return contents;
}

absl::Status WriteFile(FileSystem& files, std::string_view path,
                       std::string_view contents) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file,
                            files.Create(path));
  PENSTOCK_RETURN_IF_ERROR(file->Append(contents));
  return file->Close();
}

}  // namespace penstock::io
