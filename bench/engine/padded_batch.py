"""E9: vectors of 1 to 10 numbers, padded to the longest of each batch."""

import numpy as np
from workload import ENDLESS, Compared

ROW = Compared(
    number="E9",
    title="range, map(fill), padded_batch(32)",
    elements_per_batch=32,
    must_reach=30,
    moonshot=100,
)


def ours():
    import penstock as ps

    numbers = ps.Dataset.range(ENDLESS)
    vectors = numbers.map(lambda x: ps.fill([x % 10 + 1], x))
    return {"plain": vectors.padded_batch(32)}


def peer():
    import tensorflow as tf

    auto = tf.data.AUTOTUNE
    numbers = tf.data.Dataset.range(ENDLESS)

    def fill(x):
        return tf.fill([x % 10 + 1], x)

    plain = numbers.map(fill).padded_batch(32)
    parallel = numbers.map(fill, num_parallel_calls=auto).padded_batch(32)
    return {
        "plain": plain,
        "prefetch": plain.prefetch(auto),
        "parallel": parallel.prefetch(auto),
    }


def check(batches):
    for i in range(50):
        numbers = np.arange(32 * i, 32 * (i + 1))[:, None]
        is_value = np.arange(10) <= numbers % 10
        want = np.where(is_value, numbers, 0)
        np.testing.assert_array_equal(next(batches), want)
