#include "penstock/engine/ops/prefetch.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "penstock/base/mutex.h"
#include "penstock/base/status.h"

namespace penstock::engine {
namespace {

// Without a given size: chunks held ready.
constexpr size_t kChunksAhead = 4;

// Pulls the input and keeps what it gave. The stream's own side takes rows
// under the same lock; the input is touched by the task alone once it runs.
class Filler final : public Task {
 public:
  Filler(Executor* executor, std::unique_ptr<Stream> input,
         std::optional<int64_t> buffer_rows)
      : Task(executor), buffer_rows_(buffer_rows), input_(std::move(input)) {}

  // REQUIRES: not started.
  absl::Status Restore(WireReader& reader) {
    PENSTOCK_RETURN_IF_ERROR(input_->Restore(reader));
    return absl::OkStatus();
  }
  void SkipRows(int64_t rows) { input_->SkipRows(rows); }

  absl::StatusOr<Pull> Take(const Request& request)
      ABSL_LOCKS_EXCLUDED(mutex_) {
    Pull pull = Pull::Blocked();
    {
      MutexLock lock(&mutex_);
      if (!items_.empty()) {
        pull = Pull::Rows(TakeFront(request.max_rows));
      } else if (!failure_.ok()) {
        return failure_;
      } else if (has_ended_) {
        return Pull::End();
      } else {
        waker_ = request.waker;
      }
    }
    Wake();
    return pull;
  }

  void Save(WireWriter& writer) const ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    if (!items_.empty()) {
      SavePosition(writer, items_.front().position, items_.front().given);
      return;
    }
    if (is_pulling_ || has_ended_) {
      SavePosition(writer, position_, 0);
      return;
    }
    WireWriter state;
    input_->Save(state);
    SavePosition(writer, state.bytes(), 0);
  }

  void Cancel() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    is_cancelled_ = true;
    items_.clear();
    waker_ = nullptr;
  }

 protected:
  Next RunSlice() override ABSL_LOCKS_EXCLUDED(mutex_) {
    int64_t room;
    {
      MutexLock lock(&mutex_);
      if (is_cancelled_) {
        input_.reset();  // here: no pull is under way
        return Next::kWait;
      }
      room = Room();
      if (room <= 0 || has_ended_ || !failure_.ok()) return Next::kWait;
      WireWriter state;
      input_->Save(state);
      position_ = state.Take();
      is_pulling_ = true;
    }
    absl::StatusOr<Pull> pull = input_->Next({room, shared_from_this()});
    Waker waker;
    {
      MutexLock lock(&mutex_);
      is_pulling_ = false;
      if (!pull.ok()) {
        failure_ = pull.status();
      } else if (pull->is_end()) {
        has_ended_ = true;
      } else if (pull->is_blocked()) {
        return Next::kWait;
      } else if (!is_cancelled_) {
        rows_held_ += pull->chunk.rows;
        items_.push_back({std::move(pull->chunk), position_, 0});
      }
      waker = std::exchange(waker_, nullptr);
    }
    if (waker != nullptr) waker->Wake();
    return Next::kAgain;
  }

 private:
  struct Item {
    Chunk chunk;
    std::string position;  // of the input before the chunk
    int64_t given;
  };

  // Rows that may be pulled now.
  int64_t Room() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (buffer_rows_.has_value()) return *buffer_rows_ - rows_held_;
    return items_.size() < kChunksAhead ? kMaxChunkRows : 0;
  }

  Chunk TakeFront(int64_t max_rows) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    Item& item = items_.front();
    const int64_t rows = std::min(max_rows, item.chunk.rows - item.given);
    Chunk chunk = Slice(item.chunk, item.given, rows);
    item.given += rows;
    rows_held_ -= rows;
    if (item.given == item.chunk.rows) items_.pop_front();
    return chunk;
  }

  const std::optional<int64_t> buffer_rows_;
  std::unique_ptr<Stream> input_;

  mutable Mutex mutex_;
  std::deque<Item> items_ ABSL_GUARDED_BY(mutex_);
  int64_t rows_held_ ABSL_GUARDED_BY(mutex_) = 0;
  std::string position_ ABSL_GUARDED_BY(mutex_);  // before the last pull
  bool is_pulling_ ABSL_GUARDED_BY(mutex_) = false;
  bool has_ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  Waker waker_ ABSL_GUARDED_BY(mutex_);
};

class AheadStream final : public Stream {
 public:
  AheadStream(const Scope& scope, NodeStats* stats,
              std::unique_ptr<Stream> input, std::optional<int64_t> buffer_rows)
      : Stream(stats),
        run_(scope.run),
        filler_(std::make_shared<Filler>(scope.run->environment.executor,
                                         std::move(input), buffer_rows)) {}
  // The filler frees the input in its own last slice, never under a pull.
  ~AheadStream() override {
    filler_->Cancel();
    filler_->Wake();
  }

 protected:
  absl::StatusOr<Pull> DoNext(const Request& request) override {
    return filler_->Take(request);
  }
  void DoSave(WireWriter& writer) const override { filler_->Save(writer); }
  absl::Status DoRestore(WireReader& reader) override {
    PENSTOCK_ASSIGN_OR_RETURN(const uint64_t rows, reader.Varint());
    PENSTOCK_ASSIGN_OR_RETURN(const std::string_view state, reader.Bytes());
    WireReader state_reader(state);
    PENSTOCK_RETURN_IF_ERROR(filler_->Restore(state_reader));
    filler_->SkipRows(static_cast<int64_t>(rows));
    return absl::OkStatus();
  }

 private:
  const std::shared_ptr<Run> run_;
  const std::shared_ptr<Filler> filler_;
};

// prefetch(0): nothing ahead, but positions as of any prefetch.
class NoneAheadStream final : public Stream {
 public:
  NoneAheadStream(NodeStats* stats, std::unique_ptr<Stream> input)
      : Stream(stats), input_(std::move(input)) {}

 protected:
  absl::StatusOr<Pull> DoNext(const Request& request) override {
    return input_.Next(request);
  }
  void DoSave(WireWriter& writer) const override { input_.Save(writer); }
  absl::Status DoRestore(WireReader& reader) override {
    return input_.Restore(reader);
  }

 private:
  Input input_;
};

}  // namespace

std::unique_ptr<Stream> MakeAheadStream(const Scope& scope, NodeStats* stats,
                                        std::unique_ptr<Stream> input,
                                        std::optional<int64_t> buffer_rows) {
  return std::make_unique<AheadStream>(scope, stats, std::move(input),
                                       buffer_rows);
}

OperatorOr MakePrefetch(const plan::Prefetch& spec, OperatorPtr input,
                        OpContext& context) {
  const OpInfo& info = *context.info;
  std::optional<int64_t> buffer_rows;
  if (spec.has_buffer_size()) buffer_rows = spec.buffer_size();
  return MakeOperator(
      [buffer_rows, &info, input](const Scope& scope) -> StreamOr {
        PENSTOCK_ASSIGN_OR_RETURN(auto stream, input->Start(scope));
        if (buffer_rows == 0) {
          return std::make_unique<NoneAheadStream>(StatsOf(scope, info),
                                                   std::move(stream));
        }
        return MakeAheadStream(scope, StatsOf(scope, info), std::move(stream),
                               buffer_rows);
      });
}

}  // namespace penstock::engine
