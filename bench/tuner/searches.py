"""How others look for settings: they run, and look at the rate."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass

from case import Case, Point

Rate = Callable[[Point], float]

# What is better by less is luck.
_LEAST_GAIN = 1.02
_MOST_RUNS = 24
_WALK = 16
_MOST_POINTS = 64


@dataclass(frozen=True)
class Found:
    point: Point
    runs: int


def heuristic(case: Case, rate: Rate) -> Found:
    del rate
    return Found(case.heuristic, 0)


def hill_climb(case: Case, rate: Rate) -> Found:
    """The best of all single steps up, again and again: AUTOTUNE's way, with
    rates that are measured instead of modelled.
    """
    if not case.axes:
        return Found(dict(case.naive), 0)
    point, runs = dict(case.naive), 1
    best = rate(point)
    while runs < _MOST_RUNS:
        steps = []
        for name, axis in case.axes.items():
            if axis.kind == "cache":
                continue
            larger = [v for v in sorted(axis.values) if v > point[name]]
            if larger:
                steps.append({**point, name: larger[0]})
        if not steps:
            break
        rates = [rate(step) for step in steps]
        runs += len(steps)
        at = max(range(len(steps)), key=rates.__getitem__)
        if rates[at] < _LEAST_GAIN * best:
            break
        point, best = steps[at], rates[at]
    return Found(point, runs)


def random_walk(case: Case, rate: Rate) -> Found:
    """One setting, up or down, at a time; back if it is not better."""
    numbers = random.Random(case.number)
    point = dict(case.naive)
    if not case.axes:
        return Found(point, 0)
    best = rate(point)
    names = [n for n, axis in case.axes.items() if axis.kind != "cache"]
    for _ in range(_WALK if names else 0):
        name = numbers.choice(names)
        values = sorted({*case.axes[name].values, point[name]})
        at = values.index(point[name]) + numbers.choice((-1, 1))
        step = {**point, name: values[max(0, min(at, len(values) - 1))]}
        found = best if step == point else rate(step)
        if found > best:
            point, best = step, found
    return Found(point, _WALK + 1)


def grid(case: Case) -> list[Point]:
    """Every combination, caches too."""
    names = list(case.axes)
    every = [
        {**case.naive, **dict(zip(names, values, strict=True))}
        for values in itertools.product(*(case.axes[n].values for n in names))
    ]
    if len(every) > _MOST_POINTS:
        raise ValueError(f"case {case.number}: a grid of {len(every)} points")
    return every
