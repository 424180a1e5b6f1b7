"""T1: E1 with its counters, against E1 in an engine told to keep none.

The ratio must stay near 1. An engine without the switch counts all the same:
the counts give it away, and the row says so instead of comparing equals.
"""

import itertools

from workload import AbsentError, Compared, load

_E1 = load("engine/map")

ROW = Compared(
    number="T1",
    title="E1, counters on against off",
    elements_per_batch=1000,
    must_reach=0.97,
    moonshot=0.99,
    is_even=True,
    peer_variables={"PENSTOCK_NO_COUNTERS": "1"},
)
ours = _E1.ours
check = _E1.check


def peer():
    datasets = _E1.ours()
    batches = iter(datasets["plain"])
    for _ in itertools.islice(batches, 1000):
        pass
    if any(node.rows for node in batches.stats().nodes):
        raise AbsentError("this engine cannot turn its counters off")
    return datasets
