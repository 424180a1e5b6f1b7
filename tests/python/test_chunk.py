"""A chunk's bytes: what is written is what is read."""

import struct

import numpy as np
import pytest
from pipelines import assert_equal

import penstock as ps
from penstock import _chunk, _dtypes
from penstock._chunk import Column, RowError


def round_trip(columns, rows, errors=()):
    return _chunk.decode(_chunk.Encoded(columns, rows, errors).to_bytes())


@pytest.mark.parametrize("dtype", _dtypes.ALL[:-1], ids=repr)
@pytest.mark.parametrize("shape", [(), (3,), (2, 0), (2, 3)])
def test_dense(dtype, shape):
    values = np.arange(4 * int(np.prod(shape))).reshape(4, *shape)
    values = values.astype(dtype.dtype)
    columns, rows, errors = round_trip([Column(dtype, values)], 4)
    assert (rows, errors) == (4, [])
    assert_equal(columns[0], list(values))


def test_strings():
    values = _dtypes.to_array([["a", ""], ["ccc\0", "d"]])
    columns, _, _ = round_trip(
        [Column(ps.string, values), Column(ps.string, values[:, 0])], 2
    )
    assert_equal(columns[0], list(values))
    assert columns[1] == [b"a", b"ccc\0"]


def test_ragged():
    numbers = [np.arange(n, dtype=np.int16) for n in (3, 0, 2)]
    texts = [_dtypes.to_array([["x"] * n]) for n in (2, 1, 3)]
    columns, _, _ = round_trip(
        [
            _chunk.gather(ps.int16, numbers),
            _chunk.gather(ps.string, texts),
        ],
        3,
    )
    assert_equal(columns[0], numbers)
    assert_equal(columns[1], texts)


def test_errors():
    errors = [RowError(0, 3, "bad"), RowError(2, 5, "gone: ä")]
    column = Column(ps.int64, np.zeros(3, np.int64))
    assert round_trip([column], 3, errors)[2] == errors


def test_no_rows_and_no_columns():
    assert round_trip([], 5)[:2] == ([], 5)
    assert round_trip([Column(ps.int8, np.zeros(0, np.int8))], 0)[0] == [[]]


def test_layout_is_the_documented_one():
    data = _chunk.Encoded(
        [Column(ps.int32, np.array([7, 8], np.int32))], 2
    ).to_bytes()
    assert data[:4] == b"PSK1"
    assert struct.unpack_from("<IQQQQ", data, 4) == (1, 2, len(data), 0, 0)
    dtype, layout, rank = data[40:43]
    assert (dtype, layout, rank) == (4, 0, 0)
    offset, size = struct.unpack_from("<QQ", data, 48)
    assert offset % 64 == 0
    assert data[offset : offset + size] == struct.pack("<ii", 7, 8)
    assert len(data) % 8 == 0


def test_ranks_must_be_equal():
    with pytest.raises(ps.InvalidArgumentError, match="ranks"):
        _chunk.gather(ps.int64, [np.zeros(1), np.zeros((1, 1))])


@pytest.mark.parametrize("data", [b"", b"x" * 40, b"PSK1" + b"\xff" * 36])
def test_damage_is_noticed(data):
    with pytest.raises(ps.DataLossError):
        _chunk.decode(data)
