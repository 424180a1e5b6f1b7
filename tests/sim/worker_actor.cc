#include <algorithm>
#include <utility>

#include "sim/actors.h"

namespace penstock::sim {
namespace {

constexpr int64_t kDrainPatienceMs = 4'000;
constexpr int64_t kTakenPatienceMs = 500;
constexpr int64_t kDrainStepMs = 50;
constexpr int64_t kWaitMs = 50;  // for a lease
constexpr int kMostWaits = 10;

// How a bundle's items lie at the positions that a reader has.
struct Cut {
  uint64_t items;  // of the bundle
  uint64_t loose;  // of them, the last ones, where there are no rounds
  const service::Sharing& sharing;

  uint64_t lanes() const {
    return sharing.has_split() ? sharing.split().lanes() : sharing.lanes();
  }
  // Positions of rounds, of which each reader has an item.
  uint64_t rounds() const {
    if (lanes() == 0) return items - loose;
    const uint64_t rounds = items / lanes();
    if (!sharing.has_split()) return rounds;
    return std::min<uint64_t>(rounds, sharing.split().position());
  }
  // What comes after these is all readers', item by item.
  uint64_t positions() const {
    return lanes() == 0 ? items : rounds() + items - rounds() * lanes();
  }
  uint64_t ItemAt(uint64_t position) const {
    if (lanes() == 0) return position;
    if (position < rounds()) return position * lanes() + sharing.lane();
    return rounds() * lanes() + (position - rounds());
  }
};

// Who follows and may miss it has what is there.
bool MayCompute(const service::Sharing& sharing) {
  return sharing.policy() != service::Sharing::SKIP || !sharing.is_following();
}

}  // namespace

using service::Lease;
using service::WorkerReply;
using service::WorkerState;

WorkerActor::WorkerActor(Site& site, uint64_t id, const std::string& address)
    : site_(site),
      id_(id),
      address_(address),
      state_(WorkerState::Settings{
          .worker = id, .address = address, .max_held = 4, .max_running = 2}) {}

void WorkerActor::Start() {
  site_.world.Tell("worker " + std::to_string(id_) + " starts");
  Beat();
}

void WorkerActor::Pause(int64_t ms) {
  paused_until_ms_ = site_.world.now_ms() + ms;
}

int64_t WorkerActor::Paused() const {
  return std::max<int64_t>(0, paused_until_ms_ - site_.world.now_ms());
}

void WorkerActor::Drain() {
  is_draining_ = true;
  drains_since_ms_ = site_.world.now_ms();
  state_.Drain();
  HandOver();
}

void WorkerActor::HandOver() {
  if (is_dead_) return;
  const int64_t now = site_.world.now_ms();
  const bool is_late = now - drains_since_ms_ >= kDrainPatienceMs;
  for (auto it = runs_.begin(); it != runs_.end();) {
    Run& run = it->second;
    bool may_stay = !is_late;
    if (may_stay && run.readings == 0) {
      if (run.taken_ms == 0) run.taken_ms = now;
      may_stay = run.is_taken && now - run.taken_ms < kTakenPatienceMs;
    }
    if (may_stay) {
      ++it;
      continue;
    }
    state_.GiveBack(run.lease);
    it = runs_.erase(it);
  }
  site_.world.After(kDrainStepMs,
                    [self = shared_from_this()] { self->HandOver(); });
}

WorkerActor::Run* WorkerActor::FindRun(const Reading& reading) {
  for (auto& [attempt, run] : runs_) {
    if (run.lease.bundle() == reading.bundle &&
        service::IsSame(run.lease.epoch(), reading.epoch)) {
      return &run;
    }
  }
  return nullptr;
}

void WorkerActor::End(const Reading& reading, bool is_taken) {
  Run* run = FindRun(reading);
  if (run == nullptr) return;
  run->readings = std::max(0, run->readings - 1);
  run->is_taken |= is_taken;
}

void WorkerActor::Beat() {
  if (is_dead_) return;
  if (is_draining_ && state_.is_drained()) {
    site_.world.Tell("worker " + std::to_string(id_) + " has drained");
    is_dead_ = true;
    return;
  }
  const auto self = shared_from_this();
  site_.world.After(Paused() + site_.world.rng().Between(100, 300),
                    [self] { self->Beat(); });
  if (Paused() > 0) return;
  // One that was not answered in time is given up.
  const uint64_t number = ++beats_;
  const service::WorkerBeat beat = state_.MakeBeat();
  site_.Send([self, beat, number] {
    const auto dispatcher = self->site_.Listening();
    if (dispatcher == nullptr) return;
    dispatcher->OnWorker(beat, [self, number](const WorkerReply& reply) {
      self->site_.Send([self, number, reply] {
        if (self->is_dead_ || number + 3 < self->beats_) return;
        const auto apply = [self, reply] {
          if (self->is_dead_) return;
          const WorkerState::Changes changes = self->state_.OnReply(reply);
          for (const Lease& lease : changes.removed) {
            self->runs_.erase(lease.attempt());
            self->leases_.erase(lease.attempt());
          }
          for (const Lease& lease : changes.added) {
            self->leases_[lease.attempt()] = lease;
            if (lease.has_sharing() && self->state_.IsStarted(lease)) {
              self->Join(lease);
            }
          }
          self->Compute();
        };
        self->site_.world.After(self->Paused(), apply);
      });
    });
  });
}

void WorkerActor::CheckIsIts(const Lease& lease) {
  const auto fail = [&] {
    site_.failure = "bundle " + std::to_string(lease.bundle()) + " went to " +
                    address_ + ", worker " + std::to_string(id_);
  };
  if (site_.plan.is_static &&
      address_ != "w" + std::to_string(lease.bundle() + 1)) {
    fail();
  }
  if (!site_.plan.is_each_worker || lease.epoch().generation() > 1) return;
  if (site_.may_reader_end) return;  // nobody may be there to read it
  const auto its = site_.worker_of_pass.emplace(lease.bundle(), id_);
  const auto only = site_.pass_of_worker.emplace(id_, lease.bundle());
  if (its.first->second != id_ || only.first->second != lease.bundle()) fail();
}

void WorkerActor::Compute() {
  while (const std::optional<Lease> lease = state_.Start()) {
    const auto self = shared_from_this();
    if (lease->is_for_manifest()) {
      site_.world.After(site_.world.rng().Between(1, 50),
                        [self, lease = *lease] {
                          if (self->is_dead_) return;
                          self->state_.OnManifest(lease, self->site_.manifest);
                          self->Compute();
                        });
      continue;
    }
    CheckIsIts(*lease);
    Begin(*lease);
  }
}

// Of what was begun for another.
void WorkerActor::Join(const Lease& lease) {
  if (gone_.contains(lease.sharing().production())) {
    runs_[lease.attempt()].lease = lease;
  } else if (MayCompute(lease.sharing())) {
    Begin(lease);  // there was nothing to compute
  }
}

void WorkerActor::Begin(const Lease& lease) {
  runs_[lease.attempt()].lease = lease;
  if (lease.has_sharing()) {
    const auto [it, is_new] = site_.bundle_of_production.emplace(
        lease.sharing().production(), lease.bundle());
    if (it->second != lease.bundle()) {
      site_.failure = "bundles " + std::to_string(it->second) + " and " +
                      std::to_string(lease.bundle()) + " are one production";
    }
  }
  auto items = static_cast<int64_t>(site_.ItemsOf(lease.bundle()));
  if (lease.has_sharing()) {
    const service::Sharing& sharing = lease.sharing();
    if (gone_.contains(sharing.production())) {
      items = 0;  // it is here
    } else if (MayCompute(sharing)) {
      gone_[sharing.production()] = 0;
      ++site_.computed[sharing.production()];
    }
  }
  site_.world.After(1 + items * site_.world.rng().Between(1, 60),
                    [self = shared_from_this(), lease] {
                      if (self->is_dead_) return;
                      self->OnComputed(lease);
                      self->Compute();
                    });
}

void WorkerActor::OnComputed(const Lease& lease) {
  state_.OnComputed(lease);
  if (!lease.has_sharing()) return;
  // For all that read it.
  for (const auto& [attempt, other] : leases_) {
    if (other.sharing().production() == lease.sharing().production()) {
      state_.OnComputed(other);
    }
  }
}

void WorkerActor::Read(const service::EpochId& epoch, uint64_t bundle,
                       uint64_t attempt, uint64_t from,
                       std::function<bool(const Sent&)> frame,
                       std::function<void(const std::string&)> broken) {
  state_.Hurry(epoch, bundle);
  auto reading = std::make_shared<Reading>(Reading{
      epoch, bundle, attempt, from, std::move(frame), std::move(broken)});
  Go(reading);
}

void WorkerActor::Go(std::shared_ptr<Reading> reading) {
  Rng& rng = site_.world.rng();
  const auto broken = [&](const std::string& why) {
    End(*reading, false);
    reading->broken(why);
  };
  if (is_dead_) return broken("the connection was reset");
  const auto again = [self = shared_from_this(), reading] {
    self->Go(reading);
  };
  if (Paused() > 0) return site_.world.After(Paused(), again);
  const Lease* lease = state_.Find(reading->epoch, reading->bundle);
  if (lease == nullptr) {
    // Its lease may be on its way.
    if (is_draining_ || ++reading->waits > kMostWaits) {
      return broken("it does not hold that bundle");
    }
    return site_.world.After(kWaitMs, again);
  }
  Run* run = FindRun(*reading);
  const auto is_of_one = [&](const auto& each) {
    return each.second.lease.sharing().production() ==
           lease->sharing().production();
  };
  if (run == nullptr && lease->has_sharing() &&
      (gone_.contains(lease->sharing().production()) ||
       lease->sharing().is_following() || state_.IsStarted(*lease) ||
       std::ranges::any_of(runs_, is_of_one))) {
    run = &runs_[lease->attempt()];  // begun for another
    run->lease = *lease;
  }
  // Not begun yet.
  if (run == nullptr) return site_.world.After(10, again);
  if (!std::exchange(reading->is_counted, true)) ++run->readings;
  if (rng.Chance(site_.plan.broken_reads)) {
    return broken("the connection was cut");
  }
  Sent sent;
  service::FrameHead& head = sent.head;
  head.epoch = reading->epoch;
  head.bundle = reading->bundle;
  head.attempt = reading->attempt;
  const uint64_t all = site_.ItemsOf(reading->bundle);
  const Cut cut{all, all % site_.plan.group_size, lease->sharing()};
  const uint64_t items = cut.positions();
  if (lease->sharing().policy() == service::Sharing::SKIP) {
    // The first go when room is needed; all of it, perhaps.
    const auto here = gone_.find(lease->sharing().production());
    if (here != gone_.end() && rng.Chance(0.1)) {
      here->second = std::min(items, here->second + rng.Below(4));
      if (here->second == items && rng.Chance(0.5)) gone_.erase(here);
    }
    // Who follows has what is there; others have it computed again.
    if (MayCompute(lease->sharing())) {
      gone_.try_emplace(lease->sharing().production(), 0);
    }
    const auto left = gone_.find(lease->sharing().production());
    head.is_gone = left == gone_.end();
    if (!head.is_gone) reading->next = std::max(reading->next, left->second);
  }
  // Attempts cut their frames in different places, and may begin a little
  // before what was asked for.
  const uint64_t back =
      std::min<uint64_t>(reading->next, rng.Chance(0.3) ? rng.Below(3) : 0);
  if (!head.is_gone) {
    head.position = std::min(items, reading->next - back);
    head.items = std::min<uint64_t>(items - head.position, 1 + rng.Below(4));
  }
  head.is_end = head.is_gone || head.position + head.items == items;
  if (head.is_end) head.digest = site_.DigestOf(reading->bundle);
  for (uint64_t i = 0; i < head.items; ++i) {
    sent.items.emplace_back(head.bundle, cut.ItemAt(head.position + i));
  }
  sent.loose_from = cut.rounds();
  reading->next = std::max(reading->next, head.position + head.items);
  const int64_t delay = rng.Between(0, site_.plan.most_delay_ms);
  site_.world.After(delay, [self = shared_from_this(), reading, sent, again] {
    const bool is_heard = reading->frame(sent);
    if (!is_heard || sent.head.is_end) return self->End(*reading, is_heard);
    self->site_.world.After(self->site_.world.rng().Between(0, 30), again);
  });
}

}  // namespace penstock::sim
