"""Items by number: bins, segments, parts. They need values."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from penstock._errors import InvalidArgumentError
from penstock._location import refused
from penstock._symbol import Symbol
from penstock.compat.tf import _arrays as arrays
from penstock.compat.tf._arithmetic import operands, refuse_dtype
from penstock.compat.tf._tensor import Tensor, convert
from penstock.compat.tf._types import as_dtype


def _known(name: str, *given: Any) -> list[Any]:
    """The arrays of tensors; a function with symbols is Python."""
    tensors = [convert(each) for each in given]
    if any(isinstance(each._value, Symbol) for each in tensors):
        arrays.python_only(f"tf.{name}")
    return [each._value for each in tensors]


# ---- Bins.


def bincount(
    arr: Any, weights: Any = None, minlength: Any = None,
    maxlength: Any = None, dtype: Any = "int32", name: Any = None,
    axis: Any = None, binary_output: bool = False,
) -> Tensor:  # fmt: skip
    """How often each number occurs; by rows, if `axis` is -1."""
    (numbers,) = _known("math.bincount", arr)
    if numbers.dtype.kind not in "iu":
        refuse_dtype("bincount", convert(arr).dtype)
    if numbers.size and numbers.min() < 0:
        raise refused(
            InvalidArgumentError,
            f"bincount takes numbers from 0 on; got {numbers.min()}",
        )
    by_row = axis == -1 and numbers.ndim == 2
    rows = numbers if by_row else numbers.reshape(1, -1)
    heavy: Any = np.ones(rows.shape, as_dtype(dtype).dtype)
    if weights is not None:
        heavy = _known("math.bincount", weights)[0].reshape(rows.shape)
    count = int(numbers.max()) + 1 if numbers.size else 0
    if minlength is not None:
        count = max(count, int(np.asarray(minlength)))
    if maxlength is not None:
        count = min(count, int(np.asarray(maxlength)))
    made = np.zeros((len(rows), count), heavy.dtype)
    for out, row, weight in zip(made, rows, heavy, strict=True):
        is_in = row < count
        if binary_output:
            out[row[is_in]] = 1
        else:
            np.add.at(out, row[is_in], weight[is_in])
    return Tensor(made if by_row else made[0])


def histogram_fixed_width_bins(
    values: Any, value_range: Any, nbins: Any = 100, dtype: Any = "int32",
    name: Any = None,
) -> Tensor:  # fmt: skip
    """The bin of each value, of bins of one width."""
    found, limits = _known("histogram_fixed_width_bins", values, value_range)
    low, high = limits.astype(found.dtype)
    count = int(np.asarray(nbins))
    scaled = (found - low) / (high - low)
    bins = np.clip(np.floor(count * scaled), 0, count - 1)
    return Tensor(np.asarray(bins.astype(as_dtype(dtype).dtype)))


def histogram_fixed_width(
    values: Any, value_range: Any, nbins: Any = 100, dtype: Any = "int32",
    name: Any = None,
) -> Tensor:  # fmt: skip
    bins = histogram_fixed_width_bins(values, value_range, nbins)
    count = int(np.asarray(nbins))
    made = np.bincount(bins._value.reshape(-1), minlength=count)
    return Tensor(made.astype(as_dtype(dtype).dtype))


def confusion_matrix(
    labels: Any, predictions: Any, num_classes: Any = None,
    weights: Any = None, dtype: Any = "int32", name: Any = None,
) -> Tensor:  # fmt: skip
    """How often each label got each prediction."""
    rows, columns = _known("math.confusion_matrix", labels, predictions)
    most = max(rows.max(initial=-1), columns.max(initial=-1)) + 1
    count = int(most if num_classes is None else np.asarray(num_classes))
    if most > count or min(rows.min(initial=0), columns.min(initial=0)) < 0:
        raise refused(
            InvalidArgumentError,
            f"labels and predictions must be from 0 to {count - 1}; got "
            f"{rows} and {columns}",
        )
    heavy: Any = 1
    if weights is not None:
        heavy = _known("math.confusion_matrix", weights)[0]
    made = np.zeros((count, count), as_dtype(dtype).dtype)
    np.add.at(made, (rows, columns), heavy)
    return Tensor(made)


# ---- Segments.

_FOLDS: dict[str, tuple[Any, Callable[[Any], Any]]] = {
    "sum": (np.add, lambda dtype: 0),
    "prod": (np.multiply, lambda dtype: 1),
    "max": (np.maximum, lambda dtype: dtype.min),
    "min": (np.minimum, lambda dtype: dtype.max),
}


def _folded(
    how: str, data: Any, ids: Any, count: int, empty: Any = None
) -> Any:
    fold, neutral = _FOLDS[how]
    dtype = Tensor(data).dtype
    parts = data.reshape(ids.size, *data.shape[ids.ndim :])
    flat = ids.reshape(-1)
    shape = (count, *data.shape[ids.ndim :])
    made = np.full(shape, neutral(dtype), data.dtype)
    kept = flat >= 0
    if flat.size and flat.max() >= count:
        raise refused(
            InvalidArgumentError,
            f"segment ids must be less than {count}; got {flat.max()}",
        )
    fold.at(made, flat[kept], parts[kept])
    if empty is not None:
        is_empty = ~np.isin(np.arange(count), flat)
        made[is_empty] = empty
    return made


def _make_sorted(how: str) -> Callable[..., Tensor]:
    # What TensorFlow gives for a number without items.
    empty = 1 if how == "prod" else 0

    def call(data: Any, segment_ids: Any, name: Any = None) -> Tensor:
        values, ids = _known(f"math.{call.__name__}", data, segment_ids)
        if ids.size and (np.any(np.diff(ids) < 0) or ids[0] < 0):
            raise refused(
                InvalidArgumentError,
                f"segment ids must be sorted, from 0 on; got {ids}",
            )
        count = int(ids[-1]) + 1 if ids.size else 0
        if how == "mean":
            return Tensor(_means(values, ids, count, lambda n: n))
        return Tensor(_folded(how, values, ids, count, empty))

    call.__name__ = call.__qualname__ = f"segment_{how}"
    return call


def _means(data: Any, ids: Any, count: int, divisor: Any) -> Any:
    total = _folded("sum", data, ids, count)
    flat = ids.reshape(-1)
    numbers = np.bincount(flat[flat >= 0], minlength=count)
    by = divisor(np.maximum(numbers, 1).astype(np.float64))
    shape = (count,) + (1,) * (total.ndim - 1)
    made = total / by.reshape(shape)
    if data.dtype.kind in "iu":
        return np.trunc(made).astype(data.dtype)
    return made.astype(data.dtype)


def _make_unsorted(how: str) -> Callable[..., Tensor]:
    def call(
        data: Any, segment_ids: Any, num_segments: Any, name: Any = None
    ) -> Tensor:
        values, ids = _known(f"math.{call.__name__}", data, segment_ids)
        count = int(np.asarray(num_segments))
        if how == "mean":
            return Tensor(_means(values, ids, count, lambda n: n))
        if how == "sqrt_n":
            return Tensor(_means(values, ids, count, np.sqrt))
        return Tensor(_folded(how, values, ids, count))

    call.__name__ = call.__qualname__ = f"unsorted_segment_{how}"
    return call


FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{
        f"segment_{how}": _make_sorted(how)
        for how in ("max", "mean", "min", "prod", "sum")
    },
    **{
        f"unsorted_segment_{how}": _make_unsorted(how)
        for how in ("max", "mean", "min", "prod", "sqrt_n", "sum")
    },
}


# ---- Parts.


def dynamic_partition(
    data: Any, partitions: Any, num_partitions: int, name: Any = None
) -> list[Tensor]:
    """`data` in parts, by the number of each item's."""
    values, numbers = _known("dynamic_partition", data, partitions)
    return [Tensor(values[numbers == i]) for i in range(int(num_partitions))]


