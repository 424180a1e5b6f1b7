"""`tf.*`: items by their places: gather, gather_nd, scatter_nd and others."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock._errors import InvalidArgumentError
from penstock._location import refused
from penstock.compat.tf import _arrays as arrays
from penstock.compat.tf import _ragged
from penstock.compat.tf._arithmetic import native, operands, refuse_dtype
from penstock.compat.tf._composites import RaggedTensor, default_of, scatter
from penstock.compat.tf._tensor import Tensor, convert


def gather(params: Any, indices: Any, axis: Any, batch_dims: int) -> Any:
    """`tf.gather`: a place that is not there is an error."""
    if isinstance(params, RaggedTensor):
        return _ragged.gather(params, indices, axis, batch_dims)
    x = convert(params)
    if isinstance(indices, RaggedTensor):
        if batch_dims or axis not in (None, 0):
            raise ValueError(
                "gather by a ragged tensor is along axis 0; got axis="
                f"{axis}, batch_dims={batch_dims}"
            )
        flat = gather(x, indices.flat_values, 0, 0)
        return indices.with_flat_values(flat)
    at = convert(indices)
    if not at.dtype.is_integer:
        refuse_dtype("gather", at.dtype)
    batch = batch_dims + at.ndim if batch_dims < 0 else batch_dims
    along = batch_dims if axis is None else int(axis)
    if along < 0 or batch:
        along = along % x.ndim
    if not batch:
        size = x.shape[along] if x.shape.rank else None
        return arrays.take(x, _checked(at, _size(x, along), size), along)
    if not batch <= along < x.ndim or batch > at.ndim:
        raise ValueError(
            f"gather needs batch_dims <= axis; got batch_dims={batch_dims}, "
            f"axis={axis} for {x.shape} and {at.shape}"
        )
    return _gather_batches(x, at, along, batch)


def _size(x: Tensor, axis: int) -> Tensor:
    return arrays.shape(x, "int64")[axis]


def _checked(at: Tensor, size: Tensor, known: int | None) -> Any:
    """Places of which none is negative: that would count from the end."""
    if not arrays._has_symbols(at):
        if not at._value.size:
            return at
        least, most = at._value.min(), at._value.max()
        if least < 0 or (known is not None and most >= known):
            shown = least if least < 0 else most
            raise refused(
                InvalidArgumentError,
                f"indices must be from 0 on and less than {known}; got {shown}",
            )
        return at
    if at.dtype.is_unsigned:
        return at
    beyond = arrays.cast(size, at.dtype)
    return arrays.where(at < 0, beyond, at)


def _gather_batches(x: Tensor, at: Tensor, along: int, batch: int) -> Tensor:
    """As one gather from all batches one behind another."""
    dims = arrays.shape(x, "int64")
    front = [*range(batch), along]
    order = [*front, *(i for i in range(x.ndim) if i not in front)]
    moved = arrays.transpose(x, order)
    rows = arrays.shape(moved, "int64")
    flat = arrays.reshape(
        moved, arrays.concat([np.array([-1]), rows[batch + 1 :]], 0)
    )
    size = dims[along]
    places = arrays.cast(at, "int64")
    total = arrays.shape(flat, "int64")[0]
    is_there = native("logical_and", places >= 0, places < size)
    first = _batch_numbers(at, batch) * size
    # What is not there goes behind the end, where it is an error.
    found = arrays.take(
        flat, _in_range(arrays.where(is_there, places + first, total), total)
    )
    # B + indices + before + after, and wanted is B + before + indices + after.
    inner, before = at.ndim - batch, along - batch
    shift = list(range(batch))
    shift += range(at.ndim, at.ndim + before)
    shift += range(batch, at.ndim)
    shift += range(at.ndim + before, found.ndim)
    made = arrays.transpose(found, shift) if before and inner else found
    known = x.shape[:along].concatenate(at.shape[batch:])
    made.set_shape(known.concatenate(x.shape[along + 1 :]))
    return made


def _batch_numbers(at: Tensor, batch: int) -> Tensor:
    """The number of each batch, in the rank of `at`."""
    dims = arrays.shape(at, "int64")
    count = arrays.reduce_prod(dims[:batch])
    ones = np.ones(at.ndim - batch, np.int64)
    return arrays.reshape(
        arrays.range(count), arrays.concat([dims[:batch], ones], 0)
    )


def _in_range(place: Tensor, total: Tensor) -> Tensor:
    """`place`, or an error if its values are known and one is not there."""
    if arrays._has_symbols(place, total) or not place._value.size:
        return place
    if place._value.max() >= total._value:
        raise refused(
            InvalidArgumentError,
            "indices must lie within the tensor; got one that does not",
        )
    return place


def boolean_mask(tensor: Any, mask: Any, axis: Any) -> Any:
    """`tf.boolean_mask`."""
    if isinstance(tensor, RaggedTensor) or isinstance(mask, RaggedTensor):
        return _ragged.boolean_mask(tensor, mask)
    x, which = convert(tensor), convert(mask, "bool")
    if which.shape.rank == 0:
        raise ValueError("mask cannot be scalar")
    along = 0 if axis is None else int(axis)
    if along < 0:
        along += x.ndim
    covered = x.shape[along : along + which.ndim]
    covered.assert_is_compatible_with(which.shape)
    # What is covered comes first, and what is before it behind the result.
    end = along + which.ndim
    order = [*range(along, end), *range(along), *range(end, x.ndim)]
    moved = arrays.transpose(x, order) if along else x
    if arrays._has_symbols(x, which):
        found = native("boolean_mask", moved, which)
    else:
        found = Tensor(moved._value[which._value])
    if not along:
        return found
    back = [*range(1, along + 1), 0, *range(along + 1, found.ndim)]
    return arrays.transpose(found, back)


def _flat_places(
    indices: Tensor, dims: Tensor, depth: int, first: Any = 0
) -> Any:
    """Rows of indices into the first `depth` dimensions as one number each.

    One that is not there is the number behind the last.
    """
    at = arrays.cast(indices, "int64")
    place = arrays.zeros_like(at[..., 0]) + first
    is_there: Any = None
    for axis in range(depth):
        each = at[..., axis]
        place = place * dims[axis] + each
        inside = native("logical_and", each >= 0, each < dims[axis])
        is_there = (
            inside
            if is_there is None
            else native("logical_and", is_there, inside)
        )
    if is_there is None:
        return place
    return arrays.where(is_there, place, _total(dims, depth, first))


def _total(dims: Tensor, depth: int, first: Any) -> Any:
    size = arrays.reduce_prod(dims[:depth])
    if isinstance(first, Tensor):
        size = size * arrays.cast(arrays.size(first), "int64")
    return size


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
    x, at = convert(params), convert(indices)
    depth = _depth(at)
    batch = batch_dims + at.ndim if batch_dims < 0 else batch_dims
    if batch and batch >= at.ndim:
        raise ValueError(
            f"batch_dims must be less than {at.ndim}, the rank of indices; "
            f"got {batch_dims}"
        )
    dims = arrays.shape(x, "int64")
    first: Any = 0
    if batch:
        # Its last dimension is that of the indices, which _flat_places drops.
        first = _batch_numbers(at[..., 0], batch)
    place = _flat_places(at, dims[batch:], depth, first)
    rest = _tail(dims, batch + depth)
    flat = arrays.reshape(x, arrays.concat([np.array([-1]), rest], 0))
    total = arrays.shape(flat, "int64")[0]
    made = arrays.take(flat, _in_range(place, total))
    made.set_shape(at.shape[:-1].concatenate(x.shape[batch + depth :]))
    return made


def scatter_nd(
    indices: Any, updates: Any, shape: Any, name: Any = None
) -> Tensor:
    """A tensor of zeros to which `updates` are added at their places."""
    values, at = convert(updates), convert(indices)
    dims = arrays.cast(convert(shape), "int64")
    if _may_repeat(at):
        if arrays._has_symbols(at, values, dims):
            arrays.python_only(
                "tf.scatter_nd to computed places", "they may be the same"
            )
        from penstock.compat.tf._segments import SCATTERS

        made: Tensor = SCATTERS["tensor_scatter_nd_add"](
            arrays.zeros(dims, values.dtype), at, values
        )
        return made
    filler = default_of(values.dtype, None)
    return _scattered(at, values, dims, filler)


def _may_repeat(at: Tensor) -> bool:
    """Whether a row of indices may be there twice."""
    if arrays._has_symbols(at):
        return True
    rows = at._value.reshape(-1, max(at._value.shape[-1], 1))
    return len(np.unique(rows, axis=0)) != len(rows)


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
) -> Any:
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
) -> Any:
    """The length of vectors, of any order; of a pair of axes, of matrices.

    Example:
        >>> tf.norm([3.0, 4.0]).numpy(), tf.norm([3.0, 4.0], ord=1).numpy()
        (np.float32(5.0), np.float32(7.0))
    """
    from penstock.compat.tf import _reductions as math

    x = convert(tensor)
    if x.dtype.is_integer or x.dtype.is_bool:
        refuse_dtype("norm", x.dtype)
    size = math.FUNCTIONS["abs"](x)
    axes: Any = np.asarray(axis).tolist() if axis is not None else None
    is_matrix = isinstance(axes, list) and len(axes) == 2
    if isinstance(axes, list) and not is_matrix:
        axes = axes[0]
    is_number = isinstance(ord, (int, float)) and not isinstance(ord, bool)
    if (
        ord == "euclidean"
        or (ord == 2 and not is_matrix)
        or (ord == "fro" and is_matrix)
    ):
        squares = math.reduce_sum(size * size, axes, keepdims)
        root: Tensor = math.FUNCTIONS["sqrt"](squares)
        return root
    if is_matrix:
        return _matrix_norm(size, x, ord, axes, keepdims)
    if not is_number or not ord > 0:
        raise ValueError(
            "ord must be 'euclidean', np.inf or a number greater than 0 for "
            f"vectors; got {ord!r}"
        )
    if ord == 1:
        return math.reduce_sum(size, axes, keepdims)
    if ord == np.inf:
        return math.reduce_max(size, axes, keepdims)
    powers = math.reduce_sum(size**ord, axes, keepdims)
    return powers ** (1.0 / ord)


def _matrix_norm(
    size: Tensor, x: Tensor, ord: Any, axes: list[int], keepdims: bool
) -> Any:
    from penstock.compat.tf import _reductions as math

    rows, columns = (a % x.ndim for a in axes)
    if ord == 2:
        if arrays._has_symbols(x):
            arrays.python_only("tf.norm of order 2 of matrices")
        found = np.linalg.norm(x._value, 2, (rows, columns), keepdims)
        return Tensor(np.asarray(found))
    if ord not in (1, np.inf):
        raise ValueError(
            "ord must be 'euclidean', 'fro', 1, 2 or np.inf for matrices; got "
            f"{ord!r}"
        )
    inner, outer = (rows, columns) if ord == 1 else (columns, rows)
    sums = math.reduce_sum(size, inner, True)
    most = math.reduce_max(sums, outer, True)
    return most if keepdims else arrays.squeeze(most, sorted((inner, outer)))
