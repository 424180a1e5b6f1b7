// For tests: an engine of their own, and plans read to their end as text.
//
//   EXPECT_THAT(Drain(Batch(Range(5), 2)),
//               ElementsAre("[0 1]", "[2 3]", "[4]"));
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "penstock/base/mutex.h"
#include "penstock/data/chunk_testing.h"
#include "penstock/engine/pipeline.h"
#include "penstock/engine/python_testing.h"
#include "penstock/engine/source_testing.h"
#include "penstock/io/io_pool.h"
#include "penstock/plan.pb.h"

namespace penstock::engine_testing {

// Elements as text (see data/chunk_testing.h).
using Rows = std::vector<std::string>;

// What iterators share, on threads of its own. Readers must go before it.
class TestEngine final {
 public:
  struct Settings {
    int threads = 2;
    int64_t memory_bytes = int64_t{1} << 30;
    io::FileSystem* files = nullptr;  // null: those of this machine
    // Of every node of every reader: its knob, from the beginning.
    int64_t keep_bytes = 0;
    // Set: these rows are kept there.
    std::string kept_directory = {};
    int64_t max_kept_disk_bytes = int64_t{1} << 30;
    int64_t min_check_nanos = 0;  // files of kept rows: before every pass
  };

  TestEngine() : TestEngine(Settings()) {}
  explicit TestEngine(const Settings& settings);

  const engine::Environment& environment() const { return environment_; }
  engine::Instances& instances() { return instances_; }
  engine::CacheStore& caches() { return caches_; }
  engine::MemoryBudget& memory() { return *memory_; }
  engine::KeptRows& kept() { return *environment_.kept; }
  int64_t keep_bytes() const { return keep_bytes_; }
  FakeSources& sources() { return sources_; }
  std::vector<std::string> warnings() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  mutable Mutex mutex_;
  std::vector<std::string> warnings_ ABSL_GUARDED_BY(mutex_);
  FakeSources sources_;
  FakeFunctions functions_;
  const int64_t keep_bytes_;
  const std::shared_ptr<engine::KeptRows> kept_;
  const std::shared_ptr<engine::MemoryBudget> memory_;
  engine::CacheStore caches_;
  engine::Instances instances_;
  io::IoPool io_pool_;
  engine::Executor executor_;  // ends first: its tasks use the others
  engine::Environment environment_;
};

std::shared_ptr<const engine::Pipeline> BuildOrDie(const plan::Plan& plan);

// An iterator whose pulls wait. A wait of a minute ends the test: it hangs.
class Reader final {
 public:
  using PipelinePtr = std::shared_ptr<const engine::Pipeline>;

  // At the beginning; epoch 0 unless the count of iterators should decide.
  Reader(TestEngine& engine, PipelinePtr pipeline,
         std::optional<uint64_t> epoch = 0,
         std::optional<uint64_t> seed = std::nullopt);
  Reader(TestEngine& engine, const plan::Plan& plan,
         std::optional<uint64_t> epoch = 0)
      : Reader(engine, BuildOrDie(plan), epoch) {}
  // Where `state` says.
  static Reader Resume(TestEngine& engine, PipelinePtr pipeline,
                       std::string_view state, int64_t skip_rows = 0);

  // Sets keep_bytes of the node of this name.
  void Keep(const std::string& node, int64_t bytes);

  // One pull; waits while it is blocked.
  absl::StatusOr<engine::Pull> Next(int64_t max_rows);
  // One pull that does not wait.
  absl::StatusOr<engine::Pull> Try(int64_t max_rows);
  // Up to `count` rows; fewer only at the end, or if the run ends with an error
  // ("!!" and its code, once).
  Rows Read(int64_t count, int64_t demand = 1000);
  // Everything, asking for these numbers of rows in turn.
  Rows Drain(std::vector<int64_t> demands = {1000});

  std::string Save() const { return iterator_->Save(); }
  std::shared_ptr<const engine::Run> run() const { return iterator_->run(); }
  const PipelinePtr& pipeline() const { return iterator_->pipeline(); }

 private:
  class Bell;
  Reader(const TestEngine& engine, std::unique_ptr<engine::Iterator> iterator);

  std::shared_ptr<Bell> bell_;
  std::unique_ptr<engine::Iterator> iterator_;
};

// All rows of `plan`, by an engine of its own.
Rows Drain(const plan::Plan& plan, std::vector<int64_t> demands = {1000});
// The first `count`.
Rows DrainFirst(const plan::Plan& plan, int64_t count);

// What the run of `plan` fails with before it gives a row, or when started.
absl::Status FailureOf(const plan::Plan& plan);

}  // namespace penstock::engine_testing
