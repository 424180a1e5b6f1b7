#include "penstock/engine/reader_testing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace penstock::engine_testing {
namespace {

std::string CodeText(const absl::Status& status) {
  return absl::StatusCodeToString(status.code());
}

}  // namespace

TestEngine::TestEngine(const Settings& settings)
    : keep_bytes_(settings.keep_bytes),
      kept_(std::make_shared<engine::KeptRows>()),
      memory_(std::make_shared<engine::MemoryBudget>(
          settings.memory_bytes, engine::KeptRows::ReclaimFrom(kept_))),
      // Seeds that are drawn: the same in every test.
      instances_([] { return 12345; }),
      executor_(settings.threads) {
  environment_.executor = &executor_;
  environment_.files =
      settings.files != nullptr ? settings.files : &io::LocalFileSystem();
  environment_.io_pool = &io_pool_;
  environment_.memory = memory_;
  environment_.min_check_nanos = settings.min_check_nanos;
  environment_.min_recording_nanos = 0;   // as often as rows allow
  environment_.min_shared_nanos = 2'000;  // though it is not worth it
  environment_.caches = &caches_;
  environment_.kept = kept_;
  if (!settings.kept_directory.empty()) {
    environment_.kept_disk = std::make_shared<engine::KeptDisk>(
        settings.kept_directory, settings.max_kept_disk_bytes);
  }
  environment_.sources = &sources_;
  environment_.functions = &functions_;
  environment_.warn = [this](std::string_view text) {
    MutexLock lock(&mutex_);
    warnings_.emplace_back(text);
  };
}

std::vector<std::string> TestEngine::warnings() const {
  MutexLock lock(&mutex_);
  return warnings_;
}

std::shared_ptr<const engine::Pipeline> BuildOrDie(const plan::Plan& plan) {
  auto pipeline = engine::Pipeline::Build(plan);
  if (!pipeline.ok()) {
    std::fprintf(stderr, "%s\n", pipeline.status().ToString().c_str());
    std::abort();
  }
  return *std::move(pipeline);
}

class Reader::Bell final : public engine::Wakeable {
 public:
  void Wake() override {
    std::lock_guard<std::mutex> lock(mutex_);
    has_rung_ = true;
    rung_.notify_all();
  }
  void Await() {
    std::unique_lock<std::mutex> lock(mutex_);
    if (!rung_.wait_for(lock, std::chrono::minutes(1),
                        [this] { return has_rung_; })) {
      std::fprintf(stderr, "an iterator was blocked and nothing woke it\n");
      std::abort();
    }
    has_rung_ = false;
  }

 private:
  std::mutex mutex_;
  std::condition_variable rung_;
  bool has_rung_ = false;
};

Reader::Reader(const TestEngine& engine,
               std::unique_ptr<engine::Iterator> iterator)
    : bell_(std::make_shared<Bell>()), iterator_(std::move(iterator)) {
  for (engine::NodeKnobs& knobs : iterator_->run()->knobs) {
    knobs.keep_bytes = engine.keep_bytes();
    knobs.keeps_on_disk = engine.environment().kept_disk != nullptr;
  }
}

void Reader::Keep(const std::string& node, int64_t bytes) {
  for (const engine::OpInfo& info : pipeline()->ops()) {
    if (info.name != node) continue;
    iterator_->run()->knobs[info.id].keep_bytes = bytes;
    return;
  }
  std::fprintf(stderr, "no node %s\n", node.c_str());
  std::abort();
}

namespace {

std::unique_ptr<engine::Iterator> OrDie(
    absl::StatusOr<std::unique_ptr<engine::Iterator>> iterator) {
  if (!iterator.ok()) {
    std::fprintf(stderr, "%s\n", iterator.status().ToString().c_str());
    std::abort();
  }
  return *std::move(iterator);
}

}  // namespace

Reader::Reader(TestEngine& engine, PipelinePtr pipeline,
               std::optional<uint64_t> epoch, std::optional<uint64_t> seed)
    : Reader(engine, OrDie(engine::Iterator::Start(
                         std::move(pipeline), engine.environment(),
                         engine.instances(), epoch, seed))) {}

Reader Reader::Resume(TestEngine& engine, PipelinePtr pipeline,
                      std::string_view state, int64_t skip_rows) {
  return Reader(engine, OrDie(engine::Iterator::Resume(
                            std::move(pipeline), engine.environment(),
                            engine.instances(), state, skip_rows)));
}

absl::StatusOr<engine::Pull> Reader::Try(int64_t max_rows) {
  const bool is_over = iterator_->IsOver();
  absl::StatusOr<engine::Pull> pull = iterator_->Next({max_rows, bell_});
  EXPECT_TRUE(!is_over || (pull.ok() && pull->is_end()))
      << "something after what was called over";
  return pull;
}

absl::StatusOr<engine::Pull> Reader::Next(int64_t max_rows) {
  while (true) {
    absl::StatusOr<engine::Pull> pull = Try(max_rows);
    if (!pull.ok() || !pull->is_blocked()) return pull;
    bell_->Await();
  }
}

Rows Reader::Read(int64_t count, int64_t demand) {
  Rows rows;
  while (static_cast<int64_t>(rows.size()) < count) {
    const int64_t left = count - static_cast<int64_t>(rows.size());
    absl::StatusOr<engine::Pull> pull = Next(std::min(left, demand));
    if (!pull.ok()) {
      rows.push_back(absl::StrCat("!!", CodeText(pull.status())));
      break;
    }
    if (pull->is_end()) break;
    for (std::string& row : ToText(pull->chunk)) rows.push_back(std::move(row));
  }
  return rows;
}

Rows Reader::Drain(std::vector<int64_t> demands) {
  Rows rows;
  for (size_t i = 0;; ++i) {
    absl::StatusOr<engine::Pull> pull = Next(demands[i % demands.size()]);
    if (!pull.ok()) {
      rows.push_back(absl::StrCat("!!", CodeText(pull.status())));
      return rows;
    }
    if (pull->is_end()) return rows;
    for (std::string& row : ToText(pull->chunk)) rows.push_back(std::move(row));
  }
}

Rows Drain(const plan::Plan& plan, std::vector<int64_t> demands) {
  TestEngine engine;
  return Reader(engine, plan).Drain(std::move(demands));
}

Rows DrainFirst(const plan::Plan& plan, int64_t count) {
  TestEngine engine;
  return Reader(engine, plan).Read(count);
}

absl::Status FailureOf(const plan::Plan& plan) {
  TestEngine engine;
  auto pipeline = engine::Pipeline::Build(plan);
  if (!pipeline.ok()) return pipeline.status();
  auto iterator = engine::Iterator::Start(*pipeline, engine.environment(),
                                          engine.instances(), 0);
  if (!iterator.ok()) return iterator.status();
  absl::StatusOr<engine::Pull> pull = Reader(engine, *pipeline).Next(1);
  return pull.status();
}

}  // namespace penstock::engine_testing
