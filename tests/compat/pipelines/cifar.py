"""CIFAR-10 from its binary files, with the usual augmentation."""

COMPARE = {"train": {"rows": ["1"]}, "test": {"atol": 1e-6}}

HEIGHT = WIDTH = 32
RECORD_BYTES = HEIGHT * WIDTH * 3 + 1


def build(tf, folder):
    def parse_record(raw_record):
        record_vector = tf.io.decode_raw(raw_record, tf.uint8)
        label = tf.cast(record_vector[0], tf.int32)
        # The remaining bytes after the label represent the image, which we
        # reshape from [depth * height * width] to [depth, height, width].
        depth_major = tf.reshape(
            record_vector[1:RECORD_BYTES], [3, HEIGHT, WIDTH]
        )
        # Convert from [depth, height, width] to [height, width, depth].
        image = tf.cast(tf.transpose(a=depth_major, perm=[1, 2, 0]), tf.float32)
        return image, label

    def augment(image, label):
        image = tf.image.resize_with_crop_or_pad(image, HEIGHT + 8, WIDTH + 8)
        image = tf.image.random_crop(image, [HEIGHT, WIDTH, 3])
        image = tf.image.random_flip_left_right(image)
        return image, label

    def standardize(image, label):
        image = tf.image.per_image_standardization(image)
        return image, tf.one_hot(label, 10)

    files = [f"{folder}/cifar/data_batch_{i}.bin" for i in (1, 2)]
    records = tf.data.FixedLengthRecordDataset(files, RECORD_BYTES)
    parsed = records.map(parse_record, num_parallel_calls=2)
    test = parsed.map(standardize).batch(4)
    train = (
        parsed.shuffle(12)
        .repeat(2)
        .map(augment, num_parallel_calls=tf.data.AUTOTUNE)
        .map(standardize)
        .batch(4)
        .prefetch(tf.data.AUTOTUNE)
    )
    return {"test": test, "train": train}
