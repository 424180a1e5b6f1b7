"""tf.data's guide: structures, generators, text, batches, Python functions."""

import numpy as np


def build(tf, folder):
    out = {}
    dataset = tf.data.Dataset.from_tensor_slices([8, 3, 0, 8, 2, 1])
    out["sum"] = tf.data.Dataset.from_tensors(
        dataset.reduce(0, lambda state, value: state + value)
    )
    dataset3 = tf.data.Dataset.zip(
        (
            tf.data.Dataset.from_tensor_slices(
                np.arange(40, dtype=np.int32).reshape(4, 10)
            ),
            tf.data.Dataset.from_tensor_slices(
                ({"a": [1.0, 2.0, 3.0, 4.0]}, ["x", "y", "z", "w"])
            ),
        )
    )
    out["structures"] = dataset3.batch(3)

    def count(stop):
        i = 0
        while i < stop:
            yield i
            i += 1

    ds_counter = tf.data.Dataset.from_generator(
        count, args=[25], output_types=tf.int32, output_shapes=()
    )
    out["counter"] = ds_counter.repeat().batch(10).take(6)

    def gen_series():
        for i in range(9):
            size = (i * 3) % 7
            yield i, np.arange(size, dtype=np.float32) + i

    ds_series = tf.data.Dataset.from_generator(
        gen_series,
        output_types=(tf.int32, tf.float32),
        output_shapes=((), (None,)),
    )
    out["series"] = ds_series.padded_batch(4)

    files = [f"{folder}/text/part{i}.txt" for i in range(2)]
    files_ds = tf.data.Dataset.from_tensor_slices(files)
    lines_ds = files_ds.interleave(tf.data.TextLineDataset, cycle_length=3)
    out["lines"] = lines_ds.take(9)

    titanic_lines = tf.data.TextLineDataset(f"{folder}/tables/titanic.csv")

    def survived(line):
        return tf.not_equal(tf.strings.substr(line, 0, 1), "0")

    out["survivors"] = titanic_lines.skip(1).filter(survived)

    inc_dataset = tf.data.Dataset.range(100)
    dec_dataset = tf.data.Dataset.range(0, -100, -1)
    batched = tf.data.Dataset.zip((inc_dataset, dec_dataset)).batch(4)
    out["batches"] = batched.take(4)

    fills = tf.data.Dataset.range(10)
    fills = fills.map(lambda x: tf.fill([tf.cast(x, tf.int32)], x))
    out["fills"] = fills.padded_batch(4, padded_shapes=(None,))

    def random_rotate_image(image):
        return np.rot90(image).astype(np.float32)

    def tf_rotate(image, label):
        im_shape = image.shape
        [image] = tf.numpy_function(random_rotate_image, [image], [tf.float32])
        image.set_shape(im_shape)
        return image, label

    images = np.arange(5 * 4 * 4, dtype=np.float32).reshape(5, 4, 4)
    image_ds = tf.data.Dataset.from_tensor_slices((images, np.arange(5)))
    out["rotated"] = image_ds.map(tf_rotate).batch(2)

    def upper_py(text):
        return text.numpy().upper()

    out["upper"] = tf.data.Dataset.from_tensor_slices(["ab", "cd"]).map(
        lambda x: tf.py_function(upper_py, [x], tf.string)
    )

    def collatz(x):
        # Decides by a value: AutoGraph's work in TensorFlow.
        if x % 2 == 0:
            y = x // 2
        else:
            y = 3 * x + 1
        return y

    out["collatz"] = tf.data.Dataset.range(1, 8).map(collatz)
    out["summed"] = (
        tf.data.Dataset.range(12)
        .batch(3)
        .map(lambda x: tf.cond(tf.reduce_sum(x) > 12, lambda: x, lambda: -x))
    )

    rows = tf.data.experimental.SqlDataset(
        "sqlite",
        f"{folder}/tables/rivers.db",
        "SELECT name, length FROM rivers ORDER BY length",
        (tf.string, tf.int32),
    )
    out["sql"] = rows
    out["dict"] = (
        tf.data.Dataset.from_tensor_slices({"a": [1, 2], "b": [3.0, 4.0]})
        .map(lambda x: {**x, "c": tf.cast(x["a"], tf.float32) * x["b"]})
        .enumerate(start=5)
    )
    out["scan"] = tf.data.Dataset.range(5).scan(
        np.int64(0), lambda state, x: (state + x, state + x)
    )
    out["unique"] = tf.data.Dataset.from_tensor_slices(
        [1, 37, 2, 37, 2, 1]
    ).unique()
    out["rebatched"] = tf.data.Dataset.range(8).batch(4).rebatch([2, 1, 1])
    out["ragged"] = (
        tf.data.Dataset.range(6)
        .map(lambda x: tf.range(x))
        .ragged_batch(2)
        .map(lambda r: r.to_tensor(default_value=-1))
    )
    out["grouped"] = tf.data.Dataset.range(20).group_by_window(
        key_func=lambda x: x % 3,
        reduce_func=lambda key, group: group.batch(4),
        window_size=4,
    )
    return out
