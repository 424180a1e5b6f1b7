// How consumers come to read: runs, epochs, and generations of them.
#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "penstock/base/hash.h"
#include "penstock/base/status.h"
#include "penstock/service/dispatcher/dispatcher_state.h"
#include "penstock/service/dispatcher/records.h"

namespace penstock::service {
namespace {

bool IsRestoredFrom(const std::set<uint64_t>& restored,
                    const OpenRequest& request) {
  return std::ranges::all_of(request.states(), [&](const auto& state) {
    return restored.contains(HashBytes(Bytes(state)));
  });
}

// What stands for ConsumerState.origin among the hashes of a generation.
uint64_t HashOfOrigin(const ConsumerState& state) {
  return Combine(state.origin(), state.slot());
}

}  // namespace

absl::Status DispatcherState::CheckSame(const Run& run,
                                        const OpenRequest& request) const {
  const RunRecord& record = run.record;
  const auto other = [&](const std::string& what) {
    return absl::InvalidArgumentError(
        absl::StrCat("job '", request.job(), "' is running with another ", what,
                     ": give this one another name, or on_existing=\"fresh\""));
  };
  if (record.plan() != request.plan()) return other("pipeline");
  if (record.visitation() != request.visitation()) return other("visitation");
  if (record.group().name() != request.group().name() ||
      record.group().lanes() != request.group().lanes()) {
    return other("group");
  }
  if (record.is_ordered() != request.is_ordered()) return other("order");
  // Another number of consumers may go on from a checkpoint.
  const bool is_restored =
      request.states_size() > 0 && !request.is_same_consumer();
  if (record.slots() != request.slots() && !is_restored) {
    return other(absl::StrCat("number of consumers (", record.slots(), ")"));
  }
  return absl::OkStatus();
}

absl::StatusOr<DispatcherState::Run*> DispatcherState::OpenRun(
    const OpenRequest& request, int64_t now_ms, Writes& writes) {
  const bool goes_on = request.states_size() > 0;
  uint64_t founder = 0;  // of the group that it was in
  if (Run* run = FindRun(request.job())) {
    founder = run->record.group().founder();
    bool is_live = false;
    bool has_opened = false;  // this slot, in this epoch
    bool is_retry = false;
    bool is_anothers = false;
    for (const auto& [number, epoch] : run->epochs) {
      for (const auto& [slot, session] : epoch.sessions) {
        is_live |= IsLive(session, now_ms);
        if (number != Pass{request.epoch(), request.iteration()}.name() ||
            slot != request.slot()) {
          continue;
        }
        has_opened = true;
        is_retry = IsSame(session.opener, request.opener());
        is_anothers = session.opener.consumer() != request.opener().consumer();
      }
    }
    const bool is_same = CheckSame(*run, request).ok();
    // The one before is over: its consumers have left, or are not heard of.
    const bool is_over = !is_live && !goes_on && (has_opened || !is_same) &&
                         request.on_existing() != OpenRequest::ATTACH;
    const bool is_other_world = goes_on && !is_live && !is_same;
    if (is_retry) return run;
    const bool is_resize = request.group().has_resized_from();
    if (is_resize && is_live && is_same &&
        run->record.group().resized_at() ==
            request.group().resized_from().row()) {
      return run;
    }
    if (request.group().lanes() > 0 && !goes_on && !is_resize && is_anothers &&
        is_same && MayRejoin(*run, request, now_ms)) {
      PENSTOCK_RETURN_IF_ERROR(Rejoin(*run, request, now_ms, writes));
      return run;
    }
    if (!is_over && !is_other_world && !is_resize &&
        request.on_existing() != OpenRequest::FRESH) {
      PENSTOCK_RETURN_IF_ERROR(CheckSame(*run, request));
      return run;
    }
    CloseRun(request.job(), "replaced", writes);
  }
  if (FindPlan(request.plan()) == nullptr) {
    return absl::NotFoundError(
        absl::StrCat("no pipeline ", request.plan(), " is registered"));
  }
  Run& run = runs_[request.job()];
  run.record.set_run(NextNumber());
  numbers_[run.record.run()] = &run;
  run.record.set_job(request.job());
  run.record.set_plan(request.plan());
  run.record.set_visitation(request.visitation());
  run.record.set_is_ordered(request.is_ordered());
  run.record.set_seed(request.seed());
  if (goes_on && request.states(0).seed() != 0) {
    run.record.set_seed(request.states(0).seed());
  }
  run.record.set_slots(request.slots());
  run.record.set_is_brief(request.is_brief());
  if (request.has_group()) JoinGroup(request, founder, now_ms, run);
  writes.durable.push_back({RunKey(run.record.run()), Bytes(run.record)});
  Say("job_opened", {{"job", request.job()},
                     {"run", absl::StrCat(run.record.run())},
                     {"plan", request.plan()},
                     {"visitation", Visitation_Name(request.visitation())},
                     {"consumers", absl::StrCat(request.slots())}});
  return &run;
}

bool DispatcherState::IsOfNow(const Epoch& epoch, const ConsumerState& state) {
  return IsSame(state.epoch(), epoch.state->id()) ||
         epoch.restored.contains(HashBytes(Bytes(state))) ||
         (state.origin() != 0 && epoch.restored.contains(HashOfOrigin(state)));
}

void DispatcherState::SetToNow(const Epoch& epoch, ConsumerState& state) {
  if (IsSame(state.epoch(), epoch.state->id())) return;
  *state.mutable_epoch() = epoch.state->id();
  const Progress& inherited = epoch.state->inherited();
  SetInherited(inherited, state);
  // What it had of rows that the generation was to give once more.
  BundleSet done(state.done());
  done.RemoveAll(inherited.done);
  *state.mutable_done() = done.ToRuns();
  std::vector<Cursor> open;
  for (const Cursor& cursor : state.open()) {
    const auto began = inherited.open.find(cursor.bundle());
    const uint64_t from = began == inherited.open.end() ? 0 : began->second;
    if (!inherited.done.Has(cursor.bundle()) && cursor.position() > from) {
      open.push_back(cursor);
    }
  }
  state.clear_open();
  for (const Cursor& cursor : open) *state.add_open() = cursor;
}

absl::Status DispatcherState::WaitForStates(
    Epoch& epoch, const OpenRequest& request,
    std::map<uint32_t, Restoring> states, int64_t now_ms, Writes& writes) {
  const ConsumerState& first = request.states(0);
  const bool is_new = std::ranges::any_of(request.states(), [&](const auto& s) {
    const auto known = epoch.restoring.find(s.slot());
    return known == epoch.restoring.end() ||
           Bytes(known->second.state) != Bytes(s);
  });
  const bool is_late =
      now_ms - states.at(first.slot()).since_ms >= settings_.client_timeout_ms;
  std::vector<uint32_t> missing;
  for (uint32_t slot = 0; slot < first.slots(); ++slot) {
    if (!states.contains(slot)) missing.push_back(slot);
  }
  if (is_late) {
    for (const ConsumerState& state : request.states()) {
      states.erase(state.slot());
    }
  }
  // Who has taken its place with a state of before, and had nothing since, is
  // to bring that again.
  for (const uint32_t slot : missing) {
    const auto session = epoch.sessions.find(slot);
    if (is_new && session != epoch.sessions.end() &&
        session->second.is_at_start) {
      Tell(epoch);
      epoch.sessions.erase(session);
    }
  }
  epoch.restoring = std::move(states);
  if (epoch.restoring.empty()) epoch.state->MarkReady();
  if (is_new || is_late) WriteEpoch(epoch, writes);
  if (!is_late) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "job '", request.job(), "' goes on from a checkpoint of ", first.slots(),
      " consumers, and needs the states of all of them; none came of consumer ",
      absl::StrJoin(missing, ", "), " within ",
      settings_.client_timeout_ms / 1'000,
      " s\n  Have each load its own state, or give the list of all states to "
      "each."));
}

