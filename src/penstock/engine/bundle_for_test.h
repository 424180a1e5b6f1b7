// For tests: a divided plan run share by share, as several engines and one that
// puts their rows together would.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "penstock/engine/bundle.h"
#include "penstock/engine/reader_testing.h"
#include "penstock/engine/receiver.h"
#include "penstock/plan/divide.h"

namespace penstock::engine_testing {

using engine::Bundle;
using engine::PartOf;
using engine::RunPart;
using plan::Division;

inline constexpr uint64_t kEpoch = 3;
inline constexpr uint64_t kSeed = 77;
// Rows of a source that does not say how many it has.
inline constexpr int kFiles = 6;

// Waits for a pull that is blocked.
class Bell final : public engine::Wakeable {
 public:
  void Wake() override {
    std::lock_guard<std::mutex> lock(mutex_);
    has_rung_ = true;
    rung_.notify_all();
  }
  template <typename Next>
  auto Await(const Next& next) {
    while (true) {
      auto got = next();
      if (!IsBlocked(got)) return got;
      std::unique_lock<std::mutex> lock(mutex_);
      rung_.wait(lock, [this] { return has_rung_; });
      has_rung_ = false;
    }
  }

 private:
  static bool IsBlocked(const absl::StatusOr<engine::Pull>& pull) {
    return pull.ok() && pull->is_blocked();
  }
  static bool IsBlocked(const absl::StatusOr<Bundle::Items>& items) {
    return items.ok() && items->pull.is_blocked();
  }

  std::mutex mutex_;
  std::condition_variable rung_;
  bool has_rung_ = false;
};

struct Item {
  Chunk chunk;  // of one row
  std::string text;
  bool is_loose = false;

  bool operator==(const Item& other) const {
    return text == other.text && is_loose == other.is_loose;
  }
};
inline void PrintTo(const Item& item, std::ostream* out) {
  *out << (item.is_loose ? "loose " : "") << item.text;
}
using Items = std::vector<Item>;

inline Items ReadItems(Bundle& bundle, int64_t count, int64_t demand = 5) {
  auto bell = std::make_shared<Bell>();
  const engine::Waker waker = bell;
  Items all;
  while (static_cast<int64_t>(all.size()) < count) {
    const int64_t left = count - static_cast<int64_t>(all.size());
    absl::StatusOr<Bundle::Items> items = bell->Await([&] {
      return bundle.Next({std::min(left, demand), waker});
    });
    EXPECT_TRUE(items.ok()) << items.status();
    if (!items.ok() || items->pull.is_end()) break;
    const Chunk& chunk = items->pull.chunk;
    EXPECT_LE(chunk.rows, demand);
    const std::vector<std::string> texts = ToText(chunk);
    for (int64_t i = 0; i < chunk.rows; ++i) {
      all.push_back({Slice(chunk, i, 1), texts[i], items->is_loose});
    }
  }
  return all;
}

// Gives chunks that have arrived.
class ArrivedStream final : public engine::Stream {
 public:
  ArrivedStream(engine::NodeStats* stats, std::vector<Chunk> chunks)
      : Stream(stats, Counts::kTime), chunks_(std::move(chunks)) {}

 protected:
  absl::StatusOr<engine::Pull> DoNext(const engine::Request&) override {
    if (next_ == chunks_.size()) return engine::Pull::End();
    return engine::Pull::Rows(chunks_[next_++]);
  }
  void DoSave(WireWriter& writer) const override { writer.Varint(next_); }
  absl::Status DoRestore(WireReader& reader) override {
    const absl::StatusOr<uint64_t> next = reader.Varint();
    if (next.ok()) next_ = *next;
    return next.status();
  }

 private:
  const std::vector<Chunk> chunks_;  // of one row each
  uint64_t next_ = 0;
};

class FakeReceiver final : public engine::Receiver {
 public:
  explicit FakeReceiver(
      std::function<std::vector<Chunk>(uint64_t iteration)> receive)
      : receive_(std::move(receive)) {}
  engine::StreamOr Start(const plan::Received&, const engine::Scope& scope,
                         const engine::OpInfo& info) override {
    return std::make_unique<ArrivedStream>(engine::StatsOf(scope, info),
                                           receive_(scope.iteration));
  }

 private:
  const std::function<std::vector<Chunk>(uint64_t)> receive_;
};

inline std::shared_ptr<engine::Receiver> Borrowed(FakeReceiver& receiver) {
  return {std::shared_ptr<void>(), &receiver};
}

// Runs plans in shares, as many engines and one that puts rows together would.
class Divided final {
 public:
  Divided(TestEngine& engine, const plan::Plan& plan)
      : engine_(engine), division_(*plan::Divide(plan)) {
    remote_ = BuildOrDie(division_.remote);
  }

