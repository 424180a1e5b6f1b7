"""BERT's pre-training records, as in its `run_pretraining.py`."""


def build(tf, folder):
    max_seq_length, max_predictions_per_seq, batch_size = 16, 4, 3
    name_to_features = {
        "input_ids": tf.io.FixedLenFeature([max_seq_length], tf.int64),
        "input_mask": tf.io.FixedLenFeature([max_seq_length], tf.int64),
        "segment_ids": tf.io.FixedLenFeature([max_seq_length], tf.int64),
        "masked_lm_positions": tf.io.FixedLenFeature(
            [max_predictions_per_seq], tf.int64
        ),
        "masked_lm_ids": tf.io.FixedLenFeature(
            [max_predictions_per_seq], tf.int64
        ),
        "masked_lm_weights": tf.io.FixedLenFeature(
            [max_predictions_per_seq], tf.float32
        ),
        "next_sentence_labels": tf.io.FixedLenFeature([1], tf.int64),
    }

    def _decode_record(record, name_to_features):
        """Decodes a record to a TensorFlow example."""
        example = tf.io.parse_single_example(record, name_to_features)
        # tf.Example only supports tf.int64, but the TPU only supports tf.int32.
        # So cast all int64 to int32.
        for name in list(example.keys()):
            t = example[name]
            if t.dtype == tf.int64:
                t = tf.cast(t, tf.int32)
            example[name] = t
        return example

    def _select_data_from_record(record):
        x = {
            "input_word_ids": record["input_ids"],
            "input_mask": record["input_mask"],
            "input_type_ids": record["segment_ids"],
        }
        y = record["masked_lm_weights"]
        return (x, y)

    input_files = tf.io.gfile.glob(f"{folder}/bert/*.tfrecord")
    d = tf.data.Dataset.from_tensor_slices(tf.constant(sorted(input_files)))
    d = d.repeat(1)
    d = d.interleave(
        tf.data.TFRecordDataset,
        cycle_length=min(4, len(input_files)),
        num_parallel_calls=tf.data.AUTOTUNE,
        deterministic=True,
    )
    records = d.apply(
        tf.data.experimental.map_and_batch(
            lambda record: _decode_record(record, name_to_features),
            batch_size=batch_size,
            num_parallel_batches=2,
            drop_remainder=True,
        )
    )
    return {
        "records": records,
        "selected": records.map(_select_data_from_record),
    }
