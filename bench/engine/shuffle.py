"""E2: a shuffle with a window of 10,000."""

import numpy as np
from workload import ENDLESS, Compared

ROW = Compared(
    number="E2",
    title="range, shuffle(10k), batch(1000)",
    elements_per_batch=1000,
    must_reach=10,
    moonshot=30,
)


def ours():
    import penstock as ps

    return {"plain": ps.Dataset.range(ENDLESS).shuffle(10_000).batch(1000)}


def peer():
    import tensorflow as tf

    shuffled = tf.data.Dataset.range(ENDLESS).shuffle(10_000).batch(1000)
    return {
        "plain": shuffled,
        "prefetch": shuffled.prefetch(tf.data.AUTOTUNE),
    }


def check(batches):
    seen = np.concatenate([next(batches) for _ in range(50)])
    assert len(np.unique(seen)) == len(seen), "an element came twice"
    # The window reaches 10,000 elements beyond what was given, no further.
    given = np.arange(len(seen))
    assert (seen >= 0).all() and (seen < given + 10_000).all()
    assert abs(np.corrcoef(seen[:1000], given[:1000])[0, 1]) < 0.5
