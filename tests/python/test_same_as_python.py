"""Recorded functions do what Python does with values, or are not recorded."""

import collections.abc
import operator

import numpy as np
import pytest

import penstock as ps

Dataset = ps.Dataset
A = np.array([[-7, 3, 5], [2, -1, 8]])


# ---- What a symbolic value would answer for itself.


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * 2 if isinstance(x, np.ndarray) else x,
        lambda x: x * 2 if isinstance(x, (list, np.ndarray)) else x,
        lambda x: x * 2 if isinstance(x, collections.abc.Sized) else x,
        lambda x: x * 2 if isinstance(x[0], np.int64) else x,
        lambda x: x * 2 if type(x) is np.ndarray else x,
        lambda x: x * 2 if x.__class__ is np.ndarray else x,
        lambda x: x * 2 if hasattr(x, "nbytes") else x,
        lambda x: x * getattr(x, "nbytes", 7),
        lambda x: x * 2 if hasattr(x[0], "__len__") else x,
        lambda x: x * 2 if np.isscalar(x[0]) else x,
        lambda x: x * 2 if isinstance(x.dtype, np.dtype) else x,
        lambda x: x * 2 if str(x.dtype) == "int64" else x,
        lambda x: x * len(operator.add(np.shape(x), (1,))),
        lambda x: x * np.size(x),
        lambda x: round(x[0] / 2),
        lambda x: np.float32(1) * round(x[0]),
        lambda x: operator.attrgetter("__class__")(x) is np.ndarray,
    ],
)
def test_questions_are_answered_for_the_value(function):
    found = Dataset.from_tensors(A[0]).map(function).get_single_element()
    wanted = np.asarray(function(A[0]))
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.uint8])
@pytest.mark.parametrize(
    "function",
    [
        lambda x: x / x.shape[0],
        lambda x: x.shape[0] * x + 1,
        lambda x: x.max() / (x.shape[0] + 2 * x.shape[0]),
        lambda x: np.float32(2) * (x.shape[0] / 2),
        lambda x: x - (x.shape[0] - 1) // 2,
        lambda x: (x.shape[0] / 4, x.shape[0] % 2),
        lambda x: np.rint(x),
        lambda x: np.fabs(x),
    ],
)
def test_sizes_take_the_type_of_what_they_meet(function, dtype):
    array = abs(A).astype(dtype)
    ds = (
        Dataset.from_tensor_slices(array)
        .ragged_batch(2)
        .map(lambda x: ps.reshape(x, (-1, 3)))
    )
    assert ds.element_spec.shape == (None, 3)
    found = ds.map(function).get_single_element()
    wanted = function(array)
    for got, want in zip(
        found if isinstance(found, tuple) else [found],
        wanted if isinstance(wanted, tuple) else [wanted],
        strict=True,
    ):
        assert got.dtype == np.asarray(want).dtype
        np.testing.assert_array_equal(got, want)


def test_structures_may_be_asked_for_their_types():
    def double(x):
        assert isinstance(x, dict)
        assert isinstance(x["a"], tuple)
        return x["a"][0] * 2 if isinstance(x["a"][1], object) else 0

    ds = Dataset.from_tensors({"a": (np.int64(3), np.int64(4))})
    assert list(ds.map(ps.native(double))) == [6]


# ---- Operators that change an array in its place.

FLOATS = np.array([[1.5, 2.5, 3.5]], np.float32)
MEAN = np.array([0.1, 0.2, 0.3])


def divided(x):
    x = x.astype(np.float32)
    x /= 255
    x -= MEAN
    return x


def through_another_name(x):
    x = x * 2
    y = x
    x += 1
    return y


def in_a_container(x):
    parts = {"a": x * 2}
    parts["a"] -= 3
    return parts["a"]


def of_the_element(x):
    y = x
    x *= 2
    return y + x


def of_less(x):
    x = x + 0
    x += np.int8(1)
    x <<= 2
    x |= 1
    x %= 7
    x //= 2
    return x


def turned(x):
    x = x.astype(np.float32).transpose(1, 0)
    x -= 1
    first = x[0]
    first *= 2
    return first


@pytest.mark.parametrize(
    "function",
    [
        divided,
        through_another_name,
        in_a_container,
        of_the_element,
        of_less,
        turned,
    ],
)
def test_arrays_are_changed_in_their_place(function):
    ds = Dataset.from_tensors(A).map(ps.native(function))
    found = ds.get_single_element()
    wanted = function(A.copy())
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found, wanted)


def view_changed(x):
    x = x * 2
    first = x[0]
    first += 1
    return x


def seen_through_a_view(x):
    x = x * 2
    flat = x.reshape(-1)
    x += 1
    return flat


def without_axes(x):
    x = x * 2
    last = x[0, ..., 0]
    last += 1
    return x


def rows_changed(x):
    x = x * 2
    for row in x:
        row += 1
    return x


@pytest.mark.parametrize(
    "function", [view_changed, seen_through_a_view, without_axes, rows_changed]
)
def test_arrays_that_share_memory_are_not_recorded(function):
    ds = Dataset.from_tensors(A).map(function)
    assert "runs as Python" in ds.describe()
    np.testing.assert_array_equal(ds.get_single_element(), function(A.copy()))


def to_integers(x):
    x /= 2
    return x


def to_more(x):
    x += np.ones((2, 1), x.dtype.name)
    return x


@pytest.mark.parametrize(
    ("function", "array"), [(to_integers, A), (to_more, FLOATS)]
)
def test_what_numpy_does_not_do_in_place_is_an_error(function, array):
    with pytest.raises(Exception) as caught:
        function(array.copy())
    kind = type(caught.value).__name__
    with pytest.raises(ps.PenstockError, match=kind):
        Dataset.from_tensors(array).map(function).get_single_element()


def test_scalars_are_named_anew():
    def half(x):
        y = x
        x /= 2
        x += np.float64(1)
        return x, y

    ds = Dataset.range(3).map(ps.native(half))
    assert list(ds) == [(1.0, 0), (1.5, 1), (2.0, 2)]
