#include "penstock/engine/ops/parallel_map.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <utility>

#include "penstock/base/clock.h"
#include "penstock/base/mutex.h"
#include "penstock/base/status.h"

namespace penstock::engine {
namespace {

// Where tasks find the one who waits for them. Outlives the stream if tasks do.
class Doorbell final {
 public:
  void Set(const Waker& waker) {
    MutexLock lock(&mutex_);
    waker_ = waker;
  }
  void Ring() {
    Waker waker;
    {
      MutexLock lock(&mutex_);
      waker = std::exchange(waker_, nullptr);
    }
    if (waker != nullptr) waker->Wake();
  }

 private:
  Mutex mutex_;
  Waker waker_ ABSL_GUARDED_BY(mutex_);
};

// One chunk on its way through the function.
class MapTask final : public Task {
 public:
  MapTask(const Scope& scope, const OpInfo& info, Chunk input,
          std::string position, std::shared_ptr<const Evaluator> function,
          std::shared_ptr<Doorbell> doorbell)
      : Task(scope.run->environment.executor),
        scope_(scope),
        stats_(*StatsOf(scope, info)),
        input_(std::move(input)),
        position_(std::move(position)),
        function_(std::move(function)),
        doorbell_(std::move(doorbell)) {}

  bool is_done() const { return is_done_.load(std::memory_order_acquire); }
  // REQUIRES: is_done().
  absl::StatusOr<Chunk>& result() { return result_; }
  const std::string& position() const { return position_; }
  uint64_t ticks() const { return ticks_; }

 protected:
  Next RunSlice() override {
    if (is_done()) return Next::kWait;
    {
      WorkTimer timer(stats_);
      const uint64_t start = Ticks();
      result_ = function_->Apply(input_, scope_);
      ticks_ = Ticks() - start;
    }
    input_ = Chunk();
    is_done_.store(true, std::memory_order_release);
    doorbell_->Ring();
    return Next::kWait;
  }

 private:
  const Scope scope_;
  NodeStats& stats_;
  Chunk input_;
  const std::string position_;
  const std::shared_ptr<const Evaluator> function_;
  const std::shared_ptr<Doorbell> doorbell_;
  absl::StatusOr<Chunk> result_ = Chunk();
  uint64_t ticks_ = 0;
  std::atomic<bool> is_done_{false};
};

class ParallelMapStream final : public Stream {
 public:
  ParallelMapStream(const Scope& scope, const OpInfo& info,
                    std::unique_ptr<Stream> input,
                    std::shared_ptr<const Evaluator> function,
                    int64_t parallelism, bool keep_order)
      : Stream(StatsOf(scope, info)),
        scope_(scope),
        info_(info),
        input_(std::move(input)),
        function_(std::move(function)),
        window_(static_cast<size_t>(2 * parallelism)),
        keep_order_(keep_order),
        doorbell_(std::make_shared<Doorbell>()) {}

 protected:
  absl::StatusOr<Pull> DoNext(const Request& request) override {
    if (given_ == head_.rows) {
      PENSTOCK_ASSIGN_OR_RETURN(const Pull::Kind kind, NextChunk(request));
      if (kind == Pull::Kind::kEnd) return Pull::End();
      if (kind == Pull::Kind::kBlocked) return Pull::Blocked();
    }
    const int64_t rows = std::min(request.max_rows, head_.rows - given_);
    Chunk chunk = Slice(head_, given_, rows);
    given_ += rows;
    return Pull::Rows(std::move(chunk));
  }

  void DoSave(WireWriter& writer) const override {
    if (given_ < head_.rows) {
      SavePosition(writer, head_position_, given_);
      return;
    }
    if (!tasks_.empty()) {
      SavePosition(writer, tasks_.front()->position(), 0);
      return;
    }
    WireWriter state;
    input_->Save(state);
    SavePosition(writer, state.bytes(), 0);
  }

  absl::Status DoRestore(WireReader& reader) override {
    PENSTOCK_ASSIGN_OR_RETURN(const uint64_t rows, reader.Varint());
    PENSTOCK_ASSIGN_OR_RETURN(const std::string_view state, reader.Bytes());
    WireReader state_reader(state);
    PENSTOCK_RETURN_IF_ERROR(input_->Restore(state_reader));
    input_->SkipRows(static_cast<int64_t>(rows));
    return absl::OkStatus();
  }

 private:
  // Moves the next finished chunk to head_.
  absl::StatusOr<Pull::Kind> NextChunk(const Request& request) {
    PENSTOCK_RETURN_IF_ERROR(FillWindow(request));
    if (tasks_.empty()) {
      return has_ended_ ? Pull::Kind::kEnd : Pull::Kind::kBlocked;
    }
    // Set before looking: a task that ends in between rings then.
    doorbell_->Set(request.waker);
    auto ready = tasks_.begin();
    if (!keep_order_) {
      ready = std::find_if(tasks_.begin(), tasks_.end(),
                           [](const auto& task) { return task->is_done(); });
      if (ready == tasks_.end()) return Pull::Kind::kBlocked;
    }
    MapTask& task = **ready;
    if (!task.is_done()) return Pull::Kind::kBlocked;
    PENSTOCK_RETURN_IF_ERROR(task.result().status());
    Learn(task);
    head_ = *std::move(task.result());
    head_position_ = task.position();
    given_ = 0;
    tasks_.erase(ready);
    return Pull::Kind::kRows;
  }

  absl::Status FillWindow(const Request& request) {
    while (tasks_.size() < window_ && !has_ended_) {
      WireWriter position;
      input_->Save(position);
      PENSTOCK_ASSIGN_OR_RETURN(Pull pull,
                                input_->Next({rows_per_task_, request.waker}));
      if (pull.is_end()) has_ended_ = true;
      if (!pull.has_rows()) break;
      tasks_.push_back(
          std::make_shared<MapTask>(scope_, info_, std::move(pull.chunk),
                                    position.Take(), function_, doorbell_));
      tasks_.back()->Wake();
    }
    return absl::OkStatus();
  }

  // A hand-off costs about 30 µs: a task should run for ten times that.
  void Learn(const MapTask& task) {
    const double nanos = static_cast<double>(task.ticks()) * NanosPerTick();
    if (nanos < 300'000 && rows_per_task_ < kMaxChunkRows) rows_per_task_ *= 2;
    if (nanos > 3'000'000 && rows_per_task_ > 1) rows_per_task_ /= 2;
  }

  const Scope scope_;
  const OpInfo& info_;
  const std::unique_ptr<Stream> input_;
  const std::shared_ptr<const Evaluator> function_;
  const size_t window_;
  const bool keep_order_;
  const std::shared_ptr<Doorbell> doorbell_;
  std::deque<std::shared_ptr<MapTask>> tasks_;  // in the input's order
  bool has_ended_ = false;
  int64_t rows_per_task_ = 1;
  Chunk head_;  // being given away
  int64_t given_ = 0;
  std::string head_position_;
};

}  // namespace

std::unique_ptr<Stream> MakeParallelMapStream(
    const Scope& scope, const OpInfo& info, std::unique_ptr<Stream> input,
    std::shared_ptr<const Evaluator> function, int64_t parallelism,
    bool keep_order) {
  return std::make_unique<ParallelMapStream>(scope, info, std::move(input),
                                             std::move(function), parallelism,
                                             keep_order);
}

}  // namespace penstock::engine
