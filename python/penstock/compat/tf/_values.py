"""What only values can do: a function with one of these runs as Python."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from penstock import _dtypes
from penstock._errors import InvalidArgumentError
from penstock._location import refused
from penstock.compat.tf._arithmetic import operands, refuse_dtype
from penstock.compat.tf._arrays import _has_symbols, python_only
from penstock.compat.tf._tensor import Tensor, convert
from penstock.compat.tf._types import as_dtype


def _numbers(name: str, *tensors: Tensor) -> list[Any]:
    """Arrays of numbers; symbols are refused."""
    if _has_symbols(*tensors):
        python_only(f"tf.{name}")
    for tensor in tensors:
        if tensor.dtype.is_bool or tensor.dtype == _dtypes.string:
            refuse_dtype(f"tf.{name}", tensor.dtype)
    return [tensor._value for tensor in tensors]


def _is_down(direction: str) -> bool:
    if direction not in ("ASCENDING", "DESCENDING"):
        raise ValueError(
            f"direction must be ASCENDING or DESCENDING; got {direction}"
        )
    return direction == "DESCENDING"


def sort(
    values: Any,
    axis: int = -1,
    direction: str = "ASCENDING",
    name: Any = None,
) -> Tensor:
    """Items in their order along an axis."""
    (found,) = _numbers("sort", convert(values))
    ordered = np.sort(found, axis)
    return Tensor(np.flip(ordered, axis) if _is_down(direction) else ordered)


def argsort(
    values: Any,
    axis: int = -1,
    direction: str = "ASCENDING",
    stable: bool = False,
    name: Any = None,
) -> Tensor:
    """The places of items in their order, int32."""
    (found,) = _numbers("argsort", convert(values))
    if _is_down(direction):
        # Turned round twice, equal ones stay in their order.
        last = found.shape[axis] - 1
        order = last - np.argsort(np.flip(found, axis), axis, kind="stable")
        return Tensor(np.flip(order, axis).astype(np.int32))
    return Tensor(np.argsort(found, axis, kind="stable").astype(np.int32))


def unique(x: Any, out_idx: Any = "int32", name: Any = None) -> Any:
    """Items without repetitions as they first come, and where each is now."""
    given = convert(x)
    if _has_symbols(given):
        python_only("tf.unique")
    values = given._value
    _, first, inverse = np.unique(
        values, return_index=True, return_inverse=True
    )
    order = np.argsort(first)
    places = np.empty_like(order)
    places[order] = np.arange(len(order))
    numbers = places[inverse].astype(as_dtype(out_idx).dtype)
    return Tensor(values[np.sort(first)]), Tensor(numbers)


def matmul(
    a: Any,
    b: Any,
    transpose_a: bool = False,
    transpose_b: bool = False,
    name: Any = None,
) -> Tensor:
    """The product of matrices, along the last two dimensions."""
    one, two = _numbers("matmul", *operands(a, b))
    if transpose_a:
        one = np.swapaxes(one, -1, -2)
    if transpose_b:
        two = np.swapaxes(two, -1, -2)
    return Tensor(np.matmul(one, two))


def tensordot(a: Any, b: Any, axes: Any, name: Any = None) -> Tensor:
    one, two = _numbers("tensordot", *operands(a, b))
    return Tensor(np.asarray(np.tensordot(one, two, axes)))


def searchsorted(
    sorted_sequence: Any,
    values: Any,
    side: str = "left",
    out_type: Any = "int32",
    name: Any = None,
) -> Tensor:
    """Where values would go into sorted vectors, along the last dimension.

    Example:
        >>> tf.searchsorted([1, 3, 5], [0, 3, 6]).numpy()
        array([0, 1, 3], dtype=int32)
    """
    one, two = _numbers("searchsorted", *operands(sorted_sequence, values))
    how: Any = "right" if side == "right" else "left"
    if not one.ndim or not two.ndim:
        raise refused(
            InvalidArgumentError,
            "searchsorted takes vectors, or several of them; got shapes "
            f"{one.shape} and {two.shape}",
        )
    rows = one.reshape(math.prod(one.shape[:-1]), one.shape[-1])
    wanted = two.reshape(math.prod(two.shape[:-1]), two.shape[-1])
    if len(rows) != len(wanted):
        raise refused(
            InvalidArgumentError,
            "searchsorted needs as many rows of values as sorted ones; got "
            f"shapes {two.shape} and {one.shape}",
        )
    found = np.empty(wanted.shape, as_dtype(out_type).dtype)
    for i, row in enumerate(rows):
        found[i] = np.searchsorted(row, wanted[i], how)
    return Tensor(found.reshape(two.shape))
