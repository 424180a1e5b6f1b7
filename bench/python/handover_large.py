"""What Python takes for a batch of 1 MB that is ready, by the clock.

The engine is given time to run ahead, then a few batches are taken at once. The
first of them is left out: it pays for what a pause does to the caches.
"""

import statistics
import time

from workload import ENDLESS, Cost

ROW = Cost(
    number="H2",
    title="hand-over of a batch of 1 MB that is ready",
    unit="µs",
    limit=10,
)
_PAUSE_S = 0.03
_BATCHES = 4


def measure(seconds):
    """The median: a batch during which others ran says nothing."""
    import penstock as ps

    batches = iter(ps.Dataset.range(ENDLESS).batch(125_000))
    batch = next(batches)
    took = []
    now = time.perf_counter
    end = now() + seconds
    while now() < end:
        time.sleep(_PAUSE_S)
        batch = next(batches)
        for _ in range(_BATCHES - 1):
            start = now()
            batch = next(batches)
            took.append(now() - start)
    assert batch.shape == (125_000,)
    return statistics.median(took) * 1e6
