"""Ragged tensors item by item, and over their axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.compat.tf import _arrays as arrays
from penstock.compat.tf._composites import RaggedTensor
from penstock.compat.tf._ragged import check_same_splits, row_numbers
from penstock.compat.tf._tensor import Tensor, convert


def elementwise(function: Any, x: Any, y: Any) -> RaggedTensor:
    """`function` of the items of two tensors, of which one is ragged.

    The other is a ragged one of the same rows, a scalar, or has a value for
    each row.
    """
    like = x if isinstance(x, RaggedTensor) else y
    parts = [v if isinstance(v, RaggedTensor) else convert(v, hint=like.dtype)
             for v in (x, y)]  # fmt: skip
    ragged = [v for v in parts if isinstance(v, RaggedTensor)]
    if len(ragged) == 2:
        check_same_splits(ragged)
        inner: list[Any] = [v.values for v in ragged]
        if any(isinstance(v, RaggedTensor) for v in inner):
            return like.with_values(elementwise(function, *inner))
        return like.with_values(function(*inner))
    inner = [
        v.values if isinstance(v, RaggedTensor) else _for_values(v, like)
        for v in parts
    ]
    if any(isinstance(v, RaggedTensor) for v in inner):
        return like.with_values(elementwise(function, *inner))
    return like.with_values(function(*inner))


def _for_values(x: Tensor, like: RaggedTensor) -> Tensor:
    """What of `x` meets the values of `like`."""
    rank = like.shape.rank or 0
    missing = rank - (x.shape.rank or 0)
    if missing > 0:
        # Of fewer dimensions: it meets the inner ones.
        return x
    if missing < 0 or x.shape[1] != 1:
        raise ValueError(
            "a tensor beside a ragged one must be a scalar, or have a value "
            f"for each row; got shapes {x.shape} and {like.shape}"
        )
    rows = arrays.reshape(x, [-1, *x.shape.as_list()[2:]])
    if x.shape[0] == 1:
        return rows[0]
    return arrays.take(rows, row_numbers(like))


def map_flat_values(
    function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """`tf.ragged.map_flat_values`."""
    given = [*args, *kwargs.values()]
    ragged = [x for x in given if isinstance(x, RaggedTensor)]
    if ragged:
        check_same_splits(ragged)

    def values(x: Any) -> Any:
        return x.flat_values if isinstance(x, RaggedTensor) else x

    made = function(
        *map(values, args), **{k: values(v) for k, v in kwargs.items()}
    )
    return ragged[0].with_flat_values(made) if ragged else made


# ---- Over axes.


def reduced(
    function: Any, x: RaggedTensor, axis: Any, keepdims: bool, empty: Any
) -> Any:
    """A reduction of a ragged tensor.

    Args:
        function: Of a tensor, an axis and keepdims.
        x: What is reduced.
        axis: One, or none for all items.
        keepdims: Whether a dimension of size 1 is left.
        empty: What changes no result, of the dtype of `x`.
    """
    if axis is None:
        return function(x.flat_values, None, keepdims)
    rank = x.shape.rank or 0
    at = int(np.asarray(axis).reshape(())) % rank
    if at > 1:
        inner = x.values
        if isinstance(inner, RaggedTensor):
            return x.with_values(
                reduced(function, inner, at - 1, keepdims, empty)
            )
        return x.with_values(function(inner, at - 1, keepdims))
    if isinstance(x.values, RaggedTensor):
        raise ValueError(
            "rows of rows are reduced along their last ragged dimension or "
            f"beyond it; got axis {axis} for shape {x.shape}"
        )
    return function(x.to_tensor(empty), at, keepdims)


def mean(total: Any, x: RaggedTensor, axis: Any, keepdims: bool) -> Any:
    """The sum, by the function `total`, divided by the number of items."""
    ones = x.with_flat_values(arrays.ones_like(x.flat_values))
    return total(x, axis, keepdims) / total(ones, axis, keepdims)


def softmax(x: RaggedTensor, axis: int) -> Any:
    """`tf.math.softmax` of rows."""
    from penstock.compat.tf import _reductions as math

    rank = x.shape.rank or 0
    if x.ragged_rank != 1 or rank != 2 or axis not in (-1, 1):
        raise ValueError(
            "softmax of a ragged tensor is of rows of items; got axis "
            f"{axis} for shape {x.shape}"
        )
    most = math.reduce_max(x, 1)[:, None]
    powers = math.FUNCTIONS["exp"](x - most)
    return powers / math.reduce_sum(powers, 1)[:, None]
