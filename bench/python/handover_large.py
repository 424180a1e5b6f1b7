"""What a trainer waits for a batch of 1 MB that is ready."""

import statistics
import time

from workload import ENDLESS, Cost

ROW = Cost(
    number="H2",
    title="hand-over of a batch of 1 MB that is ready",
    unit="µs",
    limit=10,
)
_STEP_S = 0.003  # of a trainer that is slower than the pipeline


def measure(seconds):
    """The median, by the clock: a step that was interrupted says nothing."""
    import penstock as ps

    batches = iter(ps.Dataset.range(ENDLESS).batch(125_000))
    waits = []
    now = time.perf_counter
    end = now() + seconds
    while now() < end:
        step_end = now() + _STEP_S
        while now() < step_end:
            pass
        start = now()
        batch = next(batches)
        waits.append(now() - start)
    assert batch.shape == (125_000,)
    return statistics.median(waits) * 1e6
