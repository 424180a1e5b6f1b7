// What happens in a seed.
#include "absl/strings/str_cat.h"
#include "sim/cluster.h"

namespace penstock::sim {

Plan Plan::Random(uint64_t seed) {
  Rng rng(seed ^ 0x5e1f);
  Plan plan;
  plan.seed = seed;
  plan.workers = static_cast<int>(rng.Between(1, 4));
  plan.consumers = static_cast<int>(rng.Between(1, 3));
  plan.bundles = static_cast<uint64_t>(rng.Between(0, 24));
  plan.most_items = static_cast<uint64_t>(rng.Between(0, 12));
  plan.is_ordered = rng.Chance(0.25);
  plan.is_at_most_once = rng.Chance(0.1);
  plan.loss =
      rng.Chance(0.5) ? 0 : 0.3 * static_cast<double>(rng.Below(100)) / 100;
  plan.duplication = rng.Chance(0.5) ? 0 : 0.2;
  plan.most_delay_ms = rng.Chance(0.5) ? 5 : rng.Between(5, 3'000);
  plan.broken_reads = rng.Chance(0.5) ? 0 : 0.1;
  plan.fault_ms = rng.Between(1'000, 15'000);
  const auto some = [&](double share, int most) {
    return rng.Chance(share) ? static_cast<int>(rng.Between(1, most)) : 0;
  };
  plan.dispatcher_crashes = some(0.4, 4);
  plan.zombies = some(0.3, 2);
  plan.disk_errors = some(0.2, 2);
  plan.full_disks = some(0.2, 1);
  plan.worker_crashes = some(0.5, 5);
  plan.worker_pauses = some(0.3, 3);
  plan.drains = some(0.2, 2);
  plan.engine_deaths = some(0.4, 3);
  plan.restores = some(0.3, 2);
  if (plan.restores == 0 && !plan.is_ordered) plan.departures = some(0.3, 1);
  plan.most_rows = static_cast<uint64_t>(rng.Between(1, 3));
  if (rng.Chance(0.4))
    plan.group_size = static_cast<uint64_t>(rng.Between(2, 5));
  if (rng.Chance(0.3)) plan.budget = static_cast<uint64_t>(rng.Between(4, 20));
  // Who leaves says how many rows it had, where that is clear.
  if (plan.departures == 0) {
    plan.group_rows = static_cast<uint64_t>(rng.Between(1, 2));
    plan.most_held = rng.Chance(0.5) ? 0 : static_cast<uint64_t>(rng.Below(6));
  }
  // With numbers of their own, so that the other seeds stay what they are.
  Rng shape(seed ^ 0xb1d);
  if (shape.Chance(0.2)) {
    MakeByWorker(shape, plan);
  } else if (shape.Chance(0.25)) {
    MakeGroup(shape, plan);
  }
  if (plan.is_group() && shape.Chance(0.1)) plan.MakeQuiet();
  Rng sizes(seed ^ 0x512e);
  if (plan.is_in_rounds && sizes.Chance(0.5)) {
    plan.resizes = static_cast<int>(sizes.Between(1, 4));
    plan.are_in_step = sizes.Chance(0.5);
    plan.bundles += sizes.Below(30);
  }
  Rng turns(seed ^ 0x7a4e);
  if (plan.dispatcher_crashes + plan.zombies > 0 && turns.Chance(0.15)) {
    MakeTakeovers(turns, plan);
  }
  return plan;
}

void Plan::MakeQuiet() {
  loss = duplication = broken_reads = 0;
  most_delay_ms = 5;
  dispatcher_crashes = zombies = disk_errors = full_disks = 0;
  worker_crashes = worker_pauses = drains = engine_deaths = 0;
  restores = departures = comebacks = rejoins = resizes = 0;
}

void Plan::MakeTakeovers(Rng& turns, Plan& plan) {
  plan.dispatcher_crashes += static_cast<int>(turns.Between(2, 6));
  plan.zombies += static_cast<int>(turns.Between(2, 6));
}

void Plan::MakeGroup(Rng& shape, Plan& plan) {
  plan.is_ordered = true;
  plan.is_in_rounds = shape.Chance(0.5);
  plan.is_shared = !plan.is_in_rounds;
  plan.consumers = static_cast<int>(shape.Between(1, 4));
  const auto some = [&](double share, int most) {
    return shape.Chance(share) ? static_cast<int>(shape.Between(1, most)) : 0;
  };
  plan.comebacks = some(0.4, 3);
  if (plan.is_in_rounds) {
    plan.is_at_most_once = false;
    plan.group_size = plan.group_rows = 1;
    plan.departures = 0;
    if (plan.restores == 0) plan.rejoins = some(0.5, 3);
  }
}

void Plan::MakeByWorker(Rng& shape, Plan& plan) {
  plan.is_at_most_once = false;
  plan.is_static = shape.Chance(0.5);
  plan.is_each_worker = !plan.is_static;
  if (plan.is_static) plan.bundles = static_cast<uint64_t>(plan.workers);
  if (plan.is_each_worker) {
    plan.is_ordered = false;
    plan.restores = 0;  // they are refused
  }
  plan.most_items *= 8;
  // What each worker runs for itself is not put together here.
  plan.group_size = plan.group_rows = 1;
}

Plan Plan::Of(uint64_t seed) {
  constexpr uint64_t kDrainingEach = 8;
  return seed % kDrainingEach == 0 ? Draining(seed) : Random(seed);
}

Plan Plan::Draining(uint64_t seed) {
  const Plan some = Random(seed);
  Plan plan;
  plan.seed = seed;
  plan.workers = some.workers + 1;
  plan.consumers = some.consumers;
  plan.bundles = some.bundles + 4;
  plan.most_items = some.most_items;
  plan.is_ordered = some.is_ordered;
  // Half of them: nothing may be lost where workers go as they should.
  plan.is_at_most_once =
      some.is_at_most_once || (!some.is_in_rounds && seed % 16 == 0);
  plan.is_shared = some.is_shared;
  plan.is_in_rounds = some.is_in_rounds;
  plan.group_size = some.group_size;
  plan.most_rows = some.most_rows;
  plan.budget = some.budget;
  plan.fault_ms = 3'000;
  plan.drains = 1 + static_cast<int>(seed % 4);
  return plan;
}

bool Plan::is_calm() const {
  return drains > 0 && loss == 0 && duplication == 0 && broken_reads == 0 &&
         most_delay_ms <= 5 && dispatcher_crashes == 0 && zombies == 0 &&
         disk_errors == 0 && full_disks == 0 && worker_crashes == 0 &&
         worker_pauses == 0 && engine_deaths == 0 && restores == 0 &&
         departures == 0 && comebacks == 0 && rejoins == 0 && resizes == 0;
}

std::string Plan::ToString() const {
  return absl::StrCat(
      "seed ", seed, ": ", workers, " workers, ", consumers, " consumers, ",
      bundles, " bundles of up to ", most_items, " items",
      is_ordered ? ", in order" : "", is_at_most_once ? ", at most once" : "",
      is_static ? ", static" : "", is_each_worker ? ", each worker" : "",
      is_shared ? ", shared" : "", is_in_rounds ? ", in rounds" : "",
      ", groups of ", group_size, " as ", group_rows, " rows, frames of up to ",
      most_rows, ", up to ", most_held, " rows held, ", budget, " items wait",
      "; loss ", loss, ", duplication ", duplication, ", delay ", most_delay_ms,
      " ms, broken reads ", broken_reads, "; in ", fault_ms,
      " ms: ", dispatcher_crashes, " dispatcher crashes, ", zombies,
      " zombies, ", disk_errors, " disk errors, ", full_disks, " full disks, ",
      worker_crashes, " worker crashes, ", worker_pauses, " hangs, ", drains,
      " drains, ", engine_deaths, " engine deaths, ", restores, " restores, ",
      departures, " departures, ", comebacks, " comebacks, ", rejoins,
      " rejoins, ", resizes, are_in_step ? " resizes in step" : " resizes");
}

}  // namespace penstock::sim
