#include "penstock/service/dispatcher/dispatcher_state.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "penstock/base/hash.h"
#include "penstock/base/status.h"
#include "penstock/service/dispatcher/records.h"

namespace penstock::service {
namespace {

// Records that are taken away of an epoch at once.
constexpr size_t kMostFolded = 256;

uint64_t BundlesInPass(const Manifest& manifest) {
  if (manifest.rows() == 0) return 0;
  const uint64_t size = std::max<uint64_t>(1, manifest.rows_per_bundle());
  return ((manifest.rows() - 1) / size + 1) *
         std::max<uint32_t>(1, manifest.pieces());
}

}  // namespace

uint64_t HashOf(const Manifest& manifest) { return HashBytes(Bytes(manifest)); }

std::optional<uint64_t> BundlesOf(const Manifest& manifest) {
  if (manifest.rows() == 0) return 0;
  if (manifest.passes() == 0) return std::nullopt;
  const uint64_t in_pass = BundlesInPass(manifest);
  const uint64_t most = std::numeric_limits<uint64_t>::max() / 2;
  if (manifest.passes() > most / in_pass) return std::nullopt;
  return in_pass * manifest.passes();
}

// Of a repetition, one that no count of epochs reaches.
uint64_t DispatcherState::Pass::name() const {
  if (iteration == 0) return number;
  return Combine(number, iteration) | uint64_t{1} << 63;
}

DispatcherState::DispatcherState(const Settings& settings, uint64_t term,
                                 int64_t now_ms)
    : settings_(settings),
      term_(term),
      started_ms_(now_ms),
      grace_ends_ms_(now_ms + settings.lease_ms),
      drop_unused_ms_(now_ms + settings.unused_timeout_ms),
      places_(settings.workers) {}

absl::StatusOr<std::unique_ptr<DispatcherState>> DispatcherState::Make(
    const Settings& settings, uint64_t term, int64_t now_ms,
    const std::vector<store::Record>& records) {
  std::unique_ptr<DispatcherState> state(
      new DispatcherState(settings, term, now_ms));
  PENSTOCK_RETURN_IF_ERROR(state->Recover(records));
  for (auto& [job, run] : state->runs_) run.used_ms = now_ms;
  return state;
}

absl::Status DispatcherState::Recover(
    const std::vector<store::Record>& records) {
  // What others refer to, first.
  for (const std::string_view kind :
       {kPlanKey, kKeepKey, kNameKey, kManifestKey, kRunKey, kEpochKey,
        kBindKey, kDoneKey}) {
    for (const store::Record& record : records) {
      if (record.key.substr(0, kind.size()) != kind) continue;
      PENSTOCK_RETURN_IF_ERROR(RecoverOne(record));
    }
  }
  MarkResized();
  return absl::OkStatus();
}

absl::Status DispatcherState::RecoverOne(const store::Record& record) {
  const auto damaged = [&] {
    return absl::DataLossError(
        absl::StrCat("the store's record '", record.key,
                     "' makes no sense: see `penstock meta check`"));
  };
  const std::string& key = record.key;
  const auto is = [&](std::string_view kind) {
    return key.substr(0, kind.size()) == kind;
  };
  if (is(kPlanKey)) {
    return RecoverPlan(key.substr(kPlanKey.size()), record.value);
  }
  if (is(kKeepKey)) {
    const auto plan = plans_.find(key.substr(kKeepKey.size()));
    if (plan != plans_.end()) plan->second.is_kept = true;
    return absl::OkStatus();
  }
  if (is(kNameKey)) {
    NameRecord name;
    if (!name.ParseFromString(record.value)) return damaged();
    names_[key.substr(kNameKey.size())] = name.plan();
    return absl::OkStatus();
  }
  if (is(kManifestKey)) {
    Manifest manifest;
    if (!manifest.ParseFromString(record.value)) return damaged();
    manifests_[HashOf(manifest)] = {manifest, started_ms_};
    return absl::OkStatus();
  }
  if (is(kRunKey)) {
    RunRecord run;
    if (!run.ParseFromString(record.value)) return damaged();
    Run& made = runs_[run.job()];
    made.record = run;
    numbers_[run.run()] = &made;
    return absl::OkStatus();
  }
  if (is(kEpochKey)) {
    EpochRecord epoch;
    if (!epoch.ParseFromString(record.value)) return damaged();
    Run* run = FindRun(epoch.epoch().run());
    if (run == nullptr) return damaged();
    Writes none;
    Epoch& made = BeginGeneration(
        *run, {epoch.epoch_number(), epoch.iteration()},
        epoch.epoch().generation(), Inherited(epoch), epoch.manifest(), none);
    made.is_recovered = true;
    made.first_row = epoch.first_row();
    made.restored.insert(epoch.restored().begin(), epoch.restored().end());
    made.state->Recover(BundleSet(epoch.folded()));
    for (const ConsumerState& state : epoch.restoring()) {
      made.restoring[state.slot()] = {state, started_ms_, started_ms_};
    }
    // Who had the slot may be alive, and is heard of soon.
    for (const EpochRecord::Opened& opened : epoch.opened()) {
      Session& session = made.sessions[opened.slot()];
      session.opener = opened.opener();
      session.has_left = opened.has_left();
      if (session.has_left) made.state->SetLeft(opened.slot());
      session.heard_ms = started_ms_;
    }
    return absl::OkStatus();
  }
  EpochId id;
  const std::string_view kind = is(kBindKey) ? kBindKey : kDoneKey;
  const std::optional<uint64_t> bundle = ReadBundleKey(kind, key, id);
  if (!bundle) return damaged();
  Epoch* epoch = FindEpoch(id);
  // Of a generation that is over: it was on its way out.
  if (epoch == nullptr) return absl::OkStatus();
  if (kind == kBindKey) {
    BindRecord bind;
    if (!bind.ParseFromString(record.value)) return damaged();
    epoch->state->Recover(*bundle, bind);
  } else {
    DoneRecord done;
    if (!done.ParseFromString(record.value)) return damaged();
    epoch->state->Recover(*bundle, done);
  }
  return absl::OkStatus();
}

const Manifest* DispatcherState::FindManifest(uint64_t hash) const {
  const auto it = manifests_.find(hash);
  return it == manifests_.end() ? nullptr : &it->second.manifest;
}

DispatcherState::Run* DispatcherState::FindRun(const std::string& job) {
  const auto it = runs_.find(job);
  return it == runs_.end() ? nullptr : &it->second;
}

DispatcherState::Run* DispatcherState::FindRun(uint64_t number) {
  const auto it = numbers_.find(number);
  return it == numbers_.end() ? nullptr : it->second;
}

DispatcherState::Epoch* DispatcherState::FindEpoch(const EpochId& id) {
  Run* run = FindRun(id.run());
  if (run == nullptr) return nullptr;
  const auto it = run->epochs.find(id.epoch());
  if (it == run->epochs.end()) return nullptr;
  return IsSame(it->second.state->id(), id) ? &it->second : nullptr;
}

void DispatcherState::SetMaker(Epoch& epoch, uint64_t worker) {
  const EpochId& id = epoch.state->id();
  const EpochName name{id.run(), id.epoch()};
  epoch.maker = worker;
  if (worker != 0) {
    in_making_.insert(name);
  } else {
    in_making_.erase(name);
    epoch.state->MarkReady();
  }
}

void DispatcherState::Tell(const Epoch& epoch) {
  const EpochId& id = epoch.state->id();
  for (const auto& [slot, session] : epoch.sessions) {
    index_.news.seats.push_back({{id.run(), id.epoch()}, slot});
  }
}

News DispatcherState::TakeNews() {
  News news = std::move(index_.news);
  index_.news = News();
  if (news.calls_workers) {
    for (const auto& [id, worker] : workers_) news.called.push_back(id);
  }
  news.has_work = has_work();
  return news;
}

const EpochState* DispatcherState::FindEpoch(const std::string& job,
                                             uint64_t epoch) const {
  const auto run = runs_.find(job);
  if (run == runs_.end()) return nullptr;
  const auto it = run->second.epochs.find(epoch);
  return it == run->second.epochs.end() ? nullptr : it->second.state.get();
}

bool DispatcherState::IsLive(const Session& session, int64_t now_ms) const {
  return !session.has_left &&
         now_ms - session.heard_ms < settings_.client_timeout_ms;
}

void DispatcherState::WriteEpoch(const Epoch& epoch, Writes& writes) const {
  EpochRecord record;
  *record.mutable_epoch() = epoch.state->id();
  record.set_epoch_number(epoch.pass.number);
  record.set_iteration(epoch.pass.iteration);
  record.set_manifest(epoch.manifest);
  SetInherited(epoch.state->inherited(), record);
  for (const uint64_t hash : epoch.restored) record.add_restored(hash);
  *record.mutable_folded() = epoch.state->folded().ToRuns();
  record.set_first_row(epoch.first_row);
  for (const auto& [slot, waiting] : epoch.restoring) {
    *record.add_restoring() = waiting.state;
  }
  for (const auto& [slot, session] : epoch.sessions) {
    EpochRecord::Opened* opened = record.add_opened();
    opened->set_slot(slot);
    *opened->mutable_opener() = session.opener;
    opened->set_has_left(session.has_left);
  }
  writes.durable.push_back({EpochKey(epoch.state->id()), Bytes(record)});
}

void DispatcherState::SetBundles(Epoch& epoch) {
  const Manifest* manifest = FindManifest(epoch.manifest);
  if (manifest == nullptr) return;
  epoch.state->SetBundles(BundlesOf(*manifest));
  epoch.bundles_in_pass = BundlesInPass(*manifest);
  SetTable(epoch);
  for (const auto& [id, worker] : workers_) {
    if (!worker.is_draining) epoch.state->Join(id);
  }
}

absl::Status DispatcherState::CheckWorkers(const Epoch& epoch) const {
  if (epoch.state->settings().visitation != STATIC) return absl::OkStatus();
  if (places_.size() == 0) {
    return absl::FailedPreconditionError(
        "visitation=\"static\" needs a dispatcher that knows its workers; this "
        "one takes whoever comes\n  Start it with --workers HOST:PORT for each "
        "of them.");
  }
  const Manifest* manifest = FindManifest(epoch.manifest);
  if (manifest == nullptr || manifest->rows() == places_.size()) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "the epoch has the shards of ", manifest->rows(),
      " workers; the dispatcher was told of ", places_.size(),
      "\n  Start it with as many --workers as before, or the job anew."));
}

