"""One case, one side, in a process of its own: one.py NUMBER ours|peer.

Prints what it found as one line of JSON, last.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import measure
import searches
from all_cases import find
from case import Case, Point

Json = dict[str, Any]

_ONLINE_TURNS = 2
_PEER_SETTLES = 6.0  # seconds: AUTOTUNE has its optimum by then


class Ours:
    def __init__(self, case: Case, seconds: float, turns: int) -> None:
        from library import Ours as Library

        import penstock as ps

        self._ps = ps
        self._lib = Library()
        self._case = case
        self._seconds = seconds
        self._turns = turns
        self._tuned: Any = None
        self._memory: dict[str, int] = {}
        self._longest: dict[str, float] = {}

    def measured(self) -> Json:
        case = self._case
        started = time.perf_counter()
        points: dict[str, Point] = {"naive": dict(case.naive)}
        runs = {"naive": 0}
        for name, search in (
            ("heuristic", searches.heuristic),
            ("hill climb", searches.hill_climb),
            ("random walk", searches.random_walk),
        ):
            found = search(case, self._glance)
            points[name], runs[name] = found.point, found.runs
        grid = searches.grid(case)
        if len(grid) > 1:
            grid.sort(key=self._glance, reverse=True)
        for i, point in enumerate(grid[:3]):
            points[f"grid {i + 1}"] = point
        runs["grid"] = len(grid)
        ours = self._tune()
        rates = self._take_turns(points)
        self._ps.close()  # Before a disk that it reads from goes.
        ours.memory = self._memory["ours"]
        return {
            "number": case.number,
            "points": points,
            "runs": runs,
            "rates": rates,
            "memory": self._memory,
            "longest_wait": self._longest,
            "seconds": time.perf_counter() - started,
            **self._said(ours),
        }

    def _said(self, ours: SimpleNamespace) -> Json:
        case, before = self._case, ours.before
        said: Json = {"tasks": ours.tasks, "kept": ours.kept}
        if case.expects:
            said["expects"] = case.expects(ours)
        if before is not None:
            said |= {
                "verdict": before.verdict,
                "wall": before.wall.kind,
                "rate_seen": before.rate,
                "rate_modelled": before.possible.middle,
                "rate_expected": before.expected.middle,
                "rate_interval": [before.expected.low, before.expected.high],
                "settings": [str(s.change() or s) for s in ours.settings],
                "tried": [[t.what, t.is_kept, t.why] for t in before.tried],
            }
        return said

    def _tune(self) -> SimpleNamespace:
        case = self._case
        nothing = SimpleNamespace(
            before=None, settings=(), kept=(), tasks=0, expected_memory=0.0
        )
        if case.online_seconds:
            return nothing
        self._ps.close()
        dataset = case.build(self._lib, case.naive)
        self._tuned = dataset.tune(**case.budget, seconds=5.0)
        before = self._tuned.explanation
        settings = tuple(self._tuned.diff(dataset))
        tasks = {node.name: node.tasks for node in before.nodes}
        for setting in settings:
            if setting.knob == "parallelism":
                tasks[setting.node] = setting.after
        return SimpleNamespace(
            before=before,
            settings=settings,
            kept=tuple(s.node for s in settings if s.knob == "cache"),
            tasks=sum(tasks.values()),
            expected_memory=before.expected_memory_bytes,
        )

    def _glance(self, point: Point) -> float:
        return self._run("", self._dataset(point), self._seconds / 2)

    def _take_turns(self, points: dict[str, Point]) -> dict[str, list[float]]:
        rates: dict[str, list[float]] = {}
        is_long = self._case.online_seconds + self._case.seconds > 5
        turns = self._turns * self._case.more_turns
        for _ in range(_ONLINE_TURNS if is_long else turns):
            rates.setdefault("ours", []).append(self._ours())
            # Several ways may have found the same point.
            seen: dict[str, float] = {}
            for name, point in points.items():
                key = json.dumps(point)
                if key not in seen:
                    dataset = self._dataset(point)
                    seen[key] = self._run(name, dataset, self._seconds)
                rates.setdefault(name, []).append(seen[key])
        # What holds more than ours may does not compare.
        names = [name for name in rates if name.startswith("grid")]
        fit = [n for n in names if self._memory.get(n, 0) <= self._most()]
        best = max(
            fit or names, key=lambda name: statistics.median(rates[name])
        )
        rates["grid"] = rates[best]
        return rates

    def _most(self) -> float:
        """Bytes that the budget allows, and some for how they are counted."""
        memory = self._case.budget.get("memory")
        return 1.1e6 * float(memory.removesuffix("MB")) if memory else math.inf

    def _dataset(self, point: Point) -> Any:
        return self._lib.finished(self._case.build(self._lib, point))

    def _ours(self) -> float:
        case, ps = self._case, self._ps
        if not case.online_seconds:
            tuned = self._lib.finished(self._tuned)
            return self._run("ours", tuned, self._seconds)
        # Nothing is set: all is for the engine to find.
        is_cache = {n for n, axis in case.axes.items() if axis.kind == "cache"}
        point = {n: 0 if n in is_cache else ps.AUTOTUNE for n in case.naive}
        if case.is_as_written:
            point = dict(case.naive)
        memory = case.budget.get("memory")
        options = ps.Options(
            memory_budget=int(float(memory.removesuffix("MB")) * 1e6)
            if memory
            else None
        )
        dataset = case.build(self._lib, point).with_options(options)
        return self._run("ours", dataset, self._seconds, case.online_seconds)

    def _run(
        self, name: str, dataset: Any, seconds: float, warm: float | None = None
    ) -> float:
        self._ps.close()
        case = self._case
        run = measure.run(
            dataset, seconds, case.warm_batches, case.consumer, warm
        )
        self._memory[name] = max(self._memory.get(name, 0), run.memory)
        self._longest[name] = max(self._longest.get(name, 0), run.longest)
        return run.rate


def peer(case: Case, seconds: float, turns: int) -> Json:
    """tf.data, all left to AUTOTUNE; and with the naive settings."""
    import tensorflow as tf
    from library import Peers as Library

    lib = Library()
    auto = {
        name: 0
        if name in case.axes and case.axes[name].kind == "cache"
        else tf.data.AUTOTUNE
        for name in case.naive
    }
    naive = dict(case.naive)
    rates: dict[str, list[float]] = {}
    for name, point in (("AUTOTUNE", auto), ("naive", naive)):
        dataset = case.build(lib, point).as_numpy_iterator
        warm = _PEER_SETTLES if name == "AUTOTUNE" else None
        for _ in range(turns):
            run = measure.run(
                _Iterable(dataset),
                seconds,
                case.warm_batches,
                case.consumer,
                warm,
            )
            rates.setdefault(name, []).append(run.rate)
            warm = min(warm or 0, 2.0) or None
    return {"number": case.number, "rates": rates}


class _Iterable:
    def __init__(self, make: Any) -> None:
        self._make = make

    def __iter__(self) -> Any:
        return self._make()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("number", type=int)
    parser.add_argument("side", choices=("ours", "peer"))
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--turns", type=int, default=5)
    arguments = parser.parse_args()
    # What libraries print must not mix with the answer.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    case = find(arguments.number)
    seconds = case.seconds or arguments.seconds
    absent = case.enter() if case.enter else None
    if absent:
        answer: Json = {"number": case.number, "absent": absent}
    elif arguments.side == "ours":
        answer = Ours(case, seconds, arguments.turns).measured()
    else:
        answer = peer(case, seconds, min(3, arguments.turns))
    print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
