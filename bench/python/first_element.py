"""From the first call in a process to its first element: starts the engine."""

import time

from workload import Cost

ROW = Cost(
    number="H4",
    title="first element of range(1), engine's start included",
    unit="ms",
    limit=100,
)


def measure(seconds):
    import penstock as ps

    start = time.perf_counter()
    first = next(iter(ps.Dataset.range(1)))
    elapsed = time.perf_counter() - start
    assert first == 0
    return elapsed * 1e3
