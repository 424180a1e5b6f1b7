"""Bugs that the simulator must find, as changes of the service's sources."""

from __future__ import annotations

from dataclasses import dataclass

SERVICE = "src/penstock/service"
_DISPATCHER = "service_dispatcher_test"
_CLIENT = "service_client_test"


@dataclass(frozen=True)
class Mutant:
    name: str
    file: str
    before: str
    after: str
    # What finds it, as `TARGET:TEST`: a gtest of that binary, or a file of
    # pytest's for `penstock`. Nothing: a seed of the simulator.
    test: str = ""


def mutants() -> list[Mutant]:
    """Of what is there for one reader, or several of one job."""
    dispatcher = f"{SERVICE}/dispatcher/dispatcher.cc"
    state = f"{SERVICE}/dispatcher/dispatcher_state.cc"
    grants = f"{SERVICE}/dispatcher/dispatcher_workers.cc"
    epoch = f"{SERVICE}/dispatcher/epoch_state.cc"
    client = f"{SERVICE}/client/client_state.cc"
    client_header = f"{SERVICE}/client/client_state.h"
    journal = f"{SERVICE}/client/row_log.cc"
    opening = f"{SERVICE}/dispatcher/dispatcher_open.cc"
    records = f"{SERVICE}/dispatcher/epoch_records.cc"
    worker = f"{SERVICE}/worker/worker_state.cc"
    merge = f"{SERVICE}/protocol/checkpoint.cc"
    runs = f"{SERVICE}/protocol/bundle_set.cc"
    terms = f"{SERVICE}/store/meta_store.cc"
    return [
        Mutant(
            "replies before the binding is durable",
            dispatcher,
            "  if (writes.durable.empty() && pending_ == 0 && !is_full_ && "
            "!has_failed_ &&\n      !is_term_checked) {\n",
            "  if (true) {\n"
            "    commits_.Commit(writes.durable, term_,\n"
            "                    [](const absl::Status&) {});\n",
        ),
        Mutant(
            "replies of a full disk rest on nothing",
            dispatcher,
            "if (status.ok() && is_full_) result",
            "if (false) result",
        ),
        Mutant(
            "what a full disk refused is forgotten",
            dispatcher,
            "unwritten_.insert(unwritten_.end(), batch.begin(), batch.end());",
            "",
        ),
        Mutant(
            "who was replaced refuses",
            dispatcher,
            "  const bool is_refused = !reply.ok();",
            "  const bool is_refused = false;",
            f"{_DISPATCHER}:DispatcherTest.WhoHasBeenReplacedRefusesNobody",
        ),
        Mutant(
            "at most once, what nobody had is lost",
            epoch,
            "  if (settings_.visitation == AT_MOST_ONCE && "
            "loss == Loss::kUnread) return;",
            "",
        ),
        Mutant(
            "a zombie may write",
            terms,
            "absl::Status CheckTerm(uint64_t term, uint64_t current) {",
            "absl::Status CheckTerm(uint64_t term, uint64_t current) {\n"
            "  if (term <= current) return absl::OkStatus();",
        ),
        Mutant(
            "bindings are not written",
            epoch,
            "  record.set_worker(bundle.maker);\n"
            "  writes.durable.push_back({KeyOf(kBindKey, number), "
            "Bytes(record)});",
            "",
        ),
        Mutant(
            "bindings are lazy",
            epoch,
            "  writes.durable.push_back({KeyOf(kBindKey, number), "
            "Bytes(record)});",
            "  writes.lazy.push_back({KeyOf(kBindKey, number), "
            "Bytes(record)});",
        ),
        Mutant(
            "a binding is freed when its worker is lost",
            epoch,
            "  if (loss == Loss::kGivenBack || !was_started) return;",
            "  owned_[*found.slot].erase(bundle);\n"
            "  found.slot.reset();\n"
            "  unowned_.insert(bundle);\n"
            "  if (loss == Loss::kGivenBack || !was_started) return;",
        ),
        Mutant(
            "a recovered binding has no owner",
            records,
            "  if (bind.has_slot()) {",
            "  if (false) {",
        ),
        Mutant(
            "a recovered binding begins at 0",
            records,
            "  found.from = bind.from();",
            "  found.from = 0;",
        ),
        Mutant(
            "a bundle that was begun is granted as new",
            epoch,
            "while (done_.Has(number) || begun_.contains(number) ||",
            "while (done_.Has(number) ||",
        ),
        Mutant(
            "a done bundle is granted again",
            epoch,
            "while (done_.Has(number) || begun_.contains(number) ||",
            "while (begun_.contains(number) ||",
        ),
        Mutant(
            "a release forgets its position",
            epoch,
            "  bundle.from = cursor.position();",
            "",
        ),
        Mutant(
            "a release is not written",
            epoch,
            "  writes.durable.push_back({KeyOf(kBindKey, cursor.bundle()), "
            "Bytes(record)});",
            "",
        ),
        Mutant(
            "the rest is not released",
            state,
            "  state.ReleaseRest(request.slot(), BundleSet(request.done()), "
            "writes);",
            "",
        ),
        Mutant(
            "who leaves says only what was not taken",
            client,
            "  *release.mutable_done() = finished_.ToRuns();",
            "  for (const auto& [number, finished] : to_report_) {\n"
            "    Bundles* run = release.add_done();\n"
            "    run->set_begin(number);\n"
            "    run->set_end(number + 1);\n  }",
        ),
        Mutant(
            "released bundles are nobody's",
            epoch,
            "  if (std::ranges::any_of(unowned_, may_have)) return false;",
            "",
        ),
        Mutant(
            "the end comes before the last bundle",
            epoch,
            "number < *count_;) {\n    if (done_.Has(number)) {",
            "number + 1 < *count_;) {\n    if (done_.Has(number)) {",
        ),
        Mutant(
            "an owner's bundles do not hold up its end",
            epoch,
            "      !std::ranges::includes(complete, owned->second)) {\n"
            "    return false;",
            "      false) {\n    return false;",
        ),
        Mutant(
            "in order, any slot gets any bundle",
            epoch,
            "  if (settings_.is_ordered) {",
            "  if (false) {",
        ),
        Mutant(
            "an unreadable bundle stays where it is",
            epoch,
            "  Lose(found.worker, bundle, attempt,\n"
            "       is_unread ? Loss::kUnread : Loss::kUnreadable, writes);",
            "",
        ),
        Mutant(
            "inherited cursors are not kept by a generation",
            epoch,
            "    begun_[number].from = position;",
            "    begun_[number].from = 0;",
        ),
        Mutant(
            "any generation's beats count",
            state,
            "  return IsSame(it->second.state->id(), id) ? &it->second : "
            "nullptr;",
            "  return &it->second;",
        ),
        Mutant(
            "a lost grant is not sent again",
            grants,
            "    if (holds.contains({name.run, given.bundle, "
            "given.attempt})) return;",
            "    if (true) return;",
        ),
        Mutant(
            "the maker of a manifest is waited for for ever",
            grants,
            "    if (epoch.maker == id) SetMaker(epoch, 0);",
            "",
        ),
        Mutant(
            "a restore does not wait for all states",
            opening,
            "  if (states.size() < first.slots()) {",
            "  if (false) {",
        ),
        Mutant(
            "a restore that is asked for again is another one",
            opening,
            "    if (has_place && IsRestoredFrom(epoch->restored, "
            "request)) return true;",
            "",
        ),
        Mutant(
            "what a generation was restored from is forgotten",
            state,
            "    made.restored.insert(epoch.restored().begin(), "
            "epoch.restored().end());",
            "",
        ),
        Mutant(
            "an opening that comes late wins",
            opening,
            "        session->second.opener.request() > "
            "request.opener().request()) {",
            "        false) {",
        ),
        Mutant(
            "a trainer that was killed takes another's place",
            opening,
            "      holder != 0 && holder != request.replaces()) {",
            "      false) {",
        ),
        Mutant(
            "generations are lazy",
            state,
            "  writes.durable.push_back({EpochKey(epoch.state->id()), "
            "Bytes(record)});",
            "  writes.lazy.push_back({EpochKey(epoch.state->id()), "
            "Bytes(record)});",
        ),
        Mutant(
            "a checkpoint forgets what its generation began with",
            merge,
            "  Progress all = Inherited(first);",
            "  Progress all;",
        ),
        Mutant(
            "merged states take the nearer position",
            merge,
            "      uint64_t& position = all.open[cursor.bundle()];",
            "      if (all.open.contains(cursor.bundle())) continue;\n"
            "      uint64_t& position = all.open[cursor.bundle()];",
            "service_protocol_test:Merge.TheFartherPositionCounts",
        ),
        Mutant(
            "runs that overlap lose their end",
            runs,
            "    end = std::max(end, it->second);",
            "",
        ),
        Mutant(
            "overlapping frames are not sliced",
            client,
            "    taken.skip = bundle.received - head.position;\n"
            "    taken.take = end - bundle.received;",
            "    taken.skip = 0;\n    taken.take = head.items;",
        ),
        Mutant(
            "what was received counts as returned",
            client,
            "    bundle.attempt = 0;\n  }",
            "    bundle.attempt = 0;\n"
            "    Finished& early = to_report_[head.bundle];\n"
            "    early.set_bundle(head.bundle);\n"
            "    early.set_items(end);\n  }",
        ),
        Mutant(
            "what was given counts as returned when leaving",
            client,
            "    cursor->set_position(bundle.delivered);",
            "    cursor->set_position(bundle.given);",
        ),
        Mutant(
            "a saved state forgets what was inherited",
            client,
            "  SetInherited(inherited_, state);",
            "",
        ),
        Mutant(
            "another engine forgets the cursors",
            client,
            "    bundle.received = bundle.taken = cursor.position();\n"
            "    bundle.given = bundle.delivered = cursor.position();",
            "    bundle.received = bundle.taken = 0;\n"
            "    bundle.given = bundle.delivered = 0;",
        ),
        Mutant(
            "another engine forgets what is done",
            client,
            "  given_ = BundleSet(resumed->done());",
            "",
        ),
        Mutant(
            "a bundle begins at 0 whatever the generation began with",
            client,
            "    it->second.received = it->second.taken = from;\n"
            "    it->second.given = it->second.delivered = from;",
            "",
        ),
        Mutant(
            "in order, inherited bundles are waited for",
            client,
            "    if (given_.Has(number) || done_.Has(number)) return true;",
            "    if (given_.Has(number)) return true;",
        ),
        Mutant(
            "a forgotten end is not said again",
            client,
            "      to_report_[number].set_bundle(number);",
            "",
        ),
        Mutant(
            "a manifest is reported once",
            worker,
            "  for (const auto& [attempt, made] : made_) *beat.add_made() = "
            "made;",
            "",
        ),
        Mutant(
            "kept bundles are anybody's after a restore",
            opening,
            "        made.state->Keep(state.slot(), bundle, writes);",
            "",
        ),
        Mutant(
            "who had nothing since a restore may not go on",
            opening,
            "         IsRestoredFrom(it->second.restored, request)))) {",
            "         false))) {",
            f"{_DISPATCHER}:RestoreTest.WhoHadNothingSinceGoesOn",
        ),
        Mutant(
            "a checkpoint of two generations is refused",
            opening,
            "      SetToNow(*epoch, waiting.state);",
            "",
        ),
        Mutant(
            "a restore takes its place among another number",
            opening,
            "        run.record.slots() == request.slots() && ",
            "        ",
        ),
        Mutant(
            "a place that somebody has begun to read is free",
            opening,
            "epoch->state->is_untouched_by(request.slot()) ||",
            "true ||",
        ),
        Mutant(
            "what a reader has as a whole is not its end",
            state,
            "  if (!is_early && state.HasNothingFor(beat.slot(), complete)) {",
            "  if (!is_early && state.HasNothingFor(beat.slot(), {})) {",
        ),
        Mutant(
            "what was here as a whole is so for ever",
            epoch,
            "  seat.complete = complete;",
            "  seat.complete.insert(complete.begin(), complete.end());",
        ),
        Mutant(
            "rows that are held back keep others from coming",
            epoch,
            "fair + seat.passed_on",
            "fair",
        ),
        Mutant(
            "folded bundles are forgotten",
            records,
            "  done_.AddAll(folded);",
            "",
        ),
        Mutant(
            "what was folded is not written",
            state,
            "    if (epoch.state->Fold(kMostFolded, writes)) "
            "WriteEpoch(epoch, writes);",
            "    epoch.state->Fold(kMostFolded, writes);",
        ),
        Mutant(
            "a journal does not ask for its bundles",
            journal,
            "    state.add_kept(bundle);",
            "",
        ),
        Mutant(
            "a journal asks for its bundles from the beginning",
            journal,
            "    cursor->set_position(position);\n"
            "  }\n"
            "  return state;\n"
            "}\n"
            "\n"
            "Journal",
            "    cursor->set_position(0);\n  }\n  return state;\n}\n\nJournal",
            f"{_CLIENT}:RowLogTest.WantsABundleFromWhereItWasHad",
        ),
        Mutant(
            "rows of a group are cut off one by one",
            journal,
            "      if (entry.is_stitched || begin_ >= row) return;",
            "      if (begin_ >= row) return;",
        ),
        Mutant(
            "a group that more rows come of is whole",
            journal,
            "    out->set_is_open(!entry.is_whole);",
            "",
            f"{_CLIENT}:RowLogTest.AGroupThatIsOpenStaysWhole",
        ),
        Mutant(
            "a journal's position is one too far",
            journal,
            "  open_[part.bundle] = part.position + part.items;",
            "  open_[part.bundle] = part.position + part.items + 1;",
        ),
        Mutant(
            "a bundle without items is never done",
            journal,
            "  if (from >= finished.items()) open_.try_emplace(bundle, from);",
            "",
        ),
        Mutant(
            "at most once, lost rows are waited for",
            client,
            "    if (!bundles_.contains(number) && !given_.Has(number)) {\n"
            "      beat.add_open(number);",
            "    if (false) {\n      beat.add_open(number);",
        ),
        Mutant(
            "in order, a full reader does not ask for the next",
            client,
            "  if (is_full_ && !waits_for_next) want = 0;",
            "  if (is_full_) want = 0;",
            f"{_CLIENT}:ClientStateTest.InOrderAFullReaderAsksForTheNext",
        ),
        Mutant(
            "rows that wait for others are given",
            client_header,
            "    return bundle.items && bundle.taken >= *bundle.items;",
            "    return bundle.items && bundle.received >= *bundle.items;",
        ),
        Mutant(
            "a frame is taken twice",
            client,
            "    bundle.received = bundle.end = end;",
            "    bundle.end = end;",
        ),
        Mutant(
            "who drains gives back what is read",
            worker,
            "    if (!held.is_started) waiting.push_back(held.lease);",
            "    waiting.push_back(held.lease);",
        ),
        Mutant(
            "what a drained worker gives back is lost",
            grants,
            "                       EpochState::Loss::kGivenBack, writes);",
            "                       EpochState::Loss::kCrash, writes);",
        ),
        Mutant(
            "a worker that drains has everything taken away",
            grants,
            "  reply.set_should_drain(worker.should_drain);",
            "  reply.set_should_drain(worker.should_drain);\n"
            "  if (beat.is_draining()) LoseWorker(beat.worker(), writes);",
        ),
        Mutant(
            "a second lease of a bundle is left out",
            worker,
            "      if (it->second.lease.attempt() >= lease.attempt()) "
            "continue;",
            "      continue;",
            "service_worker_test:WorkerStateTest.TheSameLeaseTwiceIsOne",
        ),
    ]
