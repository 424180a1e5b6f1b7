#include "penstock/engine/stream.h"

#include <algorithm>
#include <bit>

#include "penstock/base/clock.h"
#include "penstock/base/status.h"

namespace penstock::engine {
namespace {

// Ticks spent in streams pulled from the one that runs on this thread.
thread_local uint64_t inner_ticks = 0;

// Chunks that one pull may leave out before others get their turn.
constexpr int kMaxSkippedChunks = 64;

// When rows come so slowly that counting them in groups would show them late.
constexpr double kMaxFlushNanos = 20e6;

uint64_t Nanos(uint64_t ticks) {
  return static_cast<uint64_t>(static_cast<double>(ticks) * NanosPerTick());
}

uint64_t Scaled(uint64_t ticks) {
  return static_cast<uint64_t>(static_cast<double>(ticks) * CpuShare());
}

}  // namespace

int64_t ApproximateBytes(const Chunk& chunk) {
  constexpr int64_t kSample = 16;
  int64_t bytes = 0;
  for (const Column& column : chunk.columns) {
    const bool is_cheap = column.is_dense() && column.dtype() != DType::kString;
    if (is_cheap || column.rows() <= kSample) {
      bytes += column.NumBytes();
    } else {
      bytes += column.Slice(0, kSample).NumBytes() * column.rows() / kSample;
    }
  }
  return bytes;
}

int Histogram::BucketOf(uint64_t value) {
  return std::min(static_cast<int>(std::bit_width(value)), kBuckets - 1);
}

void NodeStats::SeeRows(uint64_t count, uint64_t row_bytes) {
  bytes_per_row.Add(row_bytes, count);
  if (row_bytes > largest_row.load(std::memory_order_relaxed)) {
    largest_row.store(row_bytes, std::memory_order_relaxed);
  }
}

void StreamCounters::Flush(NodeStats& stats) {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  stats.rows.fetch_add(rows, kRelaxed);
  stats.chunks.fetch_add(chunks, kRelaxed);
  stats.bytes.fetch_add(bytes, kRelaxed);
  stats.errors.fetch_add(errors, kRelaxed);
  stats.self_ticks.fetch_add(self_ticks, kRelaxed);
  stats.cpu_ticks.fetch_add(Scaled(self_ticks), kRelaxed);
  stats.wait_in_ticks.fetch_add(wait_in_ticks, kRelaxed);
  stats.wait_out_ticks.fetch_add(wait_out_ticks, kRelaxed);
  stats.blocked.fetch_add(blocked, kRelaxed);
  // Of the means of many rows: those of single ones would cost too much.
  if (rows > 0) {
    stats.SeeRows(rows, bytes / rows);
    if (stats.tasks.load(kRelaxed) == 0) {
      stats.nanos_per_row.Add(Nanos(self_ticks) / rows, rows);
    }
  }
  const uint64_t flushed = last_flush;
  *this = StreamCounters();
  last_flush = flushed;
}

WorkTimer::WorkTimer(NodeStats& stats, int64_t rows)
    : stats_(stats), rows_(rows), start_(Ticks()) {}

WorkTimer::~WorkTimer() {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  const uint64_t elapsed = Ticks() - start_;
  inner_ticks += elapsed;
  stats_.self_ticks.fetch_add(elapsed, kRelaxed);
  stats_.cpu_ticks.fetch_add(Scaled(elapsed), kRelaxed);
  stats_.tasks.fetch_add(1, kRelaxed);
  stats_.task_ticks.fetch_add(elapsed, kRelaxed);
  if (rows_ > 0) stats_.nanos_per_row.Add(Nanos(elapsed) / rows_, rows_);
}

ChargeTimer::ChargeTimer(NodeStats& stats) : stats_(stats), start_(Ticks()) {}

ChargeTimer::~ChargeTimer() {
  if (!stats_.is_counting) return;
  const uint64_t elapsed = Ticks() - start_;
  stats_.self_ticks.fetch_add(elapsed, std::memory_order_relaxed);
  stats_.cpu_ticks.fetch_add(Scaled(elapsed), std::memory_order_relaxed);
}

Stream::~Stream() { counters_.Flush(*stats_); }

absl::StatusOr<Pull> Stream::Next(const Request& request) {
  if (skip_rows_ > 0) skip_rows_ -= DoSkip(skip_rows_);
  for (int chunks = 0; skip_rows_ > 0; ++chunks) {
    if (chunks == kMaxSkippedChunks) {
      request.waker->Wake();  // more to do; others first
      return Pull::Blocked();
    }
    PENSTOCK_ASSIGN_OR_RETURN(
        Pull pull,
        Measured({std::min(skip_rows_, kMaxChunkRows), request.waker}));
    if (!pull.has_rows()) return pull;
    skip_rows_ -= pull.chunk.rows;
  }
  return Measured(request);
}

absl::StatusOr<Pull> Stream::Measured(const Request& request) {
  if (!stats_->is_counting) {
    absl::StatusOr<Pull> pull = DoNext(
        {std::min(request.max_rows, row_limit_), request.waker, request.group});
    if (pull.ok() && pull->has_rows()) {
      LearnRowLimit(pull->chunk.rows, ApproximateBytes(pull->chunk));
    }
    return pull;
  }
  const uint64_t outer_ticks = std::exchange(inner_ticks, 0);
  const uint64_t start = Ticks();
  if (last_end_ != 0 && start > last_end_) {
    (was_blocked_ ? counters_.wait_in_ticks : counters_.wait_out_ticks) +=
        start - last_end_;
  }
  absl::StatusOr<Pull> pull = DoNext(
      {std::min(request.max_rows, row_limit_), request.waker, request.group});
  last_end_ = Ticks();
  const uint64_t elapsed = last_end_ - start;
  counters_.self_ticks += elapsed - std::min(elapsed, inner_ticks);
  inner_ticks = outer_ticks + elapsed;
  if (!pull.ok()) return pull;

  was_blocked_ = pull->is_blocked();
  if (pull->has_rows()) {
    const Chunk& chunk = pull->chunk;
    const int64_t bytes = ApproximateBytes(chunk);
    if (counts_ == Counts::kAll) {
      counters_.rows += chunk.rows;
      counters_.bytes += bytes;
      counters_.errors += chunk.errors.size();
      ++counters_.chunks;
    }
    LearnRowLimit(chunk.rows, bytes);
  } else if (pull->is_blocked() && counts_ == Counts::kAll) {
    ++counters_.blocked;
  }
  // A dozen atomic adds: once for many rows, for many small pulls, or in a
  // while.
  static const auto max_ticks =
      static_cast<uint64_t>(kMaxFlushNanos / NanosPerTick());
  if (++counters_.pulls >= 64 || counters_.rows >= 512 || pull->is_end() ||
      last_end_ - counters_.last_flush > max_ticks) {
    counters_.last_flush = last_end_;
    counters_.Flush(*stats_);
  }
  return pull;
}

void Stream::LearnRowLimit(int64_t rows, int64_t bytes) {
  const int64_t fitting =
      std::max<int64_t>(1, kMaxChunkBytes / (bytes / rows + 1));
  row_limit_ = std::min({fitting, row_limit_ * 2, kMaxChunkRows});
}

void Stream::Save(WireWriter& writer) const {
  writer.Varint(skip_rows_);
  DoSave(writer);
}

absl::Status Stream::Restore(WireReader& reader) {
  PENSTOCK_ASSIGN_OR_RETURN(const uint64_t skip, reader.Varint());
  skip_rows_ = static_cast<int64_t>(skip);
  return DoRestore(reader);
}

void Input::Close() {
  stream_.reset();
  chunk_ = Chunk();
  begin_ = 0;
}

absl::StatusOr<Pull::Kind> Input::Fill(const Request& request) {
  if (rows_held() > 0) return Pull::Kind::kRows;
  WireWriter writer;
  stream_->Save(writer);
  PENSTOCK_ASSIGN_OR_RETURN(Pull pull, stream_->Next(request));
  if (pull.has_rows()) {
    position_ = writer.Take();
    chunk_ = std::move(pull.chunk);
    begin_ = 0;
  }
  return pull.kind;
}

Chunk Input::Take(int64_t rows) {
  Chunk taken = Slice(chunk_, begin_, rows);
  Consume(rows);
  return taken;
}

void Input::Consume(int64_t rows) {
  begin_ += rows;
  if (begin_ == chunk_.rows) {
    chunk_ = Chunk();
    begin_ = 0;
  }
}

void Input::SkipRows(int64_t rows) {
  const int64_t held = std::min(rows, rows_held());
  if (held > 0) Consume(held);
  stream_->SkipRows(rows - held);
}

void SaveLater(WireWriter& writer, std::string_view state, int64_t rows) {
  // A state begins with the rows to leave out.
  WireReader reader(state);
  const absl::StatusOr<uint64_t> skip = reader.Varint();
  writer.Varint(skip.value_or(0) + static_cast<uint64_t>(rows));
  writer.Raw(reader.rest());
}

void Input::Save(WireWriter& writer) const {
  if (rows_held() > 0) {
    SaveLater(writer, position_, begin_);
  } else {
    stream_->Save(writer);
  }
}

absl::Status Input::Restore(WireReader& reader) {
  return stream_->Restore(reader);
}

}  // namespace penstock::engine
