"""Few positives among many negatives: sampling and rejection."""

import numpy as np

COMPARE = {"sampled": "ranges", "resampled": "ranges"}


def build(tf, folder):
    labels = (np.arange(400) % 20 == 0).astype(np.int32)
    # Few values, so that any sample of rows has about the same range.
    features = (
        np.arange(400, dtype=np.float32)[:, None] % 7 * np.ones(3, np.float32)
    )
    creditcard = tf.data.Dataset.from_tensor_slices((features, labels))

    negative_ds = creditcard.filter(lambda features, label: label == 0)
    positive_ds = creditcard.filter(lambda features, label: label == 1)
    sampled = (
        tf.data.Dataset.sample_from_datasets(
            [negative_ds.repeat(), positive_ds.repeat()], [0.5, 0.5]
        )
        .take(50)
        .batch(10)
    )

    def class_func(features, label):
        return label

    resampled = (
        creditcard.rejection_resample(
            class_func, target_dist=[0.5, 0.5], initial_dist=[0.95, 0.05]
        )
        .map(lambda extra_label, features_and_label: features_and_label)
        .take(10)
    )

    chosen = tf.data.Dataset.choose_from_datasets(
        [negative_ds, positive_ds],
        tf.data.Dataset.range(2).repeat(10),
    ).batch(5)

    def count(counts, batch):
        _, labels = batch
        class_1 = tf.cast(labels == 1, tf.int32)
        class_0 = tf.cast(labels == 0, tf.int32)
        counts["class_0"] += tf.reduce_sum(class_0)
        counts["class_1"] += tf.reduce_sum(class_1)
        return counts

    counted = creditcard.batch(64).reduce(
        initial_state={"class_0": 0, "class_1": 0}, reduce_func=count
    )
    return {
        "sampled": sampled,
        "resampled": resampled,
        "chosen": chosen,
        "counted": tf.data.Dataset.from_tensors(counted),
    }
