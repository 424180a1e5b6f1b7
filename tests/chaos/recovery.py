"""How long the rows of a worker that is gone took to come from another.

Rows of the pipeline "who" say which process computed them. A bundle's rows come
in order; where those after a fault come from another process, it was handed
over.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from rows import bundle_rows


@dataclasses.dataclass(frozen=True)
class Handover:
    bundle: int
    seconds: float  # from the fault to the first row of another process


def handovers(
    rows: np.ndarray, count: int, pid: int, at: float
) -> list[Handover]:
    """Bundles that process `pid` had begun, and others have gone on with.

    Args:
        rows: What a reader had, of one life, in its order.
        count: Rows of the whole job.
        pid: Who died, hung or left.
        at: When, by the monotonic clock.
    """
    size = bundle_rows(count)
    bundles = rows["id"] // size
    mine = rows["who"] == pid
    found = []
    for bundle in np.unique(bundles[mine]):
        of_it = rows[bundles == bundle]
        is_mine = of_it["who"] == pid
        last = int(np.flatnonzero(is_mine)[-1])
        if last + 1 < len(of_it) and of_it["at"][last + 1] > at:
            seconds = float(of_it["at"][last + 1] - at)
            found.append(Handover(int(bundle), seconds))
    return found


def percentile(values: list[float], share: float) -> float:
    """The smallest value that so many of them do not exceed."""
    ordered = sorted(values)
    index = max(0, int(np.ceil(share * len(ordered))) - 1)
    return ordered[index]