def dynamic_stitch(indices: Any, data: Any, name: Any = None) -> Tensor:
    """Parts put together, each item at its index."""
    places = _known("dynamic_stitch", *indices)
    parts = _known("dynamic_stitch", *data)
    last = max((p.max(initial=-1) for p in places), default=-1)
    rest = parts[0].shape[places[0].ndim :]
    made = np.zeros((int(last) + 1, *rest), parts[0].dtype)
    for place, part in zip(places, parts, strict=True):
        made[place.reshape(-1)] = part.reshape(place.size, *rest)
    return Tensor(made)


def unique_with_counts(
    x: Any, out_idx: Any = "int32", name: Any = None
) -> tuple[Tensor, Tensor, Tensor]:
    """As `tf.unique`, and how often each is there."""
    from penstock.compat.tf._values import unique

    items, numbers = unique(x, out_idx)
    counts = np.bincount(numbers._value, minlength=len(items._value))
    return items, numbers, Tensor(counts.astype(as_dtype(out_idx).dtype))


def invert_permutation(x: Any, name: Any = None) -> Tensor:
    (order,) = _known("math.invert_permutation", x)
    made = np.empty_like(order)
    if not np.array_equal(np.sort(order), np.arange(order.size)):
        raise refused(
            InvalidArgumentError,
            f"a permutation has each number from 0 on once; got {order}",
        )
    made[order] = np.arange(order.size, dtype=order.dtype)
    return Tensor(made)


