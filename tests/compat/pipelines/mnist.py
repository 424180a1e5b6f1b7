"""MNIST from TFRecords: raw bytes, scaled to [-0.5, 0.5]."""

import os


def build(tf, folder):
    image_pixels = 28 * 28

    def decode(serialized_example):
        """Parses an image and label from the given `serialized_example`."""
        features = tf.io.parse_single_example(
            serialized_example,
            features={
                "image_raw": tf.io.FixedLenFeature([], tf.string),
                "label": tf.io.FixedLenFeature([], tf.int64),
            },
        )
        image = tf.io.decode_raw(features["image_raw"], tf.uint8)
        image.set_shape((image_pixels,))
        label = tf.cast(features["label"], tf.int32)
        return image, label

    def normalize(image, label):
        image = tf.cast(image, tf.float32) * (1.0 / 255) - 0.5
        return image, label

    files = [
        os.path.join(folder, "mnist", f"train-{i}.tfrecords") for i in (0, 1)
    ]
    dataset = tf.data.TFRecordDataset(files)
    dataset = dataset.map(decode)
    dataset = dataset.map(normalize, num_parallel_calls=tf.data.AUTOTUNE)
    return {
        "train": dataset.repeat(2).batch(8, drop_remainder=True).prefetch(2)
    }