DispatcherState::Epoch& DispatcherState::BeginGeneration(
    Run& run, const Pass& pass, uint64_t generation, const Progress& inherited,
    uint64_t manifest, Writes& writes) {
  const uint64_t number = pass.name();
  EpochId id;
  id.set_run(run.record.run());
  id.set_epoch(number);
  id.set_generation(generation);
  Epoch& epoch = run.epochs[number];
  if (epoch.state != nullptr) {
    epoch.state->Erase(writes);
    Tell(epoch);
  }
  in_making_.erase({run.record.run(), number});
  epoch = Epoch();
  epoch.pass = pass;
  epoch.state = std::make_unique<EpochState>(
      id,
      EpochState::Settings{run.record.visitation(), run.record.is_ordered(),
                           std::max<uint32_t>(1, run.record.slots()),
                           settings_.max_crashes, settings_.most_records,
                           run.record.group().policy() == Sharing::SKIP},
      inherited, &index_);
  epoch.manifest = manifest;
  epoch.state->MarkReady();
  SetBundles(epoch);
  WriteEpoch(epoch, writes);
  return epoch;
}

void DispatcherState::Say(const std::string& event, EventFacts facts) {
  index_.news.happenings.push_back({event, std::move(facts)});
}

void DispatcherState::CloseRun(const std::string& job, const std::string& why,
                               Writes& writes) {
  const auto it = runs_.find(job);
  if (it == runs_.end()) return;
  Say("job_closed", {{"job", job},
                     {"run", absl::StrCat(it->second.record.run())},
                     {"why", why}});
  for (const auto& [number, epoch] : it->second.epochs) {
    epoch.state->Erase(writes);
    writes.durable.push_back({EpochKey(epoch.state->id()), std::nullopt});
    Tell(epoch);
    in_making_.erase({it->second.record.run(), number});
  }
  writes.durable.push_back({RunKey(it->second.record.run()), std::nullopt});
  numbers_.erase(it->second.record.run());
  runs_.erase(it);
}

