// A map as a parallel region: chunks of its input are on their way through the
// function at once, and a bounded window puts their results back in order.
#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include "penstock/engine/evaluate.h"
#include "penstock/engine/operator.h"
#include "penstock/engine/ops/batch_places.h"
#include "penstock/engine/row_function.h"

namespace penstock::engine {

// Puts a chunk on its way, the rows from `first` on of all that the stream was
// given; the last argument is called when it is done. Results may be put where
// `places` says.
using StartRows = std::function<std::shared_ptr<PendingRows>(
    Chunk input, int64_t first, Places places, std::function<void()> done)>;

struct ParallelMapOptions {
  // Chunks computed at once, where no knob says otherwise. As many wait, so
  // that there is always one; more of them where the knob reorder_rows says so.
  // Each has kMaxChunkBytes of results, or one row: that bounds what is held.
  int64_t parallelism = 1;
  // If not, results are given as they come; a saved position then repeats no
  // row and loses none, but the order after a restore may differ.
  bool keep_order = true;
  // Nothing is begun but what was asked for.
  bool is_exact = false;
  // Rows go to other processes, which costs more than to other threads.
  bool is_in_processes = false;
  // Rows of a chunk, at most.
  int64_t max_rows = kMaxChunkRows;
  // Rows that a chunk had in the streams before this one; null: it begins with
  // one row.
  std::shared_ptr<std::atomic<int64_t>> learnt_rows;
  // Whose rows the stream's are.
  Stream::Counts counts = Stream::Counts::kAll;
};

// A chunk as a task on the executor, `parallelism` of them at once unless a
// knob says otherwise. What is given must outlive the tasks.
StartRows StartOnExecutor(const Scope& scope, const OpInfo& info,
                          std::shared_ptr<const Evaluator> function,
                          int64_t parallelism);

// Rows per chunk grow until one is worth its hand-off.
std::unique_ptr<Stream> MakeParallelMapStream(
    const Scope& scope, const OpInfo& info, std::unique_ptr<Stream> input,
    StartRows start, const ParallelMapOptions& options);

// The same with chunks as tasks on the executor, once they take long enough:
// until then, and always if `parallelism` is 1, the caller computes them.
std::unique_ptr<Stream> MakeParallelMapStream(
    const Scope& scope, const OpInfo& info, std::unique_ptr<Stream> input,
    std::shared_ptr<const Evaluator> function,
    const ParallelMapOptions& options);

}  // namespace penstock::engine
