"""Datasets for TensorFlow. Imported when first asked for, as TensorFlow is."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock import _dtypes, _feed, _spec
from penstock._composites import Ragged, Sparse
from penstock._errors import InvalidTypeError
from penstock._feed import Convert
from penstock._location import refused
from penstock._pipeline import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY

if TYPE_CHECKING:
    from penstock._dataset import Dataset

tf: Any = importlib.import_module("tensorflow")


def to_tf(dataset: Dataset) -> Any:
    """What `Dataset.to_tf` gives."""
    spec = dataset.element_spec
    _feed.check_leaves(spec, lambda _: None)
    signature = _signature(spec)
    convert = _feed.converter(spec, _convert_one)

    def elements() -> Iterator[Any]:
        with iter(dataset) as rows:
            for row in rows:
                yield convert(row)

    made = tf.data.Dataset.from_generator(elements, output_signature=signature)
    cardinality = dataset.cardinality()
    if cardinality == UNKNOWN_CARDINALITY:
        return made
    if cardinality == INFINITE_CARDINALITY:
        cardinality = tf.data.INFINITE_CARDINALITY
    return made.apply(tf.data.experimental.assert_cardinality(cardinality))


def _signature(spec: Any) -> Any:
    """The structure of tf.TypeSpec for elements of `spec`."""
    if isinstance(spec, _spec.TensorSpec):
        return tf.TensorSpec(spec.shape, _dtype(spec))
    if isinstance(spec, Ragged):
        return _ragged_spec(spec)
    if isinstance(spec, Sparse):
        rank = spec.dense_shape.shape[0] if spec.dense_shape.shape else None
        shape = None if rank is None else [None] * rank
        return tf.SparseTensorSpec(shape, _dtype(spec.values))
    if isinstance(spec, Mapping):
        return {key: _signature(part) for key, part in spec.items()}
    if spec is None or _spec.is_dataclass(spec):
        what = "None" if spec is None else type(spec).__name__
        raise refused(
            InvalidTypeError,
            "elements for tf.data must be tensors, and dicts and tuples of "
            f"them; got {what}.\n  Make a dict of it with map().",
        )
    parts = [_signature(part) for part in spec]
    if _spec.is_namedtuple(spec):
        return type(spec)(*parts)
    return tuple(parts)


def _ragged_spec(spec: Ragged) -> Any:
    rank = 1
    values = spec.values
    while isinstance(values, Ragged):
        rank += 1
        values = values.values
    inner = values.shape[1:] if values.shape is not None else ()
    return tf.RaggedTensorSpec(
        [None] * (1 + rank) + list(inner),
        _dtype(values),
        ragged_rank=rank,
        row_splits_dtype=_dtype(spec.row_splits),
    )


def _dtype(spec: _spec.TensorSpec) -> Any:
    if spec.dtype == _dtypes.string:
        return tf.string
    return tf.as_dtype(spec.dtype.name)


def _convert_one(spec: Any) -> Convert | None:
    """How values of a spec become TensorFlow's; None of other structures."""
    if isinstance(spec, _spec.TensorSpec):
        if spec.dtype == _dtypes.bfloat16:
            # TensorFlow brings ml_dtypes; elements may be older than that.
            return lambda x: np.asarray(x).view(tf.bfloat16.as_numpy_dtype)
        return lambda x: x
    if isinstance(spec, Ragged):
        values = _convert_one(spec.values)
        assert values is not None
        return lambda x: tf.RaggedTensor.from_row_splits(
            values(x.values), x.row_splits
        )
    if isinstance(spec, Sparse):
        items = _convert_one(spec.values)
        assert items is not None
        return lambda x: tf.SparseTensor(
            x.indices, items(x.values), x.dense_shape
        )
    return None
