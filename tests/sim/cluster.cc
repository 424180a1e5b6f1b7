#include "sim/cluster.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "sim/actors.h"
#include "sim/rounds.h"

namespace penstock::sim {
namespace {

// Of virtual time: longer than any epoch takes once faults have stopped.
constexpr int64_t kMostMs = 600'000;
constexpr uint32_t kMostMembers = 4;

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
    sizes_ = {{0, slots}};
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
    consumers_.push_back(MakeConsumer(slot, slots, std::move(begin)));
  }

  std::shared_ptr<ConsumerActor> MakeConsumer(uint32_t slot, uint32_t slots,
                                              ConsumerActor::Begin begin) {
    auto consumer =
        std::make_shared<ConsumerActor>(site_, slot, slots, ++last_consumer_);
    consumer->Start(std::move(begin));
    MayKillSoon(consumer);
    return consumer;
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
    schedule(plan.restores, [this] { Save(); });
    schedule(plan.comebacks, [this] { ComeBack(true); });
    schedule(plan.rejoins, [this] { ComeBack(false); });
    // While they read: most have ended before all faults have happened.
    constexpr int64_t kMostResizeMs = 4'000;
    for (int i = 0; i < plan.resizes; ++i) {
      site_.world.After(rng.Between(0, std::min(kMostResizeMs, plan.fault_ms)),
                        [this] { BeginResize(); });
    }
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
    const bool is_moving = resize_ && consumer->slots() == resize_->slots;
    // The others have gone on already: from a state of before, it would take
    // all of them back.
    if (resize_ && resize_->has_begun && !is_moving) return;
    ConsumerActor::Begin begin;
    const bool has_count = has_state || site_.world.rng().Chance(0.5);
    if (has_count) {
      bases_[slot] = LedgerOf(slot);
      first_rows_[slot] += consumer->first_row();
    } else {
      bases_.erase(slot);
      first_rows_.erase(slot);
    }
    const bool has_own = consumer->has_taken() || consumer->begin().own ||
                         !site_.plan.is_in_rounds;
    if (has_state && has_own) {
      begin.own = *consumer->saved();
    } else if (has_state && consumer->begin().resized_from) {
      begin.resized_from = consumer->begin().resized_from;
    } else {
      begin.rejoins = true;
      // It has counted them.
      if (has_count) begin.from_round = first_rows_[slot] + bases_[slot].size();
    }
    site_.world.Tell(absl::StrCat("member ", slot, " dies; one goes on ",
                                  has_state ? "from its state" : "anew"));
    consumer->Die();
    auto next = std::make_shared<ConsumerActor>(site_, slot, consumer->slots(),
                                                ++last_consumer_);
    if (resize_ && !is_moving) next->StopAt(resize_->row);
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

  // --- members become more or fewer ---

  void BeginResize() {
    if (resize_) return;
    Rng& rng = site_.world.rng();
    const auto before = static_cast<uint32_t>(consumers_.size());
    const auto slots = static_cast<uint32_t>(
        (before + rng.Below(kMostMembers - 1)) % kMostMembers + 1);
    uint64_t row = 1;
    for (const auto& consumer : consumers_) {
      if (consumer->has_ended() || consumer->has_failed() || !consumer->row()) {
        return;
      }
      // One that has had nothing has no place that others could go on from, or
      // one of before.
      const auto& from = consumer->begin().resized_from;
      const bool has_place = consumer->has_taken() || consumer->begin().own ||
                             (from && from->lanes() != slots);
      row = std::max(row, *consumer->row() + (has_place ? 0 : 1));
    }
    ++faults_;
    resize_ = Resize{row + rng.Below(4), slots, ++last_resize_};
    site_.world.Tell(absl::StrCat("at round ", resize_->row, ", ", before,
                                  " members are to become ", slots));
    for (const auto& consumer : consumers_) consumer->StopAt(resize_->row);
    for (uint32_t slot = before; slot < slots; ++slot) {
      site_.world.After(rng.Between(0, 1'000), [this, slot, mine = *resize_] {
        if (!resize_ || resize_->number != mine.number) return;
        newcomers_[slot] = MakeNew(slot);
      });
    }
    WatchResize(last_resize_);
  }

  // One that others wait for, which has no state.
  std::shared_ptr<ConsumerActor> MakeNew(uint32_t slot) {
    bases_.erase(slot);
    first_rows_[slot] = resize_->row;
    ConsumerActor::Begin begin;
    begin.from_round = resize_->row;
    return MakeConsumer(slot, resize_->slots, std::move(begin));
  }

  void WatchResize(uint64_t number) {
    if (!resize_ || resize_->number != number) return;
    Rng& rng = site_.world.rng();
    site_.world.After(rng.Between(20, 100),
                      [this, number] { WatchResize(number); });
    const auto has_moved = [&](uint32_t slot) {
      return slot < resize_->slots ? consumers_[slot]->slots() == resize_->slots
                                   : resize_->gone.contains(slot);
    };
    const auto has_state = [&](uint32_t slot) {
      const auto& consumer = consumers_[slot];
      return consumer->has_taken() || consumer->begin().own ||
             consumer->begin().resized_from;
    };
    bool are_all_there = true;
    std::vector<uint32_t> there;
    bool is_over = true;
    int with_state = 0;
    for (uint32_t slot = 0; slot < consumers_.size(); ++slot) {
      if (has_moved(slot)) continue;
      is_over = false;
      const auto& consumer = consumers_[slot];
      // There are not so many rounds.
      if (consumer->has_ended()) return EndResize(false);
      with_state += slot < resize_->slots && has_state(slot);
      // One that comes back from its state would take back who has gone on.
      if (!resize_->has_begun && !consumer->is_lost() && !consumer->row()) {
        return;
      }
      if (consumer->is_lost() || consumer->row() == resize_->row) {
        there.push_back(slot);
      } else {
        are_all_there = false;
      }
    }
    if (is_over && newcomers_.size() + consumers_.size() >= resize_->slots) {
      return EndResize(true);
    }
    if (site_.plan.are_in_step && !are_all_there && !resize_->has_begun) return;
    // One goes on from its state, whom others without one find. If none has
    // any, they must have a round first.
    if (are_all_there && !resize_->has_begun && with_state == 0) {
      return EndResize(false);
    }
    for (const uint32_t slot : there) {
      const bool may_move = slot < resize_->slots
                                ? has_state(slot) || resize_->has_heir
                                : with_state > 0 || resize_->has_heir;
      if (may_move && rng.Chance(0.5)) Move(slot);
    }
  }

  void Move(uint32_t slot) {
    resize_->has_begun = true;
    const std::shared_ptr<ConsumerActor> before = consumers_[slot];
    if (slot >= resize_->slots) {
      if (site_.failure.empty() && !before->is_lost()) {
        site_.failure = CheckRows(slot, false);
      }
      if (site_.world.rng().Chance(0.5)) before->Leave();
      if (!before->has_left()) before->Die();
      resize_->gone.insert(slot);
      return;
    }
    if (before->is_lost()) {
      consumers_[slot] = MakeNew(slot);
      return;
    }
    ConsumerActor::Begin begin;
    begin.resized_from = before->begin().resized_from;
    if (before->has_taken() || before->begin().own) {
      begin.resized_from = StateOf(*before->saved());
    } else if (!begin.resized_from) {
      begin.from_round = resize_->row;  // it has had nothing since it came back
    }
    bases_[slot] = LedgerOf(slot);
    first_rows_[slot] += before->first_row();
    before->Die();
    resize_->has_heir |= begin.resized_from.has_value();
    consumers_[slot] = MakeConsumer(slot, resize_->slots, std::move(begin));
  }

  void EndResize(bool is_done) {
    const Resize resize = *std::exchange(resize_, std::nullopt);
    if (!is_done) {
      site_.world.Tell("it does not come to that");
      for (const auto& consumer : consumers_) consumer->StopAt(std::nullopt);
      for (const auto& [slot, consumer] : newcomers_) consumer->Die();
      newcomers_.clear();
      return;
    }
    for (auto& [slot, consumer] : newcomers_) consumers_.push_back(consumer);
    newcomers_.clear();
    consumers_.resize(resize.slots);
    sizes_.push_back({resize.row, resize.slots});
    site_.world.Tell(absl::StrCat("they are ", resize.slots));
  }

  // --- checkpoints ---

  void Save() {
    if (resize_ && resize_->has_begun) return;
    Checkpoint made;
    std::optional<uint64_t> least;
    for (const auto& consumer : consumers_) {
      if (!consumer->saved()) return;  // nothing to save yet
      if (site_.plan.resizes > 0 && !consumer->has_taken()) return;
      made.states.push_back(*consumer->saved());
      least = std::min(least.value_or(*consumer->row()), *consumer->row());
    }
    // After the same step of all, if each still has the state of it.
    bool is_of_one = site_.plan.resizes > 0 && *least > 0;
    for (const auto& consumer : consumers_) {
      is_of_one &= consumer->history().contains(*least);
    }
    if (is_of_one) made.row = least;
    made.ledger = Delivered();
    for (uint32_t slot = 0; slot < consumers_.size(); ++slot) {
      std::vector<Item>& ledger = made.ledgers[slot] = LedgerOf(slot);
      made.first_rows[slot] = FirstOf(slot);
      if (!is_of_one) continue;
      ledger.resize(*least - made.first_rows[slot]);
      made.states[slot] = consumers_[slot]->history().at(*least);
    }
    made.sizes = sizes_;
    site_.world.Tell(
        absl::StrCat("a checkpoint after ", made.ledger.size(), " items"));
    site_.world.After(site_.world.rng().Between(10, 4'000),
                      [this, made = std::move(made)] {
                        checkpoint_ = made;
                        Restore();
                      });
  }

  // Whoever runs trainers starts all of them again when one has failed.
  void Supervise() {
    constexpr int kMostRestarts = 15;
    site_.world.After(1'000, [this] { Supervise(); });
    const bool has_failed = std::ranges::any_of(
        consumers_,
        [](const auto& consumer) { return consumer->has_failed(); });
    if (!has_failed || checkpoint_.states.empty() ||
        restarts_ > kMostRestarts) {
      return;
    }
    ++restarts_;
    Restore();
  }

  // Each its own, or all of them to however many there are.
  void Restore() {
    for (const auto& consumer : consumers_) consumer->Die();
    for (const auto& [slot, consumer] : newcomers_) consumer->Die();
    consumers_.clear();
    newcomers_.clear();
    resize_.reset();
    base_ = checkpoint_.ledger;
    bases_ = checkpoint_.ledgers;
    first_rows_ = checkpoint_.first_rows;
    sizes_ = checkpoint_.sizes;
    if (site_.plan.is_group()) return RestoreMembers();
    Rng& rng = site_.world.rng();
    const std::vector<Saved>& states = checkpoint_.states;
    const auto before = static_cast<uint32_t>(states.size());
    auto slots =
        rng.Chance(0.5) ? before : static_cast<uint32_t>(rng.Between(1, 4));
    bool is_each_its_own = slots == before && rng.Chance(0.5);
    std::vector<service::ConsumerState> all;
    for (const Saved& saved : states) {
      if (auto state = StateOf(saved)) all.push_back(*std::move(state));
    }
    if (all.size() < before) {
      // One of them is inside a group of rows.
      slots = before;
      is_each_its_own = true;
    }
    site_.world.Tell(absl::StrCat("all consumers die; ", slots,
                                  " go on from the checkpoint"));
    for (uint32_t slot = 0; slot < slots; ++slot) {
      ConsumerActor::Begin begin;
      if (is_each_its_own) {
        begin.own = *std::ranges::find_if(states, [&](const Saved& saved) {
          return saved.journal.base().slot() == slot;
        });
      } else {
        begin.all = all;
      }
      StartConsumer(slot, slots, std::move(begin));
    }
  }

  // Each has a job of its own. Of rounds, any state of one says where all are.
  void RestoreMembers() {
    Rng& rng = site_.world.rng();
    const std::vector<Saved>& states = checkpoint_.states;
    const auto before = static_cast<uint32_t>(states.size());
    uint32_t slots = before;
    if (checkpoint_.row && rng.Chance(0.7)) {
      slots = static_cast<uint32_t>(rng.Between(1, kMostMembers));
    }
    site_.world.Tell(absl::StrCat("all members die; ", slots,
                                  " go on from the checkpoint of ", before));
    if (slots != before) sizes_.push_back({*checkpoint_.row, slots});
    for (uint32_t slot = 0; slot < slots; ++slot) {
      ConsumerActor::Begin begin;
      begin.is_restored = true;
      if (slots == before) {
        begin.own = states[slot];
      } else {
        begin.resized_from = StateOf(states[rng.Below(before)]);
        if (slot >= before) first_rows_[slot] = *checkpoint_.row;
      }
      StartConsumer(slot, slots, std::move(begin));
    }
    for (uint32_t slot = slots; slot < before; ++slot) {
      bases_.erase(slot);
      first_rows_.erase(slot);
    }
  }

  bool IsOver() const {
    if (site_.world.now_ms() < site_.plan.fault_ms + 4'000 &&
        site_.plan.restores > 0) {
      return false;  // somebody may go back yet
    }
    if (resize_) return false;
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

  // The row that its ledger begins with.
  uint64_t FirstOf(uint32_t slot) const {
    const auto it = first_rows_.find(slot);
    return consumers_[slot]->first_row() +
           (it == first_rows_.end() ? 0 : it->second);
  }

  // A member in rounds has had its own of each; `is_all`: up to the last.
  std::string CheckRows(uint32_t slot, bool is_all) const {
    const std::vector<Item> had = LedgerOf(slot);
    const std::vector<Row> rounds = RoundsOf(
        site_.plan.bundles,
        [&](uint64_t bundle) { return site_.ItemsOf(bundle); }, sizes_);
    const uint64_t first = FirstOf(slot);
    bool is_right = is_all ? first + had.size() == rounds.size()
                           : first + had.size() <= rounds.size();
    for (uint64_t i = 0; is_right && i < had.size(); ++i) {
      const Row& round = rounds[first + i];
      is_right = slot < round.size() && had[i] == round[slot];
    }
    if (is_right) return "";
    return absl::StrCat("consumer ", slot, " had ", had.size(), " rows from ",
                        first, " on, of ", rounds.size(), ", or others");
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
        std::string what = CheckRows(slot, true);
        if (!what.empty()) return what;
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
        std::set<std::string> jobs;
        for (const auto& consumer : consumers_) {
          jobs.insert(site_.JobOf(consumer->slot(), consumer->slots()));
        }
        for (const std::string& job : jobs) {
          const service::EpochState* epoch = state.FindEpoch(job, 0);
          if (epoch == nullptr) continue;
          absl::StrAppend(&what, "; ", job, ": ", epoch->done().size(),
                          " done, ", epoch->Unowned().size(), " unowned");
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

  // Members are to become so many at a row.
  struct Resize {
    uint64_t row = 0;
    uint32_t slots = 0;
    uint64_t number = 0;
    bool has_begun = false;        // one of them has gone on
    bool has_heir = false;         // one of these, from its state
    std::set<uint32_t> gone = {};  // slots that are no more
  };
  struct Checkpoint {
    std::vector<Saved> states;
    std::optional<uint64_t> row;  // they are of one round, in front of this
    std::vector<Item> ledger;     // of all
    std::map<uint32_t, std::vector<Item>> ledgers;  // the same by members
    std::map<uint32_t, uint64_t> first_rows;        // of those
    std::vector<Size> sizes;
  };

  Site site_;
  std::vector<std::shared_ptr<ConsumerActor>> consumers_;
  std::optional<Resize> resize_;
  std::map<uint32_t, std::shared_ptr<ConsumerActor>> newcomers_;  // by slot
  std::vector<Size> sizes_;  // of those who read in rounds, along the lineage
  std::vector<Item> base_;   // had before the last restore
  std::map<uint32_t, std::vector<Item>> bases_;  // the same by members
  std::map<uint32_t, uint64_t> first_rows_;      // of those
  Checkpoint checkpoint_;                        // that it was made from
  int restarts_ = 0;
  uint64_t last_worker_ = 0;
  uint64_t last_consumer_ = 0;
  uint64_t last_resize_ = 0;
  uint64_t faults_ = 0;
};

}  // namespace

Outcome Simulate(const Plan& plan, bool keeps_story) {
  World world(plan.seed);
  world.keeps_story = keeps_story;
  return Cluster(plan, world).Run();
}

}  // namespace penstock::sim
