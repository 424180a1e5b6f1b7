"""`tf.data.experimental`: reducers, and CSV and record files read in turn.

After the documentation of these functions.
"""

import tempfile
from pathlib import Path

CSV = 'a,b,c,d\n{0},x{0},{0}.5,1\n{1},"x\n{1}",{1}.5,\n{2},,,7\n'


def csv_files(folder):
    path = Path(tempfile.mkdtemp(dir=folder))
    for i in range(3):
        text = CSV.format(3 * i, 3 * i + 1, 3 * i + 2)
        (path / f"{i}.csv").write_text(text)
    return path


def build(tf, folder):
    datasets, experimental = tf.data.Dataset, tf.data.experimental
    path = csv_files(folder)
    files = [str(path / f"{i}.csv") for i in range(3)]

    average = experimental.Reducer(
        init_func=lambda key: (0.0, 0.0),
        reduce_func=lambda state, value: (state[0] + value, state[1] + 1.0),
        finalize_func=lambda total, count: total / count,
    )
    values = datasets.from_tensor_slices([5.0, 1.0, 4.0, 9.0, 2.0])
    averages = values.apply(
        experimental.group_by_reducer(
            lambda x: tf.cast(x, tf.int64) % 3, average
        )
    )
    largest = experimental.Reducer(
        lambda key: {"key": key, "largest": tf.constant(0, tf.int64)},
        lambda state, pair: {
            "key": state["key"],
            "largest": tf.maximum(state["largest"], pair[0] + pair[1]),
        },
        lambda state: state,
    )
    pairs = datasets.zip((datasets.range(9), datasets.range(9, 0, -1)))
    by_key = pairs.apply(
        experimental.group_by_reducer(lambda x, y: x % 2, largest)
    )

    defaults = [tf.constant([0], tf.int32), tf.constant(["none"])]
    kinds = [tf.int32, tf.constant([""]), tf.constant([-1.0])]

    def columns(**kwargs):
        return experimental.make_csv_dataset(
            files, batch_size=2, num_epochs=1, shuffle=False, **kwargs
        )

    records = str(path / "{}.tfrecord")
    for i in range(2):
        with tf.io.TFRecordWriter(records.format(i)) as writer:
            for j in range(3):
                feature = tf.train.Feature(
                    int64_list=tf.train.Int64List(value=[10 * i + j])
                )
                features = tf.train.Features(feature={"n": feature})
                example = tf.train.Example(features=features)
                writer.write(example.SerializeToString())

    def examples(**kwargs):
        return experimental.make_batched_features_dataset(
            records.format("*"),
            batch_size=2,
            features={"n": tf.io.FixedLenFeature([], tf.int64)},
            num_epochs=1,
            shuffle=False,
            **kwargs,
        )

    return {
        "averages": averages,
        "by key": by_key,
        "excluded": experimental.CsvDataset(
            files, defaults, header=True, exclude_cols=[2, 3]
        ),
        "selected": experimental.CsvDataset(
            files, defaults, header=True, select_cols=[0, 1]
        ),
        "excluded in between": experimental.CsvDataset(
            files, kinds, header=True, exclude_cols=[3], na_value="0.5"
        ),
        "columns": columns(),
        "columns in turn": columns(num_parallel_reads=2, label_name="a"),
        "some columns": columns(select_columns=["d", "a"]),
        "examples": examples(),
        "examples in turn": examples(reader_num_threads=2),
        "copied": datasets.range(3).apply(
            experimental.copy_to_device("/cpu:0")
        ),
    }
