"""E10: sequences as long as real paragraphs, in buckets of 4096 tokens."""

import numpy as np
import paragraphs
from workload import ENDLESS, Compared

MAX_TOKENS = 4096
BOUNDARIES = [17, 33, 65, 129, 257]
LENGTHS = np.minimum(paragraphs.lengths(), BOUNDARIES[-1] - 1)
SIZES = [MAX_TOKENS // (boundary - 1) for boundary in BOUNDARIES] + [1]
_BUCKETS = np.searchsorted(BOUNDARIES, LENGTHS, side="right")

ROW = Compared(
    number="E10",
    title="range, map(fill), buckets of 4096 tokens, padded",
    elements_per_batch=round(
        len(LENGTHS) / sum(1 / SIZES[bucket] for bucket in _BUCKETS)
    ),
    must_reach=25,
    moonshot=100,
)


def ours():
    import penstock as ps

    def fill(x):
        return ps.fill([ps.take(LENGTHS, x % len(LENGTHS))], x)

    sequences = ps.Dataset.range(ENDLESS).map(fill)
    return {
        "plain": sequences.bucket_by_sequence_length(
            len, BOUNDARIES, max_tokens=MAX_TOKENS
        )
    }


def peer():
    import tensorflow as tf

    auto = tf.data.AUTOTUNE
    lengths = tf.constant(LENGTHS)

    def fill(x):
        return tf.fill([tf.gather(lengths, x % len(LENGTHS))], x)

    def bucketed(ds):
        return ds.bucket_by_sequence_length(
            lambda ids: tf.shape(ids)[0], BOUNDARIES, SIZES
        )

    numbers = tf.data.Dataset.range(ENDLESS)
    plain = bucketed(numbers.map(fill))
    parallel = bucketed(numbers.map(fill, num_parallel_calls=auto))
    return {
        "plain": plain,
        "prefetch": plain.prefetch(auto),
        "parallel": parallel.prefetch(auto),
    }


def check(batches):
    open_rows = {}
    given = 0
    for x in range(20 * len(LENGTHS)):
        length = LENGTHS[x % len(LENGTHS)]
        bucket = _BUCKETS[x % len(LENGTHS)]
        rows = open_rows.setdefault(bucket, [])
        rows.append((x, length))
        if len(rows) < SIZES[bucket]:
            continue
        batch = next(batches)
        assert batch.shape == (len(rows), max(n for _, n in rows))
        for got, (number, n) in zip(batch, rows, strict=True):
            assert (got[:n] == number).all() and not got[n:].any()
        open_rows[bucket] = []
        given += 1
        if given == 20:
            return
