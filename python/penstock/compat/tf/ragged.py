"""`tf.ragged`: tensors of rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.compat.tf import _ragged
from penstock.compat.tf._composites import RaggedTensor
from penstock.compat.tf._tensor import Tensor, array_of
from penstock.compat.tf._types import as_dtype

__all__ = ["boolean_mask", "constant", "range", "stack"]


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
