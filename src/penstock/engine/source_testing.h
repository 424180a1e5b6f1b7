// For tests: rows from outside the engine, counted, and slow or broken at will.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "penstock/base/mutex.h"
#include "penstock/engine/row_source.h"

namespace penstock::engine_testing {

// How a fake generator behaves. It gives int64 0, 1, 2, …
struct FakeSource {
  int64_t rows = 0;
  std::set<int64_t> errors = {};  // these rows are errors
  // Before each answer it says "not yet" once, and wakes at once.
  bool is_hesitant = false;
  // From this row on it says "not yet" and never wakes.
  int64_t stuck_at = INT64_MAX;
  // Or instead: gives these chunks, one an answer.
  std::vector<Chunk> chunks = {};
};

// Thread-safe.
class FakeSources final : public engine::RowSources {
 public:
  // The behaviour of every run of `capture` that is opened from now on. Plans
  // made by plan_testing's Generator() say "generator".
  void Set(const std::string& capture, FakeSource source)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void SetArray(const std::string& id, Buffer bytes)
      ABSL_LOCKS_EXCLUDED(mutex_);

  absl::StatusOr<std::unique_ptr<engine::RowSource>> Open(
      const std::string& capture, const Chunk& args) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<Buffer> Capture(const std::string& id) override
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Over all runs.
  int64_t rows_given() const { return counts_->rows.load(); }
  int64_t runs_opened() const { return counts_->opened.load(); }
  int64_t runs_open() const { return counts_->open.load(); }

 private:
  friend class FakeRun;
  struct Counts {
    std::atomic<int64_t> rows{0};
    std::atomic<int64_t> opened{0};
    std::atomic<int64_t> open{0};
  };

  const std::shared_ptr<Counts> counts_ = std::make_shared<Counts>();
  Mutex mutex_;
  std::map<std::string, FakeSource> sources_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Buffer> arrays_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace penstock::engine_testing
