#include "penstock/engine/ops/prefetch.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "penstock/base/clock.h"
#include "penstock/base/mutex.h"
#include "penstock/base/status.h"

namespace penstock::engine {
namespace {

// Without a given size: chunks held ready, and the bytes of which no more are
// pulled. Large rows are best still in the processor's cache when they are
// taken.
constexpr size_t kChunksAhead = 4;
constexpr int64_t kBytesAhead = 16'000'000;

// Pulls the input and keeps what it gave. While a pull is under way the input
// belongs to the task; otherwise it is touched under the lock alone.
class Filler final : public Task {
 public:
  Filler(const Scope& scope, std::unique_ptr<Stream> input,
         std::optional<int64_t> buffer_rows, NodeStats* stats,
         const std::atomic<int64_t>* buffer_knob)
      : Task(scope.run->environment.executor),
        scope_(scope),
        stats_(stats->queue),
        buffer_knob_(buffer_knob),
        buffer_rows_(buffer_rows),
        input_(std::move(input)) {}

  // REQUIRES: not started.
  absl::Status Restore(WireReader& reader) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    return input_->Restore(reader);
  }

  absl::StatusOr<Pull> Take(const Request& request)
      ABSL_LOCKS_EXCLUDED(mutex_) {
    Pull pull = Pull::Blocked();
    {
      MutexLock lock(&mutex_);
      // Rows that are frames by themselves are so at any time.
      group_ = request.group.rows == 1 ? request.group : Group();
      if (!items_.empty()) {
        Held();
        pull = Pull::Rows(TakeFront(request.max_rows));
      } else if (!failure_.ok()) {
        return failure_;
      } else if (has_ended_) {
        return Pull::End();
      } else {
        stats_.was_empty.fetch_add(1, std::memory_order_relaxed);
        waker_ = request.waker;
      }
    }
    Wake();
    return pull;
  }

  // Has the input leave out `rows` rows, unless some are here or on their way.
  int64_t Skip(int64_t rows) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    if (!items_.empty() || is_pulling_ || has_ended_) return 0;
    input_->SkipRows(rows);
    return rows;
  }

  // The input's state, `later` rows after the last one that was taken.
  void Save(WireWriter& writer, int64_t later) const
      ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    if (!items_.empty()) {
      SaveLater(writer, items_.front().position, items_.front().given + later);
      return;
    }
    if (is_pulling_ || has_ended_) {
      SaveLater(writer, position_, later);
      return;
    }
    WireWriter state;
    input_->Save(state);
    SaveLater(writer, state.bytes(), later);
  }

  // Nothing is pulled after it. The input goes now or, if a pull is under way,
  // right after that.
  void Cancel() ABSL_LOCKS_EXCLUDED(mutex_) {
    std::unique_ptr<Stream> input;
    std::deque<Item> items;
    MutexLock lock(&mutex_);
    is_cancelled_ = true;
    items.swap(items_);
    waker_ = nullptr;
    if (!is_pulling_) input.swap(input_);
  }

 protected:
  Next RunSlice() override ABSL_LOCKS_EXCLUDED(mutex_) {
    int64_t room;
    Group group;
    Stream* input;
    {
      MutexLock lock(&mutex_);
      if (is_cancelled_) return Next::kWait;
      room = Room();
      if (room <= 0) stats_.was_full.fetch_add(1, std::memory_order_relaxed);
      if (room <= 0 || has_ended_ || !failure_.ok()) return Next::kWait;
      WireWriter state;
      input_->Save(state);
      position_ = state.Take();
      is_pulling_ = true;
      group = group_;
      input = input_.get();
    }
    absl::StatusOr<Pull> pull = input->Next({room, shared_from_this(), group});
    Waker waker;
    std::unique_ptr<Stream> cancelled;
    {
      MutexLock lock(&mutex_);
      is_pulling_ = false;
      if (is_cancelled_) {
        cancelled.swap(input_);
        return Next::kWait;
      }
      if (!pull.ok()) {
        failure_ = pull.status();
      } else if (pull->is_end()) {
        has_ended_ = true;
      } else if (pull->is_blocked()) {
        return Next::kWait;
      } else {
        Held();
        const int64_t bytes = pull->chunk.NumBytes();
        rows_held_ += pull->chunk.rows;
        bytes_held_ += bytes;
        items_.push_back({std::move(pull->chunk), bytes, position_, 0});
      }
      waker = std::exchange(waker_, nullptr);
    }
    if (waker != nullptr) waker->Wake();
    return Next::kAgain;
  }

 private:
  struct Item {
    Chunk chunk;
    int64_t bytes;         // of the chunk
    std::string position;  // of the input before it
    int64_t given;
  };

  // Counts the rows that were held since it was last called.
  void Held() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const uint64_t now = Ticks();
    stats_.row_ticks.fetch_add(rows_held_ * (now - held_since_),
                               std::memory_order_relaxed);
    held_since_ = now;
  }

  // Rows that may be pulled now.
  int64_t Room() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (buffer_knob_ != nullptr) {
      const int64_t rows = KnobOr(*buffer_knob_, buffer_rows_.value_or(0));
      if (rows > 0) {
        stats_.capacity.store(rows, std::memory_order_relaxed);
        return rows - rows_held_;
      }
    }
    if (buffer_rows_.has_value()) return *buffer_rows_ - rows_held_;
    const bool has_room =
        items_.size() < kChunksAhead && bytes_held_ < kBytesAhead;
    return has_room ? kMaxChunkRows : 0;
  }

  Chunk TakeFront(int64_t max_rows) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    Item& item = items_.front();
    const int64_t rows = std::min(max_rows, item.chunk.rows - item.given);
    Chunk chunk = Slice(item.chunk, item.given, rows);
    item.given += rows;
    rows_held_ -= rows;
    if (item.given == item.chunk.rows) {
      bytes_held_ -= item.bytes;
      items_.pop_front();
    }
    return chunk;
  }

  // First, so that it goes last: streams count into its run when they end.
  const Scope scope_;
  QueueStats& stats_;
  const std::atomic<int64_t>* const buffer_knob_;  // null: none
  const std::optional<int64_t> buffer_rows_;

  mutable Mutex mutex_;
  std::unique_ptr<Stream> input_ ABSL_GUARDED_BY(mutex_);
  std::deque<Item> items_ ABSL_GUARDED_BY(mutex_);
  int64_t rows_held_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t bytes_held_ ABSL_GUARDED_BY(mutex_) = 0;  // by chunks not yet given
  uint64_t held_since_ ABSL_GUARDED_BY(mutex_) = Ticks();
  std::string position_ ABSL_GUARDED_BY(mutex_);  // before the last pull
  bool is_pulling_ ABSL_GUARDED_BY(mutex_) = false;
  bool has_ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  Group group_ ABSL_GUARDED_BY(mutex_);  // of the last request
  Waker waker_ ABSL_GUARDED_BY(mutex_);
};

