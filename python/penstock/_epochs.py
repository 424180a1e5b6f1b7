"""Epochs that end too soon to tell a rate: run again, and added up."""

from __future__ import annotations

import dataclasses
import math
import statistics
import time
from typing import TYPE_CHECKING, Any

from penstock import _explain
from penstock._errors import DeadlineExceededError, FailedPreconditionError

if TYPE_CHECKING:
    from penstock._dataset import Dataset
    from penstock._explain import Explanation
    from penstock._tracing import Progress

# Of all of them together; longer tells no more.
_ENOUGH_SECONDS = 1.0
# More of them would be so short that they are mostly their own beginnings.
_MAX_EPOCHS = 40
# A shorter run is mostly its own beginning.
LEAST_SECONDS = 0.2
# Of a rate: fewer do not tell how much it varies.
LEAST_WINDOWS = 4


def measured(
    dataset: Dataset,
    seconds: float,
    budget: dict[str, Any],
    progress: Progress | None = None,
) -> Explanation:
    """What is seen of it in `seconds` at most, in several epochs if need be."""
    begin = time.monotonic()
    runs = [_explain.of_dataset(dataset, seconds, budget, progress=progress)]
    if not is_worth_repeating(runs[0]):
        return runs[0]
    each = time.monotonic() - begin
    while len(runs) < _MAX_EPOCHS and not _is_enough(together(runs)):
        left = seconds - (time.monotonic() - begin)
        if left < each:
            break
        try:
            run = _explain.of_dataset(dataset, left, budget, progress=progress)
        except (DeadlineExceededError, FailedPreconditionError):
            break  # It took longer than before, and its time was over.
        runs.append(run)
    return together(runs)


def _is_enough(run: Explanation) -> bool:
    return run.seconds >= _ENOUGH_SECONDS and run.windows >= LEAST_WINDOWS


def is_worth_repeating(run: Explanation) -> bool:
    return (
        run._has_ended
        and run.seconds < _ENOUGH_SECONDS
        and run.seconds * _MAX_EPOCHS > LEAST_SECONDS
    )


def together(runs: list[Explanation]) -> Explanation:
    """The longest of them, with the rate of all."""
    longest = max(runs, key=lambda run: run.seconds)
    seconds = sum(run.seconds for run in runs)
    if len(runs) == 1 or seconds <= 0:
        return longest
    rates = [run.rate for run in runs]
    return dataclasses.replace(
        longest,
        rate=sum(run.rate * run.seconds for run in runs) / seconds,
        rate_error=statistics.stdev(rates) / math.sqrt(len(runs)),
        seconds=seconds,
        windows=sum(max(1, run.windows) for run in runs),
        timeline=(),
    )
