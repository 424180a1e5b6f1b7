#include "penstock/engine/ops/parallel_map.h"

#include <algorithm>
#include <atomic>
#include <list>
#include <utility>

#include "penstock/base/clock.h"
#include "penstock/base/status.h"
#include "penstock/engine/ops/doorbell.h"
#include "penstock/engine/ops/given_runs.h"
#include "penstock/engine/ops/lanes.h"
#include "penstock/engine/ops/task_size.h"

namespace penstock::engine {
namespace {

// Rows in another process cost as many times as much to hand over.
constexpr int kProcessFactor = 100;
// Tasks in a row that were too short, whatever their rows: the first may have
// been long because the machine was busy.
constexpr int kManyShort = 64;

// One chunk on its way through the function.
class MapTask final : public Task, public PendingRows {
 public:
  MapTask(const Scope& scope, const OpInfo& info, Chunk input, Places places,
          std::shared_ptr<const Evaluator> function,
          std::shared_ptr<Lanes> lanes, std::function<void()> done)
      : Task(scope.run->environment.executor),
        scope_(scope),
        stats_(*StatsOf(scope, info)),
        input_(std::move(input)),
        places_(std::move(places)),
        function_(std::move(function)),
        lanes_(std::move(lanes)),
        done_(std::move(done)) {}

  bool is_done() const override {
    return is_done_.load(std::memory_order_acquire);
  }
  absl::StatusOr<Chunk> Take() override { return std::move(result_); }
  int64_t nanos() const override {
    return static_cast<int64_t>(static_cast<double>(ticks_) * NanosPerTick());
  }

 protected:
  Next RunSlice() override {
    if (is_done()) return Next::kWait;
    {
      WorkTimer timer(stats_, input_.rows);
      const uint64_t start = Ticks();
      result_ = function_->Apply(input_, scope_, places_);
      if (result_.ok()) MoveTo(places_, *result_);
      ticks_ = Ticks() - start;
    }
    input_ = Chunk();
    places_.clear();
    is_done_.store(true, std::memory_order_release);
    lanes_->Done();
    done_();
    return Next::kWait;
  }

 private:
  const Scope scope_;
  NodeStats& stats_;
  Chunk input_;
  Places places_;
  const std::shared_ptr<const Evaluator> function_;
  const std::shared_ptr<Lanes> lanes_;
  const std::function<void()> done_;
  absl::StatusOr<Chunk> result_ = Chunk();
  uint64_t ticks_ = 0;
  std::atomic<bool> is_done_{false};
};

// Some rows of the input: under way, done, being given away, or all given.
struct Piece {
  std::string position;  // of the input before them
  int64_t first = 0;     // of the input's rows
  int64_t rows = 0;
  int64_t given = 0;                  // from their beginning
  std::shared_ptr<PendingRows> task;  // null once the rows are in `chunk`
  Places places;                      // for them
  Chunk chunk;

  bool is_given() const { return given == rows; }
  bool is_ready() const {
    return !is_given() && (task == nullptr || task->is_done());
  }
};

class ParallelMapStream final : public Stream {
 public:
  ParallelMapStream(const Scope& scope, const OpInfo& info,
                    std::unique_ptr<Stream> input, StartRows start,
                    std::shared_ptr<const Evaluator> function,
                    const ParallelMapOptions& options)
      : Stream(StatsOf(scope, info), options.counts),
        scope_(scope),
        input_(std::move(input)),
        start_(std::move(start)),
        is_in_processes_(options.is_in_processes),
        min_task_nanos_((is_in_processes_ ? kProcessFactor : 1) *
                        scope.run->environment.min_shared_nanos),
        learnt_rows_(options.learnt_rows),
        task_size_(min_task_nanos_,
                   learnt_rows_ == nullptr ? 1 : learnt_rows_->load()),
        function_(std::move(function)),
        is_shared_(function_ == nullptr),
        knobs_(scope.run->knobs[info.id]),
        parallelism_(options.parallelism),
        keep_order_(options.keep_order),
        is_exact_(options.is_exact),
        max_rows_(options.max_rows),
        doorbell_(std::make_shared<Doorbell>()),
        places_(scope.run->environment.frames, info.leaves) {}

  bool IsOver() const override {
    return pieces_.empty() && runs_.empty() && failure_.ok() &&
           (has_ended_ || input_->IsOver());
  }

