#include "absl/strings/str_cat.h"
#include "sim/actors.h"

namespace penstock::sim {

uint64_t Site::ItemsOf(uint64_t bundle) const {
  return Combine(plan.seed, bundle) % (plan.most_items + 1);
}

std::string Site::JobOf(uint32_t slot, uint32_t slots) const {
  if (plan.is_in_rounds) return absl::StrCat("job", slot, "/", slots);
  return plan.is_shared ? absl::StrCat("job", slot) : "job";
}

uint64_t Site::DigestOf(uint64_t bundle) const {
  return Combine(~plan.seed, bundle);
}

void Site::Send(const std::function<void()>& deliver) {
  Rng& rng = world.rng();
  const bool is_calm = world.now_ms() > plan.fault_ms;
  if (!is_calm && rng.Chance(plan.loss)) return;
  const int64_t most = is_calm ? 5 : plan.most_delay_ms;
  world.After(rng.Between(0, most), deliver);
  if (!is_calm && rng.Chance(plan.duplication)) {
    world.After(rng.Between(0, 3 * most), deliver);
  }
}

std::shared_ptr<DispatcherActor> Site::Listening() {
  if (dispatchers.size() > 1 && world.rng().Chance(0.2)) {
    const auto& before = dispatchers[dispatchers.size() - 2];
    if (!before->is_dead()) return before;
  }
  return dispatchers.back()->is_dead() ? nullptr : dispatchers.back();
}

}  // namespace penstock::sim
