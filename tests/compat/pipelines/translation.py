"""Two languages side by side, bucketed by length, with start and end ids."""

from pathlib import Path


def build(tf, folder):
    words = Path(folder, "text/vocab.txt").read_text().split()
    initializer = tf.lookup.KeyValueTensorInitializer(
        tf.constant(words), tf.range(2, len(words) + 2, dtype=tf.int64)
    )
    table = tf.lookup.StaticHashTable(initializer, default_value=1)
    start, end = len(words) + 2, len(words) + 3

    def encode(text):
        tokens = tf.strings.split(tf.strings.lower(text), sep=" ")
        ids = table.lookup(tokens)
        return tf.concat([[start], ids, [end]], axis=0)

    def to_ids(source, target):
        return encode(source), encode(target)

    def filter_max_length(x, y, max_length=12):
        return tf.logical_and(
            tf.size(x) <= max_length, tf.size(y) <= max_length
        )

    pairs = tf.data.Dataset.zip(
        (
            tf.data.TextLineDataset(f"{folder}/text/source.txt"),
            tf.data.TextLineDataset(f"{folder}/text/target.txt"),
        )
    )
    encoded = pairs.map(to_ids).filter(filter_max_length)
    plain = encoded.padded_batch(4, padded_shapes=([None], [None]))
    buckets = encoded.bucket_by_sequence_length(
        element_length_func=lambda x, y: tf.maximum(
            tf.shape(x)[0], tf.shape(y)[0]
        ),
        bucket_boundaries=[6, 10],
        bucket_batch_sizes=[4, 3, 2],
        padded_shapes=([None], [None]),
    )
    teacher = plain.map(
        lambda x, y: (
            {"source": x, "target": y[:, :-1]},
            y[:, 1:],
            tf.cast(tf.not_equal(y[:, 1:], 0), tf.float32),
        )
    )
    return {"plain": plain, "buckets": buckets, "teacher": teacher}
