"""JSON texts as typed values."""

import json
import random

import numpy as np
import pytest
from test_records import results

import penstock as ps

SCHEMA = {
    "id": ps.int64,
    "user": {"name": ps.string, "age": ps.io.FixedLenFeature([], ps.int32, 18)},
    "tags": ps.TensorSpec([None], ps.string),
    "box": ps.TensorSpec([2, 2], ps.float32),
}


def texts(*values):
    lines = [
        v if isinstance(v, bytes) else json.dumps(v).encode() for v in values
    ]
    return ps.Dataset.from_tensor_slices(np.array(lines, object))


def good(**changes):
    value = {
        "id": 1 << 60,
        "user": {"name": 'J"ö\u20ac'},
        "tags": ["a", ""],
        "box": [[1, 2.5], [3, 4]],
        "more": [{"x": None}],
    }
    return {**value, **changes}


def test_values():
    ds = texts(good(), good(tags=[], user={"name": "x", "age": 3}))
    first, second = ds.map(lambda t: ps.io.decode_json(t, SCHEMA))
    assert first["id"] == 1 << 60
    assert first["user"]["name"] == 'J"ö\u20ac'.encode()
    assert first["user"]["age"] == 18
    assert list(first["tags"]) == [b"a", b""]
    np.testing.assert_array_equal(first["box"], [[1, 2.5], [3, 4]])
    assert first["box"].dtype == np.float32
    assert second["tags"].shape == (0,)
    assert second["user"]["age"] == 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "expected a JSON text; found 0 bytes"),
        (b"{", "expected a JSON text; found 1 bytes"),
        (b"[" * 200 + b"]" * 200, "expected a JSON text"),
        (b"\xff", "expected a JSON text"),
        (good(id=1.5), '"/id" must be int64\\(\\); found a number with a frac'),
        (good(id="1"), '"/id" must be int64\\(\\); found a string'),
        (good(id=None), '"/id" must be int64\\(\\); found null'),
        (
            {"nr": 1, "text": ""},
            '"/id" must be int64\\(\\); found no such value; there are "nr", '
            '"text"\n',
        ),
        ({}, '"/id" must be int64\\(\\); found no such value'),
        (
            good(user=1),
            '"/user/name" must be string\\(\\); found no such value',
        ),
        (good(user={"name": "", "age": 1 << 40}), '"/user/age" must be int32'),
        (
            good(box=[[1, 2]]),
            '"/box" must be float32\\(2, 2\\); found an array',
        ),
        (good(box=[[1], [2, 3]]), "found an array of 1"),
        (good(tags="a"), '"/tags" must be string\\(None,\\); found a string'),
    ],
)
def test_errors_say_where(text, message):
    ds = texts(good(), text, good()).map(lambda t: ps.io.decode_json(t, SCHEMA))
    iterator = iter(ds)
    next(iterator)
    with pytest.raises(ps.InvalidArgumentError, match=message):
        next(iterator)
    assert next(iterator)["id"] == 1 << 60


def test_ragged_arrays_are_errors():
    spec = {"x": ps.TensorSpec([None, None], ps.int64)}
    with pytest.raises(
        ps.InvalidArgumentError, match="one length; found 1 and"
    ):
        ps.io.decode_json(b'{"x": [[1], [2, 3]]}', spec)
    found = ps.io.decode_json(b'{"x": []}', spec)["x"]
    assert found.shape == (0, 0)


def test_every_dtype():
    names = "int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64"
    for name in [*names.split(), "bool"]:
        value = True if name == "bool" else 7
        text = json.dumps({"a": value}).encode()
        found = ps.io.decode_json(text, {"a": name})["a"]
        assert found == value
        assert found.dtype == name
    big = b'{"a": 18446744073709551615}'
    assert ps.io.decode_json(big, {"a": ps.uint64})["a"] == (1 << 64) - 1


def test_every_truncation():
    text = json.dumps(good()).encode()
    ds = texts(*(text[:n] for n in range(len(text) + 1)))
    found = results(ds.map(lambda t: ps.io.decode_json(t, SCHEMA)))
    assert [i for i, f in enumerate(found) if f] == [len(text)]


def test_keys_with_slashes_and_wrong_schemas():
    found = ps.io.decode_json(b'{"a/b": {"~": 1}}', {"a/b": {"~": ps.int64}})
    assert found["a/b"]["~"] == 1
    for schema in ({}, {"a": {}}, {"a": ps.complex64}, {1: ps.int64}):
        with pytest.raises((ps.InvalidArgumentError, ps.InvalidTypeError)):
            ps.io.decode_json(b"{}", schema)


def test_like_pythons_json():
    chance = random.Random(1)
    values = [
        {
            "i": chance.randrange(-(1 << 63), 1 << 63),
            "f": chance.uniform(-1e300, 1e300),
            "s": "".join(chr(chance.randrange(1, 0xD7FF)) for _ in range(9)),
            "b": chance.random() < 0.5,
        }
        for _ in range(200)
    ]
    schema = {"i": ps.int64, "f": ps.float64, "s": ps.string, "b": ps.bool}
    found = texts(*values).map(lambda t: ps.io.decode_json(t, schema))
    for got, want in zip(found, values, strict=True):
        assert got == {**want, "s": want["s"].encode()}
