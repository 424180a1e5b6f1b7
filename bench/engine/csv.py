"""F1: comma-separated files into typed columns."""

import itertools

import numpy as np
import tables
from workload import Compared

BATCH = 1000

ROW = Compared(
    number="F1",
    title="CSV, 6 floats, 6 ints, a text, batch(1000)",
    elements_per_batch=BATCH,
    must_reach=5,
    moonshot=None,
)


def ours():
    import penstock as ps

    defaults = [0.0] * tables.FLOATS + [0] * tables.INTS + [""]
    return {
        "plain": ps.CsvDataset(tables.csv_file(), defaults)
        .repeat()
        .batch(BATCH)
    }


class _Reader:
    """What Python has for it, into the same arrays."""

    def __iter__(self):
        import csv

        while True:
            with open(tables.csv_file(), newline="") as file:
                reader = csv.reader(file)
                while rows := list(itertools.islice(reader, BATCH)):
                    columns = list(zip(*rows, strict=True))
                    split = tables.FLOATS + tables.INTS
                    yield (
                        *(
                            np.array(c, np.float32)
                            for c in columns[: tables.FLOATS]
                        ),
                        *(
                            np.array(list(map(int, c)))
                            for c in columns[tables.FLOATS : split]
                        ),
                        columns[split],
                    )


def peer():
    import tensorflow as tf

    auto = tf.data.AUTOTUNE
    defaults = [tf.float32] * tables.FLOATS + [tf.int64] * tables.INTS
    plain = tf.data.experimental.CsvDataset(
        tables.csv_file(), [*defaults, tf.string]
    )
    plain = plain.repeat().batch(BATCH)
    return {
        "CsvDataset": plain,
        "CsvDataset, prefetch": plain.prefetch(auto),
        "csv": _Reader(),
    }


def check(batches):
    batch = next(batches)
    assert len(batch) == tables.FLOATS + tables.INTS + 1
    assert batch[-1][BATCH - 1] == f"row {BATCH - 1}".encode()
    assert abs(batch[0].mean()) < 0.2
    assert 40_000 < batch[tables.FLOATS].mean() < 60_000
