"""Caches in files whose rows come back slowly: what comes without them."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from penstock import _explain
from penstock._errors import DeadlineExceededError, FailedPreconditionError
from penstock._pipeline import without_cache
from penstock._report import WORTH_IT, Fix, Interval
from penstock._report_text import rate

if TYPE_CHECKING:
    from penstock._dataset import Dataset
    from penstock._explain import Explanation

# Standard errors of an interval.
_ERRORS = 2.0


def measured(
    dataset: Dataset,
    explanation: Explanation,
    seconds: float,
    budget: dict[str, Any],
) -> Explanation:
    """The explanation, with what comes without a cache that is the wall.

    What its rows cost to compute is in no trace of runs that read them back,
    so it is run once more, without the cache.
    """
    name = explanation._read_back
    if not name:
        return explanation
    where = next(
        (f"{name} ({n.made_at})" for n in explanation.nodes if n.name == name),
        name,
    )
    try:
        run = without_cache(dataset, name)
        without = _explain.of_dataset(run, seconds, budget)
    except (DeadlineExceededError, FailedPreconditionError) as error:
        why = str(error).partition("\n")[0]
        note = f"what comes without {where} could not be measured: {why}"
        return _with_note(explanation, note)
    if without.rate < WORTH_IT * explanation.rate:
        return _with_note(
            explanation,
            f"reading the rows of {where} back is slow, but computing them is "
            f"not faster: {rate(without.rate)} came without it",
        )
    spread = _ERRORS * without.rate_error
    fix = Fix(
        title=f"leave out {where}",
        why="its rows are computed faster than they are read back from its "
        "file, which a run without it showed; tune() leaves what you wrote",
        expected=Interval(
            max(0.0, without.rate - spread),
            without.rate,
            without.rate + spread,
        ),
        settings=(),
        needs_the_user=True,
    )
    return _explain.with_fix(explanation, fix)


def _with_note(explanation: Explanation, note: str) -> Explanation:
    return dataclasses.replace(explanation, notes=(*explanation.notes, note))
