"""to_tf: a tf.data.Dataset of the same elements."""

import dataclasses
from typing import NamedTuple

import numpy as np
import pytest
import tensorflow as tf
from complaints import refuses

import penstock as ps


class Point(NamedTuple):
    x: object
    y: object


@dataclasses.dataclass
class Sample:
    x: object


DTYPES = [
    ps.bool,
    ps.int8,
    ps.int16,
    ps.int32,
    ps.int64,
    ps.uint8,
    ps.uint16,
    ps.uint32,
    ps.uint64,
    ps.float16,
    ps.bfloat16,
    ps.float32,
    ps.float64,
    ps.complex64,
    ps.complex128,
]


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
def test_dtypes(dtype):
    ds = ps.Dataset.range(4).map(lambda x: ps.cast(x % 2, dtype))
    for made in (ds.to_tf(), ds.batch(2).to_tf()):
        assert made.element_spec.dtype == tf.as_dtype(dtype.name)
        flat = np.concatenate([x.numpy().reshape(-1) for x in made])
        assert flat.astype(np.complex64).real.tolist() == [0, 1, 0, 1]


def test_structures():
    ds = ps.Dataset.range(3).map(
        lambda x: {"p": Point(x, (x * 2, ps.zeros((2,)))), "s": "text"}
    )
    made = ds.batch(3).to_tf()
    assert len(made) == 1
    (found,) = made
    assert type(found["p"]) is Point
    assert found["p"].y[0].numpy().tolist() == [0, 2, 4]
    assert found["p"].y[1].shape == (3, 2)
    assert found["s"].numpy().tolist() == [b"text"] * 3
    assert made.element_spec["p"].y[1].shape.as_list() == [None, 2]


def test_ragged():
    rows = [["a"], ["b", "c"], []]
    ds = ps.Dataset.from_list([np.array(r, object) for r in rows])
    made = ds.ragged_batch(3).to_tf()
    assert isinstance(made.element_spec, tf.RaggedTensorSpec)
    (found,) = made
    assert found.to_list() == [[b"a"], [b"b", b"c"], []]


def test_sparse():
    ds = ps.Dataset.from_list([[1, 0, 2], [0, 0]]).sparse_batch(2, (4,))
    made = ds.to_tf()
    assert isinstance(made.element_spec, tf.SparseTensorSpec)
    (found,) = made
    dense = tf.sparse.to_dense(tf.sparse.reorder(found)).numpy()
    assert dense.tolist() == [[1, 0, 2, 0], [0, 0, 0, 0]]


def test_cardinality():
    ds = ps.Dataset.range(6)
    assert ds.to_tf().cardinality() == 6
    assert ds.repeat().to_tf().cardinality() == tf.data.INFINITE_CARDINALITY
    unknown = ds.filter(lambda x: x > 3).to_tf()
    assert unknown.cardinality() == tf.data.UNKNOWN_CARDINALITY
    assert [int(x) for x in unknown] == [4, 5]


def test_each_iteration_is_the_next_epoch():
    ds = ps.Dataset.range(50).shuffle(50, seed=1).batch(50)
    made = ds.to_tf()
    orders = [next(iter(made)).numpy().tolist() for _ in range(2)]
    assert orders[0] != orders[1]
    assert sorted(orders[0]) == sorted(orders[1])


def test_transformations_follow():
    made = ps.Dataset.range(10).to_tf().map(lambda x: x * 2).batch(4)
    assert [x.numpy().tolist() for x in made] == [
        [0, 2, 4, 6],
        [8, 10, 12, 14],
        [16, 18],
    ]


def test_a_model_fits():
    def row(i):
        x = ps.cast(i, ps.float32) / 64
        return ps.reshape(x, (1,)), 3 * x + 1

    ds = ps.Dataset.range(64).shuffle(64).map(row).batch(8)
    model = tf.keras.Sequential(
        [tf.keras.layers.Input((1,)), tf.keras.layers.Dense(1)]
    )
    model.compile(tf.keras.optimizers.SGD(0.2), "mse")
    history = model.fit(ds.to_tf(), epochs=10, verbose=0)
    losses = history.history["loss"]
    assert losses[-1] < losses[0] / 20


def test_errors_reach_the_loop():
    table = np.array([10])
    ds = ps.Dataset.range(2).map(lambda i: ps.take(table, i))
    it = iter(ds.to_tf())
    assert next(it) == 10
    with pytest.raises(tf.errors.OpError):
        next(it)


def test_what_tf_data_cannot_hold_is_refused():
    ds = ps.Dataset.range(3)
    with refuses(ps.InvalidTypeError, "Sample", "map()"):
        ds.map(Sample).to_tf()
    with refuses(ps.InvalidTypeError, "None", "map()"):
        ds.map(lambda x: (x, None)).to_tf()
    with refuses(ps.InvalidTypeError, "flat_map"):
        ds.window(2).to_tf()
