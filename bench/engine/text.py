"""E8: lines to words to numbers, long lines dropped, batches of like length."""

import lines
import numpy as np
from workload import Compared

BATCH = 32
LONGEST = 32
BOUNDARIES = [8, 16, 24]
SIZES = [BATCH] * 4

ROW = Compared(
    number="E8",
    title="lines, split, vocabulary, filter, 4 buckets of 32, padded",
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
    ds = ds.bucket_by_sequence_length(
        lambda ids: ps.shape(ids)[0], BOUNDARIES, SIZES
    )
    return {"plain": ds}


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

    def bucketed(ds):
        return ds.filter(is_short).bucket_by_sequence_length(
            lambda ids: tf.shape(ids)[0], BOUNDARIES, SIZES
        )

    ds = tf.data.TextLineDataset(lines.file()).repeat()
    plain = bucketed(ds.map(numbers))
    parallel = bucketed(ds.map(numbers, num_parallel_calls=auto))
    return {
        "plain": plain,
        "prefetch": plain.prefetch(auto),
        "parallel": parallel.prefetch(auto),
    }


def check(batches):
    place = {word: i for i, word in enumerate(lines.vocabulary())}
    open_rows = {}
    expected = []
    with open(lines.file(), "rb") as file:
        for words in map(bytes.split, file):
            if len(words) > LONGEST:
                continue
            bucket = sum(len(words) >= edge for edge in BOUNDARIES)
            rows = open_rows.setdefault(bucket, [])
            rows.append(words)
            if len(rows) == BATCH:
                expected.append(open_rows.pop(bucket))
            if len(expected) == 20:
                break
    for want in expected:
        batch = next(batches)
        assert batch.shape == (BATCH, max(map(len, want)))
        for got, row in zip(batch, want, strict=True):
            assert not got[len(row) :].any()
            for number, word in zip(got, row, strict=False):
                if word in place:
                    assert number == place[word]
                else:
                    assert 0 <= number - len(place) < 10
