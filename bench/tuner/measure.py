"""The rate of a dataset, and what its engine holds meanwhile."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Run:
    rate: float  # batches a second
    memory: int  # bytes that processes under this one hold, at the end
    longest: float  # seconds that the consumer waited for a batch at most


def run(
    dataset: Any,
    seconds: float,
    warm_batches: int = 0,
    consumer: Callable[[], Callable[[int], None]] | None = None,
    warm_seconds: float | None = None,
) -> Run:
    """Counts for `seconds`, after a third of them or so many batches."""
    batches = iter(dataset)
    consume = consumer() if consumer else None
    now = time.perf_counter
    warm = seconds / 3 if warm_seconds is None else warm_seconds
    for _ in range(warm_batches):
        next(batches)
    count = 0
    end = now() + warm
    while now() < end:
        next(batches)
        count += 1
        if consume:
            consume(count)
    count, longest = 0, 0.0
    start = before = now()
    end = start + seconds
    while before < end:
        next(batches)
        count += 1
        longest = max(longest, now() - before)
        if consume:
            consume(count)
        before = now()
    rate = count / (before - start)
    memory = sum(map(_resident, _below(os.getpid())))
    del batches
    return Run(rate, memory, longest)


def _below(process: int) -> Iterator[int]:
    try:
        with open(f"/proc/{process}/task/{process}/children") as file:
            children = [int(word) for word in file.read().split()]
    except OSError:
        return
    for child in children:
        yield child
        yield from _below(child)


def _resident(process: int) -> int:
    try:
        with open(f"/proc/{process}/statm") as file:
            words = file.read().split()
    except OSError:
        return 0
    return (int(words[1]) - int(words[2])) * os.sysconf("SC_PAGE_SIZE")
