// Rows that a test says, and a way to wait for an executor.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "penstock/base/mutex.h"
#include "penstock/engine/executor.h"
#include "penstock/engine/row_source.h"

namespace penstock::session {

inline std::vector<int64_t> Count(int64_t begin, int64_t end) {
  std::vector<int64_t> values(end - begin);
  std::iota(values.begin(), values.end(), begin);
  return values;
}

// Rows that a test says: 0, 1, 2, … one at a time or as many as are asked for.
class CountingSources final : public engine::RowSources {
 public:
  struct Script {
    int64_t rows = 1000;
    int64_t rows_at_once = 1000;
    absl::Status failure = {};    // after the rows, instead of the end
    int64_t vectors_from = 1000;  // from this row on, a row is a vector
  };
  explicit CountingSources(Script script) : script_(std::move(script)) {}

  absl::StatusOr<std::unique_ptr<engine::RowSource>> Open(
      const std::string&, const Chunk&) override {
    ++open_;
    return std::make_unique<Source>(this);
  }
  absl::StatusOr<Buffer> Capture(const std::string&) override {
    return absl::NotFoundError("no captures");
  }

  int64_t given() const { return given_; }
  int open() const { return open_; }

 private:
  class Source final : public engine::RowSource {
   public:
    explicit Source(CountingSources* all) : all_(all) {}
    ~Source() override { --all_->open_; }
    absl::StatusOr<engine::Pull> Next(const engine::Request& request) override {
      const Script& script = all_->script_;
      if (next_ >= script.rows) {
        if (!script.failure.ok()) return script.failure;
        return engine::Pull::End();
      }
      int64_t rows = std::min(
          {request.max_rows, script.rows_at_once, script.rows - next_});
      Chunk chunk;
      if (next_ < script.vectors_from) {
        rows = std::min(rows, script.vectors_from - next_);
        chunk.columns.push_back(
            MakeColumn<int64_t>(Count(next_, next_ + rows)));
      } else {
        chunk.columns.push_back(
            MakeColumn<int64_t>(Count(next_, next_ + rows)).Reshape(rows, {1}));
      }
      chunk.rows = rows;
      next_ += rows;
      all_->given_ += rows;
      return engine::Pull::Rows(std::move(chunk));
    }

   private:
    CountingSources* const all_;
    int64_t next_ = 0;
  };

  const Script script_;
  std::atomic<int64_t> given_{0};
  std::atomic<int> open_{0};
};

// Done when a thread of the executor has come to it.
class Barrier final : public engine::Task {
 public:
  explicit Barrier(engine::Executor* executor) : Task(executor) {}
  void Pass() {
    Wake();
    MutexLock lock(&mutex_);
    while (!is_passed_) passed_.Wait(&mutex_);
  }

 protected:
  Next RunSlice() override {
    MutexLock lock(&mutex_);
    is_passed_ = true;
    passed_.SignalAll();
    return Next::kWait;
  }

 private:
  Mutex mutex_;
  CondVar passed_;
  bool is_passed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace penstock::session
