// Which workers compute the bundles of one pass for the members of a group
// (design note 0027). Soft: what it does not know is computed again.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>

#include "penstock/service.pb.h"
#include "penstock/service/dispatcher/epoch_index.h"

namespace penstock::service {

class SharedTable final {
 public:
  // Bundles that it knows at most: the least go first.
  static constexpr size_t kMost = 128;

  // `worker` computes the bundle, or did and may have it still.
  void Set(uint64_t bundle, uint64_t worker);
  std::optional<uint64_t> Find(uint64_t bundle) const;
  // It has gone, or is about to. Whether it had any.
  bool Forget(uint64_t worker);
  // The least that it knows.
  std::optional<uint64_t> first() const;

  // How many items a bundle has, as a member has found.
  void SetItems(uint64_t bundle, uint64_t items);
  // Of [begin, end), as far as it is known.
  uint64_t ItemsIn(uint64_t begin, uint64_t end) const;

  // Where a member is that has had `row` rows; the others may be behind it.
  void SetPlace(uint32_t lane, const ConsumerState& place, uint64_t row);
  struct Place {
    ConsumerState state;
    uint64_t row = 0;
  };
  // That of the furthest but `lane`, or its own if there is no other; null:
  // nobody has begun.
  const Place* Furthest(uint32_t lane) const;
  // The furthest that is not after `row`; null: there is none.
  const Place* Before(uint64_t row) const;

  // Epochs that look here. They keep it up to date themselves.
  std::set<EpochName>& members() { return members_; }
  const std::set<EpochName>& members() const { return members_; }
  // Since it was last asked, members may have more to follow.
  bool TakeChanged() { return std::exchange(has_changed_, false); }

 private:
  std::map<uint64_t, uint64_t> workers_;  // by bundle
  std::map<uint64_t, uint64_t> items_;    // by bundle
  std::map<uint32_t, Place> places_;      // by lane
  std::set<EpochName> members_;
  bool has_changed_ = false;
};

}  // namespace penstock::service
