"""What Python functions get and give as arrays: whose memory, which shapes."""

import numpy as np
import pytest

import penstock as ps
from penstock import _chunk
from penstock._user_rows import DenseRows

Dataset = ps.Dataset


def of_shape(shape):
    return ps.TensorSpec(shape, ps.int64)


def mapped(function, spec, rows=20):
    function = ps.python_function(function, output_signature=spec)
    return Dataset.range(rows).map(function)


@pytest.mark.parametrize("changes_at", [0, 1, 7, 19])
def test_rows_of_another_shape_come_after_rows_of_one(changes_at):
    def grown(x):
        return np.full(3 if x < changes_at else 5, x)

    rows = list(mapped(grown, of_shape((None,))))
    assert [row.tolist() for row in rows] == [
        [x] * (3 if x < changes_at else 5) for x in range(20)
    ]


@pytest.mark.parametrize("at", [0, 1, 19])
def test_errors_among_arrays_keep_their_places(at):
    def failing(x):
        if x == at:
            raise ValueError("not this one")
        return np.full((2, 2), x), x

    ds = mapped(failing, (of_shape((2, 2)), of_shape(())))
    found = list(ds.ignore_errors())
    assert [int(y) for _, y in found] == [x for x in range(20) if x != at]
    assert all((x == y).all() for x, y in found)


def test_a_buffer_given_again_and_again_is_not_shared():
    buffer = np.zeros(4, np.int64)

    def same(x):
        buffer[:] = x
        return buffer

    rows = [row.tolist() for row in mapped(same, of_shape((4,)))]
    assert rows == [[x] * 4 for x in range(20)]


def test_arguments_may_be_kept_and_changed():
    kept = []

    def keeping(x):
        kept.append(x)
        x += 1
        return np.array([each[0] for each in kept])

    ds = Dataset.from_tensor_slices(np.arange(60).reshape(20, 3))
    function = ps.python_function(keeping, output_signature=of_shape((None,)))
    for i, row in enumerate(ds.map(function)):
        seen = row.tolist()  # of one process, which need not see all
        assert seen[-1] == 3 * i + 1
        assert seen == sorted(seen) and {x % 3 for x in seen} == {1}


@pytest.mark.parametrize("items", [1, 100, 30_000])
def test_arrays_of_any_size_and_layout(items):
    def turned(x):
        return np.arange(2 * items).reshape(2, items).T + x

    rows = list(mapped(turned, of_shape((items, 2))))
    assert len(rows) == 20
    for x, row in enumerate(rows):
        assert (row == np.arange(2 * items).reshape(2, items).T + x).all()


def test_strings_and_arrays_together():
    def named(x):
        return np.full(3, x), b"n" * int(x)

    spec = of_shape((3,)), ps.TensorSpec((), ps.string)
    rows = list(mapped(named, spec))
    assert [(a.tolist(), b) for a, b in rows] == [
        ([x] * 3, b"n" * x) for x in range(20)
    ]


def test_dense_rows_lie_where_they_are_to_be_written():
    out = memoryview(bytearray(4096))
    rows = DenseRows(3, out)
    specs = [of_shape((4,)), ps.TensorSpec((), ps.float32)]
    rows.add_error(3, "the first")
    for i in (1, 2):
        rows.add([np.full(4, i), np.array(i / 2, np.float32)])
    encoded = rows.chunk(specs)
    before = bytes(out)
    encoded.write(out[: encoded.size])
    columns, count, errors = _chunk.decode(bytes(out[: encoded.size]))
    assert count == 3 and [error.row for error in errors] == [0]
    assert [row.tolist() for row in columns[0][1:]] == [[1] * 4, [2] * 4]
    assert [float(x) for x in columns[1][1:]] == [0.5, 1.0]
    offsets, _ = _chunk.dense_offsets([(3, 4), (3,)], [np.dtype("i8")] * 2)
    values = slice(offsets[0], offsets[0] + 96)
    assert before[values] == bytes(out)[values] != bytes(96)
