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


def sample(dtype):
    """A matrix of `dtype` with its extremes."""
    if dtype == ps.string:
        values = [b"", b"a\0", "\xe4".encode(), b"\xff", b"x" * 100, b"b"]
        array = np.empty(6, object)
        array[:] = values
        return array.reshape(3, 2)
    plain = dtype.dtype
    if plain.kind == "b":
        values = [True, False, True, True, False, False]
    elif plain.kind in "iu":
        limits = np.iinfo(plain)
        values = [limits.min, limits.max, 0, 1, 2, 3]
    elif plain.kind == "c":
        values = [0, 1j, -1.5 + 2j, np.inf, -np.inf * 1j, 3]
    else:
        values = [0, -0.0, 1.5, np.inf, -np.inf, np.nan]
    with np.errstate(invalid="ignore"):
        return np.array(values).astype(plain).reshape(3, 2)


@pytest.mark.parametrize("dtype", _dtypes.ALL, ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("way", ["slices", "map", "batch", "generator", "list"])
def test_round_trips(dtype, way):
    array = sample(dtype)
    if way == "generator":
        ds = ps.Dataset.from_generator(
            lambda: iter(array), output_signature=ps.TensorSpec((2,), dtype)
        )
    elif way == "list":
        ds = ps.Dataset.from_list(list(array))
    else:
        ds = ps.Dataset.from_tensor_slices(array)
    # Without ml_dtypes a bfloat16 is a uint16 to numpy, and so to slices.
    is_itself = way == "generator" or array.dtype != np.uint16
    if is_itself:
        assert ds.element_spec == ps.TensorSpec((2,), dtype)
    if way == "map":
        ds = ds.map(lambda x: (x, x))
        got = [pair[1] for pair in ds]
        assert ds.element_spec[0] == ds.element_spec[1]
    elif way == "batch":
        (got,) = ds.batch(3)
    else:
        got = list(ds)
    got = np.stack(list(got))
    assert got.dtype == array.dtype
    if dtype == ps.string:
        assert got.tolist() == array.tolist()
    else:
        assert got.tobytes() == array.tobytes()


def test_bfloat16_through_functions():
    ds = ps.Dataset.range(4).map(lambda x: ps.cast(x, ps.bfloat16) / 2)
    assert ds.element_spec.dtype == ps.bfloat16
    (got,) = ds.batch(4)
    assert got.dtype == ps.bfloat16.dtype
    bits = got.view(np.uint16).astype(np.uint32) << 16
    assert bits.view(np.float32).tolist() == [0, 0.5, 1, 1.5]


def test_bfloat16_without_ml_dtypes(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    assert _dtypes._numpy_bfloat16() == np.uint16