def unravel_index(indices: Any, dims: Any, name: Any = None) -> Tensor:
    """The indices of places in a tensor that is one vector."""
    places, sizes = _known("unravel_index", indices, dims)
    if places.size and not 0 <= places.min() <= places.max() < sizes.prod():
        raise refused(
            InvalidArgumentError,
            f"indices must be less than {sizes.prod()}; got {places}",
        )
    found = np.array(np.unravel_index(places, sizes.tolist()))
    return Tensor(found.astype(places.dtype))


def cumprod(
    x: Any, axis: int = 0, exclusive: bool = False, reverse: bool = False,
    name: Any = None,
) -> Tensor:  # fmt: skip
    """The products of the first 1, 2, ... items."""
    (values,) = _known("math.cumprod", x)
    axis = int(axis)
    if reverse:
        values = np.flip(values, axis)
    total = np.cumprod(values, axis, dtype=values.dtype)
    if exclusive:
        first = np.take(np.ones_like(values), [0], axis)
        rest = np.take(total, np.arange(total.shape[axis] - 1), axis)
        total = np.concatenate([first, rest], axis)
    return Tensor(np.flip(total, axis) if reverse else total)


def reverse_sequence(
    input: Any, seq_lengths: Any, seq_axis: Any = None,
    batch_axis: Any = None, name: Any = None,
) -> Tensor:  # fmt: skip
    """Each row with its first items, as many as its length, turned round."""
    x, lengths = convert(input), convert(seq_lengths)
    along = 1 if seq_axis is None else int(seq_axis) % x.ndim
    batch = 0 if batch_axis is None else int(batch_axis) % x.ndim
    order = [batch, along]
    order += [i for i in range(x.ndim) if i not in order]
    moved = arrays.transpose(x, order)
    width = arrays.shape(moved, "int64")[1]
    columns = arrays.range(width)[None, :]
    until = arrays.cast(lengths, "int64")[:, None]
    places = arrays.where(columns < until, until - 1 - columns, columns)
    made = arrays.gather(moved, places, batch_dims=1)
    back = [order.index(i) for i in range(x.ndim)]
    found: Tensor = arrays.transpose(made, back)
    return found


def einsum(equation: str, *inputs: Any, **kwargs: Any) -> Tensor:
    """Sums of products, as an equation of their indices says."""
    given = [convert(each) for each in inputs]
    for each in given[1:]:
        operands(given[0], each)
    values = _known("einsum", *given)
    made = np.einsum(equation.replace(" ", ""), *values)
    return Tensor(np.asarray(made, values[0].dtype))


def bitcast(input: Any, type: Any, name: Any = None) -> Tensor:
    """The same bytes as another dtype."""
    (values,) = _known("bitcast", input)
    wanted = as_dtype(type)
    one, two = values.dtype.itemsize, wanted.size
    if one == two:
        return Tensor(values.view(wanted.dtype))
    raw = np.ascontiguousarray(values)
    if one > two:
        shape = (*values.shape, one // two)
        return Tensor(raw.reshape(-1).view(wanted.dtype).reshape(shape))
    if not values.ndim or values.shape[-1] * one != two:
        raise refused(
            InvalidArgumentError,
            f"the last dimension must have {two // one} items to become "
            f"{wanted}; got shape {values.shape}",
        )
    shape = values.shape[:-1]
    made = raw.reshape(-1).view(wanted.dtype).reshape(shape)
    return Tensor(np.asarray(made))


# ---- Scattered.


def _scattering(name: str, fold: Any) -> Callable[..., Tensor]:
    def call(
        tensor: Any, indices: Any, updates: Any, name: Any = None
    ) -> Tensor:
        x = convert(tensor)
        x, added = operands(x, convert(updates, hint=x.dtype))
        values, places, parts = _known(call.__name__, x, indices, added)
        depth = places.shape[-1]
        sizes = values.shape[:depth]
        if places.size and not np.all((places >= 0) & (places < sizes)):
            raise refused(
                InvalidArgumentError,
                f"indices must lie within shape {sizes}; got one that does not",
            )
        made = values.copy()
        rest = values.shape[depth:]
        rows = places.reshape(math.prod(places.shape[:-1]), depth)
        fold.at(made, tuple(rows.T), parts.reshape(len(rows), *rest))
        return Tensor(made)

    call.__name__ = call.__qualname__ = name
    return call


SCATTERS: dict[str, Callable[..., Any]] = {
    f"tensor_scatter_nd_{word}": _scattering(f"tensor_scatter_nd_{word}", fold)
    for word, fold in (
        ("add", np.add),
        ("max", np.maximum),
        ("min", np.minimum),
        ("sub", np.subtract),
    )
}
