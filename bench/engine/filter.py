"""E3: a predicate of each element that keeps every other one."""

import numpy as np
from workload import ENDLESS, Compared

ROW = Compared(
    number="E3",
    title="range, filter(x % 2 == 0), batch(1000)",
    elements_per_batch=2000,  # those tested; half are kept
    must_reach=100,
    moonshot=1000,
)


def ours():
    import penstock as ps

    numbers = ps.Dataset.range(ENDLESS)
    return {"plain": numbers.filter(lambda x: x % 2 == 0).batch(1000)}


def peer():
    import tensorflow as tf

    kept = tf.data.Dataset.range(ENDLESS).filter(lambda x: x % 2 == 0)
    return {
        "plain": kept.batch(1000),
        "prefetch": kept.batch(1000).prefetch(tf.data.AUTOTUNE),
    }


def check(batches):
    for i in range(50):
        want = np.arange(2000 * i, 2000 * (i + 1), 2)
        np.testing.assert_array_equal(next(batches), want)
