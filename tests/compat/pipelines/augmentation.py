"""The data augmentation tutorial: image functions with and without seeds."""

import numpy as np

COMPARE = {
    "plain": {"atol": 0.02},
    "bytes": {"atol": 1.0},
    "random": "ranges",
    "stateless": {"rows": ["1"]},
}


def build(tf, folder):
    rng = np.random.default_rng(5)
    pixels = rng.integers(0, 256, (6, 12, 10, 3)).astype(np.uint8)
    images = tf.data.Dataset.from_tensor_slices((pixels, np.arange(6)))
    size = 8

    def resize_and_rescale(image, label):
        image = tf.cast(image, tf.float32)
        image = tf.image.resize(image, [size, size])
        image = image / 255.0
        return image, label

    def plain(image, label):
        image, label = resize_and_rescale(image, label)
        grayscaled = tf.image.rgb_to_grayscale(image)
        saturated = tf.image.adjust_saturation(image, 3)
        bright = tf.image.adjust_brightness(image, 0.4)
        contrast = tf.image.adjust_contrast(image, 1.5)
        cropped = tf.image.central_crop(image, central_fraction=0.5)
        rotated = tf.image.rot90(image)
        flipped = tf.image.flip_left_right(image)
        hue = tf.image.adjust_hue(image, 0.1)
        return (
            grayscaled,
            saturated,
            bright,
            contrast,
            cropped,
            rotated,
            flipped,
            hue,
        )

    def in_bytes(image, label):
        padded = tf.image.resize_with_crop_or_pad(image, 14, 6)
        small = tf.image.resize(image, [6, 5], method="nearest")
        fit = tf.image.resize_with_pad(image, 9, 9)
        box = tf.image.crop_to_bounding_box(image, 2, 1, 5, 4)
        gamma = tf.image.adjust_gamma(tf.cast(image, tf.float32) / 255.0, 0.5)
        converted = tf.image.convert_image_dtype(image, tf.float32)
        back = tf.image.convert_image_dtype(converted, tf.uint8)
        reflected = tf.pad(image, [[1, 1], [2, 2], [0, 0]], mode="REFLECT")
        return padded, small, fit, box, gamma, converted, back, reflected

    def augment(image_label, seed):
        image, label = image_label
        seed = tf.stack(seed)
        image, label = resize_and_rescale(image, label)
        image = tf.image.resize_with_crop_or_pad(image, size + 6, size + 6)
        # Make a new seed.
        new_seed = seed + 1
        # Random crop back to the original size.
        image = tf.image.stateless_random_crop(
            image, size=[size, size, 3], seed=seed
        )
        # Random brightness.
        image = tf.image.stateless_random_brightness(
            image, max_delta=0.5, seed=new_seed
        )
        image = tf.clip_by_value(image, 0, 1)
        return image, label

    def random(image, label):
        image = tf.image.convert_image_dtype(image, tf.float32)
        image = tf.image.random_flip_left_right(image)
        image = tf.image.random_flip_up_down(image)
        image = tf.image.random_brightness(image, max_delta=0.1)
        image = tf.image.random_contrast(image, 0.8, 1.2)
        image = tf.image.random_saturation(image, 0.8, 1.2)
        image = tf.image.random_hue(image, 0.05)
        image = tf.image.random_crop(image, [8, 8, 3])
        image = tf.clip_by_value(image, 0.0, 1.0)
        noise = tf.random.uniform([], 0, 4, dtype=tf.int32)
        return tf.image.rot90(image), label + tf.cast(noise, tf.int64)

    counter = tf.data.Dataset.counter()
    seeded = tf.data.Dataset.zip((images, (counter, counter)))
    stateless = seeded.map(augment, num_parallel_calls=tf.data.AUTOTUNE)
    return {
        "plain": images.map(plain).batch(3),
        "bytes": images.map(in_bytes).batch(2),
        "random": images.shuffle(6).map(random).batch(3),
        "stateless": stateless.batch(3).prefetch(1),
    }
