"""Time series: windows, features and labels, as tf.data's guide has them."""

import numpy as np


def build(tf, folder):
    range_ds = tf.data.Dataset.range(60)
    batches = range_ds.batch(10, drop_remainder=True)

    def dense_1_step(batch):
        # Shift features and labels one step relative to each other.
        return batch[:-1], batch[1:]

    predict_dense_1_step = batches.map(dense_1_step)

    def label_next_5_steps(batch):
        return (
            batch[:-5],  # Inputs: All except the last 5 steps
            batch[-5:],  # Labels: The last 5 steps
        )

    predict_5_steps = range_ds.batch(15, drop_remainder=True).map(
        label_next_5_steps
    )

    def make_window_dataset(ds, window_size=5, shift=1, stride=1):
        windows = ds.window(window_size, shift=shift, stride=stride)

        def sub_to_batch(sub):
            return sub.batch(window_size, drop_remainder=True)

        return windows.flat_map(sub_to_batch)

    strided = make_window_dataset(range_ds, window_size=10, shift=5, stride=3)

    series = np.sin(np.arange(40, dtype=np.float32) / 5)

    def windowed_dataset(series, window_size, batch_size):
        series = tf.expand_dims(series, axis=-1)
        ds = tf.data.Dataset.from_tensor_slices(series)
        ds = ds.window(window_size + 1, shift=1, drop_remainder=True)
        ds = ds.flat_map(lambda w: w.batch(window_size + 1))
        ds = ds.map(lambda w: (w[:-1], w[1:]))
        return ds.batch(batch_size).prefetch(1)

    return {
        "dense": predict_dense_1_step,
        "five": predict_5_steps,
        "strided": strided,
        "series": windowed_dataset(series, 8, 4),
    }
