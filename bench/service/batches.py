"""S2: batches of 1000 numbers, through one worker."""

import numpy as np
import serving
from workload import ENDLESS, Compared

ROW = Compared(
    number="S2",
    title="service, batches of 1000 int64",
    elements_per_batch=1000,
    must_reach=10,
    moonshot=30,
)


def ours(visitation="exactly_once"):
    import penstock as ps

    numbers = ps.Dataset.range(ENDLESS).batch(1000)
    service = serving.ours()
    return {"plain": numbers.distribute(service.address, visitation=visitation)}


def peer():
    import tensorflow as tf

    return serving.peer_forms(tf.data.Dataset.range(ENDLESS).batch(1000))


def check(batches):
    """Any order; each batch is full, and its rows follow one another."""
    had = set()
    for _ in range(50):
        batch = next(batches)
        np.testing.assert_array_equal(
            batch, np.arange(batch[0], batch[0] + 1000)
        )
        had.add(int(batch[0]))
    assert len(had) == 50
