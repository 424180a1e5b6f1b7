"""What `import penstock` takes in a fresh process that has numpy."""

import time

from workload import Cost

ROW = Cost(
    number="H3", title="import penstock, after numpy", unit="ms", limit=100
)


def measure(seconds):
    import numpy  # noqa: F401

    start = time.perf_counter()
    import penstock  # noqa: F401

    return (time.perf_counter() - start) * 1e3
