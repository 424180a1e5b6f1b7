"""E5: Examples parsed one by one, in batches that Python receives."""

import clicks
import numpy as np
from workload import Compared

ROW = Compared(
    number="E5",
    title="TFRecord, map(parse_single_example), batch(1000)",
    elements_per_batch=1000,
    must_reach=40,
    moonshot=None,
)


def features(io, float32, int64, string):
    wanted = {name: io.FixedLenFeature([], float32) for name in clicks.FLOATS}
    for name in (*clicks.INTS, "label"):
        wanted[name] = io.FixedLenFeature([], int64)
    wanted["tag"] = io.FixedLenFeature([], string)
    return wanted


def ours():
    import penstock as ps

    wanted = features(ps.io, ps.float32, ps.int64, ps.string)
    records = ps.TFRecordDataset(clicks.files()).repeat()
    parsed = records.map(lambda r: ps.io.parse_single_example(r, wanted))
    return {"plain": parsed.batch(1000)}


def peer():
    import tensorflow as tf

    auto = tf.data.AUTOTUNE
    wanted = features(tf.io, tf.float32, tf.int64, tf.string)
    records = tf.data.TFRecordDataset(clicks.files()).repeat()

    def parse(record):
        return tf.io.parse_single_example(record, wanted)

    return {
        "plain": records.map(parse).batch(1000),
        "prefetch": records.map(parse).batch(1000).prefetch(auto),
        "parallel": records.map(parse, num_parallel_calls=auto)
        .batch(1000)
        .prefetch(auto),
    }


def check(batches):
    columns = clicks.columns()
    for i in range(10):
        batch = next(batches)
        rows = slice(1000 * i % clicks.DISTINCT, None)
        assert batch.keys() == columns.keys()
        for name, column in columns.items():
            np.testing.assert_array_equal(batch[name], column[rows][:1000])
