"""Sampling, choosing, unique, resampling: as tf.data's tests have them."""

import collections
import random

import numpy as np
import pytest
from pipelines import ints

import penstock as ps


def constants(*values):
    return [ps.Dataset.from_tensors(v).repeat() for v in values]


@pytest.mark.parametrize("as_dataset", [False, True])
def test_sample_by_weight(as_dataset):
    weights = np.array([0.1, 0.6, 0.3])
    given = ps.Dataset.from_tensors(weights).repeat() if as_dataset else weights
    ds = ps.Dataset.sample_from_datasets(constants(0, 1, 2), given, seed=3)
    counts = np.bincount(ints(ds.take(10_000)), minlength=3)
    chi_square = ((counts - 10_000 * weights) ** 2 / (10_000 * weights)).sum()
    assert chi_square < 13.8


def test_sample_ends():
    a, b = ps.Dataset.range(5), ps.Dataset.range(10, 13)
    ds = ps.Dataset.sample_from_datasets([a, b], seed=1)
    assert sorted(ints(ds)) == [0, 1, 2, 3, 4, 10, 11, 12]
    assert len(ds) == 8
    stops = ps.Dataset.sample_from_datasets(
        [a, ps.Dataset.counter(100)], seed=1, stop_on_empty_dataset=True
    )
    assert [x for x in ints(stops) if x < 100] == [0, 1, 2, 3, 4]


def test_zero_weights():
    a, b = ps.Dataset.range(3), ps.Dataset.range(10, 13)
    ds = ps.Dataset.sample_from_datasets([a, b], [0.0, 1.0])
    assert ints(ds) == [10, 11, 12]
    assert ints(ps.Dataset.sample_from_datasets([a, b], [0.0, 0.0])) == []


def test_sample_repeats_itself_unless_told():
    def make(**arguments):
        return ps.Dataset.sample_from_datasets(
            constants(0, 1), seed=5, **arguments
        ).take(50)

    ds = make()
    assert ints(ds) == ints(ds) == ints(make(rerandomize_each_iteration=False))
    ds = make(rerandomize_each_iteration=True)
    assert ints(ds) != ints(ds)


def test_sample_refuses():
    a = ps.Dataset.range(3)
    sample = ps.Dataset.sample_from_datasets
    with pytest.raises(ps.InvalidTypeError, match="numbers"):
        sample([a, a], ["1", "2"])
    with pytest.raises(ps.InvalidArgumentError, match="one weight per"):
        sample([a, a], [0.5])
    with pytest.raises(ps.InvalidArgumentError, match="at least one"):
        sample([])
    with pytest.raises(ps.InvalidTypeError, match="list of datasets"):
        sample(a)
    with pytest.raises(ps.InvalidTypeError, match="same dtypes"):
        sample([a, ps.Dataset.from_tensors("x")])
    with pytest.raises(ps.InvalidArgumentError, match="at least 0"):
        sample([a, a], [0.5, -0.5])


def test_choose():
    words = [ps.Dataset.from_tensors(w).repeat() for w in ("foo", "bar", "baz")]
    choices = ps.Dataset.range(3).repeat(2)
    ds = ps.Dataset.choose_from_datasets(words, choices)
    assert list(ds) == [b"foo", b"bar", b"baz"] * 2
    empty = ps.Dataset.choose_from_datasets(words, ps.Dataset.range(0))
    assert list(empty) == []


def test_choose_on_empty():
    datasets = [ps.Dataset.range(1), ps.Dataset.range(10, 13)]
    choices = ps.Dataset.from_tensor_slices([0, 1, 0, 1, 1])
    choose = ps.Dataset.choose_from_datasets
    assert ints(choose(datasets, choices)) == [0, 10]
    assert ints(choose(datasets, choices, False)) == [0, 10, 11, 12]


def test_choices_must_be_numbers_of_datasets():
    a = ps.Dataset.range(3)
    choose = ps.Dataset.choose_from_datasets
    with pytest.raises(ps.InvalidTypeError, match="int64"):
        choose([a], ps.Dataset.from_tensors(0.0))
    with pytest.raises(ps.InvalidTypeError, match="int64"):
        choose([a], ps.Dataset.from_tensors([0]))
    it = iter(choose([a], ps.Dataset.from_tensor_slices([0, 1, 0])))
    assert next(it) == 0
    with pytest.raises(ps.InvalidArgumentError, match="from 0 to 0"):
        next(it)
    assert ints(it) == [1]


