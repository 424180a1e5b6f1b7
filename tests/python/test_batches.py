"""Batches: what each transformation that makes or cuts them gives."""

import numpy as np
import pytest
from pipelines import ints, lists

import penstock as ps

Dataset = ps.Dataset


def test_batch():
    assert lists(Dataset.range(5).batch(2)) == [[0, 1], [2, 3], [4]]
    assert lists(Dataset.range(5).batch(2, True)) == [[0, 1], [2, 3]]
    assert lists(Dataset.range(5).batch(9)) == [[0, 1, 2, 3, 4]]
    assert lists(Dataset.range(0).batch(2)) == []


def test_batch_spec():
    ds = Dataset.range(5)
    assert ds.batch(2).element_spec.shape == (None,)
    assert ds.batch(2, drop_remainder=True).element_spec.shape == (2,)


def test_batch_of_structures():
    ds = Dataset.from_tensor_slices({"a": [1, 2, 3], "b": ["x", "y", "z"]})
    first, second = ds.batch(2)
    assert first["a"].tolist() == [1, 2]
    assert first["b"].tolist() == [b"x", b"y"]
    assert second["b"].tolist() == [b"z"]


@pytest.mark.parametrize("size", [0, -1, 1.5, "x", None, [2]])
def test_batch_refuses(size):
    for method in (Dataset.batch, Dataset.padded_batch):
        with pytest.raises(ValueError, match="batch_size"):
            method(Dataset.range(5), size)


def test_batch_of_different_shapes_is_an_error():
    ds = Dataset.from_list([[1], [2, 3], [4], [5]]).batch(2)
    elements = iter(ds)
    with pytest.raises(ps.InvalidArgumentError):
        next(elements)
    assert next(elements).tolist() == [[4], [5]]


def test_unbatch():
    ds = Dataset.from_tensor_slices(([[1, 2], [3, 4]], [["a", "b"]] * 2))
    assert list(ds.unbatch()) == [(1, b"a"), (2, b"b"), (3, b"a"), (4, b"b")]
    assert ints(Dataset.range(7).batch(3).unbatch()) == list(range(7))


def test_unbatch_refuses():
    with pytest.raises(ValueError):
        Dataset.range(3).unbatch()
    with pytest.raises(ValueError):
        Dataset.from_tensors(([1, 2], [1, 2, 3])).unbatch()


@pytest.mark.parametrize(
    ("sizes", "want"),
    [
        (2, [[0, 1], [2, 3], [4, 5], [6]]),
        ([2], [[0, 1], [2, 3], [4, 5], [6]]),
        ([1, 3], [[0], [1, 2, 3], [4], [5, 6]]),
        ([2, 0], [[0, 1], [], [2, 3], [], [4, 5], [], [6]]),
    ],
)
def test_rebatch(sizes, want):
    assert lists(Dataset.range(7).batch(4).rebatch(sizes)) == want


def test_rebatch_drops():
    ds = Dataset.range(7).batch(4).rebatch(2, drop_remainder=True)
    assert lists(ds) == [[0, 1], [2, 3], [4, 5]]


def test_padded_batch():
    ds = Dataset.from_list([[1], [2, 3], [4, 5, 6]])
    assert lists(ds.padded_batch(2)) == [[[1, 0], [2, 3]], [[4, 5, 6]]]
    assert lists(ds.padded_batch(3, [4], 9)) == [
        [[1, 9, 9, 9], [2, 3, 9, 9], [4, 5, 6, 9]]
    ]
    assert lists(ds.padded_batch(2, (None,), drop_remainder=True)) == [
        [[1, 0], [2, 3]]
    ]


def test_padded_batch_of_structures():
    ds = Dataset.from_list(
        [{"a": [1], "b": ["x", "y"]}, {"a": [2, 3], "b": []}][:1]
    )
    padded = ds.padded_batch(
        1, {"a": [2], "b": [3]}, {"a": np.int64(-1), "b": "-"}
    )
    (element,) = padded
    assert element["a"].tolist() == [[1, -1]]
    assert element["b"].tolist() == [[b"x", b"y", b"-"]]


@pytest.mark.parametrize(
    ("shapes", "values"),
    [
        ([[1], [2]], None),
        ([None, None], None),
        (None, "x"),
        (None, np.float32(1)),
        (None, 1.5),
    ],
)
def test_padded_batch_refuses(shapes, values):
    ds = Dataset.from_list([[1], [2, 3]])
    with pytest.raises(ValueError):
        ds.padded_batch(2, shapes, values)


def test_padded_shape_smaller_than_the_data_is_an_error():
    ds = Dataset.from_list([[1], [2, 3]]).padded_batch(2, [1])
    with pytest.raises(ps.PenstockError):
        list(ds)


def test_padded_batch_keeps_known_dimensions():
    ds = Dataset.from_tensor_slices(np.zeros((4, 3), np.float32))
    assert ds.padded_batch(2).element_spec == ps.TensorSpec(
        (None, 3), np.float32
    )
    given = ds.padded_batch(2, padded_shapes=(None,), drop_remainder=True)
    assert given.element_spec == ps.TensorSpec((2, 3), np.float32)