 protected:
  absl::StatusOr<Pull> DoNext(const Request& request) override {
    if (GoesAlone() && pieces_.empty() && !has_ended_ && failure_.ok()) {
      is_shared_ = was_long_ = false;
      num_short_ = 0;
    }
    stats()->parallelism.store(Parallelism(), std::memory_order_relaxed);
    stats()->is_inline.store(!is_shared_, std::memory_order_relaxed);
    if (!is_shared_) return NextAlone(request);
    FillWindow(request);
    doorbell_->Set(request.waker);
    auto piece = std::find_if(
        pieces_.begin(), pieces_.end(),
        [this](const Piece& each) { return keep_order_ || each.is_ready(); });
    if (piece == pieces_.end() || !piece->is_ready()) {
      if (!pieces_.empty() || (failure_.ok() && !has_ended_)) {
        return Pull::Blocked();
      }
      PENSTOCK_RETURN_IF_ERROR(failure_);
      return Pull::End();
    }
    if (piece->task != nullptr) {
      const int64_t nanos = piece->task->nanos();
      if (is_in_processes_) {
        stats()->python_nanos.fetch_add(nanos, std::memory_order_relaxed);
      }
      PENSTOCK_ASSIGN_OR_RETURN(piece->chunk, piece->task->Take());
      Learn(piece->chunk, nanos);
      places_.Learn(piece->chunk);
      // Unless they are there already: some come from another process.
      MoveTo(piece->places, piece->chunk);
      piece->places.clear();
      piece->task = nullptr;
      --num_tasks_;
    }
    const int64_t rows = std::min(request.max_rows, piece->rows - piece->given);
    Chunk chunk = Slice(piece->chunk, piece->given, rows);
    piece->given += rows;
    rows_pending_ -= rows;
    if (piece->is_given()) piece->chunk = Chunk();
    while (!pieces_.empty() && pieces_.front().is_given()) pieces_.pop_front();
    return Pull::Rows(std::move(chunk));
  }

  // Rows under way come first, and so do those of an unordered run.
  int64_t DoSkip(int64_t rows) override {
    if (!pieces_.empty() || !runs_.empty()) return 0;
    input_->SkipRows(rows);
    rows_read_ += rows;
    return rows;
  }

  void DoSave(WireWriter& writer) const override {
    if (pieces_.empty()) {
      writer.Varint(rows_read_);
      runs_.Save(writer);
      input_->Save(writer);
      return;
    }
    const Piece& first = pieces_.front();
    GivenRuns runs;
    for (const Piece& piece : pieces_) {
      runs.Append(0, &piece == &first ? 0 : piece.given);
      runs.Append(piece.rows - piece.given, 0);
    }
    runs.Append(runs_);
    writer.Varint(first.first + first.given);
    runs.Save(writer);
    SaveLater(writer, first.position, first.given);
  }

  absl::Status DoRestore(WireReader& reader) override {
    PENSTOCK_ASSIGN_OR_RETURN(const uint64_t rows, reader.Varint());
    rows_read_ = static_cast<int64_t>(rows);
    PENSTOCK_RETURN_IF_ERROR(runs_.Restore(reader));
    return input_->Restore(reader);
  }

 private:
  int64_t Parallelism() const {
    return is_exact_ ? 1 : KnobOr(knobs_.parallelism, parallelism_);
  }
  bool MayShare() const { return Parallelism() > 1; }
  // Once all that is under way was given.
  bool GoesAlone() const {
    return num_short_ >= kManyShort && function_ != nullptr;
  }

  // Computes rows here.
  absl::StatusOr<Pull> NextAlone(const Request& request) {
    while (!runs_.empty() && runs_.front().keep == 0) {
      input_->SkipRows(runs_.front().drop);
      rows_read_ += runs_.front().drop;
      runs_.PopFront();
    }
    const int64_t wanted = places_.Limit(
        request.group, 0,
        std::min({max_rows_, request.max_rows,
                  MayShare() ? task_size_.rows() : kMaxChunkRows}));
    PENSTOCK_ASSIGN_OR_RETURN(
        Pull pull, input_->Next({runs_.Limit(wanted), request.waker}));
    if (!pull.has_rows()) return pull;
    runs_.Read(pull.chunk.rows);
    rows_read_ += pull.chunk.rows;
    const uint64_t start = Ticks();
    const Places places = places_.Take(request.group, 0, pull.chunk.rows);
    PENSTOCK_ASSIGN_OR_RETURN(pull.chunk,
                              function_->Apply(pull.chunk, scope_, places));
    MoveTo(places, pull.chunk);
    if (!MayShare()) return pull;
    const double ticks = static_cast<double>(Ticks() - start);
    const auto nanos = static_cast<int64_t>(ticks * NanosPerTick());
    // Twice: the first time something may have been made ready.
    const bool is_long = nanos >= min_task_nanos_;
    is_shared_ = is_long && was_long_;
    was_long_ = is_long;
    Learn(pull.chunk, nanos);
    places_.Learn(pull.chunk);
    return pull;
  }

  // Pieces under way, or done and waiting for one before them; some of those
  // that wait have been given.
  bool HasRoom() const {
    const auto window = static_cast<size_t>(is_exact_ ? 1 : 2 * Parallelism());
    if (pieces_.size() >= 8 * window) return false;
    if (num_tasks_ < window) return true;
    return rows_pending_ + task_size_.rows() <=
           knobs_.reorder_rows.load(std::memory_order_relaxed);
  }

