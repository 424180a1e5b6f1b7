#!/usr/bin/env python3
"""Plants one bug at a time into the service, and has the simulator find it.

    tests/sim/mutants.py                 all of them
    tests/sim/mutants.py --only binding  those whose names have this

A bug that no seed finds means that the simulator does not look there. Needs a
built tree (tools/build release sim).
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build/release"
SERVICE = "src/penstock/service"


@dataclass(frozen=True)
class Mutant:
    name: str
    file: str
    before: str
    after: str


def _mutants() -> list[Mutant]:
    dispatcher = f"{SERVICE}/dispatcher/dispatcher.cc"
    state = f"{SERVICE}/dispatcher/dispatcher_state.cc"
    grants = f"{SERVICE}/dispatcher/dispatcher_workers.cc"
    epoch = f"{SERVICE}/dispatcher/epoch_state.cc"
    client = f"{SERVICE}/client/client_state.cc"
    worker = f"{SERVICE}/worker/worker_state.cc"
    merge = f"{SERVICE}/protocol/checkpoint.cc"
    runs = f"{SERVICE}/protocol/bundle_set.cc"
    terms = f"{SERVICE}/store/meta_store.cc"
    return [
        Mutant(
            "replies before the binding is durable",
            dispatcher,
            "writes.durable.empty() && pending_ == 0 && !is_full_ && "
            "!has_failed_",
            "true",
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
            "a zombie may write",
            terms,
            "absl::Status CheckTerm(uint64_t term, uint64_t current) {",
            "absl::Status CheckTerm(uint64_t term, uint64_t current) {\n"
            "  if (term <= current) return absl::OkStatus();",
        ),
        Mutant(
            "bindings are not written",
            epoch,
            "  record.set_slot(slot);\n  record.set_from(bundle.from);\n"
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
            "  const bool was_started = found.is_started;\n"
            "  Unlend(bundle, found);",
            "  const bool was_started = found.is_started;\n"
            "  Unlend(bundle, found);\n"
            "  owned_[*found.slot].erase(bundle);\n"
            "  found.slot.reset();\n  unowned_.insert(bundle);",
        ),
        Mutant(
            "a recovered binding has no owner",
            epoch,
            "  if (bind.has_slot()) {",
            "  if (false) {",
        ),
        Mutant(
            "a recovered binding begins at 0",
            epoch,
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
            "  if (owned != owned_.end() && !owned->second.empty()) "
            "return false;",
            "",
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
            "  Lose(found.worker, bundle, attempt, Loss::kUnreadable, writes);",
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
            "    return IsSame(it->second.state->id(), id) ? &it->second : "
            "nullptr;",
            "    return &it->second;",
        ),
        Mutant(
            "a lost grant is not sent again",
            grants,
            "        if (holds.contains({run.record.run(), given.bundle, "
            "given.attempt})) {",
            "        if (true) {",
        ),
        Mutant(
            "the maker of a manifest is waited for for ever",
            state,
            "        if (epoch.maker == id) epoch.maker = 0;",
            "",
        ),
        Mutant(
            "a restore does not wait for all states",
            state,
            "  if (states.size() < first.slots()) {",
            "  if (false) {",
        ),
        Mutant(
            "a restore that is asked for again is another one",
            state,
            "    if (has_place && std::ranges::all_of(request.states(), "
            "[&](const auto& s) {",
            "    if (false && std::ranges::all_of(request.states(), "
            "[&](const auto& s) {",
        ),
        Mutant(
            "what a generation was restored from is forgotten",
            state,
            "      made.restored.insert(epoch.restored().begin(), "
            "epoch.restored().end());",
            "",
        ),
        Mutant(
            "an opening that comes late wins",
            state,
            "        session->second.opener.request() > "
            "request.opener().request()) {",
            "        false) {",
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
            "a saved state has what was received",
            client,
            "    cursor->set_position(bundle.given);",
            "    cursor->set_position(bundle.received);",
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
            "    bundle.received = bundle.given = bundle.delivered = "
            "cursor.position();",
            "    bundle.received = bundle.given = bundle.delivered = 0;",
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
            "    it->second.received = it->second.given = "
            "it->second.delivered = from;",
            "",
        ),
        Mutant(
            "in order, inherited bundles are waited for",
            client,
            "  while (given_.Has(number) || done_.Has(number)) {",
            "  while (given_.Has(number)) {",
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
    ]


def _command(file: Path) -> list[str]:
    entries = json.loads((BUILD / "compile_commands.json").read_text())
    for entry in entries:
        if Path(entry["file"]).resolve() == file.resolve():
            return shlex.split(entry["command"])
    raise SystemExit(f"mutants: no command compiles {file}")


def _link(mutated: Path, out: Path) -> None:
    """The simulator, with one object in place of the library's."""
    text = subprocess.run(
        ["ninja", "-C", str(BUILD), "-t", "commands", "sim"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    last = text.splitlines()[-1]
    words = shlex.split(last.removeprefix(": && ").removesuffix(" && :"))
    place = words.index("-o")
    words[place + 1] = str(out)
    words.insert(place, str(mutated))
    subprocess.run(words, cwd=BUILD, check=True)


def _found(mutant: Mutant, seeds: int, folder: Path) -> str | None:
    """The first seed that goes wrong, as the simulator tells it."""
    source = ROOT / mutant.file
    text = source.read_text()
    if text.count(mutant.before) < 1:
        raise SystemExit(
            f"mutants: '{mutant.name}' no longer fits {mutant.file}"
        )
    name = "".join(c if c.isalnum() else "_" for c in mutant.name)
    place = folder / name
    place.mkdir()
    mutated = place / source.name
    mutated.write_text(text.replace(mutant.before, mutant.after, 1))
    command = _command(source)
    command[command.index("-o") + 1] = str(place / "mutant.o")
    command[command.index("-c") + 1] = str(mutated)
    command.append("-w")
    subprocess.run(command, cwd=BUILD, check=True)
    _link(place / "mutant.o", place / "sim")
    made = subprocess.run(
        [str(place / "sim"), "--first", "1", str(seeds)],
        capture_output=True,
        text=True,
        timeout=900,
    )
    if made.returncode == 0:
        return None
    lines = made.stdout.strip().splitlines()
    return lines[-1].strip() if lines else f"ended by {made.returncode}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="a part of the name")
    parser.add_argument("--seeds", type=int, default=10_000)
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    chosen = [m for m in _mutants() if arguments.only in m.name]
    missed = 0
    with (
        tempfile.TemporaryDirectory() as folder,
        ThreadPoolExecutor(arguments.jobs) as pool,
    ):
        found = pool.map(
            lambda m: _found(m, arguments.seeds, Path(folder)), chosen
        )
        pairs = zip(chosen, found, strict=True)
        for number, (mutant, how) in enumerate(pairs, 1):
            missed += how is None
            print(
                f"[{number}/{len(chosen)}] {mutant.name}: {how or 'NOT FOUND'}",
                flush=True,
            )
    print(f"mutants: {len(chosen) - missed} of {len(chosen)} found")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
