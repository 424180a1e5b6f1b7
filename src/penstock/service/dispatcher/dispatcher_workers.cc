// What the dispatcher says to workers.
#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "penstock/service/dispatcher/dispatcher_state.h"
#include "penstock/service/dispatcher/records.h"

namespace penstock::service {
namespace {

// In a list of what a worker holds, the lease for a manifest.
constexpr uint64_t kForManifest = std::numeric_limits<uint64_t>::max();

}  // namespace

bool DispatcherState::IsThere(const std::string& address) const {
  return std::ranges::any_of(workers_, [&](const auto& entry) {
    return entry.second.address == address;
  });
}

absl::Status DispatcherState::CheckWorker(const std::string& address) const {
  return places_.Check(address,
                       [this](const auto& other) { return IsThere(other); });
}

Lease DispatcherState::MakeLease(const Run& run, const Epoch& epoch,
                                 const EpochState::Given& given) const {
  Lease lease;
  *lease.mutable_epoch() = epoch.state->id();
  lease.set_bundle(given.bundle);
  lease.set_attempt(given.attempt);
  lease.set_slot(given.slot);
  lease.set_plan(run.record.plan());
  lease.set_seed(run.record.seed());
  lease.set_epoch_number(epoch.pass.number);
  lease.set_iteration(epoch.pass.iteration);
  lease.set_manifest(epoch.manifest);
  lease.set_is_for_manifest(given.bundle == kForManifest);
  lease.set_is_whole(epoch.state->is_by_worker() &&
                     given.bundle != kForManifest);
  if (run.record.has_group() && given.bundle != kForManifest) {
    *lease.mutable_sharing() = SharingOf(run, epoch, given);
  }
  if (run.record.visitation() == STATIC) {
    lease.set_workers(static_cast<uint32_t>(places_.size()));
  }
  return lease;
}

void DispatcherState::TakeManifest(const WorkerBeat& beat, int64_t now_ms,
                                   WorkerReply& reply, Writes& writes) {
  for (const WorkerBeat::Made& made : beat.made()) {
    reply.add_made_taken(made.attempt());
    Epoch* epoch = FindEpoch(made.epoch());
    if (epoch == nullptr || epoch->state->has_bundles() ||
        epoch->maker_attempt != made.attempt()) {
      continue;
    }
    SetMaker(*epoch, 0);
    if (made.error_code() != 0) {
      epoch->failure = absl::Status(
          static_cast<absl::StatusCode>(made.error_code()), made.error());
      // Why is said to its readers alone: it may quote their data.
      Say("epoch_failed",
          {{"run", absl::StrCat(made.epoch().run())},
           {"epoch", absl::StrCat(made.epoch().epoch())},
           {"code", absl::StatusCodeToString(epoch->failure.code())}});
      continue;
    }
    const uint64_t others =
        ManifestOfGroup(*FindRun(made.epoch().run()), epoch->pass);
    // Members have the same, whoever found it first.
    if (epoch->manifest == 0 && others != 0) {
      epoch->manifest = others;
      WriteEpoch(*epoch, writes);
      SetBundles(*epoch);
      continue;
    }
    const uint64_t hash = HashOf(made.manifest());
    if (epoch->manifest != 0 && epoch->manifest != hash) {
      epoch->failure = absl::FailedPreconditionError(
          "the files are not those of the checkpoint: some have changed, come "
          "or gone since; or the number of static workers has");
      continue;
    }
    epoch->manifest = hash;
    if (manifests_.try_emplace(hash, Cut{made.manifest(), now_ms}).second) {
      writes.durable.push_back({ManifestKey(hash), Bytes(made.manifest())});
    }
    WriteEpoch(*epoch, writes);
    SetBundles(*epoch);
  }
}

WorkerReply DispatcherState::OnWorker(const WorkerBeat& beat, int64_t now_ms,
                                      Writes& writes) {
  WorkerReply reply;
  reply.set_term(term_);
  reply.set_lease_ms(settings_.lease_ms);
  const auto [known, is_new] = workers_.try_emplace(beat.worker());
  Worker& worker = known->second;
  if (is_new) {
    places_.Take(beat.address(),
                 [this](const auto& other) { return IsThere(other); });
  }
  worker.address = beat.address();
  worker.local_socket = beat.local_socket();
  worker.frame_port = beat.frame_port();
  worker.tags = {beat.tags().begin(), beat.tags().end()};
  if (is_new) {
    Say("worker_joined", {{"worker", worker.address},
                          {"tags", absl::StrJoin(worker.tags, ",")}});
  }
  worker.heard_ms = std::max(worker.heard_ms, now_ms);
  worker.is_draining = beat.is_draining();
  worker.held = beat.held_size();
  TakeManifest(beat, now_ms, reply, writes);
  TakeWork(beat, now_ms);
  if (beat.is_draining()) ForgetInTables(beat.worker());
  for (const WorkerBeat::Held& held : beat.given_back()) {
    *reply.add_revoked() = held;
    Epoch* epoch = FindEpoch(held.epoch());
    if (epoch == nullptr) continue;
    if (held.bundle() == kForManifest) {
      if (epoch->maker_attempt == held.attempt()) SetMaker(*epoch, 0);
      continue;
    }
    epoch->state->Lose(beat.worker(), held.bundle(), held.attempt(),
                       EpochState::Loss::kGivenBack, writes);
  }
  std::set<std::tuple<uint64_t, uint64_t, uint64_t>> holds;
  for (const WorkerBeat::Held& held : beat.held()) {
    Epoch* epoch = FindEpoch(held.epoch());
    bool is_wanted = false;
    if (epoch != nullptr && held.bundle() == kForManifest) {
      is_wanted = !epoch->state->has_bundles() &&
                  (epoch->maker == 0 || epoch->maker_attempt == held.attempt());
      if (is_wanted) {
        SetMaker(*epoch, beat.worker());
        epoch->maker_attempt = held.attempt();
      }
    } else if (epoch != nullptr) {
      is_wanted =
          epoch->state->Present(beat.worker(), held.bundle(), held.attempt(),
                                held.is_started(), held.is_waiting());
    }
    if (is_wanted) {
      holds.emplace(held.epoch().run(), held.bundle(), held.attempt());
    } else {
      *reply.add_revoked() = held;
    }
  }
  // What it should hold and does not: the reply that said so was lost.
  const auto give_again = [&](const EpochName& name,
                              const EpochState::Given& given) {
    if (holds.contains({name.run, given.bundle, given.attempt})) return;
    const Run& run = *FindRun(name.run);
    *reply.add_leases() = MakeLease(run, run.epochs.at(name.epoch), given);
  };
  if (const auto its = index_.by_worker.find(beat.worker());
      its != index_.by_worker.end()) {
    for (const EpochName& name : its->second) {
      const Epoch& epoch = FindRun(name.run)->epochs.at(name.epoch);
      for (const auto& given : epoch.state->HeldBy(beat.worker())) {
        give_again(name, given);
      }
    }
  }
  for (const EpochName& name : in_making_) {
    const Epoch& epoch = FindRun(name.run)->epochs.at(name.epoch);
    if (epoch.maker != beat.worker()) continue;
    give_again(name, {kForManifest, epoch.maker_attempt, 0});
  }
  reply.set_should_drain(worker.should_drain);
  for (const EpochName& name : index_.by_worker_epochs) {
    EpochState& state = *FindRun(name.run)->epochs.at(name.epoch).state;
    if (beat.is_draining()) {
      state.Retire(beat.worker(), writes);
    } else {
      state.Join(beat.worker());
    }
  }
  if (!beat.is_draining()) {
    const auto due = static_cast<uint32_t>(reply.leases_size());
    if (beat.room() > due) {
      GrantTo(beat.worker(), beat.room() - due, reply, writes);
      FollowAll(writes);
    }
  } else if (beat.held_size() == 0 && beat.given_back_size() == 0) {
    reply.set_is_drained(true);
  }
  return reply;
}

std::optional<EpochState::Given> DispatcherState::GrantOf(Epoch& epoch,
                                                          uint64_t worker,
                                                          Writes& writes) {
  if (!epoch.failure.ok() || !epoch.restoring.empty()) return std::nullopt;
  if (epoch.state->has_bundles()) {
    return epoch.state->Grant(worker, NextNumber(), !is_in_grace_, writes,
                              places_.Find(workers_.at(worker).address));
  }
  if (epoch.maker != 0) return std::nullopt;
  epoch.maker_attempt = NextNumber();
  SetMaker(epoch, worker);
  return EpochState::Given{kForManifest, epoch.maker_attempt, 0};
}

void DispatcherState::GrantTo(uint64_t id, uint32_t room, WorkerReply& reply,
                              Writes& writes) {
  // A bundle of each epoch in turn, so that no job waits for another; and the
  // next worker goes on where this one has stopped.
  for (const EpochName& name : index_.by_worker_epochs) {
    const Run& run = *FindRun(name.run);
    Epoch& epoch = FindRun(name.run)->epochs.at(name.epoch);
    while (room > 0 && epoch.state->has_bundles()) {
      const auto given = GrantOf(epoch, id, writes);
      if (!given) break;
      *reply.add_leases() = MakeLease(run, epoch, *given);
      --room;
    }
  }
  std::set<EpochName>& ready = index_.ready;
  std::vector<EpochName> passed_over;
  auto next = ready.upper_bound(granted_last_);
  while (room > 0 && !ready.empty()) {
    if (next == ready.end()) next = ready.begin();
    const EpochName name = *next;
    const Run& run = *FindRun(name.run);
    Epoch& epoch = FindRun(name.run)->epochs.at(name.epoch);
    if (const auto given = GrantOf(epoch, id, writes)) {
      *reply.add_leases() = MakeLease(run, epoch, *given);
      --room;
      granted_last_ = name;
    } else {
      if (epoch.state->has_passed_over()) passed_over.push_back(name);
      ready.erase(name);
    }
    next = ready.upper_bound(name);
  }
  ready.insert(passed_over.begin(), passed_over.end());
}

void DispatcherState::LoseWorker(uint64_t id, Writes& writes) {
  ForgetInTables(id);
  if (const auto its = index_.by_worker.find(id);
      its != index_.by_worker.end()) {
    const std::set<EpochName> names = its->second;
    for (const EpochName& name : names) {
      FindRun(name.run)->epochs.at(name.epoch).state->LoseWorker(id, writes);
    }
  }
  for (const EpochName& name : index_.by_worker_epochs) {
    FindRun(name.run)->epochs.at(name.epoch).state->Retire(id, writes);
  }
  const std::set<EpochName> in_making = in_making_;
  for (const EpochName& name : in_making) {
    Epoch& epoch = FindRun(name.run)->epochs.at(name.epoch);
    if (epoch.maker == id) SetMaker(epoch, 0);
  }
  const auto lost = workers_.find(id);
  if (lost == workers_.end()) return;
  const bool has_left = lost->second.is_draining && lost->second.held == 0;
  Say(has_left ? "worker_left" : "worker_lost",
      {{"worker", lost->second.address},
       {"held", absl::StrCat(lost->second.held)}});
  workers_.erase(lost);
}

absl::Status DispatcherState::Drain(const std::string& address) {
  bool is_known = false;
  for (auto& [id, worker] : workers_) {
    if (worker.address != address) continue;
    is_known = true;
    worker.should_drain = true;
    Say("worker_drain", {{"worker", address}});
    index_.news.drained.push_back(id);
  }
  if (is_known) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat(
      "no worker '", address, "' is heard of: see `penstock workers`"));
}

}  // namespace penstock::service
