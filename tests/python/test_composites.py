"""Ragged and sparse values: batches of them, and batches that make them."""

import numpy as np
import pytest
from pipelines import assert_equal, ints, lists

import penstock as ps


def vectors(*lengths):
    return ps.Dataset.from_list([np.arange(n) for n in lengths])


def ragged(values, splits):
    return ps.Ragged(np.array(values), np.array(splits))


def test_ragged_batch():
    ds = vectors(1, 0, 3, 2).ragged_batch(3)
    assert_equal(
        list(ds),
        [
            ragged([0, 0, 1, 2], [0, 1, 1, 4]),
            ragged([0, 1], [0, 2]),
        ],
    )
    assert len(ds) == 2
    assert ds.element_spec == ps.Ragged(
        ps.TensorSpec((None,), np.int64), ps.TensorSpec((None,), np.int64)
    )
    full = vectors(1, 0, 3, 2).ragged_batch(3, drop_remainder=True)
    assert len(list(full)) == len(full) == 1
    assert full.element_spec.row_splits == ps.TensorSpec((4,), np.int64)


def test_row_splits_dtype():
    ds = vectors(1, 2).ragged_batch(2, row_splits_dtype=ps.int32)
    assert next(iter(ds)).row_splits.dtype == np.int32
    with pytest.raises(ps.InvalidTypeError, match="int32 or int64"):
        vectors(1).ragged_batch(2, row_splits_dtype=np.float32)


def test_ragged_batch_of_structures_and_tables():
    ds = ps.Dataset.from_list(
        [{"t": np.ones((1, 2)), "n": 1}, {"t": np.ones((2, 1)), "n": 2}]
    ).ragged_batch(2)
    batch = next(iter(ds))
    np.testing.assert_array_equal(batch["n"], [1, 2])
    inner = batch["t"].values
    np.testing.assert_array_equal(inner.values, np.ones(4))
    np.testing.assert_array_equal(inner.row_splits, [0, 2, 3, 4])
    np.testing.assert_array_equal(batch["t"].row_splits, [0, 1, 3])


def test_sparse_batch():
    ds = vectors(1, 0, 2).sparse_batch(2, (4,))
    first, second = list(ds)
    assert_equal(
        first,
        ps.Sparse(np.array([[0, 0]]), np.array([0]), np.array([2, 4])),
    )
    assert second.dense_shape.tolist() == [1, 4]
    largest = next(iter(vectors(1, 3).sparse_batch(2, (None,))))
    assert largest.dense_shape.tolist() == [2, 3]
    assert largest.values.tolist() == [0, 0, 1, 2]


def test_sparse_batch_refuses():
    it = iter(vectors(1, 5, 2).sparse_batch(1, (4,)))
    next(it)
    with pytest.raises(ps.DataLossError, match="row_shape"):
        next(it)
    assert next(it).values.tolist() == [0, 1]
    with pytest.raises(ps.InvalidArgumentError, match="rank"):
        vectors(1).sparse_batch(1, (4, 4))
    unknown = ps.Dataset.from_generator(
        lambda: iter([np.zeros((1, 1))]), output_types=np.float64
    ).sparse_batch(1, (4,))
    with pytest.raises(ps.InvalidArgumentError, match="rank"):
        list(unknown)


def test_batches_of_ragged_values():
    ds = ps.Dataset.from_list([ragged([1, 2], [0, 1, 2]), ragged([3], [0, 1])])
    batch = next(iter(ds.batch(2)))
    assert_equal(
        batch, ps.Ragged(ragged([1, 2, 3], [0, 1, 2, 3]), np.array([0, 2, 3]))
    )
    assert_equal(list(ds.batch(2).unbatch()), list(ds))
    assert lists(ds.batch(2).unbatch().unbatch()) == [[1], [2], [3]]


def test_batches_of_sparse_values():
    def sparse(place, value, size):
        return ps.Sparse(
            np.array([[place]]), np.array([value]), np.array([size])
        )

    ds = ps.Dataset.from_list([sparse(1, 5, 3), sparse(0, 6, 4)])
    batch = next(iter(ds.batch(2)))
    assert batch.indices.tolist() == [[0, 1], [1, 0]]
    assert batch.values.tolist() == [5, 6]
    assert batch.dense_shape.tolist() == [2, 4]
    back = list(ds.batch(2).unbatch())
    assert [x.indices.tolist() for x in back] == [[[1]], [[0]]]
    assert [x.dense_shape.tolist() for x in back] == [[4], [4]]
    grouped = ds.bucket_by_sequence_length(
        lambda x: x.dense_shape[0], [9], [2, 2], no_padding=True
    )
    assert_equal(list(grouped), [batch])


