"""Reviews: lines to lower-case words, ids by a vocabulary, padded batches."""


def build(tf, folder):
    vocab = f"{folder}/text/vocab.txt"
    table = tf.lookup.StaticVocabularyTable(
        tf.lookup.TextFileInitializer(
            vocab,
            key_dtype=tf.string,
            key_index=tf.lookup.TextFileIndex.WHOLE_LINE,
            value_dtype=tf.int64,
            value_index=tf.lookup.TextFileIndex.LINE_NUMBER,
        ),
        num_oov_buckets=3,
    )

    def parse(line):
        parts = tf.strings.split(line, "\t")
        label = tf.strings.to_number(parts[0], out_type=tf.int32)
        text = tf.strings.lower(parts[1])
        text = tf.strings.regex_replace(text, r"[^a-z ]", "")
        tokens = tf.strings.split(text)
        return table.lookup(tokens), label

    dataset = tf.data.TextLineDataset([f"{folder}/text/reviews.tsv"])
    dataset = dataset.map(parse, num_parallel_calls=tf.data.AUTOTUNE)
    padded = dataset.padded_batch(
        5,
        padded_shapes=([None], []),
        padding_values=(tf.constant(-1, dtype=tf.int64), 0),
    )
    truncated = dataset.map(lambda ids, label: (ids[:4], label)).padded_batch(
        6, padded_shapes=([6], []), drop_remainder=True
    )
    lengths = dataset.map(lambda ids, label: tf.size(ids)).batch(24)
    return {"padded": padded, "truncated": truncated, "lengths": lengths}
