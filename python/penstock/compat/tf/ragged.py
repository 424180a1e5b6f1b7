"""`tf.ragged`: tensors of rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.compat.tf import _arrays as arrays
from penstock.compat.tf import _ragged, _ragged_items
from penstock.compat.tf._composites import RaggedTensor
from penstock.compat.tf._tensor import Tensor, array_of, convert
from penstock.compat.tf._types import as_dtype

__all__ = [
    "boolean_mask",
    "constant",
    "map_flat_values",
    "range",
    "row_splits_to_segment_ids",
    "segment_ids_to_row_splits",
    "stack",
    "stack_dynamic_partitions",
]


def map_flat_values(op: Any, *args: Any, **kwargs: Any) -> Any:
    """`op` of the values of ragged tensors that have the same rows.

    Example:
        >>> x = tf.ragged.constant([[1, 2], [3]])
        >>> tf.ragged.map_flat_values(tf.square, x)
        <tf.RaggedTensor [[1, 4], [9]]>
    """
    return _ragged_items.map_flat_values(op, args, kwargs)


def row_splits_to_segment_ids(
    splits: Any, name: Any = None, out_type: Any = None
) -> Tensor:
    """The number of its row, for each value.

    Example:
        >>> tf.ragged.row_splits_to_segment_ids([0, 3, 3, 5]).numpy()
        array([0, 0, 0, 2, 2])
    """
    ends = convert(splits, hint="int64")
    found = _ragged.row_numbers(RaggedTensor(arrays.range(ends[-1]), ends))
    made: Tensor = arrays.cast(found, out_type or ends.dtype)
    return made


def segment_ids_to_row_splits(
    segment_ids: Any, num_segments: Any = None, out_type: Any = None,
    name: Any = None,
) -> Tensor:  # fmt: skip
    """Where the rows of sorted numbers begin and end.

    Example:
        >>> tf.ragged.segment_ids_to_row_splits([0, 0, 2]).numpy()
        array([0, 2, 2, 3], dtype=int32)
    """
    ids = convert(segment_ids)
    made = RaggedTensor.from_value_rowids(ids, ids, num_segments)
    found: Tensor = arrays.cast(made.row_splits, out_type or ids.dtype)
    return found


def stack_dynamic_partitions(
    data: Any, partitions: Any, num_partitions: Any, name: Any = None
) -> RaggedTensor:
    """The items of each number as a row.

    Example:
        >>> tf.ragged.stack_dynamic_partitions(["a", "b", "c"], [1, 0, 1], 2)
        <tf.RaggedTensor [[b'b'], [b'a', b'c']]>
    """
    values, numbers = convert(data), convert(partitions)
    if arrays._has_symbols(values, numbers):
        arrays.python_only("tf.ragged.stack_dynamic_partitions")
    flat = numbers._value.reshape(-1)
    order = np.argsort(flat, kind="stable")
    rest = values._value.shape[numbers._value.ndim :]
    counts = np.bincount(flat, minlength=int(np.asarray(num_partitions)))
    return RaggedTensor.from_row_lengths(
        Tensor(values._value.reshape(flat.size, *rest)[order]),
        Tensor(counts.astype(np.int32)),
    )


def boolean_mask(data: Any, mask: Any, name: Any = None) -> Any:
    """The items for which a mask is true, in the rows where they were.

    Example:
        >>> x = tf.constant([[1, 2], [3, 4]])
        >>> tf.ragged.boolean_mask(x, x > 1)
        <tf.RaggedTensor [[2], [3, 4]]>
    """
    return _ragged.boolean_mask(data, mask)


def stack(values: Any, axis: int = 0, name: Any = None) -> Any:
    """Tensors as the rows of one.

    Example:
        >>> tf.ragged.stack([tf.constant([1, 2]), tf.constant([3])])
        <tf.RaggedTensor [[1, 2], [3]]>
    """
    return _ragged.stack(values, axis)


def range(
    starts: Any, limits: Any = None, deltas: Any = 1, dtype: Any = None,
    name: Any = None, row_splits_dtype: Any = "int64",
) -> RaggedTensor:  # fmt: skip
    """Rows of numbers one after another.

    Example:
        >>> tf.ragged.range([2, 0, 3])
        <tf.RaggedTensor [[0, 1], [], [0, 1, 2]]>
    """
    if limits is None:
        starts, limits = 0, starts
    return _ragged.ranges(starts, limits, deltas, dtype, row_splits_dtype)


def constant(
    pylist: Any, dtype: Any = None, row_splits_dtype: Any = "int64",
    name: Any = None,
) -> Any:  # fmt: skip
    """A ragged tensor of nested lists.

    Example:
        >>> tf.ragged.constant([[1, 2], [3]]).row_splits.numpy()
        array([0, 2, 3])
    """
    wanted = None if dtype is None else as_dtype(dtype)
    if not any(isinstance(item, (list, tuple)) for item in pylist):
        return Tensor(array_of(list(pylist), wanted))
    lengths = [len(row) for row in pylist]
    splits = np.concatenate([[0], np.cumsum(lengths)])
    flat = [item for row in pylist for item in row]
    values = constant(flat, dtype, row_splits_dtype)
    return RaggedTensor(values, splits.astype(as_dtype(row_splits_dtype).dtype))


def __getattr__(name: str) -> Any:
    from penstock.compat.tf._missing import missing

    raise missing("ragged", name)
