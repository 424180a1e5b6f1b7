"""Runs of a pipeline that are measured: elements are taken and thrown away."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
import time
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from penstock._connection import Start
from penstock._engine import EngineGoneError
from penstock._errors import (
    DeadlineExceededError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
)
from penstock._iterator import Iterator
from penstock._location import refused
from penstock._options import Options
from penstock._stats import IteratorStats, to_stats
from penstock._units import si, time_text

if TYPE_CHECKING:
    from penstock._dataset import Dataset

Json = dict[str, Any]
# Told how many elements there were, in how many seconds.
Progress = Callable[[int, float], None]

_EVERY_MS = 100
_LEAST_MS = 20
_WINDOWS = 25
_STEP_SECONDS = 0.1
# A run that agrees with itself this well tells no more.
_AGREES = 0.01
_LEAST_SECONDS = 1.0
# In each half: fewer agree by chance.
_LEAST_ELEMENTS = 100
# One that ended before this is taken as a whole: it has no steady part.
_SHORT_SECONDS = 0.5
# What a measured run is seeded with where the pipeline has no seed: it then is
# none of the dataset's epochs.
_SEED = 1


class TraceFile:
    """A trace that is kept: the user's, or one that goes with this object."""

    def __init__(self, path: str | None = None) -> None:
        if path is None:
            handle, self.path = tempfile.mkstemp(".bin", "penstock-trace-")
            os.close(handle)
            weakref.finalize(self, _remove, self.path, os.getpid())
        else:
            self.path = os.path.abspath(path)


def _remove(path: str, owner: int) -> None:
    if owner == os.getpid():  # A forked child has not made it.
        with contextlib.suppress(OSError):
            os.unlink(path)


def given_file(path: Any) -> TraceFile:
    """A trace that exists, as the user names it."""
    name = os.fsdecode(path)
    try:
        mode = os.stat(name).st_mode
    except FileNotFoundError:
        raise refused(
            NotFoundError, f"expected a trace; there is no file {name!r}"
        ) from None
    except (OSError, ValueError) as error:
        raise refused(
            InvalidArgumentError, f"cannot read the trace {name!r}: {error}"
        ) from None
    if not stat.S_ISREG(mode):
        raise refused(
            InvalidArgumentError,
            f"a trace must be a file; {name!r} is something else",
        )
    return TraceFile(name)


class _Watch:
    """Elements over time, and whether the rate is the same all the time."""

    def __init__(self, progress: Progress | None) -> None:
        self._progress = progress
        self._start = time.monotonic()
        # When, and how many elements there were until then.
        self._seen: list[tuple[float, int]] = []
        self.elements = 0

    def add(self, rows: int) -> None:
        self.elements += rows
        now = time.monotonic()
        if self._seen and now < self._seen[-1][0] + _STEP_SECONDS:
            return
        self._seen.append((now, self.elements))
        if self._progress is not None:
            self._progress(self.elements, now - self._start)

    def is_steady(self) -> bool:
        """Whether both halves of the time since the first rows are alike."""
        seen = self._seen
        if len(seen) < 4 or seen[-1][0] - seen[0][0] < _LEAST_SECONDS:
            return False
        (begin, before), (end, after) = seen[0], seen[-1]
        middle, between = min(
            seen, key=lambda at: abs(at[0] - (begin + end) / 2)
        )
        fewest = min(between - before, after - between)
        if not begin < middle < end or fewest < _LEAST_ELEMENTS:
            return False
        first = (between - before) / (middle - begin)
        second = (after - between) / (end - middle)
        return abs(first - second) <= _AGREES * max(first, second)


def measure(
    dataset: Dataset,
    seconds: float,
    budget: Json,
    file: TraceFile,
    progress: Progress | None = None,
) -> tuple[Json, list[str], Json | None, bool]:
    """Runs it for that long at most.

    Returns:
        The report, notes on the run, how what was run is rewritten, and whether
        it came to its end.

    Raises:
        DeadlineExceededError: Nothing came in that time.
        FailedPreconditionError: It has no elements.
    """
    begin = time.monotonic()
    watch = _Watch(progress)
    has_ended = False
    start = Start(dataset._epoch or 0, _SEED)
    # What is traced stays as it is.
    with Options(autotune=False), Iterator(dataset, start) as iterator:
        connection = iterator._connection
        assert connection is not None
        connection.deadline = begin + seconds
        try:
            rows, has_ended = connection.discard()
            # From here on: what it takes to begin is no part of its rate.
            every = int(
                min(_EVERY_MS, max(_LEAST_MS, seconds * 1e3 / _WINDOWS))
            )
            connection.trace(every)
            traced = time.monotonic()
            watch.add(rows)
            while not has_ended:
                rows, has_ended = connection.discard()
                watch.add(rows)
                if time.monotonic() > connection.deadline or watch.is_steady():
                    break
            if has_ended and time.monotonic() < traced + _SHORT_SECONDS:
                connection.trace(every)  # Nothing comes after: all counts.
        except TimeoutError:
            if not watch.elements:
                stats = to_stats(connection.stats())
                raise refused(
                    DeadlineExceededError, _nothing_came(seconds, stats)
                ) from None
        except EngineGoneError:
            raise connection.engine.death() from None
        if not watch.elements:
            raise refused(
                FailedPreconditionError,
                "a pipeline must have an element to be measured; this one "
                "ended without any",
            )
        try:
            connection.flush()
            report = connection.explain(budget, file.path)
            stats = to_stats(connection.stats())
        except EngineGoneError:
            raise connection.engine.death() from None
    if stats.nodes and stats.nodes[-1].errors == stats.rows:
        with Iterator(dataset, start) as iterator:
            next(iterator)  # Raises what is wrong with all of them.
    return report, _errors_in(stats), iterator._rewriting, has_ended


def _nothing_came(seconds: float, stats: IteratorStats) -> str:
    """Where rows went to, so that one sees who gives none."""
    counts = ", ".join(
        f"{node.name} {si(node.rows)} rows" for node in stats.nodes
    )
    return (
        f"a pipeline must give an element to be measured; got none in "
        f"{time_text(seconds)} (so far: {counts}).\n  Give it longer with "
        "seconds=, or look at the first transformation without rows."
    )


def _errors_in(stats: IteratorStats) -> list[str]:
    """A note if elements were errors: a consumer would have stopped there."""
    by_number = {node.node: node for node in stats.nodes}
    errors = stats.nodes[-1].errors if stats.nodes else 0
    if not errors:
        return []
    own = [
        node.name
        for node in stats.nodes
        if node.errors
        > sum(by_number[i].errors for i in node.inputs if i in by_number)
    ]
    return [
        f"{errors:,} of {stats.rows:,} elements were errors, made by "
        f"{', '.join(own)}: a loop over them would have stopped at the first; "
        "ignore_errors() leaves them out"
    ]
