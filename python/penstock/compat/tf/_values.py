"""What only values can do: a function with one of these runs as Python."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock import _dtypes
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
    """Where values would go into a sorted vector."""
    one, two = _numbers("searchsorted", *operands(sorted_sequence, values))
    if one.ndim != 1:
        raise NotImplementedError("searchsorted is offered for vectors")
    found = np.searchsorted(one, two, "right" if side == "right" else "left")
    return Tensor(np.asarray(found).astype(as_dtype(out_type).dtype))
