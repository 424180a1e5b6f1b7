"""E4: records of 200 bytes, checked, in batches that Python receives.

Ours arrive as arrays of `bytes`, an object per record; the peer's are tensors
that stay in the peer's memory, since a loop over tf.data converts nothing.
"""

import records
from bare import records_per_s as bare  # noqa: F401
from workload import Compared

ROW = Compared(
    number="E4",
    title="TFRecord, batch(1000), as bytes in Python",
    elements_per_batch=1000,
    must_reach=10,
    moonshot=None,
    share_of_bare=0.8,
)


def ours():
    import penstock as ps

    return {
        "plain": ps.TFRecordDataset(records.files()).repeat().batch(1000),
    }


def peer():
    import tensorflow as tf

    auto = tf.data.AUTOTUNE
    files = records.files()
    one_by_one = tf.data.TFRecordDataset(files).repeat().batch(1000)
    parallel = tf.data.TFRecordDataset(files, num_parallel_reads=auto)
    return {
        "plain": one_by_one,
        "prefetch": one_by_one.prefetch(auto),
        "parallel reads": parallel.repeat().batch(1000).prefetch(auto),
    }


def check(batches):
    for i in range(10):
        batch = next(batches)
        assert batch.shape == (1000,)
        for j, record in enumerate(batch):
            assert len(record) == records.RECORD_BYTES
            assert records.index_of(record) == 1000 * i + j
