// Runs whose bundles are computed once: who goes together, and what they have
// in common (design note 0027).
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "penstock/base/hash.h"
#include "penstock/base/status.h"
#include "penstock/service/dispatcher/dispatcher_state.h"
#include "penstock/service/dispatcher/records.h"

namespace penstock::service {
namespace {

// All that decides a bundle's items, but its number; and what members call it.
uint64_t HashOf(const RunRecord& run, uint64_t epoch, uint64_t iteration,
                uint64_t manifest) {
  uint64_t hash = HashBytes(run.plan());
  hash = Combine(hash, HashBytes(run.group().name()));
  hash = Combine(hash, HashBytes(run.group().tenant()));
  hash = Combine(hash, run.seed());
  hash = Combine(hash, epoch);
  hash = Combine(hash, iteration);
  hash = Combine(hash, manifest);
  for (const Split& split : run.group().splits()) {
    hash = Combine(hash, HashBytes(Bytes(split)));
  }
  hash = Combine(hash, run.group().resized_at());
  return Combine(hash, run.group().lanes());
}

bool IsSameGroup(const Group& a, const Group& b) {
  return a.name() == b.name() && a.tenant() == b.tenant();
}

// Of the state that it goes on from; 0: there is none.
uint64_t SeedOf(const OpenRequest& request) {
  if (request.group().has_resized_from()) {
    return request.group().resized_from().seed();
  }
  return request.states_size() > 0 ? request.states(0).seed() : 0;
}

std::string PolicyOf(const Group& group) {
  return group.policy() == Sharing::SKIP ? "skip" : "wait";
}

}  // namespace

bool DispatcherState::IsLive(const Run& run, int64_t now_ms) const {
  return std::ranges::any_of(run.epochs, [&](const auto& epoch) {
    return std::ranges::any_of(epoch.second.sessions, [&](const auto& session) {
      return IsLive(session.second, now_ms);
    });
  });
}

const DispatcherState::Run* DispatcherState::LiveMember(const Group& group,
                                                        const std::string& job,
                                                        int64_t now_ms) const {
  const Run* found = nullptr;
  for (const auto& [name, run] : runs_) {
    if (name == job || !IsSameGroup(run.record.group(), group) || run.resized ||
        !IsLive(run, now_ms)) {
      continue;
    }
    if (run.record.group().lanes() == group.lanes()) return &run;
    if (found == nullptr) found = &run;
  }
  return found;
}

const DispatcherState::Run* DispatcherState::EndedMember(
    const OpenRequest& request, uint64_t founder) const {
  const Group& group = request.group();
  if (group.lanes() == 0) return nullptr;
  const Run* found = nullptr;
  for (const auto& [name, run] : runs_) {
    const Group& its = run.record.group();
    if (name == request.job() || !IsSameGroup(its, group) || run.resized ||
        its.lanes() != group.lanes() || its.founder() == founder ||
        run.record.plan() != request.plan()) {
      continue;
    }
    if (found == nullptr || found->record.group().founder() < its.founder()) {
      found = &run;
    }
  }
  return found;
}

absl::Status DispatcherState::CheckResize(const OpenRequest& request) const {
  const ConsumerState& from = request.group().resized_from();
  if (request.states_size() > 0 || request.group().lanes() == 0 ||
      from.lanes() == 0 || from.lanes() == request.group().lanes() ||
      from.row() == 0) {
    return absl::InvalidArgumentError(
        "consumers that are resized must go on from a state of one of another "
        "number that reads in rounds, and has begun; got something else");
  }
  if (from.plan() != request.plan()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "expected a state of the pipeline of '", request.group().name(),
        "'; got one of job '", from.job(), "', which has another"));
  }
  return absl::OkStatus();
}

