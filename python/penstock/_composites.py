"""Values of several tensors that are one: ragged and sparse."""

from __future__ import annotations

from typing import Any, NamedTuple


class Ragged(NamedTuple):
    """Rows of different sizes, one after another.

    Row i is `values[row_splits[i]:row_splits[i + 1]]`. `values` may be ragged
    itself.

    Example:
        >>> ps.Ragged(values=[1, 2, 3], row_splits=[0, 1, 3])
        Ragged(values=[1, 2, 3], row_splits=[0, 1, 3])
    """

    values: Any
    row_splits: Any


class Sparse(NamedTuple):
    """A tensor that is zero but for some places.

    Example:
        >>> ps.Sparse(indices=[[0, 1]], values=[5], dense_shape=[2, 2])
        Sparse(indices=[[0, 1]], values=[5], dense_shape=[2, 2])
    """

    indices: Any
    values: Any
    dense_shape: Any
