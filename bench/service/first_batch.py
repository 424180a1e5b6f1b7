"""From iter() to the first batch, of a service that has run the pipeline."""

import statistics
import time

import serving
from workload import ENDLESS, Cost

ROW = Cost(
    number="S0",
    title="service, first batch of a pipeline known to it",
    unit="ms",
    limit=100,
)


def measure(seconds):
    import penstock as ps

    service = serving.ours()
    ds = ps.Dataset.range(ENDLESS).batch(1000).distribute(service.address)
    next(iter(ds))
    took = []
    now = time.perf_counter
    end = now() + seconds
    while now() < end:
        start = now()
        batches = iter(ds)
        first = next(batches)
        took.append(now() - start)
        batches.close()
        assert first.shape == (1000,)
    return statistics.median(took) * 1e3
