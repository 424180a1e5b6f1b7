"""E7: what training on photographs does: crop, resize, flip, normalise."""

import os

import photos
from workload import Compared

ROW = Compared(
    number="E7",
    title="JPEG, random crop, resize(224), flip, normalise, batch(64)",
    elements_per_batch=64,
    must_reach=1.8,
    moonshot=2.5,
)
_MEAN = (123.675, 116.28, 103.53)
_STD = (58.395, 57.12, 57.375)


def _files():
    return photos.files(375, 500, 128)


def ours():
    import penstock as ps

    def augment(file):
        image = ps.image.decode_random_resized_crop(file, (224, 224))
        image = ps.image.random_flip_left_right(image)
        return ps.image.normalize(image, _MEAN, _STD)

    files = ps.Dataset.from_tensor_slices(_files()).repeat()
    mapped = files.map(augment, num_parallel_calls=os.cpu_count())
    return {"plain": mapped.batch(64)}


def peer():
    import tensorflow as tf

    mean = tf.constant(_MEAN)
    factor = 1 / tf.constant(_STD)

    def augment(file):
        begin, size, _ = tf.image.sample_distorted_bounding_box(
            tf.io.extract_jpeg_shape(file),
            tf.constant([[[0.0, 0.0, 1.0, 1.0]]]),
            aspect_ratio_range=(3 / 4, 4 / 3),
            area_range=(0.08, 1.0),
            max_attempts=10,
            use_image_if_no_bounding_boxes=True,
        )
        window = tf.stack([begin[0], begin[1], size[0], size[1]])
        image = tf.io.decode_and_crop_jpeg(file, window, channels=3)
        image = tf.image.resize(image, (224, 224))
        image = tf.image.random_flip_left_right(image)
        return (image - mean) * factor

    auto = tf.data.AUTOTUNE
    files = tf.data.Dataset.from_tensor_slices(_files()).repeat()
    parallel = files.map(augment, num_parallel_calls=auto).batch(64)
    return {
        "parallel": parallel.prefetch(auto),
        "parallel, not prefetched": parallel,
    }


def check(batches):
    batch = next(batches)
    assert batch.shape == (64, 224, 224, 3)
    assert abs(batch.mean()) < 1
    assert 0.2 < batch.std() < 2