  void FillWindow(const Request& request) {
    while (HasRoom() && !GoesAlone() && !has_ended_ && failure_.ok()) {
      if (is_exact_ && !pieces_.empty()) return;
      WireWriter position;
      input_->Save(position);
      if (!runs_.empty() && runs_.front().keep == 0) {
        const int64_t rows = runs_.front().drop;
        if (!pieces_.empty()) {
          pieces_.push_back(
              {position.Take(), rows_read_, rows, rows, nullptr, {}, {}});
        }
        input_->SkipRows(rows);
        rows_read_ += rows;
        runs_.PopFront();
        continue;
      }
      int64_t wanted =
          std::min(max_rows_, is_exact_ ? request.max_rows : task_size_.rows());
      wanted = places_.Limit(request.group, rows_pending_, wanted);
      absl::StatusOr<Pull> pull =
          input_->Next({runs_.Limit(wanted), request.waker});
      if (!pull.ok()) {
        failure_ = pull.status();  // after the rows before it
        return;
      }
      has_ended_ = pull->is_end();
      if (!pull->has_rows()) return;
      const int64_t rows = pull->chunk.rows;
      runs_.Read(rows);
      Places places;
      if (keep_order_) {
        places = places_.Take(request.group, rows_pending_, rows);
        // What processes give lies in memory that they need again.
        if (is_in_processes_) places.may_stay = false;
      }
      rows_pending_ += rows;
      std::shared_ptr<PendingRows> task =
          start_(std::move(pull->chunk), rows_read_, places,
                 [doorbell = doorbell_] { doorbell->Ring(); });
      pieces_.push_back({position.Take(), rows_read_, rows, 0, std::move(task),
                         std::move(places), Chunk()});
      rows_read_ += rows;
      ++num_tasks_;
    }
  }

  // Of a chunk that took so long.
  void Learn(const Chunk& chunk, int64_t nanos) {
    num_short_ = nanos < min_task_nanos_ / 2 ? num_short_ + 1 : 0;
    task_size_.Learn(chunk.rows, ApproximateBytes(chunk), nanos);
    if (learnt_rows_ != nullptr) learnt_rows_->store(task_size_.rows());
  }

  const Scope scope_;
  const std::unique_ptr<Stream> input_;
  const StartRows start_;
  const bool is_in_processes_;
  const int64_t min_task_nanos_;
  const std::shared_ptr<std::atomic<int64_t>> learnt_rows_;
  TaskSize task_size_;
  // Computes rows here until is_shared_; may be null.
  const std::shared_ptr<const Evaluator> function_;
  bool is_shared_;
  const NodeKnobs& knobs_;
  const int64_t parallelism_;
  bool was_long_ = false;
  int num_short_ = 0;  // tasks in a row that were not worth their hand-off
  const bool keep_order_;
  const bool is_exact_;
  const int64_t max_rows_;
  const std::shared_ptr<Doorbell> doorbell_;
  std::list<Piece> pieces_;   // in the input's order; the first has rows left
  size_t num_tasks_ = 0;      // pieces that have one
  int64_t rows_pending_ = 0;  // in pieces, not given
  int64_t rows_read_ = 0;     // of the input, with those left out
  bool has_ended_ = false;
  absl::Status failure_;  // of the input
  GivenRuns runs_;        // of a restored state, not read yet
  BatchPlaces places_;
};

}  // namespace

StartRows StartOnExecutor(const Scope& scope, const OpInfo& info,
                          std::shared_ptr<const Evaluator> function,
                          int64_t parallelism) {
  auto lanes = std::make_shared<Lanes>(scope.run->knobs[info.id].parallelism,
                                       parallelism);
  // What has not begun when the stream goes never does.
  std::shared_ptr<void> stream(nullptr, [lanes](void*) { lanes->Clear(); });
  return [scope, &info, function = std::move(function), lanes,
          stream = std::move(stream)](Chunk input, int64_t, Places places,
                                      std::function<void()> done) {
    auto task = std::make_shared<MapTask>(scope, info, std::move(input),
                                          std::move(places), function, lanes,
                                          std::move(done));
    lanes->Start(task);
    return task;
  };
}

std::unique_ptr<Stream> MakeParallelMapStream(
    const Scope& scope, const OpInfo& info, std::unique_ptr<Stream> input,
    StartRows start, const ParallelMapOptions& options) {
  return std::make_unique<ParallelMapStream>(
      scope, info, std::move(input), std::move(start), nullptr, options);
}

std::unique_ptr<Stream> MakeParallelMapStream(
    const Scope& scope, const OpInfo& info, std::unique_ptr<Stream> input,
    std::shared_ptr<const Evaluator> function,
    const ParallelMapOptions& options) {
  return std::make_unique<ParallelMapStream>(
      scope, info, std::move(input),
      StartOnExecutor(scope, info, function, options.parallelism), function,
      options);
}

}  // namespace penstock::engine
