// A store in a directory of the local disk, over SQLite. See store_files.h for
// the files, sqlite_format.h for what is in them.
//
//   Durable      synchronous = FULL: a commit that returned OK is on the disk
//   Writers      one process, by a lock; a second writer that got around the
//                lock, and the first one then, fail by their terms
//   Damage       found when the store is opened, which reads all of it: a
//   record
//                that is wrong, old or missing, and a log that ends too early.
//                Nothing is written to a store that is refused
//   Full disk    commits with values fail, those without still pass: they get
//                the space of the reserve, which is taken again when there is
//                enough
//   Size         at most twice what SQLite needs for the records, and 64 MiB;
//                records of 1 to 4 KiB need a page of 4 KiB and 0.5 KiB
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "penstock/service/store/meta_store.h"

namespace penstock::store {

struct SqliteOptions {
  // A log of this many pages is copied into the database.
  int checkpoint_pages = 1000;
  size_t reserve_bytes = size_t{16} << 20;
  int page_bytes = 4096;      // of a store that is made
  uint64_t terms_before = 0;  // of a store that is made: its first is higher
  std::string vfs;            // SQLite's name of a file system; empty: its own
};

// Opens the store in `directory`, which is made if it is not there.
//
//   FailedPrecondition  another process has it open; or its format is unknown
//   DataLoss            it is damaged; the message says where, and what to do
//   ResourceExhausted   the disk is full, and there was no reserve to free
absl::StatusOr<std::unique_ptr<MetaStore>> OpenSqliteStore(
    const std::string& directory, const SqliteOptions& options = {});

}  // namespace penstock::store
