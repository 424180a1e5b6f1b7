"""The native functions.

Made from the engine's list by `penstock functions --python`; not edited.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock import _record
from penstock._dtypes import DType

__all__ = ["add", "arange", "cast", "stack"]


def add(x: Any, y: Any) -> Any:
    """X + y. Integers wrap around; of two bools, logical or.

    Example:
        >>> ps.add(np.array([1, 2]), 10)
        array([11, 12])

    Args:
        x: First operand.
        y: Second operand.
    """
    return _record.call("add", (x, y))


def arange(start: Any, stop: Any = None, step: Any = None) -> Any:
    """Evenly spaced values.

    Example:
        >>> ps.arange(2, 8, 3)
        array([2, 5])

    Args:
        start: The first value; alone, the end, and 0 is the first.
        stop: The end, which is left out.
        step: From one value to the next; None means 1.
    """
    return _record.call("arange", (start, stop, step))


def cast(x: Any, dtype: Any) -> Any:
    """X in another dtype, as numpy's astype.

    Example:
        >>> ps.cast(np.array([1.7, -1.7]), np.int32)
        array([ 1, -1], dtype=int32)

    Args:
        x: The values.
        dtype: What they become.
    """
    return _record.call("cast", (x,), {"dtype": DType.of(dtype)})


def stack(values: Sequence[Any], axis: int = 0) -> Any:
    """Joins values of one shape along a new axis.

    Example:
        >>> ps.stack([np.array([1, 2]), np.array([3, 4])])
        array([[1, 2],
               [3, 4]])

    Args:
        values: Values of one shape.
        axis: Where the new one stands.
    """
    return _record.call("stack", (*values,), {"axis": axis})
