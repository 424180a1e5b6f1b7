"""S6: S2 with every element exactly once, against at most once.

Neither may lose or double anything while nothing fails; what is compared is the
cost of being able to say so when something does.
"""

import os

from workload import Compared, load

_S2 = load("service/batches")

ROW = Compared(
    number="S6",
    title="S2, exactly once against at most once",
    elements_per_batch=1000,
    must_reach=0.95,
    moonshot=0.99,
    is_even=True,
    peer_variables={"BENCH_VISITATION": "at_most_once"},
)
ours = _S2.ours
check = _S2.check


def peer():
    return _S2.ours(os.environ["BENCH_VISITATION"])
