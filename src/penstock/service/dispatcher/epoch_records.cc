// What is written down of an epoch's bundles.
#include "penstock/service/dispatcher/epoch_state.h"
#include "penstock/service/dispatcher/records.h"

namespace penstock::service {

void EpochState::Recover(uint64_t bundle, const BindRecord& bind) {
  // A full disk may have refused that it goes.
  if (folded_.Has(bundle)) return;
  RecoverPass(bundle, bind.worker());
  Bundle& found = begun_[bundle];
  found.maker = bind.worker();
  found.from = bind.from();
  found.is_recovered = true;
  if (found.slot) owned_[*found.slot].erase(bundle);
  found.slot.reset();
  unowned_.erase(bundle);
  if (bind.has_slot()) {
    found.slot = bind.slot();
    owned_[bind.slot()].insert(bundle);
  } else {
    unowned_.insert(bundle);
    has_released_ = true;
  }
}

void EpochState::Recover(uint64_t bundle, const DoneRecord& done) {
  RecoverPass(bundle, done.worker());
  const auto it = begun_.find(bundle);
  if (it != begun_.end()) {
    if (it->second.slot) owned_[*it->second.slot].erase(bundle);
    unowned_.erase(bundle);
    begun_.erase(it);
  }
  done_.Add(bundle);
  digests_[bundle] = done;
  if (index_ != nullptr) index_->to_fold.insert(name_);
}

void EpochState::Recover(const BundleSet& folded) {
  folded_ = folded;
  done_.AddAll(folded);
  // Of those that the generation began with.
  std::erase_if(begun_, [&](const auto& entry) {
    if (!folded.Has(entry.first)) return false;
    unowned_.erase(entry.first);
    return true;
  });
}

bool EpochState::Fold(size_t most, Writes& writes) {
  size_t kept = is_done() ? 0 : settings_.most_records;
  // Their records say who had which pass; there are as many as workers.
  if (is_by_worker()) kept = digests_.size();
  size_t folded = 0;
  while (digests_.size() > kept && folded < most) {
    const auto first = digests_.begin();
    folded_.Add(first->first);
    writes.durable.push_back({KeyOf(kDoneKey, first->first), std::nullopt});
    digests_.erase(first);
    ++folded;
  }
  if (digests_.size() <= kept && index_ != nullptr) {
    index_->to_fold.erase(name_);
  }
  return folded > 0;
}

void EpochState::Erase(Writes& writes) const {
  for (const auto& [number, bundle] : begun_) {
    writes.durable.push_back({KeyOf(kBindKey, number), std::nullopt});
  }
  for (const auto& [number, record] : digests_) {
    writes.durable.push_back({KeyOf(kDoneKey, number), std::nullopt});
  }
}

std::string EpochState::KeyOf(std::string_view kind, uint64_t bundle) const {
  return BundleKey(kind, id_, bundle);
}

}  // namespace penstock::service
