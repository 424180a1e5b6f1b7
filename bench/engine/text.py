"""E8: lines to words to numbers, long lines dropped, padded batches.

Until there is bucketing by length on both sides, batches are padded as they
come.
"""

import lines
import numpy as np
from workload import Compared

BATCH = 32
LONGEST = 32

ROW = Compared(
    number="E8",
    title="lines, split, vocabulary, filter, padded_batch(32), no buckets",
    # Of 40 lines, 8 are longer than LONGEST.
    elements_per_batch=BATCH * lines.MOST_WORDS // LONGEST,
    must_reach=25,
    moonshot=100,
)


def ours():
    import penstock as ps

    vocabulary = ps.lookup.Vocabulary(lines.vocabulary(), num_oov_buckets=10)
    ds = ps.TextLineDataset(lines.file()).repeat()
    ds = ds.map(lambda line: vocabulary.lookup(ps.strings.split(line)))
    ds = ds.filter(lambda ids: ps.shape(ids)[0] <= LONGEST)
    return {"plain": ds.padded_batch(BATCH)}


def peer():
    import tensorflow as tf

    auto = tf.data.AUTOTUNE
    words = lines.vocabulary()
    table = tf.lookup.StaticVocabularyTable(
        tf.lookup.KeyValueTensorInitializer(
            words, np.arange(len(words), dtype=np.int64)
        ),
        10,
    )

    def numbers(line):
        return table.lookup(tf.strings.split(line))

    def is_short(ids):
        return tf.shape(ids)[0] <= LONGEST

    ds = tf.data.TextLineDataset(lines.file()).repeat()
    plain = ds.map(numbers).filter(is_short).padded_batch(BATCH)
    parallel = ds.map(numbers, num_parallel_calls=auto).filter(is_short)
    return {
        "plain": plain,
        "prefetch": plain.prefetch(auto),
        "parallel": parallel.padded_batch(BATCH).prefetch(auto),
    }


def check(batches):
    place = {word: i for i, word in enumerate(lines.vocabulary())}
    with open(lines.file(), "rb") as file:
        rows = (line.split() for line in file)
        rows = (row for row in rows if len(row) <= LONGEST)
        for _ in range(20):
            batch = next(batches)
            want = [next(rows) for _ in range(BATCH)]
            assert batch.shape == (BATCH, max(map(len, want)))
            for got, row in zip(batch, want, strict=True):
                assert not got[len(row) :].any()
                for number, word in zip(got, row, strict=False):
                    if word in place:
                        assert number == place[word]
                    else:
                        assert 0 <= number - len(place) < 10
