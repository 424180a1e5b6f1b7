#include "penstock/session/frame_sender.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "penstock/base/clock.h"
#include "penstock/base/status.h"
#include "penstock/data/builder.h"
#include "penstock/data/encode.h"
#include "penstock/engine/receiver.h"

namespace penstock::session {
namespace {

constexpr uint32_t kFrame = 1;
constexpr uint32_t kEnd = 2;
constexpr uint32_t kFailed = 3;

constexpr uint32_t kDemand = 1;
constexpr uint32_t kConsumed = 2;
constexpr uint32_t kReleased = 3;
constexpr uint32_t kWaited = 4;
constexpr uint32_t kLeft = 5;

struct ToTrainer {
  uint32_t kind;
  uint32_t segment;
  uint64_t offset;
  uint64_t bytes;
  uint64_t rows;
  uint64_t frame;
  uint64_t state_offset;
  uint32_t state_bytes;
  uint32_t state_segment;
  uint64_t skip;
};
static_assert(sizeof(ToTrainer) == 64);

struct ToEngine {
  uint32_t kind;
  uint32_t gap_us;  // of kConsumed: between this frame and the one before it
  uint64_t value;   // rows, a frame, or nanoseconds
};
static_assert(sizeof(ToEngine) == 16);

// Rows that a trainer can ask for at once.
constexpr uint64_t kMaxDemand = uint64_t{1} << 32;
constexpr int64_t kSliceNanos = 2'000'000;
// A frame is not held back for more rows longer than this.
constexpr int64_t kGatherNanos = 500'000;

}  // namespace

FrameSender::FrameSender(engine::Executor* executor,
                         std::unique_ptr<engine::Iterator> iterator,
                         std::shared_ptr<FrameMemory> memory, Descriptor socket,
                         const FrameOptions& options)
    : Task(executor),
      options_(options),
      socket_(std::move(socket)),
      pipeline_(iterator->pipeline()),
      run_(iterator->run()),
      memory_(std::move(memory)),
      iterator_(std::move(iterator)) {}

int64_t FrameSender::Credit() {
  if (!has_started_ || has_ended_ || is_closed_) return 0;
  if (options_.exact_rows_ahead.has_value()) {
    return std::clamp<int64_t>(demand_ + *options_.exact_rows_ahead, 0,
                               options_.max_rows);
  }
  const int64_t share = is_resting_ ? 2 : 1;
  const int64_t most_bytes =
      run_ahead_rows_ > 0 ? options_.chosen_bytes : options_.run_ahead_bytes;
  const bool may_run_ahead =
      untaken_frames_ < 2 ||
      (untaken_bytes_ < most_bytes / share &&
       untaken_frames_ < options_.run_ahead_frames / share &&
       (run_ahead_rows_ == 0 || untaken_rows_ < run_ahead_rows_));
  is_resting_ = !may_run_ahead;
  return may_run_ahead ? std::min(rows_per_frame_, options_.max_rows) : 0;
}

engine::Task::Next FrameSender::RunSlice() {
  const int64_t start = SteadyClock().NowNanos();
  while (true) {
    int64_t credit;
    {
      MutexLock lock(&mutex_);
      if (is_closed_) {
        iterator_.reset();
        load_.reset();
        next_.reset();
        return Next::kWait;
      }
      credit = Credit();
    }
    if (credit == 0) return Next::kWait;
    if (!load_.has_value()) Gather(credit);
    if (!load_.has_value()) return Next::kWait;  // until something is ready
    absl::StatusOr<bool> sent = Send();
    if (!sent.ok() && load_->kind != kFailed) {
      load_ = Failure(sent.status());
      sent = Send();
    }
    if (!sent.value_or(true)) return Next::kWait;  // until a frame is taken
    if (load_->kind != kFrame || !sent.ok()) {
      load_.reset();
      MutexLock lock(&mutex_);
      has_ended_ = true;
      return Next::kWait;
    }
    load_ = std::exchange(next_, std::nullopt);
    if (SteadyClock().NowNanos() - start > kSliceNanos) return Next::kAgain;
  }
}

void FrameSender::Gather(int64_t credit) {
  const int64_t start = SteadyClock().NowNanos();
  ChunkBuilder rows;
  std::string state = iterator_->Save();
  int64_t bytes = 0;
  while (rows.rows() < credit && bytes < engine::kMaxChunkBytes) {
    absl::StatusOr<engine::Pull> pull =
        iterator_->Next({credit - rows.rows(), shared_from_this(), {1, 0}});
    // What was gathered before a failure or an end still goes before it.
    if (!pull.ok()) {
      next_ = Failure(pull.status());
      break;
    }
    if (pull->is_end()) {
      next_ = Load{kEnd, Chunk(), iterator_->Save()};
      break;
    }
    if (pull->is_blocked()) break;
    int64_t pulled = pull->chunk.NumBytes();
    if (pulled > options_.max_element_bytes) {
      pull->chunk = WithoutLargeRows(std::move(pull->chunk));
      pulled = pull->chunk.NumBytes();
    }
    if (!rows.Fits(pull->chunk)) {
      next_ = Load{kFrame, std::move(pull->chunk), state,
                   static_cast<uint64_t>(rows.rows())};
      break;
    }
    bytes += pulled;
    rows.Append(pull->chunk, 0, pull->chunk.rows);
    if (SteadyClock().NowNanos() - start > kGatherNanos) break;
  }
  if (rows.rows() == 0) {
    load_ = std::exchange(next_, std::nullopt);
    return;
  }
  const engine::ChargeTimer timer(RootStats());
  load_ = Load{kFrame, rows.Build(), std::move(state)};
  rows_per_frame_ = std::min(rows_per_frame_ * 2, options_.max_rows);
}

Chunk FrameSender::WithoutLargeRows(Chunk chunk) const {
  ChunkBuilder rows;
  for (int64_t row = 0; row < chunk.rows; ++row) {
    Chunk one = Slice(chunk, row, 1);
    const int64_t bytes = one.NumBytes();
    if (bytes > options_.max_element_bytes && one.errors.empty()) {
      std::vector<Column> empty;
      for (const Column& column : one.columns) {
        empty.push_back(ZeroColumn(column.dtype(), Shape(column.rank(), 0), 1));
      }
      one = ErrorChunk(
          pipeline_->root_info().Located(absl::ResourceExhaustedError(
              absl::StrCat("an element must have at most ",
                           options_.max_element_bytes, " bytes; got ", bytes,
                           "\n  Make elements or batches smaller, or raise "
                           "Options(max_element_bytes=...)."))),
          std::move(empty));
    }
    rows.Append(one, 0, 1);
  }
  return rows.Build();
}

FrameSender::Load FrameSender::Failure(const absl::Status& status) {
  return Load{kFailed, ErrorChunk(status, {}), ""};
}

engine::NodeStats& FrameSender::RootStats() {
  return run_->stats[pipeline_->root_info().id];
}

absl::StatusOr<bool> FrameSender::Send() {
  const engine::ChargeTimer timer(RootStats());
  const Load& load = *load_;
  bool is_alone;
  {
    MutexLock lock(&mutex_);
    is_alone = untaken_frames_ == 0;
  }
  const engine::Iterator::Sealed sealed = iterator_->Seal(load.state);
  absl::StatusOr<Frame> frame =
      memory_->Make(load.chunk, sealed.state, is_alone);
  if (!frame.ok()) {
    if (!is_alone) return false;
    return pipeline_->root_info().Located(
        absl::ResourceExhaustedError(absl::StrCat(
            "an element takes ", EncodedSize(load.chunk) + sealed.state.size(),
            " bytes of shared memory; ", memory_->arena().limit_bytes(),
            " are there for this iterator (", frame.status().message(),
            ")\n  Make elements or batches smaller, or give the "
            "process more memory.")));
  }
  ToTrainer message = {};
  message.kind = load.kind;
  message.segment = frame->segment;
  message.offset = frame->offset;
  message.bytes = frame->chunk_bytes;
  message.rows = static_cast<uint64_t>(load.chunk.rows);
  message.state_offset = frame->trailer_offset;
  message.state_bytes = static_cast<uint32_t>(sealed.state.size());
  message.state_segment = frame->trailer_segment;
  message.skip = load.skip;
  if (load.kind == kFrame) {
    rows_.fetch_add(message.rows, std::memory_order_relaxed);
    bytes_.fetch_add(message.bytes, std::memory_order_relaxed);
  }
  {
    MutexLock lock(&mutex_);
    message.frame = next_frame_++;
    const auto bytes = static_cast<int64_t>(frame->chunk_bytes);
    frames_[message.frame] =
        Sent{std::move(frame->memory), bytes, load.chunk.rows, sealed.ticket,
             load.kind == kEnd};
    untaken_rows_ += load.chunk.rows;
    untaken_bytes_ += bytes;
    ++untaken_frames_;
    demand_ -= load.chunk.rows;
  }
  const absl::Status sent =
      SendAll(socket_.get(),
              {reinterpret_cast<const char*>(&message), sizeof(message)});
  if (absl::IsCancelled(sent)) {
    Close();
    return false;
  }
  PENSTOCK_RETURN_IF_ERROR(sent);
  return true;
}

absl::Status FrameSender::OnReadable() {
  char bytes[4096];
  PENSTOCK_ASSIGN_OR_RETURN(const size_t size,
                            ReceiveSome(socket_.get(), bytes, sizeof(bytes)));
  partial_.append(bytes, size);
  size_t at = 0;
  {
    MutexLock lock(&mutex_);
    for (; partial_.size() - at >= sizeof(ToEngine); at += sizeof(ToEngine)) {
      ToEngine message;
      std::memcpy(&message, partial_.data() + at, sizeof(message));
      switch (message.kind) {
        case kDemand:
          has_started_ = true;
          demand_ += static_cast<int64_t>(std::min(message.value, kMaxDemand));
          break;
        case kWaited:
          consumer_.wait_ns += static_cast<int64_t>(message.value);
          break;
        case kConsumed:
          CountGap(message.gap_us);
          for (auto it = frames_.upper_bound(last_taken_);
               it != frames_.end() && it->first <= message.value; ++it) {
            last_taken_ = it->first;
            if (std::exchange(it->second.is_taken, true)) continue;
            Taken(it->second);
          }
          break;
        case kLeft:
          if (taken_ticket_ != 0) {
            run_->environment.receiver->OnLeft(taken_ticket_, message.value);
          }
          break;
        case kReleased: {
          auto it = frames_.find(message.value);
          if (it == frames_.end()) break;
          if (!it->second.is_taken) Taken(it->second);
          frames_.erase(it);
          break;
        }
        default:
          return absl::InvalidArgumentError(
              absl::StrCat("unknown message ", message.kind));
      }
    }
  }
  partial_.erase(0, at);
  Wake();
  return absl::OkStatus();
}

void FrameSender::Taken(const Sent& frame) {
  untaken_bytes_ -= frame.bytes;
  untaken_rows_ -= frame.rows;
  --untaken_frames_;
  consumer_.rows += static_cast<uint64_t>(frame.rows);
  last_frame_rows_ = frame.rows;
  if (frame.ticket == 0) return;
  taken_ticket_ = frame.ticket;
  run_->environment.receiver->OnTaken(frame.ticket);
  if (frame.is_end) run_->environment.receiver->OnEnded();
}

void FrameSender::CountGap(uint32_t gap_us) {
  if (last_frame_rows_ == 0) return;  // before the first frame
  const double gap_ns = 1e3 * gap_us;
  const auto rows = static_cast<double>(last_frame_rows_);
  consumer_.gaps += static_cast<uint64_t>(last_frame_rows_);
  consumer_.gap_ns += gap_ns;
  consumer_.gap_ns_squared += gap_ns * gap_ns / rows;
}

ConsumerCounts FrameSender::consumer() const {
  MutexLock lock(&mutex_);
  return consumer_;
}

void FrameSender::SetRunAheadRows(int64_t rows) {
  {
    MutexLock lock(&mutex_);
    run_ahead_rows_ = rows;
  }
  Wake();
}

void FrameSender::Close() {
  memory_->Retire();
  {
    MutexLock lock(&mutex_);
    is_closed_ = true;
  }
  Wake();
}

}  // namespace penstock::session
