#include "penstock/session/frame_sender.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "penstock/base/clock.h"
#include "penstock/base/status.h"
#include "penstock/data/builder.h"
#include "penstock/data/encode.h"

namespace penstock::session {
namespace {

constexpr uint32_t kFrame = 1;
constexpr uint32_t kEnd = 2;
constexpr uint32_t kFailed = 3;

constexpr uint32_t kDemand = 1;
constexpr uint32_t kConsumed = 2;
constexpr uint32_t kReleased = 3;

struct ToTrainer {
  uint32_t kind;
  uint32_t segment;
  uint64_t offset;
  uint64_t bytes;
  uint64_t rows;
  uint64_t frame;
  uint64_t state_offset;
  uint64_t state_bytes;
  uint64_t skip;
};
static_assert(sizeof(ToTrainer) == 64);

struct ToEngine {
  uint32_t kind;
  uint32_t zero;
  uint64_t value;
};
static_assert(sizeof(ToEngine) == 16);

constexpr int64_t kSliceNanos = 2'000'000;
// A frame is not held back for more rows longer than this.
constexpr int64_t kGatherNanos = 500'000;

}  // namespace

FrameSender::FrameSender(engine::Executor* executor,
                         std::unique_ptr<engine::Iterator> iterator,
                         Descriptor socket, const FrameOptions& options)
    : Task(executor),
      options_(options),
      socket_(std::move(socket)),
      pipeline_(iterator->pipeline()),
      run_(iterator->run()),
      arena_(options.arena_bytes),
      iterator_(std::move(iterator)) {}

int64_t FrameSender::Credit() {
  if (!has_started_ || has_ended_ || is_closed_) return 0;
  if (options_.is_row_exact) return std::min(demand_, options_.max_rows);
  const int64_t share = is_resting_ ? 2 : 1;
  const bool may_run_ahead =
      untaken_frames_ < 2 ||
      (untaken_bytes_ < options_.run_ahead_bytes / share &&
       untaken_frames_ < options_.run_ahead_frames / share);
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
    if (!load_.has_value()) {
      const absl::StatusOr<Gathered> gathered = Gather(credit);
      if (!gathered.ok()) {
        Fail(gathered.status());
        return Next::kWait;
      }
      if (*gathered == Gathered::kBlocked) return Next::kWait;
      if (*gathered == Gathered::kEnd) {
        const absl::StatusOr<bool> sent =
            Send(kEnd, Load{Chunk(), iterator_->Save()});
        if (!sent.ok()) Fail(sent.status());
        MutexLock lock(&mutex_);
        has_ended_ = true;
        return Next::kWait;
      }
    }
    const absl::StatusOr<bool> sent = Send(kFrame, *load_);
    if (!sent.ok()) {
      Fail(sent.status());
      return Next::kWait;
    }
    if (!*sent) return Next::kWait;  // until a frame is released
    load_ = std::exchange(next_, std::nullopt);
    if (SteadyClock().NowNanos() - start > kSliceNanos) return Next::kAgain;
  }
}

absl::StatusOr<FrameSender::Gathered> FrameSender::Gather(int64_t credit) {
  const int64_t start = SteadyClock().NowNanos();
  ChunkBuilder rows;
  std::string state = iterator_->Save();
  int64_t bytes = 0;
  auto last = Gathered::kLoad;
  while (rows.rows() < credit && bytes < engine::kMaxChunkBytes) {
    PENSTOCK_ASSIGN_OR_RETURN(
        engine::Pull pull,
        iterator_->Next({credit - rows.rows(), shared_from_this()}));
    if (!pull.has_rows()) {
      last = pull.is_end() ? Gathered::kEnd : Gathered::kBlocked;
      break;
    }
    if (!rows.Fits(pull.chunk)) {
      next_ = Load{std::move(pull.chunk), state,
                   static_cast<uint64_t>(rows.rows())};
      break;
    }
    bytes += pull.chunk.NumBytes();
    rows.Append(pull.chunk, 0, pull.chunk.rows);
    if (SteadyClock().NowNanos() - start > kGatherNanos) break;
  }
  if (rows.rows() == 0) return last;
  load_ = Load{rows.Build(), std::move(state)};
  rows_per_frame_ = std::min(rows_per_frame_ * 2, options_.max_rows);
  return Gathered::kLoad;
}

absl::StatusOr<bool> FrameSender::Send(uint32_t kind, const Load& load) {
  const size_t chunk_bytes = EncodedSize(load.chunk);
  const absl::StatusOr<Arena::Region> region =
      arena_.Allocate(chunk_bytes + load.state.size());
  if (!region.ok()) {
    MutexLock lock(&mutex_);
    if (frames_.empty()) return region.status();  // never fits
    return false;
  }
  Encode(load.chunk, region->data);
  std::memcpy(region->data + chunk_bytes, load.state.data(), load.state.size());
  ToTrainer message = {};
  message.kind = kind;
  message.segment = region->segment;
  message.offset = region->offset;
  message.bytes = chunk_bytes;
  message.rows = static_cast<uint64_t>(load.chunk.rows);
  message.state_offset = region->offset + chunk_bytes;
  message.state_bytes = load.state.size();
  message.skip = load.skip;
  rows_.fetch_add(message.rows, std::memory_order_relaxed);
  bytes_.fetch_add(message.bytes, std::memory_order_relaxed);
  {
    MutexLock lock(&mutex_);
    message.frame = next_frame_++;
    const auto bytes = static_cast<int64_t>(chunk_bytes);
    frames_[message.frame] = Frame{*region, bytes};
    untaken_bytes_ += bytes;
    ++untaken_frames_;
    demand_ -= std::min(demand_, load.chunk.rows);
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

void FrameSender::Fail(const absl::Status& status) {
  Send(kFailed, Load{ErrorChunk(status, {}), ""}).IgnoreError();
  MutexLock lock(&mutex_);
  has_ended_ = true;
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
          demand_ += static_cast<int64_t>(message.value);
          break;
        case kConsumed:
          for (auto& [number, frame] : frames_) {
            if (number > message.value) break;
            if (std::exchange(frame.is_taken, true)) continue;
            untaken_bytes_ -= frame.bytes;
            --untaken_frames_;
          }
          break;
        case kReleased: {
          auto it = frames_.find(message.value);
          if (it == frames_.end()) break;
          if (!it->second.is_taken) {
            untaken_bytes_ -= it->second.bytes;
            --untaken_frames_;
          }
          arena_.Free(it->second.region);
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

void FrameSender::Close() {
  {
    MutexLock lock(&mutex_);
    is_closed_ = true;
  }
  Wake();
}

}  // namespace penstock::session
