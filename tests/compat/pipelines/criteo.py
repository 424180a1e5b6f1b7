"""Click logs from CSV lines and from Examples, categories hashed."""


def build(tf, folder):
    columns = ["label", "i0", "i1", "c0", "c1"]

    def parse_line(line):
        fields = tf.io.decode_csv(line, [[0], [0.0], [0.0], [""], [""]])
        features = dict(zip(columns, fields, strict=True))
        label = features.pop("label")
        for name in ("i0", "i1"):
            features[name] = tf.math.log(tf.maximum(features[name], 0.0) + 1.0)
        for name in ("c0", "c1"):
            features[name] = tf.strings.to_hash_bucket_fast(
                features[name], 1000
            )
        return features, tf.cast(label, tf.float32)

    lines = tf.data.TextLineDataset(f"{folder}/criteo/train.csv").skip(1)
    csv = lines.map(parse_line, num_parallel_calls=2).batch(6)

    spec = {
        "label": tf.io.FixedLenFeature([], tf.float32),
        "dense": tf.io.FixedLenFeature([2], tf.float32),
        "category": tf.io.VarLenFeature(tf.string),
    }

    def parse_batch(records):
        parsed = tf.io.parse_example(records, spec)
        ids = tf.strings.to_hash_bucket_fast(
            tf.sparse.to_dense(parsed["category"], default_value=""), 50
        )
        return {"dense": parsed["dense"], "ids": ids}, parsed["label"]

    records = tf.data.TFRecordDataset(
        f"{folder}/criteo/train.tfrecord", compression_type="GZIP"
    )
    examples = records.batch(4, drop_remainder=True).map(parse_batch)

    typed = tf.data.experimental.CsvDataset(
        f"{folder}/criteo/train.csv",
        [tf.int32, tf.constant([0.0], dtype=tf.float32), tf.float32],
        header=True,
        select_cols=[0, 1, 2],
    )
    made = tf.data.experimental.make_csv_dataset(
        f"{folder}/tables/titanic.csv",
        batch_size=4,
        label_name="survived",
        num_epochs=1,
        shuffle=False,
    )
    return {
        "csv": csv,
        "examples": examples,
        "typed": typed.batch(5),
        "made": made,
    }
