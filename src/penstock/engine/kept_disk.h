// Kept rows in a directory: for later passes, other processes, and those that
// come after a restart.
//
//   DIRECTORY/KEY/index       which segments there are, how many rows the pass
//                             has, and the files that they came from
//   DIRECTORY/KEY/FIRST-CRC   a segment: some consecutive rows
//
// Both are written beside and renamed, so that a writer that is killed leaves
// nothing that is read, and end with the crc32c of what is before it. A segment
// is named by its contents, so that two writers of the same rows write the same
// file; of two indices the last one stays. What cannot be read, or is not what
// it should be, is as if it were not there: its rows are computed again.
//
// All functions but constructors wait for storage, unless they say otherwise.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "penstock/base/mutex.h"
#include "penstock/data/chunk.h"
#include "penstock/data/spec.h"
#include "penstock/engine/file_log.h"
#include "penstock/engine/memory_budget.h"

namespace penstock::engine {

// A directory of entries. Thread-safe; so are several processes with one.
class KeptDisk final {
 public:
  struct Segment {
    int64_t first = 0;
    int64_t rows = 0;
    int64_t bytes = 0;  // of the file
    uint32_t crc = 0;
  };
  struct Index {
    std::map<int64_t, Segment> segments;  // by first row
    std::optional<int64_t> end;
    FileManifest manifest;

    int64_t bytes() const;
  };

  // At most `max_bytes` in all; the entries that were longest not used go
  // first. The directory is made, for this user alone, when it is first needed.
  KeptDisk(std::string directory, int64_t max_bytes)
      : directory_(std::move(directory)), max_bytes_(max_bytes) {}

  // What is there. Nothing, if it is not, or damaged.
  Index ReadIndex(const std::string& key);
  // Makes `index` that of the key, and room for it.
  absl::Status WriteIndex(const std::string& key, const Index& index);
  // By ordinals of their first rows.
  absl::StatusOr<std::map<int64_t, Chunk>> ReadSegment(const std::string& key,
                                                       const Segment& segment);
  // REQUIRES: consecutive rows without errors, of which `first` is the first.
  absl::StatusOr<Segment> WriteSegment(const std::string& key, int64_t first,
                                       const std::vector<Chunk>& chunks);
  void Remove(const std::string& key, const Segment& segment);
  void Drop(const std::string& key);

  int64_t max_bytes() const { return max_bytes_; }

 private:
  std::string PathOf(const std::string& key) const;
  std::string PathOf(const std::string& key, const Segment& segment) const;
  absl::Status WriteFile(const std::string& key, const std::string& path,
                         const std::vector<std::string_view>& parts);
  void MakeRoom(const std::string& kept_key);

  const std::string directory_;
  const int64_t max_bytes_;
  std::atomic<uint64_t> next_name_{0};
};

// One pass over an entry of a directory: gives what is there, and gathers what
// is not. One caller at a time. Functions that wait for storage are for I/O
// threads; while one is under way, no other may be called but Finish().
class DiskPass final {
 public:
  DiskPass(std::shared_ptr<KeptDisk> disk, std::string key,
           std::vector<TensorSpec> leaves, std::shared_ptr<MemoryBudget> memory)
      : disk_(std::move(disk)),
        key_(std::move(key)),
        leaves_(std::move(leaves)),
        memory_(std::move(memory)) {}

  // Reads the index, and drops the entry if its files have changed. Waits.
  void Open(io::FileSystem& files) ABSL_LOCKS_EXCLUDED(mutex_);

  // What is at a row: rows, a segment that must be Load()ed first, nothing
  // until `hole_rows` rows later, or the end. Does not wait.
  struct Found {
    enum class Kind : uint8_t { kRows, kUnread, kHole, kEnd };
    Kind kind = Kind::kHole;
    Chunk chunk;
    int64_t hole_rows = 0;
  };
  Found Find(int64_t row, int64_t max_rows) ABSL_LOCKS_EXCLUDED(mutex_);
  // Reads the segment that `row` is in; a damaged one goes. Waits.
  void Load(int64_t row) ABSL_LOCKS_EXCLUDED(mutex_);

  // Keeps `chunk`, whose rows begin at `first`; true once enough is gathered to
  // be written. Does not wait.
  bool Add(int64_t first, Chunk chunk, int64_t bytes)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Files that the rows came from. Does not wait.
  void AddFiles(const std::vector<FileLog::Record>& records)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Does not wait.
  void SetEnd(int64_t rows) ABSL_LOCKS_EXCLUDED(mutex_);
  // Writes what was gathered. Waits.
  void Write() ABSL_LOCKS_EXCLUDED(mutex_);
  // The same, and makes it known to others. Waits.
  void Finish() ABSL_LOCKS_EXCLUDED(mutex_);

  // None of these waits.
  int64_t bytes() const ABSL_LOCKS_EXCLUDED(mutex_);
  bool is_complete() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void WriteLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::shared_ptr<KeptDisk> disk_;
  const std::string key_;
  const std::vector<TensorSpec> leaves_;
  const std::shared_ptr<MemoryBudget> memory_;

  mutable Mutex mutex_;
  KeptDisk::Index index_ ABSL_GUARDED_BY(mutex_);
  bool has_news_ ABSL_GUARDED_BY(mutex_) = false;
  // The segment that was read last.
  std::map<int64_t, Chunk> read_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<Reservation> reservation_ ABSL_GUARDED_BY(mutex_);
  // Of segments that were damaged, their first rows.
  std::set<int64_t> gone_ ABSL_GUARDED_BY(mutex_);
  // Rows that are in no segment yet: runs of consecutive ones, by first row.
  std::map<int64_t, std::vector<Chunk>> fresh_ ABSL_GUARDED_BY(mutex_);
  int64_t next_fresh_ ABSL_GUARDED_BY(mutex_) = 0;  // after the last run
  int64_t fresh_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace penstock::engine
