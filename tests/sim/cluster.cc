#include "sim/cluster.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "sim/actors.h"

namespace penstock::sim {
namespace {

// Of virtual time: longer than any epoch takes once faults have stopped.
constexpr int64_t kMostMs = 600'000;

class Cluster final {
 public:
  Cluster(const Plan& plan, World& world) : site_(world, plan) {
    site_.manifest.set_rows(plan.is_each_worker ? 1 : plan.bundles);
    site_.manifest.set_rows_per_bundle(1);
    site_.manifest.set_passes(plan.is_each_worker ? 0 : 1);
    site_.restart_dispatcher = [this] {
      site_.world.After(site_.world.rng().Between(100, 3'000),
                        [this] { StartDispatcher(); });
    };
  }

  // Events hold on to what is here.
  ~Cluster() { site_.world.End(); }

  Outcome Run() {
    StartDispatcher();
    for (int i = 0; i < site_.plan.workers; ++i) StartWorker();
    const auto slots = static_cast<uint32_t>(site_.plan.consumers);
    for (uint32_t slot = 0; slot < slots; ++slot) {
      StartConsumer(slot, slots, {});
    }
    ScheduleFaults();
    Supervise();
    World& world = site_.world;
    while (!IsOver() && site_.failure.empty() && world.now_ms() < kMostMs) {
      if (!world.Step()) break;
    }
    Outcome outcome;
    outcome.what = site_.failure.empty() ? Check() : site_.failure;
    outcome.is_right = outcome.what.empty();
    outcome.digest = world.digest();
    outcome.virtual_ms = world.now_ms();
    outcome.items = Delivered().size();
    outcome.faults = faults_;
    outcome.story = world.story();
    return outcome;
  }

 private:
  void StartDispatcher() {
    auto dispatcher = std::make_shared<DispatcherActor>(site_);
    site_.dispatchers.push_back(dispatcher);
    dispatcher->Start();
  }

  // `after`: the one whose place it takes.
  void StartWorker(const WorkerActor* after = nullptr) {
    const uint64_t id = ++last_worker_;
    const std::string address = site_.plan.is_static && after != nullptr
                                    ? after->address()
                                    : absl::StrCat("w", id);
    auto worker = std::make_shared<WorkerActor>(site_, id, address);
    site_.workers[address] = worker;
    worker->Start();
  }

  void StartConsumer(uint32_t slot, uint32_t slots,
                     ConsumerActor::Begin begin) {
    auto consumer =
        std::make_shared<ConsumerActor>(site_, slot, slots, ++last_consumer_);
    consumers_.push_back(consumer);
    consumer->Start(std::move(begin));
    MayKillSoon(consumer);
  }

  // An engine may die before a restore is heard, or its first row comes.
  void MayKillSoon(const std::shared_ptr<ConsumerActor>& consumer) {
    Rng& rng = site_.world.rng();
    if (site_.plan.engine_deaths == 0 || !rng.Chance(0.3)) return;
    site_.world.After(rng.Between(0, 600), [this, consumer] {
      ++faults_;
      consumer->KillEngine();
    });
  }

  std::shared_ptr<WorkerActor> AnyWorker() {
    std::vector<std::shared_ptr<WorkerActor>> alive;
    for (const auto& [address, worker] : site_.workers) {
      if (!worker->is_dead() && !worker->is_draining()) alive.push_back(worker);
    }
    if (alive.empty()) return nullptr;
    return alive[site_.world.rng().Below(alive.size())];
  }

  void ScheduleFaults() {
    const Plan& plan = site_.plan;
    Rng& rng = site_.world.rng();
    const auto schedule = [&](int count, std::function<void()> fault) {
      for (int i = 0; i < count; ++i) {
        site_.world.After(rng.Between(0, plan.fault_ms), [this, fault] {
          ++faults_;
          fault();
        });
      }
    };
    schedule(plan.dispatcher_crashes, [this] { KillDispatcher(); });
    schedule(plan.zombies, [this] {
      site_.world.Tell("the dispatcher hangs, and another one starts");
      site_.dispatchers.back()->Pause(site_.world.rng().Between(500, 8'000));
      site_.restart_dispatcher();
    });
    schedule(plan.disk_errors, [this] {
      using store::Fault;
      static constexpr Fault kFaults[] = {
          Fault::kErrorBefore, Fault::kErrorAfter, Fault::kCrashBefore,
          Fault::kCrashAfter};
      site_.world.Tell("the dispatcher's disk fails");
      site_.disk->FailCommit(1, kFaults[site_.world.rng().Below(4)]);
    });
    schedule(plan.full_disks, [this] {
      site_.world.Tell("the dispatcher's disk is full");
      site_.disk->SetFull(true);
      site_.world.After(site_.world.rng().Between(100, 5'000), [this] {
        site_.world.Tell("there is room on the disk again");
        site_.disk->SetFull(false);
      });
    });
    schedule(plan.worker_crashes, [this] {
      if (const auto worker = AnyWorker()) {
        site_.world.Tell("a worker dies");
        worker->Die();
        site_.world.After(site_.world.rng().Between(100, 2'000),
                          [this, worker] { StartWorker(worker.get()); });
      }
    });
    schedule(plan.worker_pauses, [this] {
      if (const auto worker = AnyWorker()) {
        site_.world.Tell("a worker hangs");
        worker->Pause(site_.world.rng().Between(500, 6'000));
      }
    });
    schedule(plan.drains, [this] {
      if (const auto worker = AnyWorker()) {
        site_.world.Tell("a worker drains");
        worker->Drain();
        if (!site_.plan.is_static) return StartWorker();
        // Who has its address comes when it has gone, or is believed to have.
        site_.world.After(site_.world.rng().Between(500, 8'000),
                          [this, worker] { StartWorker(worker.get()); });
      }
    });
    schedule(plan.engine_deaths, [this] {
      consumers_[site_.world.rng().Below(consumers_.size())]->KillEngine();
    });
    schedule(plan.departures, [this] {
      int active = 0;
      for (const auto& each : consumers_) {
        active += !each->has_ended() && !each->has_left();
      }
      if (active < 2) return;
      consumers_[site_.world.rng().Below(consumers_.size())]->Leave();
    });
    schedule(plan.restores, [this] { Checkpoint(); });
    schedule(plan.comebacks, [this] { ComeBack(true); });
    schedule(plan.rejoins, [this] { ComeBack(false); });
  }

  void KillDispatcher() {
    site_.world.Tell("the dispatcher dies");
    site_.dispatchers.back()->Die();
    site_.restart_dispatcher();
  }

  // One member of a group dies, and another process goes on in its place.
  void ComeBack(bool has_state) {
    const auto slot =
        static_cast<uint32_t>(site_.world.rng().Below(consumers_.size()));
    const auto& consumer = consumers_[slot];
    if (consumer->has_ended() || consumer->has_left() || !consumer->saved()) {
      return;
    }
    ConsumerActor::Begin begin;
    if (has_state || site_.world.rng().Chance(0.5)) {
      bases_[slot] = LedgerOf(slot);
      first_rows_[slot] += consumer->first_row();
    } else {
      bases_.erase(slot);
      first_rows_.erase(slot);
    }
    if (has_state) {
      begin.own = *consumer->saved();
    } else {
      begin.rejoins = true;
      // It has counted them.
      if (bases_.contains(slot)) {
        begin.from_round = first_rows_[slot] + bases_[slot].size();
      }
    }
    site_.world.Tell(absl::StrCat("member ", slot, " dies; one goes on ",
                                  has_state ? "from its state" : "anew"));
    consumer->Die();
    const auto slots = static_cast<uint32_t>(site_.plan.consumers);
    auto next =
        std::make_shared<ConsumerActor>(site_, slot, slots, ++last_consumer_);
    consumers_[slot] = next;
    next->Start(std::move(begin));
    MayKillSoon(next);
    // Where it goes on may not be heard.
    Rng& rng = site_.world.rng();
    if (has_state || site_.plan.dispatcher_crashes == 0 || rng.Chance(0.5)) {
      return;
    }
    site_.world.After(rng.Between(0, 600), [this] { KillDispatcher(); });
  }

  void Checkpoint() {
    std::vector<Saved> states;
    for (const auto& consumer : consumers_) {
      if (!consumer->saved()) return;  // nothing to save yet
      states.push_back(*consumer->saved());
    }
    const std::vector<Item> ledger = Delivered();
    std::map<uint32_t, std::vector<Item>> ledgers;
    for (uint32_t slot = 0; slot < consumers_.size(); ++slot) {
      ledgers[slot] = LedgerOf(slot);
    }
    site_.world.Tell(
        absl::StrCat("a checkpoint after ", ledger.size(), " items"));
    site_.world.After(site_.world.rng().Between(10, 4'000),
                      [this, states, ledger, ledgers] {
                        checkpoint_ = states;
                        base_ = ledger;
                        bases_ = ledgers;
                        Restore();
                      });
  }

  // Whoever runs trainers starts all of them again when one has failed.
  void Supervise() {
    constexpr int kMostRestarts = 5;
    site_.world.After(1'000, [this] { Supervise(); });
    const bool has_failed = std::ranges::any_of(
        consumers_,
        [](const auto& consumer) { return consumer->has_failed(); });
    if (!has_failed || checkpoint_.empty() || restarts_ > kMostRestarts) return;
    ++restarts_;
    Restore();
  }

  // Each its own, or all of them to however many there are.
  void Restore() {
    for (const auto& consumer : consumers_) consumer->Die();
    consumers_.clear();
    Rng& rng = site_.world.rng();
    const std::vector<Saved>& states = checkpoint_;
    const auto before = static_cast<uint32_t>(states.size());
    auto slots =
        rng.Chance(0.5) ? before : static_cast<uint32_t>(rng.Between(1, 4));
    bool is_each_its_own = slots == before && rng.Chance(0.5);
    std::vector<service::ConsumerState> all;
    for (const Saved& saved : states) {
      if (auto state = StateOf(saved)) all.push_back(*std::move(state));
    }
    if (all.size() < before || site_.plan.is_group()) {
      // One of them is inside a group of rows, or each has a job of its own.
      slots = before;
      is_each_its_own = true;
    }
    site_.world.Tell(absl::StrCat("all consumers die; ", slots,
                                  " go on from the checkpoint"));
    for (uint32_t slot = 0; slot < slots; ++slot) {
      ConsumerActor::Begin begin;
      if (is_each_its_own) {
        begin.own = *std::ranges::find_if(states, [&](const Saved& saved) {
          return site_.plan.is_group()
                     ? saved.journal.base().job() == site_.JobOf(slot)
                     : saved.journal.base().slot() == slot;
        });
      } else {
        begin.all = all;
      }
      StartConsumer(slot, slots, std::move(begin));
    }
  }

  bool IsOver() const {
    if (site_.world.now_ms() < site_.plan.fault_ms + 4'000 &&
        site_.plan.restores > 0) {
      return false;  // somebody may go back yet
    }
    return std::ranges::all_of(consumers_, [](const auto& consumer) {
      return consumer->is_lost() ||
             ((consumer->has_ended() || consumer->has_left()) &&
              consumer->is_heard());
    });
  }

  std::vector<Item> Delivered() const {
    std::vector<Item> all = base_;
    for (const auto& consumer : consumers_) {
      all.insert(all.end(), consumer->ledger().begin(),
                 consumer->ledger().end());
    }
    return all;
  }

  // Of the members that go on in that place.
  std::vector<Item> LedgerOf(uint32_t slot) const {
    std::vector<Item> all;
    if (const auto it = bases_.find(slot); it != bases_.end()) all = it->second;
    const auto& ledger = consumers_[slot]->ledger();
    all.insert(all.end(), ledger.begin(), ledger.end());
    return all;
  }

  // What member `lane` should have, row by row.
  std::vector<Item> RowsOf(uint64_t lane) const {
    const uint64_t lanes = site_.plan.lanes();
    std::vector<Item> rows;
    std::vector<Item> spares;
    for (uint64_t bundle = 0; bundle < site_.plan.bundles; ++bundle) {
      const uint64_t rounds = site_.ItemsOf(bundle) / lanes;
      for (uint64_t round = 0; round < rounds; ++round) {
        rows.emplace_back(bundle, round * lanes + lane);
      }
      for (uint64_t i = rounds * lanes; i < site_.ItemsOf(bundle); ++i) {
        spares.emplace_back(bundle, i);
        if (spares.size() < lanes) continue;
        rows.push_back(spares[lane]);
        spares.clear();
      }
    }
    return rows;
  }

  // What it was told to have missed, it did not have, of `all`.
  std::string CheckMissed(uint32_t slot, uint64_t had, uint64_t all) const {
    // Another engine begins to count anew.
    if (site_.plan.engine_deaths > 0) return "";
    const uint64_t missed = consumers_[slot]->missed();
    if (had + missed <= all) return "";
    return absl::StrCat("member ", slot, " had ", had,
                        " items, and was told that it missed ", missed, ", of ",
                        all);
  }

  std::string CheckMembers() const {
    uint64_t all = 0;
    for (uint64_t bundle = 0; bundle < site_.plan.bundles; ++bundle) {
      all += site_.ItemsOf(bundle);
    }
    for (uint32_t slot = 0; slot < consumers_.size(); ++slot) {
      if (consumers_[slot]->has_left() || consumers_[slot]->is_lost()) continue;
      const std::vector<Item> had = LedgerOf(slot);
      if (site_.plan.is_in_rounds) {
        const std::vector<Item> rows = RowsOf(slot);
        uint64_t first = consumers_[slot]->first_row();
        if (const auto it = first_rows_.find(slot); it != first_rows_.end()) {
          first += it->second;
        }
        if (had.size() + first != rows.size() ||
            !std::equal(had.begin(), had.end(),
                        rows.begin() + static_cast<int64_t>(first))) {
          return absl::StrCat("consumer ", slot, " had ", had.size(),
                              " rows from ", first, " on, of ", rows.size(),
                              ", or others");
        }
        continue;
      }
      std::set<Item> seen;
      for (const Item& item : had) {
        if (seen.insert(item).second) continue;
        return absl::StrCat("member ", slot, " had item ", item.second,
                            " of bundle ", item.first, " twice");
      }
      if (site_.plan.is_at_most_once) {
        std::string what = CheckMissed(slot, had.size(), all);
        if (!what.empty()) return what;
      }
      if (!site_.plan.is_at_most_once && had.size() != all) {
        return absl::StrCat("member ", slot, " had ", had.size(), " of ", all,
                            " items");
      }
    }
    const bool is_quiet = faults_ == 0 && site_.plan.broken_reads == 0 &&
                          site_.plan.loss == 0 && site_.plan.drains == 0 &&
                          !site_.plan.is_at_most_once &&
                          site_.plan.most_delay_ms <= 5;
    if (!is_quiet) return "";
    for (const auto& [production, times] : site_.computed) {
      if (times > 1) {
        return absl::StrCat("a bundle was computed ", times,
                            " times, and nothing had failed");
      }
    }
    return "";
  }

  // What is wrong; empty: nothing.
  std::string Check() const {
    if (!IsOver()) {
      std::string what = "stuck: consumers have not ended";
      const auto& last = site_.dispatchers.back();
      if (last->is_dead()) return what + ": no dispatcher";
      if (last->dispatcher().is_disk_full()) what += ": the disk is full";
      last->dispatcher().Look([&](const service::DispatcherState& state) {
        absl::StrAppend(&what, "; ", state.workers().size(), " workers");
        const uint32_t jobs = site_.plan.is_group()
                                  ? static_cast<uint32_t>(site_.plan.consumers)
                                  : 1;
        for (uint32_t job = 0; job < jobs; ++job) {
          const service::EpochState* epoch =
              state.FindEpoch(site_.JobOf(job), 0);
          if (epoch == nullptr) continue;
          absl::StrAppend(&what, "; ", site_.JobOf(job), ": ",
                          epoch->done().size(), " done, ",
                          epoch->Unowned().size(), " unowned");
          for (uint32_t slot = 0; slot < 4; ++slot) {
            for (const auto& owned : epoch->OwnedBy(slot)) {
              absl::StrAppend(&what, ", ", owned.bundle, " of slot ", slot,
                              " at ", owned.worker);
            }
          }
        }
      });
      for (const auto& consumer : consumers_) {
        absl::StrAppend(&what, "; ", consumer->ToString());
      }
      return what;
    }
    if (site_.plan.is_group()) return CheckMembers();
    std::map<Item, int> times;
    for (const Item& item : Delivered()) ++times[item];
    for (const auto& [item, count] : times) {
      const bool is_known =
          site_.plan.is_each_worker || item.first < site_.plan.bundles;
      if (!is_known || item.second >= site_.ItemsOf(item.first)) {
        return absl::StrCat("there is no item ", item.second, " of bundle ",
                            item.first);
      }
      if (count > 1) {
        return absl::StrCat("item ", item.second, " of bundle ", item.first,
                            " came ", count, " times");
      }
    }
    if (site_.plan.is_at_most_once && !site_.plan.is_calm()) return "";
    if (site_.plan.is_each_worker) return CheckPasses(times);
    // When all others have ended, what the last one leaves is nobody's.
    std::set<Item> left;
    if (site_.plan.departures > 0) left = LeftBehind();
    for (uint64_t bundle = 0; bundle < site_.plan.bundles; ++bundle) {
      for (uint64_t i = 0; i < site_.ItemsOf(bundle); ++i) {
        if (!times.contains({bundle, i}) && !left.contains({bundle, i})) {
          return absl::StrCat("item ", i, " of bundle ", bundle, " never came");
        }
      }
    }
    return "";
  }

  // Passes that no worker has left are here as a whole, if they are not of one
  // that came when their consumer had ended.
  std::string CheckPasses(const std::map<Item, int>& times) const {
    std::string what;
    const Plan& plan = site_.plan;
    if (site_.dispatchers.size() > 1 || plan.restores > 0 ||
        plan.consumers > 1) {
      return what;
    }
    site_.dispatchers.back()->dispatcher().Look(
        [&](const service::DispatcherState& state) {
          const service::EpochState* epoch = state.FindEpoch("job", 0);
          if (epoch == nullptr || epoch->dropped() > 0) return;
          for (const auto& [bundle, worker] : site_.worker_of_pass) {
            for (uint64_t i = 0; i < site_.ItemsOf(bundle); ++i) {
              if (times.contains({bundle, i})) continue;
              what = absl::StrCat("item ", i, " of pass ", bundle,
                                  " never came, and its worker is there");
            }
          }
        });
    return what;
  }

  std::set<Item> LeftBehind() const {
    std::set<Item> left;
    site_.dispatchers.back()->dispatcher().Look(
        [&](const service::DispatcherState& state) {
          const service::EpochState* epoch = state.FindEpoch("job", 0);
          if (epoch == nullptr) return;
          for (const service::Cursor& cursor : epoch->Unowned()) {
            const uint64_t items = site_.ItemsOf(cursor.bundle());
            for (uint64_t i = cursor.position(); i < items; ++i) {
              left.insert({cursor.bundle(), i});
            }
          }
          if (!site_.plan.is_static) return;
          // Shards that were to be begun for those that have left.
          std::set<uint64_t> begun;
          for (uint32_t slot = 0; slot < 4; ++slot) {
            for (const auto& owned : epoch->OwnedBy(slot)) {
              begun.insert(owned.bundle);
            }
          }
          for (const service::Cursor& cursor : epoch->Unowned()) {
            begun.insert(cursor.bundle());
          }
          for (uint64_t bundle = 0; bundle < site_.plan.bundles; ++bundle) {
            if (epoch->done().Has(bundle) || begun.contains(bundle)) continue;
            for (uint64_t i = 0; i < site_.ItemsOf(bundle); ++i) {
              left.insert({bundle, i});
            }
          }
        });
    return left;
  }

  Site site_;
  std::vector<std::shared_ptr<ConsumerActor>> consumers_;
  std::vector<Item> base_;                       // had before the last restore
  std::map<uint32_t, std::vector<Item>> bases_;  // the same by members
  std::map<uint32_t, uint64_t> first_rows_;      // of those
  std::vector<Saved> checkpoint_;                // that it was made from
  int restarts_ = 0;
  uint64_t last_worker_ = 0;
  uint64_t last_consumer_ = 0;
  uint64_t faults_ = 0;
};

}  // namespace

uint64_t Site::ItemsOf(uint64_t bundle) const {
  return Combine(plan.seed, bundle) % (plan.most_items + 1);
}

uint64_t Site::PositionsOf(uint64_t bundle) const {
  const uint64_t items = ItemsOf(bundle);
  if (!plan.is_in_rounds) return items;
  return items / plan.lanes() + items % plan.lanes();
}

std::string Site::JobOf(uint32_t slot) const {
  return plan.is_group() ? absl::StrCat("job", slot) : "job";
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
  return plan;
}

void Plan::MakeQuiet() {
  loss = duplication = broken_reads = 0;
  most_delay_ms = 5;
  dispatcher_crashes = zombies = disk_errors = full_disks = 0;
  worker_crashes = worker_pauses = drains = engine_deaths = 0;
  restores = departures = comebacks = rejoins = 0;
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
         departures == 0 && comebacks == 0 && rejoins == 0;
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
      " rejoins");
}

Outcome Simulate(const Plan& plan, bool keeps_story) {
  World world(plan.seed);
  world.keeps_story = keeps_story;
  return Cluster(plan, world).Run();
}

}  // namespace penstock::sim
