// The files of a store's directory that are not SQLite's.
//
//   store.db, store.db-wal, store.db-shm   SQLite's
//   lock           locked by the process that has the store open; holds its id
//   acknowledged   the number of the last commit that a caller heard of
//   reserve        bytes to give back when the disk is full
//
// Files are for their owner alone (0600), and so is a directory that is made
// here (0700).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "penstock/base/socket.h"

namespace penstock::store {

std::string DatabasePath(const std::string& directory);
std::string WalPath(const std::string& directory);

// Bytes of a file; none if it is not there.
std::optional<uint64_t> FileBytes(const std::string& path);

// Makes `directory` if it is not there; what it lies in must be.
absl::Status MakeDirectory(const std::string& directory);

// Makes an empty file, for its owner alone, in place of what is there.
absl::Status MakeEmptyFile(const std::string& path);

// A new name, or a name that is gone, survives a crash after this.
absl::Status SyncDirectory(const std::string& directory);

// Makes `from` durable and then known as `to`.
absl::Status Publish(const std::string& directory, const std::string& from,
                     const std::string& to);

// Locks the directory until the descriptor closes. FailedPrecondition, with the
// holder's process id, if another has it.
absl::StatusOr<Descriptor> LockDirectory(const std::string& directory);

// The last commit that was acknowledged, written without an fsync after each
// commit's own: after a crash it may be too old, and never too new. A store
// that ends before it has lost a commit, though it looks whole: SQLite takes a
// damaged frame for the end of the log.
class Acknowledged final {
 public:
  // The number in `directory`; 0 if there is none, or a damaged one.
  static uint64_t Read(const std::string& directory);

  absl::Status Open(const std::string& directory);
  // Errors do not matter: the number stays the older one.
  void Write(uint64_t sequence);

 private:
  Descriptor file_;
};

// Space that is given back so that a full store can still delete. One thread
// at a time.
class Reserve final {
 public:
  Reserve(const std::string& directory, size_t num_bytes);

  // Takes the space; true if it is held now. Little work if it was.
  bool Take();
  // Gives it back; true if there was any.
  bool Free();
  bool is_held() const { return is_held_; }

 private:
  const std::string path_;
  const size_t num_bytes_;
  bool is_held_ = false;
};

}  // namespace penstock::store
