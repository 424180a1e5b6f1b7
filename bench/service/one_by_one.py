"""S1: numbers one by one, through one worker."""

import itertools

import serving
from workload import ENDLESS, Compared

ROW = Compared(
    number="S1",
    title="service, int64 one by one",
    elements_per_batch=1,
    must_reach=100,
    moonshot=500,
)


def ours():
    import penstock as ps

    service = serving.ours()
    return {"plain": ps.Dataset.range(ENDLESS).distribute(service.address)}


def peer():
    import tensorflow as tf

    return serving.peer_forms(tf.data.Dataset.range(ENDLESS))


def check(elements):
    """Any order, and none twice."""
    had = [int(x) for x in itertools.islice(elements, 10_000)]
    assert len(set(had)) == len(had)
    assert min(had) >= 0 and max(had) < ENDLESS
