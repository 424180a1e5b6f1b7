#include "penstock/service/protocol/bundle_set.h"

#include <algorithm>
#include <iterator>

namespace penstock::service {

BundleSet::BundleSet(const Runs& runs) {
  for (const Bundles& run : runs) AddRun(run.begin(), run.end());
}

void BundleSet::AddRun(uint64_t begin, uint64_t end) {
  if (begin >= end) return;
  // The first run that touches the new one.
  auto it = runs_.upper_bound(begin);
  if (it != runs_.begin() && std::prev(it)->second >= begin) --it;
  while (it != runs_.end() && it->first <= end) {
    begin = std::min(begin, it->first);
    end = std::max(end, it->second);
    size_ -= it->second - it->first;
    it = runs_.erase(it);
  }
  runs_.emplace_hint(it, begin, end);
  size_ += end - begin;
}

void BundleSet::AddAll(const BundleSet& other) {
  for (const auto& [begin, end] : other.runs_) AddRun(begin, end);
}

void BundleSet::RemoveAll(const BundleSet& other) {
  BundleSet left;
  auto gone = other.runs_.begin();
  for (const auto& [begin, end] : runs_) {
    uint64_t at = begin;
    while (gone != other.runs_.end() && gone->second <= at) ++gone;
    for (auto it = gone; it != other.runs_.end() && it->first < end; ++it) {
      left.AddRun(at, it->first);
      at = it->second;
    }
    left.AddRun(at, end);
  }
  *this = std::move(left);
}

bool BundleSet::Has(uint64_t bundle) const {
  return NextAbsent(bundle) != bundle;
}

uint64_t BundleSet::NextAbsent(uint64_t bundle) const {
  const auto it = runs_.upper_bound(bundle);
  if (it == runs_.begin()) return bundle;
  return std::max(bundle, std::prev(it)->second);
}

BundleSet::Runs BundleSet::ToRuns() const {
  Runs runs;
  for (const auto& [begin, end] : runs_) {
    Bundles* run = runs.Add();
    run->set_begin(begin);
    run->set_end(end);
  }
  return runs;
}

}  // namespace penstock::service
