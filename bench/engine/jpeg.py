"""E6: JPEG files of 500 x 375 decoded and resized, the results TensorFlow's."""

import os

import photos
from workload import Compared

ROW = Compared(
    number="E6",
    title="JPEG 500 x 375, decode, resize(224), batch(64)",
    elements_per_batch=64,
    must_reach=1.3,
    moonshot=None,
)


def _files():
    return photos.files(375, 500, 128)


def ours():
    import penstock as ps

    def decode(file):
        return ps.image.resize(
            ps.image.decode_jpeg(file, channels=3), (224, 224)
        )

    files = ps.Dataset.from_tensor_slices(_files()).repeat()
    mapped = files.map(decode, num_parallel_calls=os.cpu_count())
    return {"plain": mapped.batch(64)}


def peer():
    import tensorflow as tf

    def decode(file):
        return tf.image.resize(tf.io.decode_jpeg(file, channels=3), (224, 224))

    auto = tf.data.AUTOTUNE
    files = tf.data.Dataset.from_tensor_slices(_files()).repeat()
    parallel = files.map(decode, num_parallel_calls=auto).batch(64)
    return {
        "parallel": parallel.prefetch(auto),
        "parallel, not prefetched": parallel,
    }


def check(batches):
    batch = next(batches)
    assert batch.shape == (64, 224, 224, 3)
    assert 90 < batch.mean() < 170
    assert batch.std() > 10
