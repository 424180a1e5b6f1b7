"""Frames of features from SequenceExamples, padded, with masks."""

COMPARE = {"padded": {"atol": 1e-6}, "masked": {"atol": 1e-6}}


def build(tf, folder):
    def parse(record):
        context, sequence = tf.io.parse_single_sequence_example(
            record,
            context_features={"speaker": tf.io.FixedLenFeature([], tf.string)},
            sequence_features={
                "features": tf.io.FixedLenSequenceFeature([5], tf.float32),
                "tokens": tf.io.FixedLenSequenceFeature([], tf.int64),
            },
        )
        features = sequence["features"]
        mean = tf.reduce_mean(features, axis=0, keepdims=True)
        features = features - mean
        return {
            "speaker": context["speaker"],
            "features": features,
            "frames": tf.shape(features)[0],
            "tokens": tf.cast(sequence["tokens"], tf.int32),
        }

    dataset = tf.data.TFRecordDataset(f"{folder}/speech/train.tfrecord")
    parsed = dataset.map(parse, num_parallel_calls=tf.data.AUTOTUNE)
    padded = parsed.padded_batch(
        3,
        padded_shapes={
            "speaker": [],
            "features": [None, 5],
            "frames": [],
            "tokens": [None],
        },
        padding_values={
            "speaker": "",
            "features": 0.0,
            "frames": 0,
            "tokens": -1,
        },
    )
    masked = padded.map(
        lambda x: (
            x["features"],
            tf.sequence_mask(x["frames"], tf.shape(x["features"])[1]),
            tf.sequence_mask(x["frames"], 10, dtype=tf.float32),
        )
    )
    short = parsed.filter(lambda x: x["frames"] < 6).map(lambda x: x["speaker"])
    return {"padded": padded, "masked": masked, "short": short}
