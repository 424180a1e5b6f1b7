"""What Python itself spends to hand over a batch of 8 kB."""

import time

from workload import ENDLESS, Cost

ROW = Cost(
    number="H1",
    title="Python's own time for a batch of 8 kB",
    unit="µs",
    limit=10,
)


def measure(seconds):
    """Processor time of the consuming thread: the engine's is not in it."""
    import penstock as ps

    batches = iter(ps.Dataset.range(ENDLESS).batch(1000))
    end = time.perf_counter() + seconds / 4
    while time.perf_counter() < end:
        next(batches)
    count = 0
    end = time.perf_counter() + seconds
    start = time.thread_time()
    while time.perf_counter() < end:
        for _ in range(100):
            next(batches)
        count += 100
    return (time.thread_time() - start) / count * 1e6
