#include "penstock/engine/ops/partly_native_map.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "penstock/base/status.h"
#include "penstock/data/builder.h"
#include "penstock/engine/evaluate.h"
#include "penstock/engine/ops/parallel_map.h"
#include "penstock/engine/ops/python_call.h"
#include "penstock/plan/convert.h"

namespace penstock::engine {
namespace {

// Rows of a chunk that follow one another.
struct Stretch {
  int64_t begin;
  int64_t rows;
};

// Those of `made` that are errors and were none in `input`.
std::vector<Stretch> NewErrors(const Chunk& input, const Chunk& made) {
  std::vector<Stretch> found;
  for (const RowError& error : made.errors) {
    if (ErrorAt(input, error.row) != nullptr) continue;
    if (!found.empty() && found.back().begin + found.back().rows == error.row) {
      ++found.back().rows;
    } else {
      found.push_back({error.row, 1});
    }
  }
  return found;
}

// A chunk on its way: through the steps, and what they do not know through
// Python. Used by the stream's thread and by those that compute: they follow
// one another, and is_done() is the last that they do.
class PartlyNativeRows final
    : public PendingRows,
      public std::enable_shared_from_this<PartlyNativeRows> {
 public:
  PartlyNativeRows(Chunk input, int64_t first, const StartRows& python,
                   NodeStats& stats, std::function<void()> done)
      : input_(std::move(input)),
        first_(first),
        python_(python),
        stats_(stats),
        done_(std::move(done)) {}

  // To be called once. The tasks do not keep this alive: who drops it has no
  // use for what they do.
  void Start(const StartRows& native, Places places) {
    native_ = native(input_, first_, std::move(places),
                     [self = weak_from_this()] { Meet(self); });
    Meet(weak_from_this());
  }

  bool is_done() const override {
    return is_done_.load(std::memory_order_acquire);
  }

  absl::StatusOr<Chunk> Take() override {
    if (!made_.ok() || stretches_.empty()) return std::move(made_);
    ChunkBuilder all;
    int64_t row = 0;
    const int native = all.AddSource(*made_);
    for (size_t i = 0; i < stretches_.size(); ++i) {
      const Stretch& stretch = stretches_[i];
      stats_.python_nanos.fetch_add(calls_[i]->nanos(),
                                    std::memory_order_relaxed);
      PENSTOCK_ASSIGN_OR_RETURN(const Chunk given, calls_[i]->Take());
      if (stretch.begin > row) all.Append(native, row, stretch.begin - row);
      all.Append(given, 0, given.rows);
      row = stretch.begin + stretch.rows;
    }
    if (row < made_->rows) all.Append(native, row, made_->rows - row);
    return all.Build();
  }

  int64_t nanos() const override {
    int64_t total = nanos_;
    for (const auto& call : calls_) total += call->nanos();
    return total;
  }

 private:
  // Called when the task is done and when it is known here, in any order.
  static void Meet(const std::weak_ptr<PartlyNativeRows>& weak) {
    if (const auto self = weak.lock()) {
      if (self->left_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
        self->AskPython();
      }
    }
  }

  void AskPython() {
    nanos_ = native_->nanos();
    made_ = native_->Take();
    native_ = nullptr;
    if (made_.ok()) stretches_ = NewErrors(input_, *made_);
    left_ = static_cast<int>(stretches_.size()) + 1;
    for (const Stretch& stretch : stretches_) {
      calls_.push_back(python_(Slice(input_, stretch.begin, stretch.rows),
                               first_ + stretch.begin, {},
                               [self = weak_from_this()] { MeetAgain(self); }));
    }
    input_ = Chunk();  // What is still needed of it, calls have.
    MeetAgain(weak_from_this());
  }

  static void MeetAgain(const std::weak_ptr<PartlyNativeRows>& weak) {
    if (const auto self = weak.lock()) {
      if (self->left_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
        self->is_done_.store(true, std::memory_order_release);
        self->done_();
      }
    }
  }

  Chunk input_;  // until Python is asked
  const int64_t first_;
  const StartRows python_;
  NodeStats& stats_;
  const std::function<void()> done_;
  std::atomic<int> left_{2};  // who must come before it goes on
  std::shared_ptr<PendingRows> native_;
  int64_t nanos_ = 0;  // of the steps
  absl::StatusOr<Chunk> made_ = Chunk();
  std::vector<Stretch> stretches_;  // that the steps do not know
  std::vector<std::shared_ptr<PendingRows>> calls_;  // of each
  std::atomic<bool> is_done_{false};
};

}  // namespace

OperatorOr MakePartlyNativeMap(const plan::Map& spec, OperatorPtr input,
                               OpContext& context) {
  const OpInfo& info = *context.info;
  PENSTOCK_ASSIGN_OR_RETURN(
      std::shared_ptr<const Evaluator> function,
      Evaluator::Make(spec.function(), context.input_leaves[0], context));
  PENSTOCK_ASSIGN_OR_RETURN(const ElementSpec result,
                            plan::FromProto(spec.function().output()));
  PythonCallOptions call;
  call.result = result.Flatten();
  return MakeOperator([=, &info](const Scope& scope) -> StreamOr {
    PENSTOCK_ASSIGN_OR_RETURN(
        StartRows python, StartInProcesses(spec.function(), call, scope, info));
    PENSTOCK_ASSIGN_OR_RETURN(auto stream, input->Start(scope));
    const Run& run = *scope.run;
    ParallelMapOptions options;
    options.keep_order = spec.has_deterministic()
                             ? spec.deterministic()
                             : run.options.is_deterministic;
    options.is_exact = run.options.is_row_exact;
    options.parallelism = spec.has_parallelism()
                              ? spec.parallelism()
                              : run.environment.executor->num_threads();
    options.max_rows = function->max_rows();
    StartRows native =
        StartOnExecutor(scope, info, function, options.parallelism);
    NodeStats& stats = *StatsOf(scope, info);
    return MakeParallelMapStream(
        scope, info, std::move(stream),
        [native = std::move(native), python = std::move(python), &stats,
         run = scope.run](
            Chunk rows, int64_t first, Places places,
            std::function<void()> done) -> std::shared_ptr<PendingRows> {
          auto pending = std::make_shared<PartlyNativeRows>(
              std::move(rows), first, python, stats, std::move(done));
          pending->Start(native, std::move(places));
          return pending;
        },
        options);
  });
}

}  // namespace penstock::engine