absl::Status DispatcherState::CheckGroup(const OpenRequest& request,
                                         int64_t now_ms) const {
  if (!request.has_group()) return absl::OkStatus();
  const Group& group = request.group();
  if (group.has_resized_from()) {
    PENSTOCK_RETURN_IF_ERROR(CheckResize(request));
  }
  const bool is_known = request.visitation() == EXACTLY_ONCE ||
                        request.visitation() == AT_MOST_ONCE;
  if (group.name().empty() || request.slots() != 1 || !request.is_ordered() ||
      !is_known) {
    return absl::InvalidArgumentError(
        "a group's member must name it, and read all of its job in order, each "
        "element exactly or at most once; got something else");
  }
  if (group.lanes() > 0 && group.lane() >= group.lanes()) {
    return absl::InvalidArgumentError(
        absl::StrCat("consumer must be in [0, ", group.lanes(),
                     "), one of num_consumers; got ", group.lane()));
  }
  const Run* run = LiveMember(group, request.job(), now_ms);
  const auto found = runs_.find(request.job());
  const Run* own = found == runs_.end() ? nullptr : &found->second;
  const bool is_attached = request.on_existing() == OpenRequest::ATTACH;
  // It has a place among them already.
  const bool has_place =
      own != nullptr && (is_attached || IsLive(*own, now_ms));
  const bool comes_late = group.has_row() && group.row() > 0 &&
                          request.states_size() == 0 &&
                          !group.has_resized_from();
  if (run == nullptr) {
    const uint64_t founder = own == nullptr ? 0 : own->record.group().founder();
    if (group.lanes() == 0 || !comes_late || has_place ||
        EndedMember(request, founder) != nullptr) {
      return absl::OkStatus();
    }
    return absl::UnavailableError(absl::StrCat(
        "none of '", group.name(), "' is there; consumer ", group.lane(),
        " of ", group.lanes(), " waits for those who have read ", group.row(),
        " rounds"));
  }
  const auto other = [&](const std::string& what, const std::string& its,
                         const std::string& ours) {
    return absl::InvalidArgumentError(absl::StrCat(
        "all members of '", group.name(), "' must have the same ", what,
        "; job '", run->record.job(), "' has ", its, ", job '", request.job(),
        "' ", ours, "\n  Give this one another name, or change it."));
  };
  const RunRecord& record = run->record;
  if (record.group().lanes() != group.lanes()) {
    // Some of them may be behind those that were resized, or take all back.
    if (group.has_resized_from()) return absl::OkStatus();
    if (request.states_size() > 0) return CheckSeed(request, *run);
    if (has_place && own->resized &&
        (!comes_late || group.row() <= own->resized->row)) {
      return absl::OkStatus();
    }
    if (comes_late) {
      return absl::UnavailableError(
          absl::StrCat("the consumers of '", group.name(), "' are ",
                       record.group().lanes(), "; consumer ", group.lane(),
                       " of ", group.lanes(), " waits until they are resized"));
    }
    return other(
        "num_consumers", absl::StrCat(record.group().lanes()),
        absl::StrCat(group.lanes(), ": they change by resize() alone"));
  }
  // Who comes from an earlier round takes all back (LeaveBranch).
  if (group.has_resized_from()) {
    const uint64_t its = ResizedAt(*run, PassOf(group.resized_from()));
    const uint64_t ours = group.resized_from().row();
    if (ours > its) {
      return other("round that they were resized at", absl::StrCat(its),
                   absl::StrCat(ours));
    }
  }
  if (record.plan() != request.plan()) {
    return other("pipeline", record.plan(), request.plan());
  }
  if (record.visitation() != request.visitation()) {
    return other("visitation", Visitation_Name(record.visitation()),
                 Visitation_Name(request.visitation()));
  }
  if (record.group().policy() != group.policy()) {
    return other("share_policy", PolicyOf(record.group()), PolicyOf(group));
  }
  return CheckSeed(request, *run);
}

absl::Status DispatcherState::CheckSeed(const OpenRequest& request,
                                        const Run& other) {
  const uint64_t seed = SeedOf(request);
  if (request.group().lanes() == 0 || seed == 0 ||
      seed == other.record.seed()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "all members of '", request.group().name(), "' must have the same seed; ",
      "job '", other.record.job(), "' has begun anew, job '", request.job(),
      "' a state of before: load one in each of them"));
}

std::vector<std::string> DispatcherState::BranchLeft(
    const OpenRequest& request) const {
  const Group& group = request.group();
  const bool is_resize = group.has_resized_from();
  std::vector<std::string> left;
  if (group.lanes() == 0 || request.is_same_consumer() ||
      (request.states_size() == 0 && !is_resize)) {
    return left;
  }
  const Pass pass =
      PassOf(is_resize ? group.resized_from() : request.states(0));
  const uint64_t at =
      is_resize ? group.resized_from().row() : group.resized_at();
  for (const auto& [job, run] : runs_) {
    const Group& its = run.record.group();
    if (!IsSameGroup(its, group)) continue;
    if (run.record.seed() != SeedOf(request)) {
      if (job == request.job() && SeedOf(request) != 0) left.push_back(job);
    } else if (ResizedAt(run, pass) > at ||
               (!is_resize && its.lanes() == group.lanes() &&
                ResizedAt(run, pass) != at)) {
      left.push_back(job);
    }
  }
  return left;
}

void DispatcherState::LeaveBranch(const OpenRequest& request, Writes& writes) {
  const std::vector<std::string> left = BranchLeft(request);
  for (const std::string& job : left) CloseRun(job, "restored", writes);
  if (!left.empty()) MarkResized();
}