ClientReply DispatcherState::OnClient(const ClientBeat& beat, int64_t now_ms,
                                      Writes& writes) {
  ClientReply reply;
  reply.set_term(term_);
  Epoch* epoch = FindEpoch(beat.epoch());
  if (const auto it = cancelled_.find(beat.epoch().run());
      it != cancelled_.end()) {
    reply.set_phase(ClientReply::FAILED);
    reply.set_error(absl::StrCat("job '", it->second, "' was cancelled"));
    reply.set_error_code(static_cast<int>(absl::StatusCode::kCancelled));
    return reply;
  }
  if (epoch == nullptr) {
    reply.set_phase(ClientReply::FENCED);
    reply.set_error("the epoch was restored by others, or its job is over");
    return reply;
  }
  const auto place = epoch->sessions.find(beat.slot());
  if (place == epoch->sessions.end() || place->second.has_left ||
      !IsSame(place->second.opener, beat.opener())) {
    reply.set_phase(ClientReply::FENCED);
    reply.set_error("another consumer has taken this one's place");
    return reply;
  }
  Session& session = place->second;
  session.heard_ms = std::max(session.heard_ms, now_ms);
  Run& run = *FindRun(beat.epoch().run());
  run.used_ms = session.heard_ms;
  *reply.mutable_offers() = {run.offers.begin(), run.offers.end()};
  EpochState& state = *epoch->state;
  for (const Finished& finished : beat.finished()) {
    session.is_at_start = false;
    if (state.Finish(beat.slot(), finished, writes)) {
      reply.add_taken(finished.bundle());
    }
  }
  for (const ClientBeat::Bad& bad : beat.bad()) {
    state.ReportBad(beat.slot(), bad.bundle(), bad.attempt(), bad.is_unread(),
                    writes);
  }
  const std::set<uint64_t> complete(beat.complete().begin(),
                                    beat.complete().end());
  state.SetWant(beat.slot(), beat.want(), complete, beat.passed_on());
  if (run.resized && beat.row() > run.resized->row) {
    reply.set_phase(ClientReply::FAILED);
    reply.set_error(absl::StrCat(
        "the consumers of '", run.record.group().name(), "' were resized to ",
        run.resized->lanes, " at round ", run.resized->row, "; this one of ",
        run.record.group().lanes(), " has read round ", beat.row() - 1,
        "\n  Have all of them call resize() after the same step."));
    reply.set_error_code(
        static_cast<int>(absl::StatusCode::kFailedPrecondition));
    return reply;
  }
  if (state.table() != nullptr) {
    epoch->row = beat.row();
    epoch->missed = beat.missed();
    if (beat.has_place()) {
      state.table()->SetPlace(run.record.group().lane(), beat.place(),
                              beat.row());
    }
    FollowOthers(*epoch, writes);
    reply.set_skipped_to(state.skipped_to());
    reply.set_missed_items(state.missed_items());
    reply.set_missed_bundles(state.missed_bundles());
  }
  // Readers ask whether a pass is over: nothing else of it is news to them.
  const uint64_t in_pass = epoch->bundles_in_pass;
  reply.set_low(in_pass > 0 ? state.low() / in_pass * in_pass : state.low());
  if (state.settings().visitation == AT_MOST_ONCE ||
      state.settings().visitation == EACH_WORKER) {
    for (const uint64_t number : beat.open()) {
      if (state.done().Has(number)) reply.add_dropped(number);
    }
  }
  if (const absl::Status status = CheckWorkers(*epoch); !status.ok()) {
    reply.set_phase(ClientReply::FAILED);
    reply.set_error(std::string(status.message()));
    reply.set_error_code(static_cast<int>(status.code()));
    return reply;
  }
  if (!state.quarantined().empty()) {
    const auto& [bundle, why] = *state.quarantined().begin();
    reply.set_phase(ClientReply::FAILED);
    reply.set_error(absl::StrCat("bundle ", bundle, " was given up: ", why));
    reply.set_error_code(static_cast<int>(absl::StatusCode::kAborted));
    return reply;
  }
  // A worker with a pass of its own may be about to say that it is there.
  const bool is_early = epoch->is_recovered && is_in_grace_ &&
                        state.settings().visitation == EACH_WORKER;
  if (!is_early && state.HasNothingFor(beat.slot(), complete)) {
    reply.set_phase(ClientReply::NOTHING_LEFT);
    // It may end now. A worker that comes begins a pass for it once it has
    // asked again.
    if (state.settings().visitation == EACH_WORKER) {
      state.SetWant(beat.slot(), 0, complete, beat.passed_on());
    }
  }
  for (const EpochState::Owned& owned : state.OwnedBy(beat.slot())) {
    const auto worker = workers_.find(owned.worker);
    if (worker == workers_.end()) continue;
    ClientReply::Assigned* assigned = reply.add_assigned();
    assigned->set_bundle(owned.bundle);
    assigned->set_attempt(owned.attempt);
    assigned->set_address(worker->second.address);
    assigned->set_from(owned.from);
    assigned->set_local_socket(worker->second.local_socket);
    assigned->set_frame_port(worker->second.frame_port);
  }
  return reply;
}

