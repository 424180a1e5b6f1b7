#include "penstock/tuner/cache_place.h"

#include <algorithm>
#include <utility>

#include "penstock/tuner/bound.h"
#include "penstock/tuner/legality.h"
#include "penstock/tuner/size.h"

namespace penstock::tuner {
namespace {

constexpr size_t kMaxLookedAt = 64;
constexpr double kLeastGain = 1.05;
constexpr double kAsGood = 0.99;
constexpr double kLeastFraction = 0.02;
constexpr size_t kMaxPaired = 8;

// What a cache after each node would save at most, in seconds of any resource.
// An upper bound where branches join below; used to choose whom to look at.
std::vector<double> SavingsOf(const Model& model) {
  std::vector<double> savings(model.nodes.size(), 0);
  for (size_t i = 0; i < model.nodes.size(); ++i) {
    const NodeModel& node = model.nodes[i];
    savings[i] = node.cpu.value + node.busy.value + node.read_time.value;
    if (model.resources.disk) {
      savings[i] += node.disk_bytes.value / model.resources.disk->peak;
    } else if (model.resources.disk_bytes_per_second) {
      savings[i] +=
          node.disk_bytes.value / *model.resources.disk_bytes_per_second;
    }
    for (int input : node.inputs) savings[i] += savings[input];
  }
  return savings;
}

// By place: a user that gives no more bytes per root element, and so is the
// better place, or -1.
std::vector<int> BetterUsers(const Model& model) {
  std::vector<int> better(model.nodes.size(), -1);
  const std::vector<Measured>& measured = *model.measured;
  for (size_t i = 0; i < model.nodes.size(); ++i) {
    const NodeModel& node = model.nodes[i];
    if (node.inputs.size() != 1) continue;
    const int input = node.inputs[0];
    const double own = node.visits * measured[i].row_bytes;
    const double below = model.nodes[input].visits * measured[input].row_bytes;
    if (own <= below * 1.001) better[input] = static_cast<int>(i);
  }
  return better;
}

// Of a disk whose speed is unknown, nothing can be promised.
bool MayUseDisk(const Model& model) {
  return model.resources.kept_bytes_per_second ||
         model.resources.disk_bytes_per_second;
}

// As much as there is room for; nothing if that is next to none.
std::optional<CacheAfter> Within(const Model& model, const CacheRoom& room,
                                 const CacheCandidate& place,
                                 plan::CacheTier tier) {
  if (tier == plan::DISK && !MayUseDisk(model)) return std::nullopt;
  const double bytes = tier == plan::DISK ? room.disk_bytes : room.memory_bytes;
  const double fraction =
      place.size_bytes <= bytes ? 1 : bytes / place.size_bytes;
  if (fraction < kLeastFraction) return std::nullopt;
  return CacheAfter{(*model.measured)[place.node].id, tier, fraction,
                    place.size_bytes};
}

void Consider(const Model& model, const CacheRoom& room, CacheCandidate& out) {
  for (plan::CacheTier tier : {plan::MEMORY, plan::DISK}) {
    const std::optional<CacheAfter> cache = Within(model, room, out, tier);
    if (!cache) continue;
    const absl::StatusOr<Bound> bound =
        WhatIf(model, {*cache}, KnobsAre::kFree);
    if (!bound.ok()) continue;
    if (tier == plan::DISK) out.rate_on_disk = bound->rate.middle;
    if (out.cache && bound->rate.middle <= out.rate.middle * 1.01) continue;
    out.cache = cache;
    out.rate = bound->rate;
  }
}

// A part in memory, and on disk what is computed for the rest: for rows that do
// not fit in memory and are read back from disk more slowly.
void Pair(const Model& model, const CacheRoom& room, double least,
          CachePlan& plan) {
  if (!MayUseDisk(model) || room.disk_bytes <= 0) return;
  std::vector<const CacheCandidate*> places;
  for (const CacheCandidate& candidate : plan.candidates) {
    if (candidate.cache && places.size() < kMaxPaired) {
      places.push_back(&candidate);
    }
  }
  std::optional<CacheCandidate> memory, disk;
  for (const CacheCandidate* upper : places) {
    const auto in_memory = Within(model, room, *upper, plan::MEMORY);
    if (!in_memory || in_memory->fraction >= 1) continue;
    for (const CacheCandidate* lower : places) {
      if (lower->node == upper->node) continue;
      const auto on_disk = Within(model, room, *lower, plan::DISK);
      if (!on_disk) continue;
      std::vector<Change> both = {*on_disk, *in_memory};
      if (upper->node < lower->node) std::swap(both[0], both[1]);
      const absl::StatusOr<Bound> bound = WhatIf(model, both, KnobsAre::kFree);
      if (!bound.ok() || bound->rate.middle < least) continue;
      least = bound->rate.middle;
      memory = *upper;
      memory->cache = in_memory;
      disk = *lower;
      disk->cache = on_disk;
      memory->rate = disk->rate = bound->rate;
    }
  }
  if (!memory) return;
  plan.best = std::move(memory);
  plan.second = std::move(disk);
}

// Whether `a` is to be preferred where both are as fast.
bool IsSmaller(const CacheCandidate& a, const CacheCandidate& b) {
  if (a.cache->tier != b.cache->tier) return a.cache->tier == plan::MEMORY;
  return a.cache->fraction * a.size_bytes < b.cache->fraction * b.size_bytes;
}

}  // namespace

CachePlan PlaceCache(const Model& model, const CacheRoom& room) {
  const std::vector<CacheLegality> legality = FindCacheLegality(model);
  const std::vector<double> savings = SavingsOf(model);
  const std::vector<int> better = BetterUsers(model);
  std::vector<int> order;
  for (size_t i = 0; i < model.nodes.size(); ++i) {
    if (savings[i] > 0) order.push_back(static_cast<int>(i));
  }
  std::sort(order.begin(), order.end(), [&](int a, int b) {
    // Where one is legal, it is looked at before those that are not.
    if (legality[a].is_legal != legality[b].is_legal) {
      return legality[a].is_legal > legality[b].is_legal;
    }
    return savings[a] != savings[b] ? savings[a] > savings[b] : a > b;
  });
  if (order.size() > kMaxLookedAt) order.resize(kMaxLookedAt);

  CachePlan plan;
  const double now = FindBound(model, KnobsAre::kFree).rate.middle;
  double fastest = now * kLeastGain;
  for (int place : order) {
    CacheCandidate candidate;
    candidate.node = place;
    candidate.is_legal = legality[place].is_legal;
    candidate.why_not = legality[place].why;
    if (candidate.is_legal) {
      const std::optional<RowsAndBytes> size = SizeAfter(model, place);
      if (!size || !size->bytes.high) {
        candidate.why_not = "its size is not known yet";
      } else {
        candidate.size_bytes = *size->bytes.high;
        // The user's place costs the same and saves more, if it is legal.
        const int user = better[place];
        const bool is_worth_it =
            user < 0 || !legality[user].is_legal || !SizeAfter(model, user);
        if (is_worth_it) Consider(model, room, candidate);
        if (is_worth_it && !candidate.cache) {
          candidate.why_not = "there is no room for it";
        }
      }
    }
    if (candidate.cache) fastest = std::max(fastest, candidate.rate.middle);
    plan.candidates.push_back(std::move(candidate));
  }
  for (const CacheCandidate& candidate : plan.candidates) {
    if (!candidate.cache || candidate.rate.middle < now * kLeastGain ||
        candidate.rate.middle < fastest * kAsGood) {
      continue;
    }
    if (!plan.best || IsSmaller(candidate, *plan.best)) {
      plan.best = candidate;
    }
  }
  Pair(model, room, kLeastGain * std::max(fastest, now * kLeastGain), plan);
  return plan;
}

}  // namespace penstock::tuner
