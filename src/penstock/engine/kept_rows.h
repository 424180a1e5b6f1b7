// Rows that knobs have kept, so that later passes need not compute them: a
// store that gives way to everything else.
//
// An entry holds some of the rows of one pass over what one node gives: parts
// of it, each a chunk that holds on to nothing but itself, with the ordinal of
// its first row. Whoever keeps or reads an entry has a Use of it.
//
// Memory is charged to the budget of the run that keeps, and then to that of
// the one that last began to use them: a budget may be one iterator's alone,
// and rows outlive iterators. What nobody uses gives way to other rows that
// want to be kept, the longest unused first; what is in use gives way to
// shuffles and caches, the last rows first.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "penstock/base/mutex.h"
#include "penstock/data/chunk.h"
#include "penstock/engine/file_log.h"
#include "penstock/engine/memory_budget.h"

namespace penstock::engine {

// Thread-safe.
class KeptRows final : public std::enable_shared_from_this<KeptRows> {
 private:
  struct Entry;

 public:
  // What is at a row: the rest of a part, none until `hole_rows` rows later, or
  // the end.
  struct Found {
    enum class Kind : uint8_t { kRows, kHole, kEnd };
    Kind kind = Kind::kHole;
    Chunk chunk;
    int64_t hole_rows = 0;
  };

  // One user of an entry, which stays as long as it has any. One caller at a
  // time.
  class Use final {
   public:
    ~Use();
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

    // At most `max_rows` rows, without a copy.
    Found Find(int64_t row, int64_t max_rows) const;
    // Keeps `chunk`, whose first row has ordinal `first`, as long as
    // `reservation` may. False, and nothing is kept, if some of it is there or
    // the entry was dropped.
    bool Add(int64_t first, Chunk chunk,
             std::unique_ptr<Reservation> reservation);
    void SetEnd(int64_t rows);

    // The files that the rows came from; to be checked before any is given.
    FileManifest manifest() const;
    // Adds to them. What was kept goes if a file was found changed. False:
    // there are too many.
    bool AddFiles(const std::vector<FileLog::Record>& records);

    // The entry is of no use any more: its rows go, and the next user of its
    // key gets another one.
    void Drop();

    int64_t bytes() const;
    bool is_complete() const;
    // Times that rows had to go.
    uint64_t losses() const;

   private:
    friend class KeptRows;
    Use(std::shared_ptr<KeptRows> store, std::string key,
        std::shared_ptr<Entry> entry)
        : store_(std::move(store)),
          key_(std::move(key)),
          entry_(std::move(entry)) {}

    const std::shared_ptr<KeptRows> store_;
    const std::string key_;
    const std::shared_ptr<Entry> entry_;
  };

  KeptRows();
  ~KeptRows();

  // The entry of `key`, which names what is computed and from what; made if
  // there is none. `instances`: those of the user's pipeline. An entry goes
  // with the last pipeline that had it, as far as instances tell. Its rows are
  // charged to `budget` from now on; those that it has no room for go, unless
  // somebody else uses them.
  std::unique_ptr<Use> Open(const std::string& key,
                            const std::vector<uint64_t>& instances,
                            const std::shared_ptr<MemoryBudget>& budget)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void DropInstance(uint64_t instance) ABSL_LOCKS_EXCLUDED(mutex_);

  // Gives up rows of at least `bytes` bytes that are charged to `budget`, or as
  // many as there are.
  void GiveWay(const MemoryBudget& budget, int64_t bytes,
               MemoryBudget::Which which) ABSL_LOCKS_EXCLUDED(mutex_);
  // That, for a budget, as long as the store lives.
  static MemoryBudget::Reclaim ReclaimFrom(
      const std::shared_ptr<KeptRows>& store);

  int64_t bytes() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Part {
    Chunk chunk;
    std::unique_ptr<Reservation> reservation;
  };
  using Parts = std::map<int64_t, Part>;  // by first row

  void ChargeTo(const std::shared_ptr<MemoryBudget>& budget, Entry& entry)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Idle entries that are charged to others have no more than `budget` allows:
  // nobody else may ask them to give way again.
  std::vector<std::shared_ptr<Entry>> TakeOutForgotten(
      const MemoryBudget& budget) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // What entries hold is guarded, too.
  mutable Mutex mutex_;
  std::map<std::string, std::shared_ptr<Entry>> entries_
      ABSL_GUARDED_BY(mutex_);
  uint64_t time_ ABSL_GUARDED_BY(mutex_) = 0;  // of uses
};

}  // namespace penstock::engine
