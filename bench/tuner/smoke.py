"""Some cases for a moment: tuned batches are the same batches."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from case import Case

_BATCHES = 3
# One or two of each kind; those with a disk or a group of their own would
# leave it behind.
NUMBERS = (8, 13, 17, 20, 30)


def checked(case: Case) -> str:
    """Says "ok"; raises if batches differ."""
    from library import Ours

    import penstock as ps

    dataset = case.build(Ours(), case.naive)
    # Every iteration is another epoch, unless it is told which.
    dataset.set_epoch(0)
    before = list(itertools.islice(dataset, _BATCHES))
    tuned = dataset.tune(**case.budget, seconds=3.0)
    tuned.set_epoch(0)
    after = list(itertools.islice(tuned, _BATCHES))
    assert len(before) == len(after) == _BATCHES
    for one, other in zip(before, after, strict=True):
        for x, y in zip(_leaves(one), _leaves(other), strict=True):
            np.testing.assert_array_equal(x, y)
    ps.close()
    return "ok"


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, (tuple, list)):
        return [leaf for item in value for leaf in _leaves(item)]
    return [value]
