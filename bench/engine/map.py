"""E1: a function of each element, written per element."""

import numpy as np
from workload import ENDLESS, Compared

ROW = Compared(
    number="E1",
    title="range, map(x + 1), batch(1000)",
    elements_per_batch=1000,
    must_reach=100,
    moonshot=1000,
)


def ours():
    import penstock as ps

    numbers = ps.Dataset.range(ENDLESS)
    return {"plain": numbers.map(lambda x: x + 1).batch(1000)}


def peer():
    import tensorflow as tf

    auto = tf.data.AUTOTUNE
    numbers = tf.data.Dataset.range(ENDLESS)
    return {
        "plain": numbers.map(lambda x: x + 1).batch(1000),
        "prefetch": numbers.map(lambda x: x + 1).batch(1000).prefetch(auto),
        "parallel": numbers.map(lambda x: x + 1, num_parallel_calls=auto)
        .batch(1000)
        .prefetch(auto),
    }


def check(batches):
    for i in range(50):
        want = np.arange(1000 * i + 1, 1000 * i + 1001)
        np.testing.assert_array_equal(next(batches), want)
