// Virtual time: what happens next, and chance that a seed repeats.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "penstock/base/hash.h"

namespace penstock::sim {

class Rng final {
 public:
  explicit Rng(uint64_t seed) : state_(Mix(seed)) {}
  uint64_t Next() { return state_ = Mix(state_); }
  // In [0, n).
  uint64_t Below(uint64_t n) { return n == 0 ? 0 : Next() % n; }
  // In [low, high].
  int64_t Between(int64_t low, int64_t high) {
    return low +
           static_cast<int64_t>(Below(static_cast<uint64_t>(high - low) + 1));
  }
  bool Chance(double share) {
    return static_cast<double>(Next() >> 11) * 0x1p-53 < share;
  }

 private:
  uint64_t state_;
};

class World final {
 public:
  explicit World(uint64_t seed) : rng_(seed) {}

  Rng& rng() { return rng_; }
  int64_t now_ms() const { return now_ms_; }

  void After(int64_t ms, std::function<void()> event) {
    events_.emplace(std::pair(now_ms_ + ms, next_++), std::move(event));
  }
  // Nothing happens any more.
  void End() { events_.clear(); }
  // When the next event is; now, if there is none.
  int64_t next_ms() const {
    return events_.empty() ? now_ms_ : events_.begin()->first.first;
  }
  // Runs the next event. False: there is none.
  bool Step() {
    if (events_.empty()) return false;
    auto node = events_.extract(events_.begin());
    now_ms_ = node.key().first;
    node.mapped()();
    return true;
  }

  // A line of the story; also what two runs of a seed must agree on.
  void Tell(const std::string& line) {
    digest_ = Combine(digest_, HashBytes(line, now_ms_));
    if (keeps_story) {
      story_.push_back(std::to_string(now_ms_) + " ms  " + line);
    }
  }
  bool keeps_story = false;
  const std::vector<std::string>& story() const { return story_; }
  uint64_t digest() const { return digest_; }

 private:
  Rng rng_;
  int64_t now_ms_ = 0;
  uint64_t next_ = 0;
  std::map<std::pair<int64_t, uint64_t>, std::function<void()>> events_;
  std::vector<std::string> story_;
  uint64_t digest_ = 0;
};

}  // namespace penstock::sim
