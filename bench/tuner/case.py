"""What a case of the tuner's bench is: one pipeline, badly set up.

A pipeline is written once, for a library: ours, or the peer's. Its settings
are a `Point`, by name. Searches move in `axes`; ours is given the pipeline at
`naive` and finds what it finds.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Point = dict[str, int]
CORES = os.cpu_count() or 1


@dataclass(frozen=True)
class Axis:
    """Values of one setting, in the order in which a search steps."""

    values: tuple[int, ...]
    # "tasks": work at once; "ahead": elements kept ready; "cache": where rows
    # are kept, 0 for nowhere. Searches that do not cache leave the last alone.
    kind: str = "tasks"


@dataclass(frozen=True)
class Case:
    number: int
    name: str
    pathology: str
    # Makes the dataset for a library and a point; endless.
    build: Callable[[Any, Point], Any]
    naive: Point
    axes: dict[str, Axis]
    # Arguments of tune().
    budget: dict[str, Any] = field(default_factory=dict)
    # Batches before anything is counted: an epoch, where rows may be kept.
    warm_batches: int = 0
    # Makes, for one run, what the consumer does with batch number i.
    consumer: Callable[[], Callable[[int], None]] | None = None
    # Of each run; 0: what all have.
    seconds: float = 0
    # So many times the turns that all have. Where rows go by at the speed of
    # memory, runs of one setting differ by a third.
    more_turns: int = 1
    # tf.data can express it.
    has_peer: bool = True
    # Found while it runs, in this many seconds, instead of by tune().
    online_seconds: float = 0
    # With the numbers of the naive program, instead of AUTOTUNE in their place.
    is_as_written: bool = False
    # Enters the context that the case needs (a slow disk, a control group);
    # None, or the reason why it cannot run here.
    enter: Callable[[], str | None] | None = None
    # What must be true beside the rate: (what, whether).
    expects: Callable[[Any], list[tuple[str, bool]]] | None = None
    # Of the best point of the grid: what has to be reached.
    share: float = 0.95
    # T3's limit for this kind of pipeline.
    error_limit: float = 0.15

    @property
    def heuristic(self) -> Point:
        """Every core everywhere."""
        by_kind = {"tasks": CORES, "ahead": 2, "cache": 0}
        return {
            **self.naive,
            **{
                name: by_kind[axis.kind]
                for name, axis in self.axes.items()
                if axis.kind != "cache"
            },
        }


def ahead(dataset: Any, count: int) -> Any:
    """`prefetch`, unless it is of nothing."""
    return dataset.prefetch(count) if count else dataset