void DispatcherState::MarkResized() {
  for (auto& [job, run] : runs_) {
    const Group& its = run.record.group();
    if (its.lanes() == 0) continue;
    run.resized.reset();
    for (const auto& [name, other] : runs_) {
      const Group& next = other.record.group();
      const ConsumerState& from = next.resized_from();
      if (from.row() == 0 || !IsSameGroup(its, next) ||
          other.record.run() < run.record.run() ||
          other.record.seed() != run.record.seed()) {
        continue;
      }
      const uint64_t at = ResizedAt(run, PassOf(from));
      const bool is_later =
          from.row() > at || (from.row() == at && next.lanes() != its.lanes());
      if (is_later && (!run.resized || from.row() < run.resized->row)) {
        run.resized = {from.row(), next.lanes()};
      }
    }
  }
}

void DispatcherState::JoinGroup(const OpenRequest& request, uint64_t founder,
                                int64_t now_ms, Run& run) {
  Group& group = *run.record.mutable_group();
  group = request.group();
  group.set_founder(run.record.run());
  if (group.has_resized_from()) {
    const ConsumerState& from = group.resized_from();
    run.record.set_seed(from.seed());
    group.set_resized_at(from.row());
    const std::vector<Split> splits = SplitsOf(from);
    *group.mutable_splits() = {splits.begin(), splits.end()};
    MarkResized();
  }
  // Where it was resized is not known any more, but in which pass.
  if (request.states_size() > 0 && group.resized_at() > 0) {
    ConsumerState& from = *group.mutable_resized_from();
    from.set_epoch_number(request.states(0).epoch_number());
    from.set_iteration(request.states(0).iteration());
  }
  const Run* other = LiveMember(group, request.job(), now_ms);
  const bool is_new = request.states_size() == 0 && !group.has_resized_from();
  if (other == nullptr && is_new) other = EndedMember(request, founder);
  if (other == nullptr || other->record.group().lanes() != group.lanes()) {
    return;
  }
  const Group& its = other->record.group();
  group.set_founder(its.founder());
  // Who goes on from a state has its own.
  if (!is_new) return;
  run.record.set_seed(other->record.seed());
  if (its.has_resized_from()) {
    *group.mutable_resized_from() = its.resized_from();
  }
  group.set_resized_at(its.resized_at());
  *group.mutable_splits() = its.splits();
}

DispatcherState::Pass DispatcherState::PassOf(const ConsumerState& state) {
  return {state.epoch_number(), state.iteration()};
}

DispatcherState::Pass DispatcherState::PassOf(const OpenRequest& request) {
  if (request.states_size() > 0) return PassOf(request.states(0));
  return {request.epoch(), request.iteration()};
}

bool DispatcherState::IsResizedIn(const Run& run, const Pass& pass) {
  const Group& group = run.record.group();
  return group.has_resized_from() &&
         PassOf(group.resized_from()).name() == pass.name();
}

uint64_t DispatcherState::ResizedAt(const Run& run, const Pass& pass) {
  return IsResizedIn(run, pass) ? run.record.group().resized_at() : 0;
}

absl::Status DispatcherState::BeginMember(Run& run, const Pass& pass,
                                          Writes& writes) {
  if (!IsResizedIn(run, pass)) {
    BeginGeneration(run, pass, 1, Progress(), ManifestOfGroup(run, pass),
                    writes);
    return absl::OkStatus();
  }
  const ConsumerState& from = run.record.group().resized_from();
  if (from.row() == 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the others of '", run.record.group().name(),
        "' go on from states, of ",
        "when they were resized\n  Have this one load one of them."));
  }
  Epoch& made =
      BeginGeneration(run, pass, 1, ProgressOf(from), from.manifest(), writes);
  made.first_row = from.row();
  WriteEpoch(made, writes);
  Say("consumer_resized",
      {{"job", run.record.job()}, {"row", absl::StrCat(from.row())}});
  return absl::OkStatus();
}

bool DispatcherState::MayRejoin(const Run& run, const OpenRequest& request,
                                int64_t now_ms) const {
  if (request.on_existing() == OpenRequest::ATTACH || IsLive(run, now_ms)) {
    return true;
  }
  const Run* other = LiveMember(request.group(), request.job(), now_ms);
  return other != nullptr &&
         other->record.group().founder() == run.record.group().founder();
}