absl::StatusOr<ReleaseReply> DispatcherState::Release(
    const ReleaseRequest& request, int64_t now_ms, Writes& writes) {
  ReleaseReply reply;
  reply.set_term(term_);
  Epoch* epoch = FindEpoch(request.epoch());
  if (epoch == nullptr) return reply;
  const auto place = epoch->sessions.find(request.slot());
  if (place == epoch->sessions.end() || place->second.has_left ||
      !IsSame(place->second.opener, request.opener())) {
    return reply;
  }
  Session& session = place->second;
  session.heard_ms = now_ms;
  session.has_left = true;
  EpochState& state = *epoch->state;
  for (const Cursor& cursor : request.open()) {
    state.Release(request.slot(), cursor, writes);
  }
  state.ReleaseRest(request.slot(), BundleSet(request.done()), writes);
  state.SetGone(request.slot());
  const RunRecord run = FindRun(request.epoch().run())->record;
  if (run.is_brief()) {
    CloseRun(run.job(), "read", writes);
    return reply;
  }
  WriteEpoch(*epoch, writes);
  return reply;
}

void DispatcherState::Tick(int64_t now_ms, Writes& writes) {
  if (is_in_grace_ && now_ms >= grace_ends_ms_) {
    is_in_grace_ = false;
    for (auto& [job, run] : runs_) {
      for (auto& [number, epoch] : run.epochs) {
        epoch.state->DropRecovered(writes);
      }
    }
  }
  std::vector<uint64_t> lost;
  for (const auto& [id, worker] : workers_) {
    if (now_ms - worker.heard_ms >= settings_.lease_ms) lost.push_back(id);
  }
  for (const uint64_t id : lost) LoseWorker(id, writes);
  FollowAll(writes);
  std::vector<std::string> over;
  std::map<uint64_t, int64_t> used_ms;  // members of rounds, by their founder
  for (auto& [job, run] : runs_) {
    bool has_consumer = false;
    for (auto& [number, epoch] : run.epochs) {
      if (!epoch.restoring.empty()) ForgetStates(epoch, now_ms, writes);
      for (const auto& [slot, session] : epoch.sessions) {
        if (IsLive(session, now_ms)) {
          has_consumer = true;
        } else {
          epoch.state->SetGone(slot);
        }
      }
    }
    if (has_consumer) run.used_ms = now_ms;
    if (run.record.is_brief() && !has_consumer) over.push_back(job);
    if (run.record.group().lanes() > 0) {
      int64_t& used = used_ms[run.record.group().founder()];
      used = std::max(used, run.used_ms);
    }
  }
  for (const auto& [job, run] : runs_) {
    // Who comes to rounds later than others finds them, if any is in use.
    const auto together = used_ms.find(run.record.group().founder());
    const int64_t used =
        together == used_ms.end() ? run.used_ms : together->second;
    if (!run.record.is_brief() && now_ms - used >= settings_.run_timeout_ms) {
      over.push_back(job);
    }
  }
  for (const std::string& job : over) CloseRun(job, "unread", writes);
  std::erase_if(tables_,
                [](const auto& each) { return each.second.members().empty(); });
  const std::set<EpochName> to_fold = index_.to_fold;
  for (const EpochName& name : to_fold) {
    const Epoch& epoch = FindRun(name.run)->epochs.at(name.epoch);
    if (epoch.state->Fold(kMostFolded, writes)) WriteEpoch(epoch, writes);
  }
  if (now_ms >= drop_unused_ms_) DropUnused(now_ms, writes);
}

}  // namespace penstock::service
