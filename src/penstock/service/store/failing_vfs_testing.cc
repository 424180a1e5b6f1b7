#include "penstock/service/store/failing_vfs_testing.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <utility>

namespace penstock::store {

// As SQLite sees an open file: it allocates the bytes, the real file's behind
// these.
struct FailingFile {
  sqlite3_file base;
  FailingVfs* owner;
  std::string* path;
  bool is_watched;  // the database or its log

  static FailingFile& Of(sqlite3_file* file) {
    return *reinterpret_cast<FailingFile*>(file);
  }
  static sqlite3_file* Real(sqlite3_file* file) {
    return reinterpret_cast<sqlite3_file*>(reinterpret_cast<char*>(file) +
                                           sizeof(FailingFile));
  }

  static int Close(sqlite3_file* file) {
    sqlite3_file* const real = Real(file);
    const int code =
        real->pMethods != nullptr ? real->pMethods->xClose(real) : SQLITE_OK;
    delete Of(file).path;
    return code;
  }
  static int Read(sqlite3_file* file, void* out, int n, sqlite3_int64 offset) {
    return Real(file)->pMethods->xRead(Real(file), out, n, offset);
  }
  static int Write(sqlite3_file* file, const void* data, int n,
                   sqlite3_int64 offset) {
    FailingFile& self = Of(file);
    if (!self.is_watched) {
      return Real(file)->pMethods->xWrite(Real(file), data, n, offset);
    }
    return self.owner->Write(Real(file), *self.path, data, n, offset);
  }
  static int Truncate(sqlite3_file* file, sqlite3_int64 size) {
    FailingFile& self = Of(file);
    if (!self.is_watched) {
      return Real(file)->pMethods->xTruncate(Real(file), size);
    }
    return self.owner->Truncate(Real(file), *self.path, size);
  }
  static int Sync(sqlite3_file* file, int flags) {
    FailingFile& self = Of(file);
    if (!self.is_watched) {
      return Real(file)->pMethods->xSync(Real(file), flags);
    }
    return self.owner->Sync(Real(file), *self.path, flags);
  }
  static int FileSize(sqlite3_file* file, sqlite3_int64* size) {
    return Real(file)->pMethods->xFileSize(Real(file), size);
  }
  static int Lock(sqlite3_file* file, int level) {
    return Real(file)->pMethods->xLock(Real(file), level);
  }
  static int Unlock(sqlite3_file* file, int level) {
    return Real(file)->pMethods->xUnlock(Real(file), level);
  }
  static int CheckReservedLock(sqlite3_file* file, int* out) {
    return Real(file)->pMethods->xCheckReservedLock(Real(file), out);
  }
  static int FileControl(sqlite3_file* file, int op, void* argument) {
    return Real(file)->pMethods->xFileControl(Real(file), op, argument);
  }
  static int SectorSize(sqlite3_file* file) {
    return Real(file)->pMethods->xSectorSize(Real(file));
  }
  static int DeviceCharacteristics(sqlite3_file* file) {
    return Real(file)->pMethods->xDeviceCharacteristics(Real(file));
  }
  static int ShmMap(sqlite3_file* file, int page, int size, int extend,
                    void volatile** out) {
    return Real(file)->pMethods->xShmMap(Real(file), page, size, extend, out);
  }
  static int ShmLock(sqlite3_file* file, int offset, int n, int flags) {
    return Real(file)->pMethods->xShmLock(Real(file), offset, n, flags);
  }
  static void ShmBarrier(sqlite3_file* file) {
    Real(file)->pMethods->xShmBarrier(Real(file));
  }
  static int ShmUnmap(sqlite3_file* file, int is_deleted) {
    return Real(file)->pMethods->xShmUnmap(Real(file), is_deleted);
  }
};

namespace {

// Version 2: with shared memory, without mapped files.
constexpr sqlite3_io_methods kMethods = {
    2,
    FailingFile::Close,
    FailingFile::Read,
    FailingFile::Write,
    FailingFile::Truncate,
    FailingFile::Sync,
    FailingFile::FileSize,
    FailingFile::Lock,
    FailingFile::Unlock,
    FailingFile::CheckReservedLock,
    FailingFile::FileControl,
    FailingFile::SectorSize,
    FailingFile::DeviceCharacteristics,
    FailingFile::ShmMap,
    FailingFile::ShmLock,
    FailingFile::ShmBarrier,
    FailingFile::ShmUnmap,
    nullptr,
    nullptr,
};

}  // namespace

FailingVfs::FailingVfs(std::string name)
    : name_(std::move(name)), real_(sqlite3_vfs_find(nullptr)), vfs_(*real_) {
  vfs_.szOsFile = static_cast<int>(sizeof(FailingFile)) + real_->szOsFile;
  vfs_.zName = name_.c_str();
  vfs_.pNext = nullptr;
  vfs_.pAppData = this;
  vfs_.xOpen = Open;
  // What takes the VFS itself uses pAppData of the real one, if at all.
  vfs_.xDelete = [](sqlite3_vfs* vfs, const char* path, int sync) {
    sqlite3_vfs* const real = static_cast<FailingVfs*>(vfs->pAppData)->real_;
    return real->xDelete(real, path, sync);
  };
  vfs_.xAccess = [](sqlite3_vfs* vfs, const char* path, int flags, int* out) {
    sqlite3_vfs* const real = static_cast<FailingVfs*>(vfs->pAppData)->real_;
    return real->xAccess(real, path, flags, out);
  };
  vfs_.xFullPathname = [](sqlite3_vfs* vfs, const char* path, int n,
                          char* out) {
    sqlite3_vfs* const real = static_cast<FailingVfs*>(vfs->pAppData)->real_;
    return real->xFullPathname(real, path, n, out);
  };
  if (sqlite3_vfs_register(&vfs_, 0) != SQLITE_OK) std::abort();
}

FailingVfs::~FailingVfs() { sqlite3_vfs_unregister(&vfs_); }

int FailingVfs::Open(sqlite3_vfs* vfs, const char* path, sqlite3_file* file,
                     int flags, int* out_flags) {
  auto* const self = static_cast<FailingVfs*>(vfs->pAppData);
  FailingFile& opened = FailingFile::Of(file);
  sqlite3_file* const real = FailingFile::Real(file);
  real->pMethods = nullptr;
  opened.base.pMethods = nullptr;
  const int code =
      self->real_->xOpen(self->real_, path, real, flags, out_flags);
  if (code != SQLITE_OK) return code;
  opened.owner = self;
  opened.path = new std::string(path == nullptr ? "" : path);
  opened.is_watched = (flags & (SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_WAL)) != 0;
  opened.base.pMethods = &kMethods;
  return SQLITE_OK;
}

void FailingVfs::FailNth(int n, VfsFault fault, bool is_last) {
  operations_to_fault_ = n;
  fault_ = fault;
  is_last_ = is_last;
  has_failed_ = false;
}

bool FailingVfs::IsNextFailed() {
  ++num_operations_;
  if (has_failed_) return is_last_;
  if (operations_to_fault_ == 0 || --operations_to_fault_ > 0) return false;
  has_failed_ = true;
  return true;
}

void FailingVfs::Remember(sqlite3_file* real, const std::string& path,
                          sqlite3_int64 offset, sqlite3_int64 num_bytes) {
  Undo undo;
  undo.path = path;
  undo.offset = offset;
  real->pMethods->xFileSize(real, &undo.file_bytes);
  const sqlite3_int64 num_there =
      std::max<sqlite3_int64>(0, std::min(num_bytes, undo.file_bytes - offset));
  undo.bytes.resize(static_cast<size_t>(num_there));
  if (num_there > 0) {
    real->pMethods->xRead(real, undo.bytes.data(), static_cast<int>(num_there),
                          offset);
  }
  undos_.push_back(std::move(undo));
}

int FailingVfs::Write(sqlite3_file* real, const std::string& path,
                      const void* data, int num_bytes, sqlite3_int64 offset) {
  const bool is_first_failure = !has_failed_;
  if (!IsNextFailed()) {
    Remember(real, path, offset, num_bytes);
    return real->pMethods->xWrite(real, data, num_bytes, offset);
  }
  if (fault_ == VfsFault::kFull) {
    errno = ENOSPC;
    return SQLITE_FULL;
  }
  if (fault_ == VfsFault::kTear && is_first_failure) {
    Remember(real, path, offset, num_bytes / 2);
    real->pMethods->xWrite(real, data, num_bytes / 2, offset);
  }
  errno = EIO;
  return SQLITE_IOERR_WRITE;
}

int FailingVfs::Truncate(sqlite3_file* real, const std::string& path,
                         sqlite3_int64 num_bytes) {
  if (IsNextFailed()) {
    errno = EIO;
    return SQLITE_IOERR_TRUNCATE;
  }
  sqlite3_int64 size = 0;
  real->pMethods->xFileSize(real, &size);
  Remember(real, path, num_bytes, size - num_bytes);
  return real->pMethods->xTruncate(real, num_bytes);
}

int FailingVfs::Sync(sqlite3_file* real, const std::string& path, int flags) {
  if (IsNextFailed()) {
    errno = EIO;
    return SQLITE_IOERR_FSYNC;
  }
  undos_.erase(
      std::remove_if(undos_.begin(), undos_.end(),
                     [&](const Undo& undo) { return undo.path == path; }),
      undos_.end());
  return real->pMethods->xSync(real, flags);
}

size_t FailingVfs::LosePower(size_t num_kept) {
  const size_t num_undone = undos_.size() - std::min(num_kept, undos_.size());
  const size_t num_unsure = undos_.size();
  for (size_t i = 0; i < num_undone; ++i) {
    const Undo undo = std::move(undos_.back());
    undos_.pop_back();
    // A file that was removed or renamed since is nobody's.
    if (access(undo.path.c_str(), W_OK) != 0) continue;
    std::fstream file(undo.path,
                      std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(undo.offset);
    file.write(undo.bytes.data(),
               static_cast<std::streamsize>(undo.bytes.size()));
    file.close();
    if (truncate(undo.path.c_str(), undo.file_bytes) != 0) std::abort();
  }
  undos_.clear();
  return num_unsure;
}

}  // namespace penstock::store