void DispatcherState::ForgetStates(Epoch& epoch, int64_t now_ms,
                                   Writes& writes) {
  const size_t forgotten =
      std::erase_if(epoch.restoring, [&](const auto& each) {
        return now_ms - each.second.heard_ms >= settings_.client_timeout_ms;
      });
  if (forgotten == 0) return;
  if (epoch.restoring.empty()) epoch.state->MarkReady();
  WriteEpoch(epoch, writes);
}

absl::StatusOr<bool> DispatcherState::Restore(Run& run,
                                              const OpenRequest& request,
                                              int64_t now_ms, Writes& writes) {
  const ConsumerState& first = request.states(0);
  if (request.visitation() == EACH_WORKER) {
    return absl::FailedPreconditionError(absl::StrCat(
        "expected job '", request.job(), "' to begin anew, since each worker ",
        "has a pass of its own that ends with it; got a state of an earlier ",
        "one\n  Use visitation=\"static\" or \"exactly_once\" to go on from "
        "states."));
  }
  const Pass pass = PassOf(first);
  const uint64_t number = pass.name();
  if (first.job() != request.job() || first.plan() != request.plan()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "expected a state of job '", request.job(), "' and its pipeline; got ",
        "one of job '", first.job(), "'"));
  }
  const auto found = run.epochs.find(number);
  Epoch* epoch = found == run.epochs.end() ? nullptr : &found->second;
  std::map<uint32_t, Restoring> states;
  if (epoch != nullptr) {
    // Others have brought the same states, and this one's place is free; or it
    // asks again, itself or as another that starts from there once more where
    // nobody has had anything.
    const auto session = epoch->sessions.find(request.slot());
    const bool has_place =
        run.record.slots() == request.slots() && epoch->restoring.empty() &&
        (session == epoch->sessions.end() ||
         epoch->state->is_untouched_by(request.slot()) ||
         session->second.opener.consumer() == request.opener().consumer());
    if (has_place && IsRestoredFrom(epoch->restored, request)) return true;
    states = epoch->restoring;
  }
  // Another checkpoint's were left behind by an attempt that was given up.
  if (!states.empty() &&
      !IsSame(states.begin()->second.state.epoch(), first.epoch()) &&
      !(IsOfNow(*epoch, states.begin()->second.state) &&
        IsOfNow(*epoch, first))) {
    states.clear();
  }
  for (const ConsumerState& state : request.states()) {
    Restoring& waiting = states[state.slot()];
    if (waiting.since_ms == 0) waiting.since_ms = now_ms;
    waiting.state = state;
    waiting.heard_ms = now_ms;
  }
  if (states.size() < first.slots()) {
    if (epoch == nullptr) {
      // A place to wait in. Nothing is granted of it before all are here.
      epoch = &BeginGeneration(run, pass, first.epoch().generation(),
                               Progress(), first.manifest(), writes);
    }
    PENSTOCK_RETURN_IF_ERROR(
        WaitForStates(*epoch, request, std::move(states), now_ms, writes));
    return false;
  }
  std::vector<ConsumerState> all;
  std::set<uint64_t> hashes;
  const bool are_of_one = std::ranges::all_of(states, [&](const auto& each) {
    return IsSame(each.second.state.epoch(), first.epoch());
  });
  for (auto& [slot, waiting] : states) {
    hashes.insert(HashBytes(Bytes(waiting.state)));
    if (waiting.state.origin() != 0) hashes.insert(HashOfOrigin(waiting.state));
    // Who had nothing since the last restore has saved what it began with.
    if (!are_of_one && epoch != nullptr && IsOfNow(*epoch, waiting.state)) {
      SetToNow(*epoch, waiting.state);
    }
    all.push_back(std::move(waiting.state));
  }
  PENSTOCK_ASSIGN_OR_RETURN(const Progress progress, Merge(all));
  uint64_t generation = first.epoch().generation();
  if (epoch != nullptr) {
    generation = std::max(generation, epoch->state->id().generation());
  }
  if (run.record.slots() != request.slots()) {
    run.record.set_slots(request.slots());
    writes.durable.push_back({RunKey(run.record.run()), Bytes(run.record)});
  }
  Epoch& made = BeginGeneration(run, pass, generation + 1, progress,
                                first.manifest(), writes);
  Say("job_restored", {{"job", request.job()},
                       {"run", absl::StrCat(run.record.run())},
                       {"epoch", absl::StrCat(pass.number)},
                       {"generation", absl::StrCat(generation + 1)},
                       {"consumers", absl::StrCat(request.slots())}});
  made.restored = std::move(hashes);
  WriteEpoch(made, writes);
  if (request.slots() == first.slots()) {
    for (const ConsumerState& state : all) {
      for (const uint64_t bundle : state.kept()) {
        made.state->Keep(state.slot(), bundle, writes);
      }
    }
  }
  return true;
}

