"""Noisy and clean images side by side, and features from arrays."""

import numpy as np

COMPARE = {"noisy": {"rows": ["1"]}, "masks": {"atol": 1e-6}}


def build(tf, folder):
    rng = np.random.default_rng(3)
    x_train = rng.integers(0, 256, (10, 8, 8)).astype(np.uint8)
    x_train = x_train.astype("float32") / 255.0
    x_train = x_train[..., tf.newaxis]

    clean = tf.data.Dataset.from_tensor_slices(x_train)

    def add_noise(image):
        noise_factor = 0.2
        noisy = image + noise_factor * tf.random.normal(shape=tf.shape(image))
        return tf.clip_by_value(noisy, clip_value_min=0.0, clip_value_max=1.0)

    noisy = clean.map(add_noise, num_parallel_calls=tf.data.AUTOTUNE)
    pairs = tf.data.Dataset.zip((noisy, clean)).shuffle(10).batch(4)
    same = tf.data.Dataset.zip((clean, clean)).batch(3)

    masks = clean.map(
        lambda image: (
            image * tf.cast(image > 0.5, tf.float32),
            tf.reduce_mean(image),
            tf.math.reduce_std(image),
        )
    )
    return {"noisy": pairs, "same": same, "masks": masks.batch(5)}
