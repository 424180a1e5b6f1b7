"""Structures: flat and back, as messages and as rows."""

import numpy as np
import pytest
from pipelines import Pair, Point, assert_equal

import penstock as ps
from penstock import _spec

X = ps.TensorSpec((), np.int64)
Y = ps.TensorSpec((None, 3), np.float32)
Z = ps.TensorSpec(None, str)

STRUCTURES = {
    "tensor": X,
    "tuple": (X, Y),
    "empty": (),
    "none": None,
    "dict": {"b": X, "a": Y},
    "named": Point(X, Z),
    "dataclass": Pair(X, Y),
    "nested": ({"k": (X, None), "j": Point(Y, {"i": Z})}, Pair((), X)),
}


@pytest.fixture(params=STRUCTURES.values(), ids=STRUCTURES.keys())
def structure(request):
    return request.param


def test_message_and_back(structure):
    types = _spec.types_of(structure)
    back = _spec.from_json(_spec.to_json(structure), types)
    assert back == structure
    if isinstance(structure, dict):
        assert list(back) == list(structure)


def test_flat_and_back(structure):
    assert _spec.pack(structure, _spec.flatten(structure)) == structure


def test_rows_are_put_together(structure):
    leaves = len(_spec.flatten(structure))
    columns = [[f"{i}/{row}" for row in range(3)] for i in range(leaves)]
    rows = _spec.assembler(structure)(columns, 3)
    for row, element in enumerate(rows):
        want = _spec.pack(structure, [column[row] for column in columns])
        assert_equal(element, want)


def test_columns_are_in_sorted_order_of_keys():
    assert _spec.flatten({"b": 1, "a": 2}) == [2, 1]
    message = _spec.to_json({"b": X, "a": Y})["dict"]
    assert message["keys"] == ["a", "b"]
    assert message["order"] == [1, 0]


def test_keys_must_be_strings():
    with pytest.raises(TypeError, match="keys"):
        _spec.flatten({1: X})


def test_lists_are_leaves():
    assert _spec.flatten(([1, 2], 3)) == [[1, 2], 3]


@pytest.mark.parametrize(
    "value",
    [1, (1,), {"a": 1}, {"a": 1, "c": 2}, {"a": 1, "b": 2, "c": 3}, None],
)
def test_another_structure_is_refused(value):
    with pytest.raises(ps.InvalidTypeError):
        _spec.flatten_like({"a": X, "b": Y}, value)


def test_named_types_are_found_by_import():
    assert _spec.find_type("pipelines:Point", {}) is Point
    with pytest.raises(TypeError, match="nowhere:Thing"):
        _spec.find_type("nowhere:Thing", {})


def test_tensor_spec():
    assert ps.TensorSpec([2, -1], "int32").shape == (2, None)
    assert ps.TensorSpec(3).shape == (3,)
    assert repr(Y) == "TensorSpec(shape=(None, 3), dtype=ps.float32)"
    assert Y.accepts((5, 3))
    assert not Y.accepts((5, 4))
    assert not Y.accepts((3,))
    assert Z.accepts((1, 2, 3))
    assert len({X, ps.TensorSpec((), "int64")}) == 1
