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


def _of_shapes(*shapes):
    return Dataset.from_generator(
        lambda: iter([(np.zeros(shape), 0) for shape in shapes]),
        output_signature=(
            ps.TensorSpec(None, ps.float64),
            ps.TensorSpec((), ps.int64),
        ),
    )


@pytest.mark.parametrize(
    ("shapes", "says"),
    [
        (
            ((4, 4, 3), (4, 5, 3)),
            [
                "in component 0, elements of a batch must have one shape; got "
                "(4, 4, 3) and (4, 5, 3) at position 1 of the batch\n",
                "Use padded_batch()",
            ],
        ),
        (
            ((4, 4, 3), (5,)),
            [
                "in component 0, elements of a batch must have one rank; got "
                "(4, 4, 3) and (5,)\n",
                "reshape() or expand_dims()",
            ],
        ),
    ],
)
def test_unequal_shapes_are_named(shapes, says):
    with pytest.raises(ps.InvalidArgumentError) as caught:
        list(_of_shapes(*shapes).batch(2))
    for text in says:
        assert text in str(caught.value)


def test_unequal_ranks_in_a_window_are_named():
    windows = _of_shapes((4, 3), (5,)).map(lambda x, _: x).window(2)
    with pytest.raises(ps.InvalidArgumentError, match=r"rank; got \(4, 3\) "):
        list(windows)


def test_shapes_that_cannot_be_broadcast_are_named():
    with pytest.raises(
        ps.InvalidArgumentError,
        match=r"equal or 1, .*; got shapes \(4, 4, 3\) and \(5,\)",
    ):
        ps.add(np.zeros((4, 4, 3)), np.zeros(5))


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


# Large batches are computed where the trainer reads them.
LARGE = 100_000


def _large(i):
    x = ps.fill([LARGE], ps.cast(i, ps.float32))
    for _ in range(5):  # so much work that it is shared between threads
        x = ps.sqrt(x * x)
    return {
        "x": x,
        "name": ps.strings.as_string(i),
        "i": i,
    }


def _check_large(batches, numbers):
    seen = []
    for batch in batches:
        assert batch["x"].shape == (len(batch["i"]), LARGE)
        assert (batch["x"] == batch["i"][:, None]).all()
        assert [int(name) for name in batch["name"]] == batch["i"].tolist()
        seen += batch["i"].tolist()
    assert seen == numbers


@pytest.mark.parametrize("parallel", [None, 1, 3])
@pytest.mark.parametrize("prefetch", [False, True])
def test_large_batches(parallel, prefetch):
    ds = Dataset.range(100).map(_large, num_parallel_calls=parallel)
    ds = ds.batch(8)
    if prefetch:
        ds = ds.prefetch(2)
    _check_large(list(ds), list(range(100)))  # all of them held


def test_large_batches_of_batches():
    ds = Dataset.range(96).map(_large, num_parallel_calls=2).batch(4)
    batches = list(ds.batch(3))
    assert batches[0]["x"].shape == (3, 4, LARGE)
    flat = [{k: v[i] for k, v in b.items()} for b in batches for i in range(3)]
    _check_large(flat, list(range(96)))


def test_large_batches_after_errors():
    def numbers(i):
        ok = ps.io.decode_raw(
            ps.where(i % 7 == 3, b"123", b"12345678"), ps.int64
        )
        return _large(i + ok[0] * 0)

    ds = Dataset.range(100).map(numbers, num_parallel_calls=2)
    ds = ds.ignore_errors().batch(8)
    _check_large(list(ds), [i for i in range(100) if i % 7 != 3])


def test_large_batches_are_the_same_from_a_cache():
    ds = Dataset.range(40).map(_large, num_parallel_calls=2)
    ds = ds.batch(8).cache().repeat(3)
    _check_large(list(ds), list(range(40)) * 3)


def test_large_batches_resume():
    ds = Dataset.range(64).map(_large, num_parallel_calls=2).batch(8)
    it = iter(ds)
    first = [next(it) for _ in range(3)]
    again = iter(ds)
    again.load_state_dict(it.state_dict())
    _check_large(first + list(again), list(range(64)))


def test_rows_that_change_their_size():
    def squares(n):
        return ps.sqrt(ps.sqrt(ps.fill([n], ps.cast(n, ps.float64)) ** 4))

    sizes = [70_000 if i // 10 % 2 else 40_000 for i in range(80)]
    ds = Dataset.from_tensor_slices(sizes)
    ds = ds.map(squares, num_parallel_calls=2)
    got = list(ds.batch(5))
    assert [len(row) for batch in got for row in batch] == sizes
    assert all((batch == batch.shape[1]).all() for batch in got)
