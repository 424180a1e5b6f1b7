"""Element types and conversions to them."""

import pickle

import numpy as np
import pytest

import penstock as ps
from penstock import _dtypes


@pytest.mark.parametrize(
    ("given", "want"),
    [
        (int, ps.int64),
        (float, ps.float64),
        (bool, ps.bool),
        (str, ps.string),
        (bytes, ps.string),
        ("float32", ps.float32),
        (np.int8, ps.int8),
        (np.dtype(">i4"), ps.int32),
        (np.dtype("S5"), ps.string),
        (np.dtype("U5"), ps.string),
        (object, ps.string),
        (ps.uint16, ps.uint16),
    ],
)
def test_of(given, want):
    assert ps.DType.of(given) is want
    assert want == given


@pytest.mark.parametrize("given", ["no", np.dtype("M8[s]"), np.longdouble])
def test_of_refuses(given):
    with pytest.raises(TypeError):
        ps.DType.of(given)


def test_pickles_as_itself():
    for dtype in _dtypes.ALL:
        assert pickle.loads(pickle.dumps(dtype)) is dtype


def test_is_not_equal_to_other_things():
    assert ps.int64 != ps.int32
    assert ps.int64 != "something"


def test_strings_become_bytes():
    array = _dtypes.to_array(["a", "ä\0"])
    assert array.tolist() == [b"a", "ä\0".encode()]
    assert _dtypes.to_array("x\0")[()] == b"x\0"
    assert _dtypes.to_array(np.array([["u"]])).tolist() == [[b"u"]]


@pytest.mark.parametrize("value", [object(), [object()], ["a", 1], {1: 2}])
def test_other_objects_are_refused(value):
    with pytest.raises(TypeError):
        _dtypes.to_array(value)


@pytest.mark.parametrize(
    ("value", "dtype", "want"),
    [
        (1, ps.float32, np.float32(1)),
        (3, ps.uint8, np.uint8(3)),
        ([1, 2], ps.int16, np.array([1, 2], np.int16)),
        (np.float64(1.5), ps.float32, np.float32(1.5)),
        (np.int64(7), ps.int32, np.int32(7)),
        ([], ps.int64, np.zeros(0, np.int64)),
    ],
)
def test_converts(value, dtype, want):
    got = _dtypes.to_array(value, dtype)
    assert got.dtype == dtype.dtype
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (1.5, ps.int64),
        (300, ps.uint8),
        (-1, ps.uint8),
        ("x", ps.int64),
        (True, ps.int64),
        (1, ps.string),
        (1j, ps.float64),
        (np.float32(1), ps.int32),
    ],
)
def test_refuses_to_convert(value, dtype):
    with pytest.raises(TypeError):
        _dtypes.to_array(value, dtype)
