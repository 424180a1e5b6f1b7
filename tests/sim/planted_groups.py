"""Planted bugs in what groups share, in rounds, and in one worker's bundles."""

from __future__ import annotations

from planted import SERVICE, Mutant

# Reads in rounds are put together in the engine, which only real processes run.
_IN_STEP = "penstock:tests/cluster/test_coordinated.py"
_GROUPS = "service_dispatcher_test:GroupsTest"
_RESIZED = "service_dispatcher_test:ResizedTest"
_BY_WORKER = "service_dispatcher_test:EpochByWorkerTest"


def mutants() -> list[Mutant]:
    return [
        *_tables(),
        *_rejoining(),
        *_resizing(),
        *_skipping(),
        *_by_worker(),
        *_lanes(),
    ]


def _tables() -> list[Mutant]:
    groups = f"{SERVICE}/dispatcher/dispatcher_groups.cc"
    shared = f"{SERVICE}/dispatcher/epoch_shared.cc"
    table = f"{SERVICE}/dispatcher/shared_table.cc"
    return [
        Mutant(
            "members have seeds of their own",
            groups,
            "  run.record.set_seed(other->record.seed());\n",
            "",
        ),
        Mutant(
            "all bundles are one production",
            groups,
            "  sharing.set_production(Combine(hash, given.bundle) | 1);",
            "  sharing.set_production(hash | 1);",
        ),
        Mutant(
            "what another has begun is computed again",
            shared,
            "  if (!known || *known == worker) return false;",
            "  return false;",
            f"{_GROUPS}.WhatOneHasBegunIsNotBegunElsewhere",
        ),
        Mutant(
            "a table names workers that have gone",
            table,
            "  return std::erase_if(workers_, [&](const auto& entry) {\n"
            "           return entry.second == worker;\n"
            "         }) > 0;",
            "  return false;",
        ),
        Mutant(
            "what is followed has no owner",
            shared,
            "    Own(number, bundle, *slot, writes);\n"
            "    lend(number, bundle, *worker);",
            "    bundle.slot = slot;\n    lend(number, bundle, *worker);",
        ),
    ]


def _rejoining() -> list[Mutant]:
    groups = f"{SERVICE}/dispatcher/dispatcher_groups.cc"
    state = f"{SERVICE}/dispatcher/dispatcher_state.cc"
    table = f"{SERVICE}/dispatcher/shared_table.cc"
    places = f"{SERVICE}/protocol/checkpoint.cc"
    return [
        Mutant(
            "who comes back counts its rounds from 0",
            groups,
            "  made.first_row = row;",
            "",
        ),
        Mutant(
            "the round of who came back is forgotten by a restart",
            state,
            "  record.set_first_row(epoch.first_row);",
            "",
        ),
        Mutant(
            "who comes back begins its bundles again",
            places,
            "    progress.open[cursor.bundle()] = cursor.position();",
            "",
        ),
        Mutant(
            "who comes back has what is done once more",
            places,
            "  progress.done.AddAll(BundleSet(state.done()));",
            "",
        ),
        Mutant(
            "who comes back forgets what the others inherited",
            places,
            "  Progress progress = Inherited(state);",
            "  Progress progress;",
        ),
        Mutant(
            "a round that was asked for may have gone by",
            table,
            "    if (place.row > row) continue;\n",
            "",
        ),
        Mutant(
            "the others' places are not waited for",
            groups,
            "  if (table == nullptr || (epoch.is_recovered && is_in_grace_)) {",
            "  if (table == nullptr) {",
            f"{_GROUPS}.WhereTheOthersAreIsWaitedFor",
        ),
    ]


def _resizing() -> list[Mutant]:
    groups = f"{SERVICE}/dispatcher/dispatcher_groups.cc"
    opening = f"{SERVICE}/dispatcher/dispatcher_open.cc"
    state = f"{SERVICE}/dispatcher/dispatcher_state.cc"
    places = f"{SERVICE}/protocol/checkpoint.cc"
    return [
        Mutant(
            "resized: what was begun goes on in rounds of the new size",
            groups,
            "    *sharing.mutable_split() = *split;",
            "",
        ),
        Mutant(
            "resized: what was split is split again",
            places,
            "    if (before != state.splits().end()) {",
            "    if (false) {",
        ),
        Mutant(
            "resized: what had no round is split",
            places,
            "    if (position == 0) continue;\n",
            "",
            "service_protocol_test:SplitsOf.AreOfBundlesThatWereBegun",
        ),
        Mutant(
            "resized: bundles begin again",
            groups,
            "      BeginGeneration(run, pass, 1, ProgressOf(from), "
            "from.manifest(), writes);",
            "      BeginGeneration(run, pass, 1, Progress(), "
            "from.manifest(), writes);",
        ),
        Mutant(
            "resized: rounds are counted from 0",
            groups,
            "  made.first_row = from.row();\n",
            "",
        ),
        Mutant(
            "resized: who is new does not hear what was split",
            groups,
            "  *group.mutable_splits() = its.splits();\n",
            "",
        ),
        Mutant(
            "resized: who is new begins at the beginning",
            groups,
            "    *group.mutable_resized_from() = its.resized_from();",
            "",
        ),
        Mutant(
            "resized: a restart brings back those of before",
            state,
            "  MarkResized();\n",
            "",
            f"{_RESIZED}.AfterARestartTheyMayBecomeAsManyAsBefore",
        ),
        Mutant(
            "resized: those of before do not stand back",
            groups,
            "    MarkResized();\n  }\n  // Where it was",
            "  }\n  // Where it was",
        ),
        Mutant(
            "resized: nobody goes back to a checkpoint of before",
            opening,
            "  LeaveBranch(request, writes);\n",
            "",
            f"{_RESIZED}.ACheckpointOfBeforeIsGoneBackTo",
        ),
        Mutant(
            "resized: a state is of any rounds of that number",
            groups,
            "                ResizedAt(run, pass) != at)) {",
            "                false)) {",
            f"{_RESIZED}.AStateIsOfTheRoundsThatItWasSavedIn",
        ),
        Mutant(
            "resized: the next epoch is split, too",
            groups,
            "  if (split != splits.end() && IsResizedIn(run, epoch.pass)) {",
            "  if (split != splits.end()) {",
            f"{_RESIZED}.TheNextEpochHasBundlesThatNobodyHasBegun",
        ),
        Mutant(
            "who comes to rounds late is in others",
            groups,
            "  if (other == nullptr && is_new) "
            "other = EndedMember(request, founder);",
            "",
        ),
    ]