def test_dense_sparse_and_ragged_come_apart_together():
    ds = ps.Dataset.from_tensors(
        (
            np.array([1, 2]),
            ps.Sparse(
                np.array([[0, 0], [1, 1]]), np.array([7, 8]), np.array([2, 2])
            ),
            ragged([4, 5, 6], [0, 1, 3]),
        )
    )
    rows = list(ds.unbatch())
    assert ints(x[0] for x in rows) == [1, 2]
    assert [x[1].values.tolist() for x in rows] == [[7], [8]]
    assert [x[2].tolist() for x in rows] == [[4], [5, 6]]
    again = ds.unbatch().map(lambda a, s, r: (a, s)).batch(2)
    np.testing.assert_array_equal(next(iter(again))[0], [1, 2])


def test_slices_of_ragged_values():
    ds = ps.Dataset.from_tensor_slices(ragged([1, 2, 3], [0, 0, 2, 3]))
    assert lists(ds) == [[], [1, 2], [3]]


def test_rebatch_of_ragged_values():
    ds = vectors(1, 2, 3, 4).ragged_batch(4).rebatch(3)
    assert [b.row_splits.tolist() for b in ds] == [[0, 1, 3, 6], [0, 4]]


def test_padded_batch_refuses():
    ds = vectors(1, 2).ragged_batch(1)
    with pytest.raises(ps.InvalidTypeError, match="plain tensors"):
        ds.padded_batch(2)


def test_functions_see_the_parts():
    ds = (
        vectors(1, 2)
        .ragged_batch(2)
        .map(lambda r: ps.Ragged(r.values * 10, r.row_splits))
    )
    assert_equal(list(ds), [ragged([0, 0, 10], [0, 1, 3])])


def test_splits_that_do_not_add_up():
    ds = ps.Dataset.from_list(
        [ragged([1, 2], [0, 5]), ragged([3], [0, 1])]
    ).batch(1)
    it = iter(ds)
    with pytest.raises(ps.InvalidArgumentError, match="row_splits"):
        next(it)
    assert next(it).values.values.tolist() == [3]


# ---- Packing.


def packed(dataset):
    return [
        (
            row["values"].tolist(),
            row["segment_ids"].tolist(),
            row["positions"].tolist(),
        )
        for row in dataset
    ]


def test_pack_first_fit():
    ds = vectors(3, 2, 1, 4).pack(4)
    assert packed(ds) == [
        ([0, 1, 2, 0], [1, 1, 1, 2], [0, 1, 2, 0]),
        ([0, 1, 2, 3], [1, 1, 1, 1], [0, 1, 2, 3]),
        ([0, 1, 0, 0], [1, 1, 0, 0], [0, 1, 0, 0]),
    ]
    assert ds.element_spec == {
        "values": ps.TensorSpec((4,), np.int64),
        "segment_ids": ps.TensorSpec((4,), np.int32),
        "positions": ps.TensorSpec((4,), np.int32),
    }


def test_pack_split():
    ds = vectors(3, 2).pack(4, split=True, padding_values=-1)
    assert packed(ds) == [
        ([0, 1, 2, 0], [1, 1, 1, 2], [0, 1, 2, 0]),
        ([1, -1, -1, -1], [1, 0, 0, 0], [0, 0, 0, 0]),
    ]
    full = vectors(3, 2).pack(4, split=True, drop_remainder=True)
    assert len(packed(full)) == 1


def test_pack_of_structures():
    ds = ps.Dataset.from_list(
        [(np.arange(n), np.ones((n, 2), np.float32)) for n in (2, 1)]
    ).pack(3)
    (row,) = list(ds)
    tokens, weights = row["values"]
    assert tokens.tolist() == [0, 1, 0]
    assert weights.shape == (3, 2)
    assert row["segment_ids"].tolist() == [1, 1, 2]


def test_every_item_is_packed_once():
    rng = np.random.default_rng(1)
    data = [rng.integers(1, 100, rng.integers(0, 30)) for _ in range(300)]
    for arguments in ({}, {"open_rows": 1}, {"split": True}):
        rows = list(ps.Dataset.from_list(data).pack(32, **arguments))
        items = np.concatenate(
            [row["values"][row["segment_ids"] > 0] for row in rows]
        )
        assert sorted(items) == sorted(np.concatenate(data))
        if "split" in arguments:
            np.testing.assert_array_equal(items, np.concatenate(data))


def test_pack_refuses():
    it = iter(vectors(9, 1).pack(4))
    with pytest.raises(ps.InvalidArgumentError, match="split=True"):
        next(it)
    assert packed(it) == [([0, 0, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0])]
    for bad in (0, -1):
        with pytest.raises(ps.InvalidArgumentError, match="length"):
            vectors(1).pack(bad)
    with pytest.raises(ps.InvalidArgumentError, match="open_rows"):
        vectors(1).pack(4, open_rows=0)
    with pytest.raises(ps.InvalidTypeError, match="sequences of numbers"):
        ps.Dataset.range(3).pack(4)