class AheadStream final : public Stream {
 public:
  AheadStream(const Scope& scope, NodeStats* stats, Counts counts,
              std::unique_ptr<Stream> input, std::optional<int64_t> buffer_rows,
              const std::atomic<int64_t>* buffer_knob)
      : Stream(stats, counts),
        filler_(std::make_shared<Filler>(scope, std::move(input), buffer_rows,
                                         stats, buffer_knob)) {}
  ~AheadStream() override { filler_->Cancel(); }

  void Save(WireWriter& writer) const override {
    filler_->Save(writer, skip_rows());
  }
  absl::Status Restore(WireReader& reader) override {
    SkipRows(-skip_rows());  // as in every stream, the state's count instead
    return filler_->Restore(reader);
  }

 protected:
  absl::StatusOr<Pull> DoNext(const Request& request) override {
    return filler_->Take(request);
  }
  int64_t DoSkip(int64_t rows) override { return filler_->Skip(rows); }
  void DoSave(WireWriter&) const override {}
  absl::Status DoRestore(WireReader&) override { return absl::OkStatus(); }

 private:
  const std::shared_ptr<Filler> filler_;
};

// prefetch(0): nothing ahead.
class NoneAheadStream final : public Stream {
 public:
  NoneAheadStream(NodeStats* stats, std::unique_ptr<Stream> input)
      : Stream(stats), input_(std::move(input)) {}

  void Save(WireWriter& writer) const override {
    WireWriter state;
    input_->Save(state);
    SaveLater(writer, state.bytes(), skip_rows());
  }
  absl::Status Restore(WireReader& reader) override {
    SkipRows(-skip_rows());
    return input_->Restore(reader);
  }

 protected:
  absl::StatusOr<Pull> DoNext(const Request& request) override {
    return input_->Next(request);
  }
  int64_t DoSkip(int64_t rows) override {
    input_->SkipRows(rows);
    return rows;
  }
  void DoSave(WireWriter&) const override {}
  absl::Status DoRestore(WireReader&) override { return absl::OkStatus(); }

 private:
  const std::unique_ptr<Stream> input_;
};

}  // namespace

std::unique_ptr<Stream> MakeAheadStream(const Scope& scope, NodeStats* stats,
                                        std::unique_ptr<Stream> input) {
  return std::make_unique<AheadStream>(scope, stats, Stream::Counts::kTime,
                                       std::move(input), std::nullopt, nullptr);
}

OperatorOr MakePrefetch(const plan::Prefetch& spec, OperatorPtr input,
                        OpContext& context) {
  const OpInfo& info = *context.info;
  std::optional<int64_t> buffer_rows;
  if (spec.has_buffer_size()) buffer_rows = spec.buffer_size();
  return MakeOperator([buffer_rows, &info,
                       input](const Scope& scope) -> StreamOr {
    PENSTOCK_ASSIGN_OR_RETURN(auto stream, input->Start(scope));
    if (buffer_rows == 0) {
      return std::make_unique<NoneAheadStream>(StatsOf(scope, info),
                                               std::move(stream));
    }
    return std::make_unique<AheadStream>(
        scope, StatsOf(scope, info), Stream::Counts::kAll, std::move(stream),
        buffer_rows, &scope.run->knobs[info.id].buffer_rows);
  });
}

}  // namespace penstock::engine