absl::Status DispatcherState::Rejoin(Run& run, const OpenRequest& request,
                                     int64_t now_ms, Writes& writes) {
  const Pass pass{request.epoch(), request.iteration()};
  const Group& group = run.record.group();
  const std::string who =
      absl::StrCat("consumer ", group.lane(), " of ", group.lanes(), " of '",
                   group.name(), "'");
  Epoch& epoch = run.epochs.at(pass.name());
  const auto session = epoch.sessions.find(request.slot());
  if (session != epoch.sessions.end() && IsLive(session->second, now_ms) &&
      request.on_existing() != OpenRequest::ATTACH) {
    return absl::AlreadyExistsError(absl::StrCat(
        who,
        " is being read by somebody else: give this one another number, "
        "or on_existing=\"attach\" to take its place"));
  }
  if (request.on_existing() != OpenRequest::ATTACH) {
    return absl::FailedPreconditionError(absl::StrCat(
        who,
        " has begun before, and the others go on\n  Load its state, or "
        "use on_existing=\"attach\" to go on at the round that the others "
        "have reached, or another job name for all to begin anew."));
  }
  // They say it in their next beats.
  const SharedTable* table = epoch.state->table();
  if (table == nullptr || (epoch.is_recovered && is_in_grace_)) {
    return absl::UnavailableError(absl::StrCat("where the others of '",
                                               group.name(),
                                               "' are is not "
                                               "known yet"));
  }
  const bool has_row = request.group().has_row();
  const SharedTable::Place* place = has_row
                                        ? table->Before(request.group().row())
                                        : table->Furthest(group.lane());
  const bool is_resized = IsResizedIn(run, pass);
  const ConsumerState& from = group.resized_from();
  if (place == nullptr && is_resized && from.row() == 0 &&
      !epoch.is_recovered) {
    return absl::UnavailableError(absl::StrCat(
        "where the others of '", group.name(), "' are is not known yet"));
  }
  const bool has_begin = has_row && !(is_resized && from.row() == 0);
  if (place == nullptr && epoch.is_recovered && !has_begin) {
    return absl::FailedPreconditionError(absl::StrCat(
        who,
        " has begun before, and nobody says how far it was\n  Load its "
        "state, or use another job name for all to begin anew."));
  }
  const uint64_t manifest = epoch.manifest;
  const uint64_t generation = epoch.state->id().generation() + 1;
  Progress progress;
  uint64_t row = 0;
  if (place != nullptr) {
    progress = ProgressOf(place->state);
    row = place->row;
  } else if (is_resized) {
    progress = ProgressOf(from);
    row = from.row();
  }
  Epoch& made =
      BeginGeneration(run, pass, generation, progress, manifest, writes);
  made.first_row = row;
  WriteEpoch(made, writes);
  Say("consumer_rejoined",
      {{"job", run.record.job()}, {"row", absl::StrCat(row)}});
  return absl::OkStatus();
}

uint64_t DispatcherState::ManifestOfGroup(const Run& run,
                                          const Pass& pass) const {
  if (!run.record.has_group()) return 0;
  for (const auto& [job, other] : runs_) {
    if (&other == &run ||
        other.record.group().founder() != run.record.group().founder()) {
      continue;
    }
    const auto epoch = other.epochs.find(pass.name());
    if (epoch != other.epochs.end() && epoch->second.manifest != 0) {
      return epoch->second.manifest;
    }
  }
  return 0;
}

void DispatcherState::SetTable(Epoch& epoch) {
  const Run* run = FindRun(epoch.state->id().run());
  if (run == nullptr || !run->record.has_group()) return;
  epoch.state->SetTable(&tables_[HashOf(run->record, epoch.pass.number,
                                        epoch.pass.iteration, epoch.manifest)]);
}

void DispatcherState::FollowOthers(Epoch& epoch, Writes& writes) {
  if (!epoch.failure.ok() || !epoch.restoring.empty()) return;
  if (epoch.state->Follow([this] { return NextNumber(); }, writes)) {
    WriteEpoch(epoch, writes);
  }
}

void DispatcherState::FollowAll(Writes& writes) {
  for (auto& [key, table] : tables_) {
    if (!table.TakeChanged()) continue;
    const std::set<EpochName> members = table.members();
    for (const EpochName& name : members) {
      FollowOthers(FindRun(name.run)->epochs.at(name.epoch), writes);
    }
  }
}

void DispatcherState::ForgetInTables(uint64_t worker) {
  for (auto& [key, table] : tables_) {
    if (!table.Forget(worker)) continue;
    for (const EpochName& name : table.members()) {
      FindRun(name.run)->epochs.at(name.epoch).state->MarkReady();
    }
  }
}

Sharing DispatcherState::SharingOf(const Run& run, const Epoch& epoch,
                                   const EpochState::Given& given) {
  Sharing sharing;
  const uint64_t hash = HashOf(run.record, epoch.pass.number,
                               epoch.pass.iteration, epoch.manifest);
  sharing.set_production(Combine(hash, given.bundle) | 1);
  const auto& splits = run.record.group().splits();
  const auto split = std::ranges::find(splits, given.bundle, &Split::bundle);
  if (split != splits.end() && IsResizedIn(run, epoch.pass)) {
    *sharing.mutable_split() = *split;
  }
  sharing.set_policy(run.record.group().policy());
  sharing.set_lanes(run.record.group().lanes());
  sharing.set_lane(run.record.group().lane());
  sharing.set_is_following(given.is_following);
  return sharing;
}

}  // namespace penstock::service
