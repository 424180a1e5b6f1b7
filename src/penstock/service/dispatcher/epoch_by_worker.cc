// Epochs in which each worker has one bundle, which is for nobody else.
//
//   STATIC       bundle k is that of worker k of a list, whoever that is now.
//                What is not read of it waits until there is one at its
//                address.
//   EACH_WORKER  a worker that comes has the next number, and all of the
//                pipeline: a pass. When it goes, the rest of its pass does.
//
// Readers have workers in turn: number k is that of slot k modulo their number,
// until it is given back or its reader has left.
#include <algorithm>
#include <optional>
#include <set>

#include "penstock/service/dispatcher/epoch_state.h"

namespace penstock::service {

void EpochState::RecoverPass(uint64_t number, uint64_t worker) {
  if (settings_.visitation != EACH_WORKER) return;
  next_pass_ = std::max(next_pass_, number + 1);
  if (worker != 0) passes_[worker].insert(number);
}

void EpochState::Join(uint64_t worker) {
  if (settings_.visitation != EACH_WORKER || !has_bundles_) return;
  if (!joined_.insert(worker).second) return;
  MarkReady();
  const auto [its, is_new] = passes_.try_emplace(worker);
  if (!is_new) return;
  // Of an earlier life: one for each worker that was there then.
  const auto is_successor = [&](const auto& entry) {
    return entry.second.empty() || *entry.second.begin() < inherited_end_;
  };
  const auto successors = static_cast<uint64_t>(
      std::ranges::count_if(passes_, is_successor));  // it is one of them
  const uint64_t before = inherited_.done.size() + inherited_.open.size();
  if (successors > before) its->second.insert(next_pass_++);
  TellAll();
}

void EpochState::Retire(uint64_t worker, Writes& writes) {
  const auto its = passes_.find(worker);
  if (its == passes_.end()) return;
  const std::set<uint64_t> numbers = its->second;
  for (const uint64_t number : numbers) {
    if (done_.Has(number)) continue;
    const auto it = begun_.find(number);
    if (it == begun_.end() || it->second.worker == 0) Drop(number, writes);
  }
}

void EpochState::Drop(uint64_t number, Writes& writes) {
  if (begun_.contains(number)) ++dropped_;
  MarkDone(number, DoneRecord(), writes);
}

std::optional<EpochState::Given> EpochState::GrantByWorker(
    uint64_t worker, uint64_t attempt, std::optional<uint64_t> place,
    Writes& writes) {
  if (settings_.visitation == STATIC) {
    if (!place || *place >= count_.value_or(0)) return std::nullopt;
    return GrantOne(*place, worker, attempt, writes);
  }
  const auto its = passes_.find(worker);
  if (its == passes_.end()) return std::nullopt;
  bool is_busy = false;
  for (const uint64_t number : its->second) {
    if (const auto given = GrantOne(number, worker, attempt, writes)) {
      return given;
    }
    is_busy |= !done_.Has(number);
  }
  if (is_busy) return std::nullopt;
  // One that was begun in an earlier life, and that nobody goes on with.
  for (auto& [number, bundle] : begun_) {
    if (bundle.maker != 0) continue;
    bundle.maker = worker;
    its->second.insert(number);
    if (const auto given = GrantOne(number, worker, attempt, writes)) {
      return given;
    }
    // Its reader is not there yet.
    bundle.maker = 0;
    its->second.erase(number);
  }
  return std::nullopt;
}

std::optional<EpochState::Given> EpochState::GrantOne(uint64_t number,
                                                      uint64_t worker,
                                                      uint64_t attempt,
                                                      Writes& writes) {
  if (done_.Has(number) || quarantined_.contains(number)) return std::nullopt;
  const auto it = begun_.find(number);
  if (it != begun_.end() && it->second.slot) {
    Bundle& bundle = it->second;
    if (bundle.worker != 0) return std::nullopt;
    if (bundle.avoided == worker && bundle.avoids > 0) {
      --bundle.avoids;
      return std::nullopt;
    }
    return Lend(number, bundle, worker, attempt);
  }
  const std::optional<uint32_t> slot = SlotOfWorkers(number);
  if (!slot) return std::nullopt;
  Bundle& bundle = begun_[number];
  if (settings_.visitation == EACH_WORKER) bundle.maker = worker;
  Own(number, bundle, *slot, writes);
  return Lend(number, bundle, worker, attempt);
}

std::optional<uint32_t> EpochState::SlotOfWorkers(uint64_t number) const {
  const auto wants = [&](uint32_t slot) {
    const auto want = want_.find(slot);
    return want != want_.end() && want->second > 0;
  };
  const auto its = static_cast<uint32_t>(number % settings_.slots);
  if (wants(its)) return its;
  if (!IsForAnyone(number)) return std::nullopt;
  // Whoever has the fewest.
  std::optional<uint32_t> best;
  size_t least = 0;
  for (const auto& [slot, want] : want_) {
    const auto owned = owned_.find(slot);
    const size_t has = owned == owned_.end() ? 0 : owned->second.size();
    if (want == 0 || (best && has >= least)) continue;
    best = slot;
    least = has;
  }
  return best;
}

bool EpochState::IsForAnyone(uint64_t number) const {
  if (settings_.is_ordered) return false;
  const auto its = static_cast<uint32_t>(number % settings_.slots);
  return unowned_.contains(number) || left_.contains(its);
}

bool EpochState::HasNothingByWorker(uint32_t slot) const {
  const auto is_its = [&](uint64_t number) {
    return number % settings_.slots == slot;
  };
  const auto may_have = [&](uint64_t number) {
    return is_its(number) || IsForAnyone(number);
  };
  if (std::ranges::any_of(unowned_, may_have)) return false;
  const auto is_to_come = [&](uint64_t number) {
    return !done_.Has(number) && !begun_.contains(number) &&
           !quarantined_.contains(number) && may_have(number);
  };
  if (settings_.visitation == STATIC) {
    for (uint64_t number = 0; number < count_.value_or(0); ++number) {
      if (is_to_come(number)) return false;
    }
    return true;
  }
  // Before the first has come, it is not over but has not begun.
  if (passes_.empty()) return false;
  for (const auto& [worker, numbers] : passes_) {
    if (std::ranges::any_of(numbers, is_to_come)) return false;
  }
  return true;
}

}  // namespace penstock::service