def _skipping() -> list[Mutant]:
    client = f"{SERVICE}/client/client_state.cc"
    shared = f"{SERVICE}/dispatcher/epoch_shared.cc"
    return [
        Mutant(
            "frames that have gone are waited for",
            client,
            "    if (!settings_.may_skip) {",
            "    if (true) {",
        ),
        Mutant(
            "what is left out does not count as had",
            client,
            "    bundle.given += gap;",
            "",
        ),
        Mutant(
            "what is left out is told twice",
            client,
            "missed_ += gap;",
            "missed_ += 2 * gap;",
        ),
        Mutant(
            "what is gone is told at its full size and once more",
            shared,
            "    missed_items_ += table_->ItemsIn(number, number + 1);",
            "    missed_items_ += 2 * table_->ItemsIn(number, number + 1);",
        ),
        Mutant(
            "what is skipped is not done",
            shared,
            "    done_.AddRun(number, end);\n    folded_.AddRun(number, end);",
            "    folded_.AddRun(number, end);",
        ),
    ]


def _by_worker() -> list[Mutant]:
    passes = f"{SERVICE}/dispatcher/epoch_by_worker.cc"
    return [
        Mutant(
            "static: a worker has its neighbour's share",
            passes,
            "    return GrantOne(*place, worker, attempt, writes);",
            "    return GrantOne((*place + 1) % *count_, worker, attempt, "
            "writes);",
        ),
        Mutant(
            "static: shares of one that has left are nobody's",
            passes,
            "  return unowned_.contains(number) || left_.contains(its);",
            "  return false;",
            f"{_BY_WORKER}.WhoHasLeftWillReadNothing",
        ),
        Mutant(
            "static: a share that was not begun is over",
            passes,
            "      if (is_to_come(number)) return false;",
            "",
        ),
        Mutant(
            "each worker: a restart forgets whose a pass is",
            passes,
            "  if (worker != 0) passes_[worker].insert(number);",
            "",
        ),
        Mutant(
            "each worker: the rest of a lost pass is waited for",
            passes,
            "    if (it == begun_.end() || it->second.worker == 0) "
            "Drop(number, writes);",
            "    if (it == begun_.end()) Drop(number, writes);",
        ),
        Mutant(
            "each worker: it is over before the first has come",
            passes,
            "  if (passes_.empty()) return false;",
            "  if (passes_.empty()) return true;",
            f"{_BY_WORKER}.EachWorkerHasAPass",
        ),
        Mutant(
            "each worker: a pass that was not begun is over",
            passes,
            "    if (std::ranges::any_of(numbers, is_to_come)) return false;",
            "",
            f"{_BY_WORKER}.EachWorkerHasAPass",
        ),
    ]


def _lanes() -> list[Mutant]:
    rounds = f"{SERVICE}/client/rounds.cc"
    received = f"{SERVICE}/client/pass_service.cc"
    return [
        Mutant(
            "all have the first of what bundles leave over",
            rounds,
            "        own = Marked(Slice(chunk, left, 1), 1);",
            "        own = Marked(Slice(chunk, 0, 1), 1);",
            _IN_STEP,
        ),
        Mutant(
            "a last round is given that is not whole",
            rounds,
            "  if (round.rows >= lanes() || pads) {",
            "  if (round.rows > options_.distribution.consumer() || pads) {",
            _IN_STEP,
        ),
        Mutant(
            "rows before the round that was asked for are given",
            received,
            "    first_row_ = request.group().row();",
            "",
            _IN_STEP,
        ),
        Mutant(
            "any consumer's state will do",
            rounds,
            "    if (state.job() == job) return "
            "std::vector<ConsumerState>{state};",
            "    return std::vector<ConsumerState>{state};",
            _IN_STEP,
        ),
    ]
