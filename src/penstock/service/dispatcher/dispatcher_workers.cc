// What the dispatcher says to workers.
#include <limits>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "penstock/service/dispatcher/dispatcher_state.h"
#include "penstock/service/dispatcher/records.h"

namespace penstock::service {
namespace {

// In a list of what a worker holds, the lease for a manifest.
constexpr uint64_t kForManifest = std::numeric_limits<uint64_t>::max();

std::string ManifestKey(uint64_t hash) {
  return absl::StrCat(std::string(kManifestKey),
                      absl::Hex(hash, absl::kZeroPad16));
}

}  // namespace

Lease DispatcherState::MakeLease(const Run& run, const Epoch& epoch,
                                 const EpochState::Given& given) {
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
  return lease;
}

void DispatcherState::TakeManifest(const WorkerBeat& beat, WorkerReply& reply,
                                   Writes& writes) {
  for (const WorkerBeat::Made& made : beat.made()) {
    reply.add_made_taken(made.attempt());
    Epoch* epoch = FindEpoch(made.epoch());
    if (epoch == nullptr || epoch->state->has_bundles() ||
        epoch->maker_attempt != made.attempt()) {
      continue;
    }
    epoch->maker = 0;
    if (made.error_code() != 0) {
      epoch->failure = absl::Status(
          static_cast<absl::StatusCode>(made.error_code()), made.error());
      continue;
    }
    const uint64_t hash = HashOf(made.manifest());
    if (epoch->manifest != 0 && epoch->manifest != hash) {
      epoch->failure = absl::FailedPreconditionError(
          "the files are not those of the checkpoint: some have changed, come "
          "or gone since");
      continue;
    }
    epoch->manifest = hash;
    if (manifests_.emplace(hash, made.manifest()).second) {
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
  Worker& worker = workers_[beat.worker()];
  worker.address = beat.address();
  worker.heard_ms = now_ms;
  worker.is_draining = beat.is_draining();
  worker.held = beat.held_size();
  TakeManifest(beat, reply, writes);
  for (const WorkerBeat::Held& held : beat.given_back()) {
    *reply.add_revoked() = held;
    Epoch* epoch = FindEpoch(held.epoch());
    if (epoch == nullptr) continue;
    if (held.bundle() == kForManifest) {
      if (epoch->maker_attempt == held.attempt()) epoch->maker = 0;
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
        epoch->maker = beat.worker();
        epoch->maker_attempt = held.attempt();
      }
    } else if (epoch != nullptr) {
      is_wanted = epoch->state->Present(beat.worker(), held.bundle(),
                                        held.attempt(), held.is_started());
    }
    if (is_wanted) {
      holds.emplace(held.epoch().run(), held.bundle(), held.attempt());
    } else {
      *reply.add_revoked() = held;
    }
  }
  // What it should hold and does not: the reply that said so was lost.
  for (const auto& [job, run] : runs_) {
    for (const auto& [number, epoch] : run.epochs) {
      std::vector<EpochState::Given> due = epoch.state->HeldBy(beat.worker());
      if (epoch.maker == beat.worker()) {
        due.push_back({kForManifest, epoch.maker_attempt, 0});
      }
      for (const EpochState::Given& given : due) {
        if (holds.contains({run.record.run(), given.bundle, given.attempt})) {
          continue;
        }
        *reply.add_leases() = MakeLease(run, epoch, given);
      }
    }
  }
  if (!beat.is_draining()) {
    const auto due = static_cast<uint32_t>(reply.leases_size());
    if (beat.room() > due) {
      GrantTo(beat.worker(), beat.room() - due, reply, writes);
    }
  } else if (beat.held_size() == 0 && beat.given_back_size() == 0) {
    reply.set_is_drained(true);
  }
  return reply;
}

void DispatcherState::GrantTo(uint64_t id, uint32_t room, WorkerReply& reply,
                              Writes& writes) {
  // A bundle of each epoch in turn, so that no job waits for another.
  bool has_granted = true;
  while (room > 0 && has_granted) {
    has_granted = false;
    for (auto& [job, run] : runs_) {
      for (auto& [number, epoch] : run.epochs) {
        if (room == 0) return;
        if (!epoch.failure.ok() || !epoch.restoring.empty()) continue;
        std::optional<EpochState::Given> given;
        if (!epoch.state->has_bundles()) {
          if (epoch.maker != 0) continue;
          epoch.maker = id;
          epoch.maker_attempt = NextNumber();
          given = {kForManifest, epoch.maker_attempt, 0};
        } else {
          given = epoch.state->Grant(id, NextNumber(), !is_in_grace_, writes);
        }
        if (!given) continue;
        *reply.add_leases() = MakeLease(run, epoch, *given);
        has_granted = true;
        --room;
      }
    }
  }
}

}  // namespace penstock::service
