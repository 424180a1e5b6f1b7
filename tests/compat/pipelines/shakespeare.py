"""Characters of a text as ids, sequences, inputs and targets."""


def build(tf, folder):
    with open(f"{folder}/text/source.txt", "rb") as file:
        text = file.read().decode(encoding="utf-8")
    vocab = sorted(set(text))
    ids_from_chars = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(
            vocab, list(range(1, len(vocab) + 1)), value_dtype=tf.int64
        ),
        0,
    )
    chars_from_ids = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(
            list(range(1, len(vocab) + 1)), vocab, key_dtype=tf.int64
        ),
        "[UNK]",
    )
    all_ids = ids_from_chars.lookup(tf.strings.unicode_split(text, "UTF-8"))
    ids_dataset = tf.data.Dataset.from_tensor_slices(all_ids)
    seq_length = 30
    sequences = ids_dataset.batch(seq_length + 1, drop_remainder=True)

    def split_input_target(sequence):
        input_text = sequence[:-1]
        target_text = sequence[1:]
        return input_text, target_text

    dataset = sequences.map(split_input_target)
    texts = sequences.map(
        lambda ids: tf.strings.reduce_join(chars_from_ids.lookup(ids), axis=-1)
    )
    lines = tf.data.TextLineDataset(f"{folder}/text/source.txt")
    hashed = lines.map(
        lambda line: tf.strings.to_hash_bucket_fast(
            tf.strings.bytes_split(line), 100
        )
    ).padded_batch(4, padding_values=tf.constant(-1, tf.int64))
    return {
        "dataset": dataset.batch(4, drop_remainder=True).prefetch(2),
        "texts": texts,
        "hashed": hashed,
    }
