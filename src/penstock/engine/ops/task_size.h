// How many rows one task gets: enough to be worth its hand-off, so few that
// others get their turn, and no more bytes than a chunk has.
#pragma once

#include <cstdint>

namespace penstock::engine {

// Begins with one row and learns from tasks as they end. Not thread-safe.
class TaskSize final {
 public:
  // A task that takes less than `min_nanos` is not worth handing over. The
  // first ones have `rows` rows.
  explicit TaskSize(int64_t min_nanos, int64_t rows = 1)
      : min_nanos_(min_nanos), rows_(rows) {}

  int64_t rows() const { return rows_; }

  // A task of `rows` rows, whose results have `bytes` bytes, took so long.
  // There may have been fewer rows for it than rows(): that it was short then
  // says nothing of a whole one.
  void Learn(int64_t rows, int64_t bytes, int64_t nanos);

 private:
  const int64_t min_nanos_;
  int64_t rows_;
};

}  // namespace penstock::engine
