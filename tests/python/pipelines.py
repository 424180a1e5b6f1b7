"""Pipelines and comparisons that several tests use."""

import collections
import dataclasses

import numpy as np

import penstock as ps

Point = collections.namedtuple("Point", ["x", "y"])


@dataclasses.dataclass
class Pair:
    left: object
    right: object


def ints(dataset):
    """The elements of a dataset of integers, as Python's."""
    return [int(x) for x in dataset]


def lists(dataset):
    """The elements of a dataset of arrays, as lists."""
    return [x.tolist() for x in dataset]


def assert_equal(a, b):
    """Whether two elements are the same: structure, dtypes and values."""
    assert type(a) is type(b), (a, b)
    if isinstance(a, dict):
        assert list(a) == list(b)
        for key in a:
            assert_equal(a[key], b[key])
    elif isinstance(a, (list, tuple)):
        assert len(a) == len(b), (a, b)
        for x, y in zip(a, b, strict=True):
            assert_equal(x, y)
    elif dataclasses.is_dataclass(a):
        for field in dataclasses.fields(a):
            assert_equal(getattr(a, field.name), getattr(b, field.name))
    elif isinstance(a, np.ndarray):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)
    else:
        assert a == b, (a, b)


def make_pipelines(folder):
    """A pipeline of each kind of state, by name; finite and with a seed."""
    text = folder / "lines.txt"
    text.write_text("".join(f"line {i}\n" for i in range(11)))

    if not (folder / "saved").exists():
        ps.Dataset.range(9).save(folder / "saved")

    def count(n):
        yield from range(n)

    return {
        "range": ps.Dataset.range(7),
        "map": ps.Dataset.range(7).map(lambda x: x * 2 + 1),
        "filter": ps.Dataset.range(12).filter(lambda x: x % 3 == 0),
        "batch": ps.Dataset.range(7).batch(2),
        "unbatch": ps.Dataset.range(7).batch(3).unbatch(),
        "rebatch": ps.Dataset.range(9).batch(4).rebatch([1, 2]),
        "repeat": ps.Dataset.range(3).repeat(3),
        "take_skip": ps.Dataset.range(9).skip(2).take(5),
        "shuffle": ps.Dataset.range(9).shuffle(4, seed=3).repeat(2),
        "cache": ps.Dataset.range(4).cache().repeat(2),
        "zip": ps.Dataset.zip(ps.Dataset.range(4), ps.Dataset.range(9).skip(1)),
        "concatenate": ps.Dataset.range(3).concatenate(ps.Dataset.range(4)),
        "flat_map": ps.Dataset.range(4).flat_map(
            lambda n: ps.Dataset.range(n).map(lambda i: 10 * n + i)
        ),
        "interleave": ps.Dataset.range(4).interleave(
            lambda n: ps.Dataset.range(n).map(lambda i: 10 * n + i),
            cycle_length=2,
            block_length=2,
        ),
        "scan": ps.Dataset.range(6).scan(
            np.int64(1), lambda s, x: (s + x, s * x)
        ),
        "enumerate": ps.Dataset.range(3).enumerate(5),
        "shard": ps.Dataset.range(9).shard(3, 1),
        "take_while": ps.Dataset.range(9).take_while(lambda x: x < 5),
        "prefetch": ps.Dataset.range(6).prefetch(2),
        "text": ps.TextLineDataset(text),
        "strings": ps.Dataset.from_tensor_slices(["a", "", "ccc"]),
        "dict": ps.Dataset.from_tensor_slices({"b": [1, 2], "a": [3.0, 4.0]}),
        "named": ps.Dataset.from_tensor_slices(Point([1, 2], ["u", "v"])),
        "ragged": ps.Dataset.from_list([[1], [2, 3], []]),
        "padded": ps.Dataset.range(1, 6)
        .map(lambda n: ps.arange(n))
        .padded_batch(2),
        "generator": ps.Dataset.from_generator(
            count, args=(5,), output_signature=ps.TensorSpec((), np.int64)
        ),
        "random": ps.Dataset.random(seed=5).take(4),
        "large": ps.Dataset.from_tensor_slices(np.arange(3000).reshape(3, -1)),
        "empty": ps.Dataset.range(0),
        "window": ps.Dataset.range(8)
        .window(3, shift=2)
        .flat_map(lambda w: w.batch(3)),
        "group_by_window": ps.Dataset.range(9).group_by_window(
            lambda x: x % 3, lambda key, group: group.batch(2), window_size=2
        ),
        "bucket": ps.Dataset.range(9)
        .map(lambda n: ps.arange(n % 4))
        .bucket_by_sequence_length(lambda x: ps.size(x), [2], [2, 3]),
        "token_buckets": ps.Dataset.range(19)
        .map(lambda n: ps.arange(n % 4))
        .bucket_by_sequence_length(lambda x: ps.size(x), [2], max_tokens=6),
        "batch_by_tokens": ps.Dataset.range(19)
        .map(lambda n: ps.arange(n % 4))
        .batch_by_tokens(6),
        "token_window": ps.Dataset.range(19)
        .map(lambda n: ps.arange(n % 4))
        .batch_by_tokens(6, window=8, max_rows=4),
        "sample": ps.Dataset.sample_from_datasets(
            [ps.Dataset.range(4), ps.Dataset.range(10, 14)], seed=2
        ),
        "choose": ps.Dataset.choose_from_datasets(
            [ps.Dataset.range(4), ps.Dataset.range(10, 14)],
            ps.Dataset.range(6).map(lambda x: x % 2),
        ),
        "ragged_batch": ps.Dataset.range(7)
        .map(lambda n: ps.arange(n))
        .ragged_batch(2),
        "ragged_twice": ps.Dataset.range(9)
        .map(lambda n: ps.arange(n))
        .ragged_batch(2)
        .batch(2),
        "sparse_batch": ps.Dataset.range(7)
        .map(lambda n: ps.arange(n))
        .sparse_batch(2, (None,)),
        "pack": ps.Dataset.range(9).map(lambda n: ps.arange(n)).pack(9, 2),
        "pack_split": ps.Dataset.range(6)
        .map(lambda n: ps.arange(n))
        .pack(4, split=True),
        "file_cache": ps.Dataset.range(6).cache(folder / "cached"),
        "load": ps.Dataset.load(folder / "saved").batch(2),
        "unique": ps.Dataset.range(9).map(lambda x: x % 5).unique(),
        "assert_cardinality": ps.Dataset.range(4).assert_cardinality(4),
        "resample": ps.Dataset.range(12).rejection_resample(
            lambda x: x % 2, [0.8, 0.2], seed=3
        ),
    }
