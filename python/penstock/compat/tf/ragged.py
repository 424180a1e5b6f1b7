"""`tf.ragged`: the basics."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.compat.tf._composites import RaggedTensor
from penstock.compat.tf._tensor import Tensor, array_of
from penstock.compat.tf._types import as_dtype

__all__ = ["constant"]


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
