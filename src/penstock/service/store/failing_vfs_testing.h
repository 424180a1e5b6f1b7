// For tests: a file system for SQLite that fails when it is told to, and that
// can forget what was never made durable.
#pragma once

#include <sqlite3.h>

#include <cstddef>
#include <string>
#include <vector>

namespace penstock::store {

enum class VfsFault {
  kError,  // the operation does nothing and says EIO
  kTear,   // a write does its first half and says EIO
  kFull,   // a write does nothing and says that the disk is full
};

// Registered with SQLite while it lives. One thread at a time.
//
// Operations are writes, truncations and syncs of the database and its log, in
// the order in which they come.
class FailingVfs final {
 public:
  explicit FailingVfs(std::string name);
  ~FailingVfs();
  FailingVfs(const FailingVfs&) = delete;
  FailingVfs& operator=(const FailingVfs&) = delete;

  const std::string& name() const { return name_; }

  // The `n`-th operation from now on fails; 1 is the next. With `is_last`, all
  // that follow fail, too, as if the disk were gone.
  void FailNth(int n, VfsFault fault, bool is_last);

  int num_operations() const { return num_operations_; }
  bool has_failed() const { return has_failed_; }

  // The power goes: of the writes and truncations that no sync of their file
  // followed, the first `num_kept` stay, and the rest are undone. To be called
  // when all files are closed. Returns how many were not durable.
  size_t LosePower(size_t num_kept);

 private:
  friend struct FailingFile;

  // What the file was before an operation.
  struct Undo {
    std::string path;
    sqlite3_int64 offset;
    std::string bytes;
    sqlite3_int64 file_bytes;
  };

  // The fault of this operation, if it is its turn.
  bool IsNextFailed();
  int Write(sqlite3_file* real, const std::string& path, const void* data,
            int num_bytes, sqlite3_int64 offset);
  int Truncate(sqlite3_file* real, const std::string& path,
               sqlite3_int64 num_bytes);
  int Sync(sqlite3_file* real, const std::string& path, int flags);
  void Remember(sqlite3_file* real, const std::string& path,
                sqlite3_int64 offset, sqlite3_int64 num_bytes);

  static int Open(sqlite3_vfs* vfs, const char* path, sqlite3_file* file,
                  int flags, int* out_flags);

  const std::string name_;
  sqlite3_vfs* const real_;
  sqlite3_vfs vfs_;
  int num_operations_ = 0;
  int operations_to_fault_ = 0;
  VfsFault fault_ = VfsFault::kError;
  bool is_last_ = false;
  bool has_failed_ = false;
  std::vector<Undo> undos_;
};

}  // namespace penstock::store
