// A run: what the streams of one iterator share.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "penstock/base/mutex.h"
#include "penstock/base/wire.h"
#include "penstock/data/chunk.h"
#include "penstock/data/frame_memory.h"
#include "penstock/engine/cache_store.h"
#include "penstock/engine/executor.h"
#include "penstock/engine/file_log.h"
#include "penstock/engine/kept_disk.h"
#include "penstock/engine/kept_rows.h"
#include "penstock/engine/knobs.h"
#include "penstock/engine/memory_budget.h"
#include "penstock/engine/padding_stats.h"
#include "penstock/engine/row_function.h"
#include "penstock/engine/row_source.h"
#include "penstock/engine/stats.h"
#include "penstock/io/file_system.h"
#include "penstock/io/io_pool.h"
#include "penstock/plan.pb.h"

namespace penstock::engine {

class Receiver;

// What the engine's iterators have in common. All of it thread-safe, and alive
// until the last run has ended.
struct Environment {
  Executor* executor = nullptr;
  io::FileSystem* files = nullptr;
  // Where relative names start from, for what is kept by name.
  std::string directory;
  io::IoPool* io_pool = nullptr;
  // Of one iterator, or of all: what it reserved may outlive it in a cache.
  std::shared_ptr<MemoryBudget> memory;
  CacheStore* caches = nullptr;
  // Rows that knobs have kept; null: none are.
  std::shared_ptr<KeptRows> kept;
  // The same in a directory; null: there is none.
  std::shared_ptr<KeptDisk> kept_disk;
  // Rows that live in the trainer's process; null where there are none.
  RowSources* sources = nullptr;
  // Rows that other engines compute; null where there are none.
  std::shared_ptr<Receiver> receiver;
  // The user's Python functions; null where there are none.
  RowFunctions* functions = nullptr;
  // Where rows are best computed that become frames; null: anywhere.
  std::shared_ptr<FrameMemory> frames;
  // Whether streams count and time what they do. Off only to measure what that
  // costs.
  bool has_counters = true;
  // Between two times that a run looks whether files have changed whose rows
  // are kept: each pass over much data does, few of those over little.
  int64_t min_check_nanos = 1'000'000'000;
  // Between two times that a shuffle writes down its window.
  int64_t min_recording_nanos = 10'000'000;
  // A chunk that a function takes longer for is worth handing to another
  // thread: a few µs where that one is awake, 30 where it must be woken.
  int64_t min_shared_nanos = 60'000;
  // What all runs together pad, if somebody asks.
  std::shared_ptr<PaddingStats> padding;
  // Told what a person may want to know.
  std::function<void(std::string_view)> warn;
};

// A share of a pipeline's rows (plan/divide.h), to be run by itself. What comes
// of it has the ordinals, lineages and random values that it has in a run of
// the whole. Nodes are numbers in the plan.
struct RunPart {
  // The node of which rows [begin, end) alone are given; of one that reads a
  // list of files, these files. Unset: all are.
  std::optional<int> node;
  // The node is a Received, and these are bundles of the job that it reads.
  bool is_received = false;
  int64_t begin = 0;
  int64_t end = 0;
  // Every so many of them, `begin` first.
  int64_t stride = 1;
  // The one row is a file, and piece `piece` of its records alone is read
  // (Division::Records): by the node, or by what its opener's function makes.
  int64_t pieces = 1;
  int64_t piece = 0;
  std::optional<int> opener;
  // A repeat of which one pass alone is run, counted from 0.
  std::optional<int> repeat;
  uint64_t pass = 0;
  // A batch, or the like, whose last group is not given unless it is full: its
  // rows are loose (Run::loose). A Received: loose rows of the other job are.
  std::optional<int> stitch;
  // Scope::iteration, of a share that is run for a repetition elsewhere.
  uint64_t iteration = 0;
  // Rows have a lineage, though nothing here needs it.
  bool gives_lineage = false;
  // A word for the source's rows and what is made of them: what shares are kept
  // by in files (Cache.in_shares), whose rows then need a lineage. 0: none are.
  uint64_t kept_by = 0;
};

// How one iterator runs its plan.
struct RunOptions {
  // Nothing may be computed before it is asked for: somebody would see it.
  bool is_row_exact = false;
  bool needs_lineage = false;
  bool is_deterministic = true;
  int64_t max_element_bytes = int64_t{2} << 30;
  plan::Options::Python python;
  std::optional<RunPart> part;
};

// What is left of the rows of a part once full groups were made. Thread-safe.
class LooseRows final {
 public:
  // Instead of those that were there: who comes here again brings the same.
  void Set(Chunk rows) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    rows_ = std::move(rows);
  }
  Chunk Get() const ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    return rows_;
  }

 private:
  mutable Mutex mutex_;
  Chunk rows_ ABSL_GUARDED_BY(mutex_);
};

// The key of a node's randomness: given or drawn, and the epoch.
struct RandomState {
  uint64_t seed = 0;
  uint64_t epoch = 0;
};

struct OpInfo;

struct Run {
  // Keeps alive what streams and tasks refer to: a task may be the last one
  // left of its iterator.
  std::shared_ptr<const void> pipeline;
  Environment environment;
  RunOptions options;
  std::deque<NodeStats> stats;      // by OpInfo::id
  std::vector<RandomState> random;  // by OpInfo::id
  // By OpInfo::id; set by anyone, while streams read them. Files that are being
  // opened may outlast the run, and look at theirs.
  std::shared_ptr<std::deque<NodeKnobs>> shared_knobs =
      std::make_shared<std::deque<NodeKnobs>>();
  std::deque<NodeKnobs>& knobs = *shared_knobs;
  std::deque<KeptCounts> kept;  // by OpInfo::id
  // Of the nodes that read files, by OpInfo::id.
  std::map<int, std::shared_ptr<FileLog>> file_logs;
  std::vector<uint64_t> instances;  // all that the pipeline has

  // Of options.part, as OpInfo::id; -1: none.
  struct PartOps {
    int source = -1;
    int repeat = -1;
    int stitch = -1;
    int opener = -1;
  };
  PartOps part_ops;
  LooseRows loose;

  // A word for the part, for what mixes rows of it alone: 0 where that is the
  // whole, or where it mixes rows that are then shared out.
  uint64_t PartKey(const OpInfo& info) const;

  // The files as a node reads them: it is written down which.
  std::shared_ptr<io::FileSystem> FilesOf(const OpInfo& info) const;

  // The key that a node's random values and orders begin with. Where the user
  // asked for the same in each iteration, without the epoch.
  uint64_t RandomKey(const OpInfo& info, bool with_epoch) const;
};

}  // namespace penstock::engine
