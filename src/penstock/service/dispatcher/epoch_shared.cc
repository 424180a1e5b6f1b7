// Epochs of a group's members: a bundle that a worker computes for one of them
// is had from there by the others.
//
// Who comes first has bundles granted as everybody has. The others follow: what
// the table names is lent to the worker that it names, without that worker's
// asking, since it computes nothing more for it.
#include <optional>
#include <vector>

#include "penstock/service/dispatcher/epoch_state.h"

namespace penstock::service {

void EpochState::SetTable(SharedTable* table) {
  if (table_ == table) return;
  if (table_ != nullptr) table_->members().erase(name_);
  table_ = table;
  if (table_ != nullptr) table_->members().insert(name_);
}

bool EpochState::IsElsewhere(uint64_t number, uint64_t worker) const {
  if (table_ == nullptr) return false;
  const std::optional<uint64_t> known = table_->Find(number);
  if (!known || *known == worker) return false;
  const auto it = begun_.find(number);
  // Its reader could not read it there.
  return it == begun_.end() || it->second.avoided != *known;
}

bool EpochState::SkipToOthers() {
  if (settings_.visitation != AT_MOST_ONCE) return false;
  next_ = NextNew(next_);
  const std::optional<uint64_t> first = table_->first();
  if (!first || *first <= next_) return false;
  // One that comes late has missed nothing yet.
  const bool has_begun = !done_.empty() || !begun_.empty();
  if (has_begun && !settings_.may_skip) return false;
  // Those that it has begun are its own.
  for (uint64_t number = next_; number < *first;) {
    if (begun_.contains(number)) {
      ++number;
      continue;
    }
    const auto next = begun_.upper_bound(number);
    const uint64_t end =
        next == begun_.end() || next->first > *first ? *first : next->first;
    done_.AddRun(number, end);
    folded_.AddRun(number, end);
    if (has_begun) {
      missed_bundles_ += end - number;
      missed_items_ += table_->ItemsIn(number, end);
    }
    number = end;
  }
  skipped_to_ = *first;
  next_ = NextNew(next_);
  TellAll();
  return true;
}

bool EpochState::Follow(const std::function<uint64_t()>& next_attempt,
                        Writes& writes) {
  if (table_ == nullptr || !has_bundles_) return false;
  const bool has_skipped = SkipToOthers();
  const auto lend = [&](uint64_t number, Bundle& bundle, uint64_t worker) {
    Lend(number, bundle, worker, next_attempt());
    bundle.is_following = true;
    ++shared_bundles_;
    if (index_ != nullptr) index_->news.workers.push_back(worker);
  };
  for (const auto& [slot, numbers] : owned_) {
    const auto seat = seats_.find(slot);
    if (seat == seats_.end() || seat->second.is_gone) continue;
    for (const uint64_t number : numbers) {
      Bundle& bundle = begun_[number];
      const std::optional<uint64_t> worker = table_->Find(number);
      if (bundle.worker != 0 || !worker || bundle.avoided == *worker ||
          seat->second.complete.contains(number)) {
        continue;
      }
      lend(number, bundle, *worker);
    }
  }
  while (true) {
    next_ = NextNew(next_);
    uint64_t number = next_;
    if (!unowned_.empty()) number = std::min(number, *unowned_.begin());
    if (count_ && number >= *count_) break;
    const std::optional<uint64_t> worker = table_->Find(number);
    const std::optional<uint32_t> slot = SlotFor(number);
    if (!worker || !slot) break;
    Bundle& bundle = begun_[number];
    Own(number, bundle, *slot, writes);
    lend(number, bundle, *worker);
  }
  return has_skipped;
}

void EpochState::OnShared(uint64_t number, const Finished& finished) {
  if (table_ == nullptr) return;
  if (finished.is_gone()) {
    ++missed_bundles_;
    missed_items_ += table_->ItemsIn(number, number + 1);
  } else {
    table_->SetItems(number, finished.items());
  }
}

}  // namespace penstock::service
