#include "penstock/service/dispatcher/shared_table.h"

#include <utility>

namespace penstock::service {

void SharedTable::Set(uint64_t bundle, uint64_t worker) {
  uint64_t& known = workers_[bundle];
  if (known == worker) return;
  known = worker;
  has_changed_ = true;
  while (workers_.size() > kMost) {
    const auto least = workers_.begin();
    // One that is far behind has its own computed.
    workers_.erase(least->first == bundle ? std::next(least) : least);
  }
}

std::optional<uint64_t> SharedTable::Find(uint64_t bundle) const {
  const auto it = workers_.find(bundle);
  if (it == workers_.end()) return std::nullopt;
  return it->second;
}

bool SharedTable::Forget(uint64_t worker) {
  return std::erase_if(workers_, [&](const auto& entry) {
           return entry.second == worker;
         }) > 0;
}

std::optional<uint64_t> SharedTable::first() const {
  if (workers_.empty()) return std::nullopt;
  return workers_.begin()->first;
}

void SharedTable::SetItems(uint64_t bundle, uint64_t items) {
  items_[bundle] = items;
  while (items_.size() > 4 * kMost) items_.erase(items_.begin());
}

uint64_t SharedTable::ItemsIn(uint64_t begin, uint64_t end) const {
  uint64_t items = 0;
  for (auto it = items_.lower_bound(begin);
       it != items_.end() && it->first < end; ++it) {
    items += it->second;
  }
  return items;
}

void SharedTable::SetPlace(uint32_t lane, const ConsumerState& place,
                           uint64_t row) {
  places_[lane] = {place, row};
}

const SharedTable::Place* SharedTable::Before(uint64_t row) const {
  const Place* furthest = nullptr;
  for (const auto& [each, place] : places_) {
    if (place.row > row) continue;
    if (furthest == nullptr || place.row > furthest->row) furthest = &place;
  }
  return furthest;
}

const SharedTable::Place* SharedTable::Furthest(uint32_t lane) const {
  const Place* furthest = nullptr;
  for (const auto& [each, place] : places_) {
    if (each == lane) continue;
    if (furthest == nullptr || place.row > furthest->row) furthest = &place;
  }
  if (furthest != nullptr) return furthest;
  const auto own = places_.find(lane);
  return own == places_.end() ? nullptr : &own->second;
}

}  // namespace penstock::service