uint64_t DispatcherState::HolderOf(const OpenRequest& request) {
  if (const std::vector<std::string> left = BranchLeft(request);
      !left.empty()) {
    uint64_t holder = 0;
    for (const std::string& job : left) {
      holder = Combine(holder, runs_.at(job).record.run());
    }
    return std::max<uint64_t>(holder, 1);
  }
  const Run* run = FindRun(request.job());
  if (run == nullptr) return 0;
  const auto epoch = run->epochs.find(PassOf(request).name());
  if (epoch == run->epochs.end()) return 0;
  const auto session = epoch->second.sessions.find(request.slot());
  const bool is_taken = session != epoch->second.sessions.end();
  if (!is_taken && request.states_size() == 0) return 0;
  uint64_t holder = HashBytes(Bytes(epoch->second.state->id()));
  if (is_taken) {
    const Opener& opener = session->second.opener;
    if (opener.consumer() == request.opener().consumer()) return 0;
    holder = Combine(holder, Combine(opener.consumer(), opener.request()));
  }
  return std::max<uint64_t>(holder, 1);
}

absl::StatusOr<OpenReply> DispatcherState::Open(const OpenRequest& request,
                                                int64_t now_ms,
                                                Writes& writes) {
  if (request.slots() == 0 || request.slot() >= request.slots()) {
    return absl::InvalidArgumentError(absl::StrCat("consumer must be in [0, ",
                                                   request.slots(), "); got ",
                                                   request.slot()));
  }
  PENSTOCK_RETURN_IF_ERROR(CheckGroup(request, now_ms));
  OpenReply reply;
  if (const uint64_t holder = HolderOf(request);
      holder != 0 && holder != request.replaces()) {
    reply.set_replaces(holder);
    return reply;
  }
  LeaveBranch(request, writes);
  PENSTOCK_ASSIGN_OR_RETURN(Run * run, OpenRun(request, now_ms, writes));
  run->used_ms = now_ms;
  const bool is_restored =
      request.states_size() > 0 && !request.is_same_consumer();
  const Pass pass = PassOf(request);
  const uint64_t number = pass.name();
  // Of an engine that has died since: another one has opened.
  const auto known = run->epochs.find(number);
  if (known != run->epochs.end()) {
    const auto session = known->second.sessions.find(request.slot());
    if (session != known->second.sessions.end() &&
        session->second.opener.consumer() == request.opener().consumer() &&
        session->second.opener.request() > request.opener().request()) {
      return absl::AbortedError("it was opened again since");
    }
  }
  if (is_restored) {
    PENSTOCK_ASSIGN_OR_RETURN(const bool is_done,
                              Restore(*run, request, now_ms, writes));
    if (!is_done) return reply;
  }
  auto it = run->epochs.find(number);
  // It may have had nothing since a restore: then it still has the state that
  // the generation was made of.
  if (request.is_same_consumer() &&
      (it == run->epochs.end() || request.states_size() != 1 ||
       !(IsSame(it->second.state->id(), request.states(0).epoch()) ||
         IsRestoredFrom(it->second.restored, request)))) {
    return absl::FailedPreconditionError(
        absl::StrCat("epoch ", number, " of job '", request.job(),
                     "' was restored by others meanwhile, or is over"));
  }
  if (it == run->epochs.end()) {
    PENSTOCK_RETURN_IF_ERROR(BeginMember(*run, pass, writes));
    it = run->epochs.find(number);
  }
  Epoch& epoch = it->second;
  if (!epoch.failure.ok()) return epoch.failure;
  PENSTOCK_RETURN_IF_ERROR(CheckWorkers(epoch));
  if (!epoch.restoring.empty() && !is_restored) return reply;
  const auto [place, is_new] = epoch.sessions.try_emplace(request.slot());
  Session& session = place->second;
  const Opener& opener = request.opener();
  if (is_new || !IsSame(session.opener, opener)) {
    if (!is_new && IsLive(session, now_ms) && !request.is_same_consumer() &&
        !is_restored && request.on_existing() == OpenRequest::ERROR &&
        session.opener.consumer() != opener.consumer()) {
      return absl::AlreadyExistsError(absl::StrCat(
          "consumer ", request.slot(), " of job '", request.job(),
          "' is being read by somebody else: give this one another job name, ",
          "on_existing=\"attach\" to take its place, or ",
          "on_existing=\"fresh\" to end that job and begin anew"));
    }
    session = Session();
    session.opener = opener;
    session.is_at_start = is_restored;
    epoch.state->SetWant(request.slot(), 0);
    Tell(epoch);
    WriteEpoch(epoch, writes);
  }
  session.heard_ms = now_ms;
  *reply.mutable_epoch() = epoch.state->id();
  reply.set_term(term_);
  reply.set_seed(run->record.seed());
  reply.set_manifest(epoch.manifest);
  *reply.mutable_done() = epoch.state->done().ToRuns();
  SetInherited(epoch.state->inherited(), reply);
  if (epoch.state->has_bundles()) reply.set_phase(OpenReply::OPEN);
  reply.set_row(epoch.first_row);
  if (run->record.has_group()) {
    if (IsResizedIn(*run, epoch.pass)) {
      *reply.mutable_splits() = run->record.group().splits();
      reply.set_resized_at(run->record.group().resized_at());
    }
    for (const auto& [job, each] : runs_) {
      if (each.record.group().founder() == run->record.group().founder()) {
        reply.add_members(job);
      }
    }
  }
  reply.set_bundles_in_pass(epoch.bundles_in_pass);
  return reply;
}

}  // namespace penstock::service
