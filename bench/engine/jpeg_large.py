"""E6b: JPEG files of 12 megapixels to 224 x 224, decoded at an eighth.

The peer decodes all pixels: it has no form that would not, since it cannot know
the ratio before it reads the header.
"""

import os

import photos
from workload import Compared

ROW = Compared(
    number="E6b",
    title="JPEG of 12 megapixels, decode_resized(224), batch(8)",
    elements_per_batch=8,
    must_reach=3,
    moonshot=5,
)


def _files():
    return photos.files(3000, 4000, 8)


def ours():
    import penstock as ps

    files = ps.Dataset.from_tensor_slices(_files()).repeat()
    mapped = files.map(
        lambda file: ps.image.decode_resized(file, (224, 224)),
        num_parallel_calls=os.cpu_count(),
    )
    return {"plain": mapped.batch(8)}


def peer():
    import tensorflow as tf

    def decode(file):
        return tf.image.resize(tf.io.decode_jpeg(file, channels=3), (224, 224))

    auto = tf.data.AUTOTUNE
    files = tf.data.Dataset.from_tensor_slices(_files()).repeat()
    parallel = files.map(decode, num_parallel_calls=auto).batch(8)
    return {"parallel": parallel.prefetch(auto)}


def check(batches):
    batch = next(batches)
    assert batch.shape == (8, 224, 224, 3)
    assert 90 < batch.mean() < 170
