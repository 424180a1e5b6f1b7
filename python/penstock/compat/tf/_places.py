"""`tf.*`: items by several indices: gather_nd, scatter_nd and their kin."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.compat.tf import _arrays as arrays
from penstock.compat.tf._arithmetic import operands
from penstock.compat.tf._composites import default_of, scatter
from penstock.compat.tf._tensor import Tensor, convert


def _flat_places(indices: Tensor, dims: Tensor, depth: int) -> Tensor:
    """Rows of indices into the first `depth` dimensions as one number each."""
    at = arrays.cast(indices, "int64")
    place = arrays.zeros_like(at[..., 0])
    for axis in range(depth):
        place = place * dims[axis] + at[..., axis]
    return place


def _depth(indices: Tensor) -> int:
    found = indices.shape[-1]
    if found is None:
        arrays.python_only("an index of unknown depth")
        raise AssertionError
    return int(found)


def _tail(dims: Tensor, depth: int) -> Tensor:
    """The sizes behind the first `depth` ones."""
    return dims[depth:]


def gather_nd(
    params: Any, indices: Any, batch_dims: int = 0, name: Any = None
) -> Tensor:
    """Parts of `params`, each by a row of indices.

    Example:
        >>> tf.gather_nd([[1, 2], [3, 4]], [[0, 1], [1, 0]]).numpy()
        array([2, 3], dtype=int32)
    """
    if batch_dims:
        raise NotImplementedError("gather_nd with batch_dims is not offered")
    x, at = convert(params), convert(indices)
    depth = _depth(at)
    dims = arrays.shape(x, "int64")
    rest = _tail(dims, depth)
    flat = arrays.reshape(x, arrays.concat([np.array([-1]), rest], 0))
    return arrays.gather(flat, _flat_places(at, dims, depth))


def scatter_nd(
    indices: Any, updates: Any, shape: Any, name: Any = None
) -> Tensor:
    """A tensor of zeros with `updates` at their places.

    Places must differ: TensorFlow's adds what goes to one place.
    """
    values = convert(updates)
    dims = arrays.cast(convert(shape), "int64")
    filler = default_of(values.dtype, None)
    return _scattered(convert(indices), values, dims, filler)


def _scattered(
    indices: Tensor, values: Tensor, dims: Tensor, filler: Tensor
) -> Tensor:
    depth = _depth(indices)
    place = arrays.reshape(_flat_places(indices, dims, depth), [-1])
    size = arrays.reduce_prod(dims)
    run = arrays.reduce_prod(
        arrays.concat([np.ones(1, np.int64), _tail(dims, depth)], 0)
    )
    # Each update is a run of items, one behind another.
    items = place[:, None] * run + arrays.range(run)[None, :]
    flat = scatter(
        arrays.reshape(items, [-1]),
        arrays.reshape(values, [-1]),
        size,
        filler,
    )
    return arrays.reshape(flat, dims)


def tensor_scatter_nd_update(
    tensor: Any, indices: Any, updates: Any, name: Any = None
) -> Tensor:
    """`tensor` with `updates` at their places.

    Example:
        >>> x = tf.constant([1, 2, 3])
        >>> tf.tensor_scatter_nd_update(x, [[0], [2]], [7, 9]).numpy()
        array([7, 2, 9], dtype=int32)
    """
    x = convert(tensor)
    x, values = operands(x, convert(updates, hint=x.dtype))
    at = convert(indices)
    dims = arrays.shape(x, "int64")
    is_new = _scattered(
        at, arrays.fill(arrays.shape(values), True), dims, convert(False)
    )
    made = _scattered(at, values, dims, default_of(x.dtype, None))
    return arrays.where(is_new, made, x)


def norm(
    tensor: Any,
    ord: Any = "euclidean",
    axis: Any = None,
    keepdims: bool = False,
    name: Any = None,
) -> Tensor:
    """The length of vectors: euclidean, or of order 1, 2 or infinity."""
    from penstock.compat.tf import _reductions as math

    x = convert(tensor)
    size = math.FUNCTIONS["abs"](x)
    if ord in ("euclidean", 2):
        squares = math.reduce_sum(size * size, axis, keepdims)
        root: Tensor = math.FUNCTIONS["sqrt"](squares)
        return root
    if ord == 1:
        return math.reduce_sum(size, axis, keepdims)
    if ord == np.inf:
        return math.reduce_max(size, axis, keepdims)
    raise NotImplementedError(f"norm of order {ord} is not offered")