  const Division& division() const { return division_; }

  std::unique_ptr<Bundle> Start(const RunPart& part, int64_t position = 0) {
    auto bundle =
        Bundle::Start(remote_, engine_.environment(), engine_.instances(),
                      kEpoch, kSeed, part, position);
    EXPECT_TRUE(bundle.ok()) << bundle.status();
    for (engine::NodeKnobs& knobs : (*bundle)->run()->knobs) {
      knobs.keep_bytes = engine_.keep_bytes();
    }
    return *std::move(bundle);
  }
  std::unique_ptr<Bundle> Resume(const RunPart& part, const std::string& state,
                                 int64_t skip = 0) {
    auto bundle = Bundle::Resume(remote_, engine_.environment(),
                                 engine_.instances(), state, part, skip);
    EXPECT_TRUE(bundle.ok()) << bundle.status();
    return *std::move(bundle);
  }

  uint64_t num_passes() const {
    if (!division_.passes.has_value()) return 1;
    return static_cast<uint64_t>(division_.passes->count.value_or(3));
  }
  // Shares of `size` rows, whose first is shorter.
  std::vector<RunPart> Parts(int64_t size, uint64_t pass,
                             uint64_t iteration = 0) const {
    std::vector<RunPart> parts;
    const int64_t rows = division_.rows.value_or(kFiles);
    int64_t end = std::max<int64_t>(1, size / 2);
    for (int64_t begin = 0; begin < rows; begin = end, end += size) {
      parts.push_back(PartOf(division_, begin, end, pass, iteration));
    }
    return parts;
  }

  // What comes of all shares, loose rows put together.
  std::vector<Chunk> Receive(int64_t size, uint64_t iteration = 0) {
    std::vector<Chunk> arrived;
    std::vector<Chunk> loose;
    for (uint64_t pass = 0; pass < num_passes(); ++pass) {
      for (const RunPart& part : Parts(size, pass, iteration)) {
        for (Item& item : ReadItems(*Start(part), 1'000'000)) {
          (item.is_loose ? loose : arrived).push_back(std::move(item.chunk));
        }
      }
      if (division_.stitch.has_value() && division_.stitch->repeat) {
        Stitch(std::exchange(loose, {}), pass, iteration, arrived);
      }
    }
    if (division_.stitch.has_value() && !division_.stitch->repeat) {
      Stitch(std::move(loose), 0, iteration, arrived);
    }
    EXPECT_TRUE(loose.empty()) << "loose rows of nothing";
    return arrived;
  }

  // The whole, share by share.
  Rows Drain(int64_t size) {
    FakeReceiver receiver(
        [&](uint64_t iteration) { return Receive(size, iteration); });
    Rows rows;
    for (const Chunk& chunk : Run(division_.local, receiver, std::nullopt)) {
      for (std::string& row : ToText(chunk)) rows.push_back(std::move(row));
    }
    return rows;
  }

 private:
  std::vector<Chunk> Run(const plan::Plan& plan, FakeReceiver& receiver,
                         const std::optional<RunPart>& part) {
    engine::Environment environment = engine_.environment();
    environment.receiver = Borrowed(receiver);
    auto iterator =
        engine::Iterator::Start(BuildOrDie(plan), environment,
                                engine_.instances(), kEpoch, kSeed, part);
    std::vector<Chunk> chunks;
    EXPECT_TRUE(iterator.ok()) << iterator.status();
    if (!iterator.ok()) return chunks;
    auto bell = std::make_shared<Bell>();
    const engine::Waker waker = bell;
    while (true) {
      auto pull = bell->Await([&] { return (*iterator)->Next({1, waker}); });
      EXPECT_TRUE(pull.ok()) << pull.status();
      if (!pull.ok() || pull->is_end()) return chunks;
      chunks.push_back(pull->chunk);
    }
  }

  void Stitch(std::vector<Chunk> loose, uint64_t pass, uint64_t iteration,
              std::vector<Chunk>& arrived) {
    RunPart part;
    part.repeat = division_.stitch->repeat;
    part.pass = pass;
    part.iteration = iteration;
    part.gives_lineage = division_.needs_lineage;
    FakeReceiver receiver([&](uint64_t) { return loose; });
    for (Chunk& chunk : Run(division_.stitch->after, receiver, part)) {
      arrived.push_back(std::move(chunk));
    }
  }

  TestEngine& engine_;
  const Division division_;
  std::shared_ptr<const engine::Pipeline> remote_;
};

}  // namespace penstock::engine_testing
