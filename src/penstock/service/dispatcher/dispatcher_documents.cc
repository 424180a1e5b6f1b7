// What the dispatcher keeps for others: plans and manifests; and what it says
// of itself to people.
#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "penstock/service/dispatcher/dispatcher_state.h"
#include "penstock/service/dispatcher/records.h"

namespace penstock::service {
namespace {

// A plan's first piece is "plan/<id>", the others "plan/<id>/<number>".
constexpr size_t kPieceBytes = size_t{32} << 20;
constexpr size_t kMaxNameBytes = 200;

std::string PieceKey(const std::string& id, size_t piece) {
  if (piece == 0) return std::string(kPlanKey) + id;
  return absl::StrFormat("%s%s/%08x", std::string(kPlanKey), id, piece);
}

size_t PiecesOf(const std::string& plan) {
  return std::max<size_t>(1, (plan.size() + kPieceBytes - 1) / kPieceBytes);
}

}  // namespace

void DispatcherState::AddPlan(const std::string& id, const std::string& plan,
                              bool keep, int64_t now_ms, Writes& writes) {
  Plan& kept = plans_[id];
  kept.used_ms = now_ms;
  if (keep && !kept.is_kept) {
    kept.is_kept = true;
    writes.durable.push_back({std::string(kKeepKey) + id, ""});
  }
  if (kept.bytes != nullptr) return;
  kept.bytes = std::make_shared<const std::string>(plan);
  for (size_t i = 0; i < PiecesOf(plan); ++i) {
    writes.durable.push_back(
        {PieceKey(id, i), plan.substr(i * kPieceBytes, kPieceBytes)});
  }
}

absl::Status DispatcherState::RecoverPlan(const std::string& key,
                                          const std::string& value) {
  const std::string id = key.substr(0, key.find('/'));
  Plan& plan = plans_[id];
  plan.used_ms = started_ms_;
  // Pieces come in order, and were written together.
  plan.bytes = std::make_shared<const std::string>(
      plan.bytes == nullptr ? value : *plan.bytes + value);
  return absl::OkStatus();
}

std::shared_ptr<const std::string> DispatcherState::FindPlan(
    const std::string& id) const {
  const auto it = plans_.find(id);
  return it == plans_.end() ? nullptr : it->second.bytes;
}

std::string DispatcherState::PlanOf(const std::string& called) const {
  const auto it = names_.find(called);
  return it == names_.end() ? called : it->second;
}

absl::Status DispatcherState::CheckName(const std::string& name,
                                        const std::string& id) const {
  const bool is_plain = std::ranges::all_of(name, [](unsigned char c) {
    return absl::ascii_isalnum(c) || c == '-' || c == '_' || c == '.';
  });
  const bool is_like_id = name.size() == id.size() &&
                          std::ranges::all_of(name, absl::ascii_isxdigit);
  if (name.empty() || name.size() > kMaxNameBytes || !is_plain || is_like_id) {
    return absl::InvalidArgumentError(absl::StrCat(
        "name must have 1 to ", kMaxNameBytes,
        " letters, digits, '-', '_' or '.', and not look like an id; got \"",
        absl::CHexEscape(name.substr(0, kMaxNameBytes)), "\""));
  }
  const auto it = names_.find(name);
  if (it == names_.end() || it->second == id) return absl::OkStatus();
  return absl::AlreadyExistsError(
      absl::StrCat("name \"", name, "\" is another pipeline's (", it->second,
                   "); this one is ", id,
                   "\n  Give it another name, or unregister that one "
                   "first."));
}

void DispatcherState::SetName(const std::string& name, const std::string& id,
                              Writes& writes) {
  if (!names_.try_emplace(name, id).second) return;
  NameRecord record;
  record.set_plan(id);
  writes.durable.push_back({std::string(kNameKey) + name, Bytes(record)});
}

absl::Status DispatcherState::Unregister(const std::string& called,
                                         int64_t now_ms, Writes& writes) {
  const std::string id = PlanOf(called);
  const auto plan = plans_.find(id);
  if (plan == plans_.end() || !plan->second.is_kept) {
    return absl::NotFoundError(
        absl::StrCat("no pipeline \"", called,
                     "\" is registered: see `penstock registered`"));
  }
  plan->second.is_kept = false;
  plan->second.used_ms = now_ms;
  writes.durable.push_back({std::string(kKeepKey) + id, std::nullopt});
  std::erase_if(names_, [&](const auto& entry) {
    if (entry.second != id) return false;
    writes.durable.push_back(
        {std::string(kNameKey) + entry.first, std::nullopt});
    return true;
  });
  return absl::OkStatus();
}

void DispatcherState::DropUnused(int64_t now_ms, Writes& writes) {
  drop_unused_ms_ = now_ms + settings_.unused_timeout_ms / 8;
  for (const auto& [job, run] : runs_) {
    const auto plan = plans_.find(run.record.plan());
    if (plan != plans_.end()) plan->second.used_ms = now_ms;
    for (const auto& [number, epoch] : run.epochs) {
      const auto cut = manifests_.find(epoch.manifest);
      if (cut != manifests_.end()) cut->second.used_ms = now_ms;
    }
  }
  const auto is_old = [&](int64_t used_ms) {
    return now_ms - used_ms >= settings_.unused_timeout_ms;
  };
  std::erase_if(plans_, [&](const auto& entry) {
    const auto& [id, plan] = entry;
    if (plan.is_kept || !is_old(plan.used_ms)) return false;
    for (size_t i = 0; i < PiecesOf(*plan.bytes); ++i) {
      writes.durable.push_back({PieceKey(id, i), std::nullopt});
    }
    return true;
  });
  std::erase_if(manifests_, [&](const auto& entry) {
    if (!is_old(entry.second.used_ms)) return false;
    writes.durable.push_back({ManifestKey(entry.first), std::nullopt});
    return true;
  });
}

absl::Status DispatcherState::Cancel(const std::string& job, Writes& writes) {
  std::vector<std::string> jobs;
  for (const auto& [name, run] : runs_) {
    // Consumers that read in rounds have runs of their own.
    const Group& group = run.record.group();
    if (name == job || (group.lanes() > 0 && group.name() == job)) {
      jobs.push_back(name);
    }
  }
  if (jobs.empty()) {
    return absl::NotFoundError(
        absl::StrCat("no job '", job, "' is running: see `penstock jobs`"));
  }
  for (const std::string& each : jobs) {
    cancelled_[FindRun(each)->record.run()] = each;
    // Whoever has not asked after so many others will not ask any more.
    constexpr size_t kMostCancelled = 10'000;
    if (cancelled_.size() > kMostCancelled) {
      cancelled_.erase(cancelled_.begin());
    }
    CloseRun(each, "cancelled", writes);
  }
  return absl::OkStatus();
}

void DispatcherState::Describe(int64_t now_ms, State& state) const {
  state.set_term(term_);
  for (const auto& [id, worker] : workers_) {
    State::Worker* out = state.add_workers();
    out->set_worker(id);
    out->set_address(worker.address);
    out->set_held(worker.held);
    out->set_is_draining(worker.is_draining || worker.should_drain);
    out->set_heard_ms_ago(now_ms - worker.heard_ms);
    for (const std::string& tag : worker.tags) out->add_tags(tag);
  }
  for (const auto& [id, plan] : plans_) {
    if (!plan.is_kept) continue;
    State::Registered* out = state.add_registered();
    out->set_plan(id);
    out->set_bytes(plan.bytes->size());
    out->set_jobs(static_cast<uint64_t>(std::ranges::count_if(
        runs_,
        [&](const auto& entry) { return entry.second.record.plan() == id; })));
    for (const auto& [name, named] : names_) {
      if (named == id) out->add_names(name);
    }
  }
  for (const auto& [name, run] : runs_) {
    State::Job* job = state.add_jobs();
    job->set_job(name);
    job->set_plan(run.record.plan());
    job->set_visitation(run.record.visitation());
    job->set_is_ordered(run.record.is_ordered());
    job->set_slots(run.record.slots());
    if (run.record.has_group()) {
      *job->mutable_group() = run.record.group();
      job->mutable_group()->clear_resized_from();
    }
    for (const auto& [number, epoch] : run.epochs) {
      State::Epoch* out = job->add_epochs();
      *out->mutable_epoch() = epoch.state->id();
      if (epoch.state->has_bundles() && epoch.state->count()) {
        out->set_bundles(*epoch.state->count());
      }
      out->set_done(epoch.state->done().size());
      if (!epoch.failure.ok()) {
        out->set_failure(std::string(epoch.failure.message()));
      } else if (!epoch.state->quarantined().empty()) {
        out->set_failure(epoch.state->quarantined().begin()->second);
      }
      for (const auto& [slot, session] : epoch.sessions) {
        State::Consumer* consumer = out->add_consumers();
        consumer->set_slot(slot);
        consumer->set_heard_ms_ago(now_ms - session.heard_ms);
        consumer->set_has_left(session.has_left);
        consumer->set_open(epoch.state->OwnedBy(slot).size());
        if (run.record.has_group()) consumer->set_row(epoch.row);
        consumer->set_missed_items(epoch.missed + epoch.state->missed_items());
        consumer->set_missed_bundles(epoch.state->missed_bundles());
        consumer->set_shared_bundles(epoch.state->shared_bundles());
        consumer->set_lag_bundles(LagOf(epoch));
      }
    }
    DescribeWork(run, *job);
  }
}

uint64_t DispatcherState::LagOf(const Epoch& epoch) const {
  if (epoch.state->table() == nullptr) return 0;
  uint64_t furthest = 0;
  for (const EpochName& name : epoch.state->table()->members()) {
    const Epoch& member = numbers_.at(name.run)->epochs.at(name.epoch);
    furthest = std::max(furthest, member.state->low());
  }
  return furthest - std::min(furthest, epoch.state->low());
}

}  // namespace penstock::service
