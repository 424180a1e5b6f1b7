#include "penstock/engine/stream.h"

#include <algorithm>

#include "penstock/base/clock.h"
#include "penstock/base/status.h"

namespace penstock::engine {
namespace {

// Ticks spent in streams pulled from the one that runs on this thread.
thread_local uint64_t inner_ticks = 0;

// Chunks that one pull may leave out before others get their turn.
constexpr int kMaxSkippedChunks = 64;

// An estimate that costs little: strings and ragged rows are sampled.
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

}  // namespace

void StreamCounters::Flush(NodeStats& stats) {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  stats.rows.fetch_add(rows, kRelaxed);
  stats.chunks.fetch_add(chunks, kRelaxed);
  stats.bytes.fetch_add(bytes, kRelaxed);
  stats.errors.fetch_add(errors, kRelaxed);
  stats.self_ticks.fetch_add(self_ticks, kRelaxed);
  stats.blocked.fetch_add(blocked, kRelaxed);
  *this = StreamCounters();
}

WorkTimer::WorkTimer(NodeStats& stats) : stats_(stats), start_(Ticks()) {}

WorkTimer::~WorkTimer() {
  const uint64_t elapsed = Ticks() - start_;
  inner_ticks += elapsed;
  stats_.self_ticks.fetch_add(elapsed, std::memory_order_relaxed);
}

Stream::~Stream() { counters_.Flush(*stats_); }

absl::StatusOr<Pull> Stream::Next(const Request& request) {
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
  absl::StatusOr<Pull> pull = DoNext(
      {std::min(request.max_rows, row_limit_), request.waker, request.group});
  const uint64_t elapsed = Ticks() - start;
  counters_.self_ticks += elapsed - std::min(elapsed, inner_ticks);
  inner_ticks = outer_ticks + elapsed;
  if (!pull.ok()) return pull;

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
  // Six atomic adds: once for many rows, or once for many small pulls.
  if (++counters_.pulls >= 64 || counters_.rows >= 512 || pull->is_end()) {
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
