// Rows of an input that were given out of their order: what a map that does not
// keep order saves besides a position, so that a restore repeats no row.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>

#include "absl/status/status.h"
#include "penstock/base/status.h"
#include "penstock/base/wire.h"

namespace penstock::engine {

// From a position on: `keep` rows are still to be given, then `drop` rows were
// given already, and so on; after the last run, all are to be given.
class GivenRuns final {
 public:
  struct Run {
    int64_t keep;
    int64_t drop;
  };

  bool empty() const { return runs_.empty(); }
  const Run& front() const { return runs_.front(); }
  void PopFront() { runs_.pop_front(); }
  // Of the first run's rows to be given, `rows` were read.
  void Read(int64_t rows) {
    if (!runs_.empty()) runs_.front().keep -= rows;
  }
  // How many of `max_rows` may be read at once.
  int64_t Limit(int64_t max_rows) const {
    return runs_.empty() ? max_rows : std::min(max_rows, runs_.front().keep);
  }

  // Adds rows at the end.
  void Append(int64_t keep, int64_t drop) {
    open_ += keep;
    if (drop == 0) return;
    runs_.push_back({open_, drop});
    open_ = 0;
  }
  void Append(const GivenRuns& others) {
    for (const Run& run : others.runs_) Append(run.keep, run.drop);
  }

  void Save(WireWriter& writer) const {
    writer.Varint(runs_.size());
    for (const Run& run : runs_) {
      writer.Varint(run.keep);
      writer.Varint(run.drop);
    }
  }
  absl::Status Restore(WireReader& reader) {
    PENSTOCK_ASSIGN_OR_RETURN(const uint64_t count, reader.Varint());
    for (uint64_t i = 0; i < count; ++i) {
      PENSTOCK_ASSIGN_OR_RETURN(const uint64_t keep, reader.Varint());
      PENSTOCK_ASSIGN_OR_RETURN(const uint64_t drop, reader.Varint());
      runs_.push_back({static_cast<int64_t>(keep), static_cast<int64_t>(drop)});
    }
    return absl::OkStatus();
  }

 private:
  std::deque<Run> runs_;
  int64_t open_ = 0;  // rows to be given after the last run
};

}  // namespace penstock::engine
