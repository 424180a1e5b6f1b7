"""Batches of 9.6 MB for the service's rows: 64 pictures that cost nothing.

The map hands out the same array each time, so what is measured is the way from
a worker to the trainer. Passes are short enough for their parts to end within a
run: a part is sent the way in which its reading began.
"""

from __future__ import annotations

import numpy as np

SHAPE = (64, 224, 224, 3)
BYTES = int(np.prod(SHAPE))
ROWS = 256  # of a pass
PASSES = 1 << 20


def batch() -> np.ndarray:
    return np.arange(BYTES, dtype=np.uint8).reshape(SHAPE)


def ours():
    import penstock as ps

    pictures = batch()
    return ps.Dataset.range(ROWS).map(lambda _: pictures).repeat(PASSES)


def peer():
    import tensorflow as tf

    pictures = tf.constant(batch())
    return tf.data.Dataset.range(ROWS).map(lambda _: pictures).repeat(PASSES)


def check(batches, count=4) -> None:
    want = batch()
    for _ in range(count):
        np.testing.assert_array_equal(next(batches), want)
