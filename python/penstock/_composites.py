"""Values of several tensors: ragged and sparse ones.

The engine knows them as named structures of flat tensors; their names and the
order of their fields are part of plans.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class Ragged(NamedTuple):
    """Rows of different lengths, one after another.

    Row i is ``values[row_splits[i]:row_splits[i + 1]]``. Where rows are made of
    rows, `values` is a `Ragged` itself.

    Example:
        >>> ps.Ragged(np.array([1, 2, 3]), row_splits=np.array([0, 2, 3]))
        Ragged(values=array([1, 2, 3]), row_splits=array([0, 2, 3]))
    """

    values: Any
    row_splits: Any


class Sparse(NamedTuple):
    """The items of a tensor that are not zero, and where they are.

    Item i is ``values[i]`` at ``indices[i]`` of a tensor of shape
    `dense_shape`.

    Example:
        >>> items = ps.Sparse(np.array([[0], [2]]), np.array([7, 8]), (4,))
        >>> items.values, items.dense_shape
        (array([7, 8]), (4,))
    """

    indices: Any
    values: Any
    dense_shape: Any


# By the names they have in plans.
TYPES: dict[str, type] = {"penstock.Ragged": Ragged, "penstock.Sparse": Sparse}
NAMES = {cls: name for name, cls in TYPES.items()}