def test_unique():
    assert ints(
        ps.Dataset.from_tensor_slices([1, 1, 2, 3, 5, 8, 2, 1]).unique()
    ) == [1, 2, 3, 5, 8]
    assert list(
        ps.Dataset.from_tensor_slices(["hello", "hello", "world"]).unique()
    ) == [b"hello", b"world"]
    with pytest.raises(ps.InvalidTypeError, match="float"):
        ps.Dataset.from_tensors(1.0).unique()


def test_assert_cardinality():
    ds = ps.Dataset.range(10).filter(lambda x: x < 4)
    assert ints(ds.assert_cardinality(4)) == [0, 1, 2, 3]
    assert len(ds.assert_cardinality(4)) == 4
    for wrong, words in ((3, "more than 3"), (5, "only 4")):
        with pytest.raises(ps.FailedPreconditionError, match=words):
            list(ds.assert_cardinality(wrong))
    endless = ds.repeat().assert_cardinality(ps.INFINITE_CARDINALITY)
    assert endless.cardinality() == ps.INFINITE_CARDINALITY


@pytest.mark.parametrize("initial", [None, [0.2] * 5])
@pytest.mark.parametrize(
    "target",
    [[0.2, 0.1, 0.4, 0.1, 0.2], [0.0, 0.0, 0.0, 0.0, 1.0]],
)
def test_rejection_resample(initial, target):
    data = np.random.default_rng(1).integers(0, 5, 20_000)
    ds = ps.Dataset.from_tensor_slices(data).rejection_resample(
        lambda c: c, target, initial, seed=27
    )
    found = collections.Counter(int(c) for c, _ in ds)
    total = sum(found.values())
    assert total > 2000
    share = np.array([found[i] / total for i in range(5)])
    np.testing.assert_allclose(share, target, atol=0.03)


def test_rejection_resample_keeps_elements():
    ds = ps.Dataset.from_tensor_slices(
        (np.arange(100), ["x"] * 100)
    ).rejection_resample(lambda i, _: i % 2, [0.5, 0.5], [0.5, 0.5])
    pairs = list(ds)
    assert len(pairs) == 100
    kind, (number, text) = pairs[3]
    assert (int(kind), int(number), text) == (1, 3, b"x")


def test_rejection_resample_refuses():
    ds = ps.Dataset.range(3)
    with pytest.raises(ps.InvalidArgumentError, match="target_dist"):
        ds.rejection_resample(lambda x: x, [1, 2])
    with pytest.raises(ps.InvalidArgumentError, match="initial_dist"):
        ds.rejection_resample(lambda x: x, [0.5, 0.5], [1.0])


def test_rejection_resample_calls_what_may_differ_for_each_element():
    """A function that draws is not recorded, but runs as Python."""
    ds = ps.Dataset.range(200).rejection_resample(
        lambda x: np.int64(random.randint(0, 1)),
        [0.5, 0.5],
        initial_dist=[0.5, 0.5],
    )
    assert "runs as Python" in ds.describe()
    assert {int(kind) for kind, _ in ds} == {0, 1}


def test_whole_numbers_are_weights():
    def draw(weights):
        datasets = [ps.Dataset.from_tensors(i).repeat() for i in (0, 1)]
        ds = ps.Dataset.sample_from_datasets(datasets, weights, seed=1)
        return [int(x) for x in ds.take(40)]

    assert draw([3, 1]) == draw([0.75, 0.25])


def test_what_differs_between_datasets_is_named():
    numbers = ps.Dataset.range(3)
    a = numbers.map(lambda x: {"u": (x, x), "v": x})
    b = numbers.map(lambda x: {"u": (x, ps.cast(x, ps.float32)), "v": x})
    with pytest.raises(ps.InvalidTypeError) as caught:
        ps.Dataset.sample_from_datasets([a, a, b])
    assert "component ['u'][1] of dataset 0 is int64" in str(caught.value)
    assert "of dataset 2 float32" in str(caught.value)
    assert "ps.cast(x, ps.int64)" in str(caught.value)
    with pytest.raises(ps.InvalidTypeError, match="dataset 1 has") as caught:
        ps.Dataset.choose_from_datasets([a, numbers], numbers)
    assert "one structure" in str(caught.value)
