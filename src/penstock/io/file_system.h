// Files as the readers and writers see them.
//
// Paths are bytes: a name need not be valid UTF-8. Every error names its path:
//
//   NotFound            nothing is there
//   PermissionDenied    it is there and may not be read or written
//   FailedPrecondition  a directory stands where a file was expected
//   Unavailable, ...    what the system said, in its words
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace penstock::io {

// What tells whether a file is still the one that was read.
struct FileStamp {
  int64_t size = 0;  // below 0: there is none, or it may not be opened
  int64_t changed_ns = 0;
  uint64_t inode = 0;

  friend bool operator==(const FileStamp&, const FileStamp&) = default;
};

// An open file, read at any offset. Thread-safe.
class File {
 public:
  virtual ~File() = default;

  // The file's length when it was opened.
  virtual int64_t size() const = 0;
  // As it was when it was opened.
  virtual FileStamp stamp() const { return {.size = size()}; }

  // Reads `num_bytes` at `offset` into `dst`, waiting for storage as long as
  // it takes. Returns how many were read: fewer only at the end of the file.
  virtual absl::StatusOr<size_t> ReadAt(int64_t offset, char* dst,
                                        size_t num_bytes) = 0;

  // Reads what can be had without waiting for storage: at least one byte of
  // the `num_bytes`, or 0 at the end of the file, or nullopt if even the first
  // byte would have to be waited for (always so where the kernel cannot tell).
  virtual absl::StatusOr<std::optional<size_t>> TryReadAt(int64_t offset,
                                                          char* dst,
                                                          size_t num_bytes) = 0;

  // Lets the kernel forget what it holds of a range, where it can.
  virtual void Forget(int64_t /*offset*/, int64_t /*num_bytes*/) {}
};

// A file being written from its start. One thread at a time.
class WritableFile {
 public:
  virtual ~WritableFile() = default;
  virtual absl::Status Append(std::string_view bytes) = 0;
  // Reports what the system had put off saying. No Append after it. A file
  // destroyed without Close() may lack its last bytes.
  virtual absl::Status Close() = 0;
};

// Held as long as it lives, by this holder alone; ends with its process too.
class FileLock {
 public:
  virtual ~FileLock() = default;
};

// Where files are. Thread-safe. Virtual so that tests can make storage slow,
// broken or absent.
class FileSystem {
 public:
  virtual ~FileSystem() = default;

  virtual absl::StatusOr<std::unique_ptr<File>> Open(std::string_view path) = 0;

  // Makes the file, or empties the one that is there.
  virtual absl::StatusOr<std::unique_ptr<WritableFile>> Create(
      std::string_view path) = 0;

  // Gives a file, once it is on storage, another name, instead of what has it.
  virtual absl::Status Rename(std::string_view from, std::string_view to) = 0;
  virtual absl::Status Remove(std::string_view path) = 0;
  // Locks the file `path`, made if it is not there. AlreadyExists if it is
  // locked.
  virtual absl::StatusOr<std::unique_ptr<FileLock>> Lock(
      std::string_view path) = 0;

  // The paths that match `pattern`, sorted by their bytes; none is no error.
  // `*`, `?` and `[...]` match inside one path component, never a '/'; `\`
  // takes the next character as it is. As in tf.data, `*` matches names that
  // begin with a dot, and directories are matched like files. A directory that
  // may not be listed is an error: leaving it out would lose data silently.
  virtual absl::StatusOr<std::vector<std::string>> Glob(
      std::string_view pattern) = 0;

  virtual absl::StatusOr<bool> Exists(std::string_view path) = 0;
  // False if nothing is there.
  virtual absl::StatusOr<bool> IsDirectory(std::string_view path) = 0;
  // The stamp that the file would have if it were opened now.
  virtual FileStamp Stamp(std::string_view path);
};

// The files of this machine; lives for ever.
FileSystem& LocalFileSystem();

// Whole files, for small ones.
absl::StatusOr<std::string> ReadFile(FileSystem& files, std::string_view path);
absl::Status WriteFile(FileSystem& files, std::string_view path,
                       std::string_view contents);

}  // namespace penstock::io
