"""Two views of each image, as in SimCLR: transformations at random."""

import numpy as np

COMPARE = {"views": {"rows": ["1"]}, "never": {"atol": 1e-6}}

SIZE = 10


def build(tf, folder):
    pixels = np.random.default_rng(2).random((6, 12, 12, 3), np.float32)

    def random_apply(func, p, x):
        """Randomly apply function func to x with probability p."""
        return tf.cond(
            tf.less(
                tf.random.uniform([], minval=0, maxval=1, dtype=tf.float32),
                tf.cast(p, tf.float32),
            ),
            lambda: func(x),
            lambda: x,
        )

    def to_grayscale(image, keep_channels=True):
        image = tf.image.rgb_to_grayscale(image)
        if keep_channels:
            image = tf.tile(image, [1, 1, 3])
        return image

    def random_brightness(image, max_delta):
        factor = tf.random.uniform(
            [], tf.maximum(1.0 - max_delta, 0), 1.0 + max_delta
        )
        return image * factor

    def color_jitter(image, strength):
        image = random_brightness(image, 0.8 * strength)
        image = tf.image.random_contrast(
            image, lower=1 - 0.8 * strength, upper=1 + 0.8 * strength
        )
        image = tf.image.random_saturation(
            image, lower=1 - 0.8 * strength, upper=1 + 0.8 * strength
        )
        image = tf.image.random_hue(image, max_delta=0.2 * strength)
        return tf.clip_by_value(image, 0.0, 1.0)

    def preprocess(image, p):
        image = tf.image.random_crop(image, [SIZE, SIZE, 3])
        image = tf.image.random_flip_left_right(image)
        image = random_apply(lambda x: color_jitter(x, 0.5), 0.8, image)
        image = random_apply(to_grayscale, p, image)
        image = tf.reshape(image, [SIZE, SIZE, 3])
        return tf.clip_by_value(image, 0.0, 1.0)

    def map_fn(image, label):
        """Produces multiple transformations of the same batch."""
        xs = []
        for _ in range(2):
            xs.append(preprocess(image, p=0.2))
        image = tf.concat(xs, -1)
        return image, tf.one_hot(label, 6)

    def never(image, label):
        image = random_apply(to_grayscale, 0.0, image)
        return random_apply(to_grayscale, 1.0, image), label

    images = tf.data.Dataset.from_tensor_slices((pixels, np.arange(6)))
    views = (
        images.shuffle(6).repeat(2).map(map_fn).batch(4, drop_remainder=True)
    )
    return {"views": views, "never": images.map(never).batch(3)}
