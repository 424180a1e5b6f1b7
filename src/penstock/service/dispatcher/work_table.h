// What workers say that they have computed, added up by runs and their passes.
//
// Soft: after a restart workers say it again. It remembers runs that are over,
// since others may compute what they did; the newest ones, of each the newest
// passes.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <set>

#include "penstock/service.pb.h"

namespace penstock::service {

// Not thread-safe.
class WorkTable final {
 public:
  static constexpr size_t kMaxRuns = 256;
  static constexpr size_t kMaxPasses = 8;  // of a run

  struct Pass {
    uint64_t epoch = 0;
    uint64_t iteration = 0;
    uint64_t pass = 0;

    auto operator<=>(const Pass&) const = default;
  };

  // What a worker has computed of a pass, in place of what it said before.
  void Take(uint64_t worker, const Work& work);

  // Of all workers together, the oldest pass first.
  std::map<Pass, Work> Of(uint64_t run) const;
  std::set<uint64_t> runs() const;

 private:
  using ByWorker = std::map<uint64_t, Work>;
  std::map<uint64_t, std::map<Pass, ByWorker>> runs_;
};

}  // namespace penstock::service
