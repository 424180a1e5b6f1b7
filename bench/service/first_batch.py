"""From iter() to an epoch's first batch, of a pipeline known to the service."""

import statistics
import time

import serving
from workload import Cost

ROW = Cost(
    number="S0",
    title="service, first batch of an epoch but the first",
    unit="ms",
    limit=100,
)
_BATCHES = 20


def measure(seconds):
    """The median; epochs are read to their ends, as trainers do."""
    import penstock as ps

    numbers = ps.Dataset.range(1000 * _BATCHES).batch(1000)
    ds = numbers.distribute(serving.ours().address)
    assert sum(1 for _ in ds) == _BATCHES
    took = []
    now = time.perf_counter
    end = now() + seconds
    while now() < end:
        start = now()
        batches = iter(ds)
        next(batches)
        took.append(now() - start)
        assert sum(1 for _ in batches) == _BATCHES - 1
    return statistics.median(took) * 1e3
