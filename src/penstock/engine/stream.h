// A stream: one run of an operator. What it asks, what it gives, what it saves.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "penstock/base/wire.h"
#include "penstock/data/chunk.h"
#include "penstock/engine/executor.h"
#include "penstock/engine/stats.h"

namespace penstock::engine {

// No chunk has more rows, or (beyond its first row) about more bytes.
inline constexpr int64_t kMaxChunkRows = 16384;
inline constexpr int64_t kMaxChunkBytes = int64_t{1} << 20;

// An estimate that costs little: strings and ragged rows are sampled.
int64_t ApproximateBytes(const Chunk& chunk);

// Rows that will be made into one, a batch or a frame.
struct Group {
  int64_t rows = 0;    // 0: nothing is known
  int64_t filled = 0;  // of them, those that the asker has
  // They need not lie together, and are best left where they are.
  bool may_stay = false;
};

// A pull. Demand travels upstream: nobody gives more rows than asked for.
struct Request {
  int64_t max_rows;
  // To be woken after a Pull that was blocked.
  const Waker& waker;
  // What the first of the rows asked for belong to: a hint. Only one who gives
  // on what it gets, row by row, may pass it on.
  Group group = {};
};

// The answer to a pull: some rows, the end, or "not yet".
struct Pull {
  enum class Kind : uint8_t { kRows, kEnd, kBlocked };

  Kind kind = Kind::kEnd;
  Chunk chunk;  // kRows: at least one row

  static Pull Rows(Chunk chunk) { return {Kind::kRows, std::move(chunk)}; }
  static Pull End() { return {Kind::kEnd, {}}; }
  static Pull Blocked() { return {Kind::kBlocked, {}}; }

  bool has_rows() const { return kind == Kind::kRows; }
  bool is_end() const { return kind == Kind::kEnd; }
  bool is_blocked() const { return kind == Kind::kBlocked; }
};

// One run of an operator and of everything before it. One caller at a time.
//
// An element that is an error is a row (Chunk::errors) and reading goes on
// after it; a Status that is not OK ends the run. After the end, only the end.
//
// What Save() writes is the position before the next row, in cursors and
// ordinals, never rows (save where only the value has meaning, as in scan). A
// fresh stream of the same operator that restores it gives the same rows from
// there on, however the chunks are cut.
class Stream {
 public:
  // Whose rows are the node's own, or those of a part of its work (the rows
  // that rebatch takes batches apart into): of that, only the time counts.
  enum class Counts : uint8_t { kAll, kTime };

  explicit Stream(NodeStats* stats, Counts counts = Counts::kAll)
      : stats_(stats), counts_(counts) {}
  virtual ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  absl::StatusOr<Pull> Next(const Request& request);
  // True: the next pull gives the end, and costs nothing but itself. Who has
  // all rows then need not wait for it. False: not known.
  virtual bool IsOver() const { return false; }

  // Virtual for streams that only stand in front of another (prefetch): what
  // they write is what the other would, so that one fits the other's state.
  virtual void Save(WireWriter& writer) const;
  // REQUIRES: nothing was pulled yet.
  virtual absl::Status Restore(WireReader& reader);
  // Leaves out the next `rows` rows. Those that cannot be left out uncomputed
  // are computed when rows are next asked for.
  void SkipRows(int64_t rows) { skip_rows_ += rows; }

 protected:
  virtual absl::StatusOr<Pull> DoNext(const Request& request) = 0;
  // Leaves out up to `rows` of the next rows without computing them; gives how
  // many. For streams that give a row for each row of their input: the input
  // leaves it out (SkipRows).
  virtual int64_t DoSkip(int64_t /*rows*/) { return 0; }
  virtual void DoSave(WireWriter& writer) const = 0;
  virtual absl::Status DoRestore(WireReader& reader) = 0;

  NodeStats* stats() const { return stats_; }
  int64_t skip_rows() const { return skip_rows_; }

 private:
  absl::StatusOr<Pull> Measured(const Request& request);
  void LearnRowLimit(int64_t rows, int64_t bytes);

  NodeStats* const stats_;
  const Counts counts_;
  StreamCounters counters_;
  uint64_t last_end_ = 0;  // ticks; 0: not asked yet
  bool was_blocked_ = false;
  int64_t skip_rows_ = 0;
  // Rows that keep a chunk within kMaxChunkBytes, learnt from those given: one
  // that makes large rows out of small ones is not asked for thousands.
  int64_t row_limit_ = 32;
};

// A stream as an operator's input, with the place to resume from if part of a
// chunk is held back. Reading through Next() holds nothing and costs nothing;
// Fill() and Take() are for operators that need rows one by one.
class Input final {
 public:
  Input() = default;
  explicit Input(std::unique_ptr<Stream> stream) : stream_(std::move(stream)) {}

  bool is_open() const { return stream_ != nullptr; }
  void Close();

  // REQUIRES: rows_held() == 0.
  absl::StatusOr<Pull> Next(const Request& request) {
    return stream_->Next(request);
  }

  // Makes rows_held() > 0 by one pull if nothing is held; says what came.
  absl::StatusOr<Pull::Kind> Fill(const Request& request);
  int64_t rows_held() const { return chunk_.rows - begin_; }
  bool IsOver() const { return rows_held() == 0 && stream_->IsOver(); }
  // The chunk that the held rows [begin(), chunk().rows) lie in.
  const Chunk& chunk() const { return chunk_; }
  int64_t begin() const { return begin_; }
  // Gives the first `rows` held rows away. REQUIRES: rows <= rows_held().
  Chunk Take(int64_t rows);
  void Consume(int64_t rows);
  // Leaves out rows that are held, then those that come next.
  void SkipRows(int64_t rows);

  void Save(WireWriter& writer) const;
  absl::Status Restore(WireReader& reader);

 private:
  std::unique_ptr<Stream> stream_;
  Chunk chunk_;
  int64_t begin_ = 0;
  std::string position_;  // before chunk_
};

// Writes the saved `state` of a stream as it is `rows` rows later: how
// positions inside a chunk are told, from the state before it.
void SaveLater(WireWriter& writer, std::string_view state, int64_t rows);

}  // namespace penstock::engine
