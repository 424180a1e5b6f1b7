#!/usr/bin/env python3
"""Runs the benchmarks: ours and the peer's in turns, best of each.

Prints one table; writes every run and a plot to bench/results/. See
bench/README.md for how to read them.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import plot
import report
from report import Result
from workload import (
    BENCH,
    NAMES,
    PEER_PYTHON,
    ROOT,
    AbsentError,
    Compared,
    Cost,
    load,
)

RESULTS = BENCH / "results"
SMOKE_SECONDS = 0.15
EVEN_PARTS = 8


class FailedError(Exception):
    """A side answered with an error."""


class Worker:
    """A worker process, talked to by JSON lines."""

    def __init__(
        self, name: str, side: str, python: Path, variables: dict[str, str]
    ) -> None:
        if not python.exists():
            raise AbsentError("no .venv-frameworks: `make bench` makes it")
        # What libraries say on the way is shown only if something fails.
        self._said = tempfile.TemporaryFile("w+")  # noqa: SIM115
        self._process = subprocess.Popen(
            [python, BENCH / "worker.py", name, side],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            text=True,
            env={**os.environ, **variables},
        )

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.close()
        self._process.stdout.close()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._said.close()

    def ask(self, what: str, **arguments: Any) -> dict[str, Any]:
        assert self._process.stdin and self._process.stdout
        try:
            print(
                json.dumps({"do": what, **arguments}),
                file=self._process.stdin,
                flush=True,
            )
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            self._said.seek(0)
            raise FailedError(
                f"the worker ended during {what}:\n{self._said.read()}"
            )
        answer: dict[str, Any] = json.loads(line)
        if "absent" in answer:
            raise AbsentError(answer["absent"])
        if "error" in answer:
            raise FailedError(answer["error"])
        return answer

    def rate(self, variant: str, seconds: float) -> float:
        answer = self.ask("run", variant=variant, seconds=seconds)
        return answer["elements"] / answer["seconds"]


class Progress:
    """One line that changes on a terminal; nothing elsewhere."""

    def __init__(self) -> None:
        self._is_shown = sys.stderr.isatty()

    def show(self, text: str) -> None:
        if self._is_shown:
            print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)

    def done(self, text: str) -> None:
        self.show("")
        print(text, flush=True)


class Runner:
    def __init__(self, seconds: float, turns: int, is_smoke: bool) -> None:
        self._seconds = seconds
        self._turns = turns
        self._is_smoke = is_smoke
        self._progress = Progress()
        self.versions: dict[str, dict[str, str]] = {}

    def run(self, name: str) -> Result:
        row = load(name).ROW
        result = Result(name, row, load=os.getloadavg()[0])
        self._progress.show(f"{name}: starting")
        try:
            if isinstance(row, Cost):
                self._run_cost(result, row)
            else:
                self._run_compared(result, row)
        except (FailedError, AbsentError) as error:
            result.ours.clear()
            result.note = str(error)
            result.is_absent = isinstance(error, AbsentError)
        if self._is_smoke:
            said = "ok" if result.ours else "failed"
            if result.is_absent:
                said = f"left out: {result.note}"
        else:
            said = report.summary(result)
        self._progress.done(f"{name}: {said}")
        return result

    def _run_cost(self, result: Result, row: Cost) -> None:
        for turn in range(self._turns):
            self._progress.show(f"{result.name}: {turn + 1} of {self._turns}")
            # Some can be measured only once in a process.
            with self._worker(result.name, "ours", result.row) as worker:
                self._prepare(worker, "ours")
                answer = worker.ask("measure", seconds=self._seconds)
                result.ours.append(answer["value"])
            if answer["value"] == result.best:
                result.note = answer["note"]
        if not row.has_peer or self._is_smoke:
            return
        self._progress.show(f"{result.name}: peer")
        try:
            with self._worker(result.name, "peer", row) as worker:
                self._prepare(worker, "peer")
                answer = worker.ask("measure", seconds=self._seconds)
                result.peer.append(answer["value"])
                said = answer["note"]
        except (FailedError, AbsentError) as error:
            said = f"peer: {str(error).strip().splitlines()[-1]}"
        result.note = "; ".join(filter(None, (result.note, said)))

    def _run_compared(self, result: Result, row: Compared) -> None:
        with self._worker(result.name, "ours", row) as ours:
            (variant,) = self._prepare(ours, "ours")
            ours.ask("check")
            if self._is_smoke:
                result.ours.append(ours.rate(variant, self._seconds))
                return
            try:
                with self._worker(result.name, "peer", row) as peer:
                    self._choose_variant(result, peer)
                    self._take_turns(result, ours, variant, peer)
            except AbsentError as error:
                result.note = f"not compared: {error}"
                self._take_turns(result, ours, variant, None)

    def _worker(self, name: str, side: str, row: Compared | Cost) -> Worker:
        variables = {"BENCH_SMOKE": "1"} if self._is_smoke else {}
        python = Path(sys.executable)
        if isinstance(row, Compared):
            if side == "peer" and row.peer_variables:
                variables.update(row.peer_variables)
            elif side == "peer" or row.is_ours_in_peers:
                python = PEER_PYTHON
        elif side == "peer":
            python = PEER_PYTHON
        return Worker(name, side, python, variables)

    def _prepare(self, worker: Worker, side: str) -> list[str]:
        answer = worker.ask("prepare")
        self.versions.setdefault(side, {}).update(answer["versions"])
        return list(answer["variants"])

    def _choose_variant(self, result: Result, peer: Worker) -> None:
        """The form of the workload that suits the peer best."""
        variants = self._prepare(peer, "peer")
        for variant in variants:
            self._progress.show(f"{result.name}: peer, {variant}")
            result.peer_trials[variant] = peer.rate(variant, self._seconds)
        result.peer_variant = max(variants, key=result.peer_trials.__getitem__)

    def _take_turns(
        self, result: Result, ours: Worker, variant: str, peer: Worker | None
    ) -> None:
        parts = EVEN_PARTS if result.is_even else 1
        turns, seconds = self._turns * parts, self._seconds / parts
        for turn in range(turns):
            at = f"{result.name}: {turn + 1} of {turns}"
            self._progress.show(f"{at}, ours")
            result.ours.append(ours.rate(variant, seconds))
            if peer is not None:
                self._progress.show(f"{at}, peer")
                rate = peer.rate(result.peer_variant, seconds)
                result.peer.append(rate)
            if result.has_bare:
                self._progress.show(f"{at}, bare loop")
                result.bare += load(result.name).bare()


def write(results: list[Result], runner: Runner) -> list[Path]:
    now = datetime.datetime.now().astimezone()
    host = platform.node() or "host"
    RESULTS.mkdir(exist_ok=True)
    stem = RESULTS / f"{now:%Y-%m-%dT%H%M%S}-{host}"
    versions = runner.versions
    document = {
        "date": now.isoformat(timespec="seconds"),
        "host": host,
        "machine": platform.machine(),
        "cpus": os.cpu_count(),
        "versions": versions,
        "rows": [result.to_json() for result in results],
    }
    data = stem.with_name(stem.name + ".json")
    data.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    peer = versions.get("peer", {}).get("tensorflow-cpu", "")
    heading = (
        f"tf.data {peer}, {os.cpu_count()} cores, {now:%Y-%m-%d}; best of "
        "the turns of one run"
    )
    drawing = plot.svg(results, heading)
    if drawing is None:
        return [data]
    picture = stem.with_name(stem.name + ".svg")
    picture.write_text(drawing)
    return [data, picture]


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0],
        epilog="Example: python bench/run.py --only engine/map --seconds 5",
    )
    parser.add_argument(
        "--only", action="append", metavar="NAME", help="a row, or a folder"
    )
    parser.add_argument("--list", action="store_true", help="names the rows")
    parser.add_argument(
        "--seconds", type=float, default=2.0, help="of each run (default 2)"
    )
    parser.add_argument(
        "--turns", type=int, default=3, help="runs of each side (default 3)"
    )
    parser.add_argument(
        "--smoke",
        action="store_true",
        help="every row of ours, briefly: checks results, never a time",
    )
    arguments = parser.parse_args()
    if arguments.only:
        arguments.names = [
            name
            for name in NAMES
            if any(f"{name}/".startswith(f"{o}/") for o in arguments.only)
        ]
        if not arguments.names:
            parser.error("--only names no row; --list shows them")
    else:
        arguments.names = list(NAMES)
    return arguments


def main() -> int:
    arguments = parse()
    if arguments.list:
        for name in arguments.names:
            row = load(name).ROW
            print(f"{name:<24}{row.number:<5}{row.title}")
        return 0
    start = time.monotonic()
    if arguments.smoke:
        runner = Runner(SMOKE_SECONDS, 1, True)
    else:
        runner = Runner(arguments.seconds, arguments.turns, False)
        if os.getloadavg()[0] > (os.cpu_count() or 1) / 2:
            print("bench: the machine is busy; trust ratios, not rates")
    results = [runner.run(name) for name in arguments.names]
    failed = [r for r in results if not r.ours and not r.is_absent]
    if arguments.smoke:
        for result in failed:
            print(f"{result.name}: {result.note}")
        seconds = time.monotonic() - start
        ran = sum(bool(result.ours) for result in results)
        print(f"bench: {ran} rows ran, {len(failed)} failed ({seconds:.1f} s)")
    else:
        print("\n" + report.table(results) + "\n")
        for path in write(results, runner):
            print(f"bench: wrote {path.relative_to(ROOT)}")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
