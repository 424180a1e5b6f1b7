"""Ragged tensors taken apart and put together."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

import numpy as np

from penstock._errors import InvalidArgumentError
from penstock._location import refused
from penstock._symbol import Symbol
from penstock.compat.tf import _arrays as arrays
from penstock.compat.tf._arithmetic import native, operands, refuse_dtype
from penstock.compat.tf._composites import RaggedTensor
from penstock.compat.tf._tensor import Tensor, convert

_ZERO = np.zeros(1, np.int64)
_NOTHING = Tensor(np.zeros((), np.int64))

# ---- Lengths, splits and places, as int64.


def splits_of(lengths: Any) -> Tensor:
    """Where rows of such lengths begin, and where the last one ends."""
    x = arrays.cast(convert(lengths), "int64")
    if not isinstance(x._value, Symbol):
        return Tensor(np.concatenate([_ZERO, np.cumsum(x._value)]))
    # Each row, and one behind the last, has a mark before its items: the place
    # of the mark is the number of items and marks before it.
    columns, is_there = _grid(arrays.concat([x, _ZERO], 0) + 1)
    every = columns + arrays.zeros_like(arrays.cast(is_there, "int64"))
    flat = native("boolean_mask", every, is_there)
    numbers = arrays.range(arrays.shape(flat, "int64")[0])
    marks = native("boolean_mask", numbers, flat == 0)
    return marks - arrays.range(arrays.shape(marks, "int64")[0])


def lengths_of(x: RaggedTensor) -> Any:
    splits = arrays.cast(x.row_splits, "int64")
    return splits[1:] - splits[:-1]


def _starts_of(x: RaggedTensor) -> Any:
    return arrays.cast(x.row_splits, "int64")[:-1]


def _grid(lengths: Tensor) -> tuple[Tensor, Tensor]:
    """The columns of the longest row, and which of them each row has."""
    longest = arrays.reduce_max(arrays.concat([lengths, _ZERO], 0))
    columns = arrays.range(longest)[None, :]
    return columns, columns < lengths[:, None]


def _spread(starts: Tensor, lengths: Tensor, step: Any = 1) -> Tensor:
    """The places of runs, one behind another."""
    columns, is_there = _grid(lengths)
    return native("boolean_mask", starts[:, None] + columns * step, is_there)


def row_numbers(x: RaggedTensor) -> Tensor:
    """The number of its row, for each value."""
    return repeated(lengths_of(x))


def repeated(times: Tensor) -> Tensor:
    """0, 1, 2, ..., each as often as is said."""
    numbers = arrays.range(arrays.shape(times, "int64")[0])
    return _spread(numbers, times, 0)


def take_values(values: Any, places: Tensor) -> Any:
    """Values, or rows, by places that are there."""
    if isinstance(values, RaggedTensor):
        return take_rows(values, places)
    return arrays.take(values, places)


def take_rows(x: RaggedTensor, rows: Tensor) -> RaggedTensor:
    starts = arrays.take(_starts_of(x), rows)
    lengths = arrays.take(lengths_of(x), rows)
    values = take_values(x.values, _spread(starts, lengths))
    return _made(values, splits_of(lengths), x)


def _made(values: Any, splits: Tensor, like: RaggedTensor) -> RaggedTensor:
    return RaggedTensor(values, arrays.cast(splits, like.row_splits.dtype))


def gather(x: RaggedTensor, indices: Any, axis: Any, batch_dims: int) -> Any:
    """`tf.gather` of rows."""
    if batch_dims or axis not in (None, 0):
        raise ValueError(
            "gather of a ragged tensor is of its rows; got "
            f"axis={axis}, batch_dims={batch_dims}"
        )
    rows = convert(indices)
    if not arrays._has_symbols(rows, x.row_splits):
        count = len(x)
        if rows._value.size and not (
            rows._value.min() >= 0 and rows._value.max() < count
        ):
            raise refused(
                InvalidArgumentError,
                f"indices must be from 0 on and less than {count}; got {rows}",
            )
    if rows.shape.rank == 0:
        return x[rows]
    if rows.shape.rank != 1:
        raise ValueError(
            "gather of a ragged tensor takes a vector of rows; got shape "
            f"{rows.shape}"
        )
    return take_rows(x, arrays.cast(rows, "int64"))


def from_tensor(
    tensor: Any, lengths: Any, padding: Any, ragged_rank: int
) -> RaggedTensor:
    """`RaggedTensor.from_tensor`."""
    x = convert(tensor)
    if ragged_rank < 1 or (x.shape.rank or 0) <= ragged_rank:
        raise ValueError(
            "from_tensor needs a ragged_rank from 1 on and less than the rank "
            f"of the tensor; got {ragged_rank} and shape {x.shape}"
        )
    if ragged_rank > 1:
        if lengths is not None or padding is not None:
            raise ValueError(
                "from_tensor takes lengths or padding for a ragged_rank of 1; "
                f"got {ragged_rank}"
            )
        rows = arrays.shape(x, "int64")
        inner = from_tensor(_merge_two(x, 0), None, None, ragged_rank - 1)
        return RaggedTensor(inner, arrays.range(rows[0] + 1) * rows[1])
    count, width = (arrays.shape(x, "int64")[i] for i in (0, 1))
    flat = (
        arrays.reshape(x, [-1, *x.shape.as_list()[2:]])
        if (x.shape[2:].is_fully_defined())
        else _merge_two(x, 0)
    )
    starts = arrays.range(count) * width
    if lengths is None and padding is None:
        return RaggedTensor(flat, arrays.range(count + 1) * width)
    if lengths is None:
        lengths = _unpadded(x, convert(padding, hint=x.dtype), width)
    found = arrays.cast(convert(lengths), "int64")
    found = native("minimum", native("maximum", found, _NOTHING), width)
    return RaggedTensor(
        arrays.take(flat, _spread(starts, found)), splits_of(found)
    )


def _unpadded(x: Tensor, padding: Tensor, width: Tensor) -> Any:
    """The lengths of rows up to the last item that is no padding."""
    is_item = x != padding
    for axis in reversed(builtins.range(2, x.ndim)):
        is_item = native("any", is_item, axis=axis)
    ends = arrays.range(width)[None, :] + 1
    kept = arrays.where(is_item, ends, arrays.zeros_like(ends))
    return arrays.reduce_max(kept, 1)


def ranges(
    starts: Any, limits: Any, deltas: Any, dtype: Any, row_splits_dtype: Any
) -> RaggedTensor:
    """`tf.ragged.range`, of integers."""
    low, high = operands(starts, limits)
    low, step = operands(low, deltas)
    if not low.dtype.is_integer:
        refuse_dtype("tf.ragged.range", low.dtype)
    wanted = dtype or low.dtype
    begin, end, by = (arrays.cast(v, "int64") for v in (low, high, step))
    size = end - begin
    count = native("maximum", (size + by - native("sign", by)) // by, _NOTHING)
    lengths = arrays.reshape(count, [-1])
    columns, is_there = _grid(lengths)
    first = arrays.reshape(begin + count * 0, [-1])[:, None]
    each = arrays.reshape(by + count * 0, [-1])[:, None]
    values = native("boolean_mask", first + columns * each, is_there)
    splits = arrays.cast(splits_of(lengths), row_splits_dtype)
    return RaggedTensor(arrays.cast(values, wanted), splits)


# ---- By index.


def item(x: RaggedTensor, key: Any) -> Any:
    """`x[key]`, as TensorFlow's: no number for a ragged dimension."""
    keys = list(key) if isinstance(key, tuple) else [key]
    at = [i for i, k in enumerate(keys) if k is Ellipsis]
    if at:
        rank = x.shape.rank or 0
        given = sum(k is not None and k is not Ellipsis for k in keys)
        every = [slice(None)] * max(rank - given, 0)
        keys[at[0] : at[0] + 1] = every
    return _outer(x, keys)


def _outer(x: Any, keys: list[Any]) -> Any:
    if not keys:
        return x
    if not isinstance(x, RaggedTensor):
        return x[tuple(keys)]
    first, *rest = keys
    if first is None:
        return _as_row(_outer(x, rest))
    if isinstance(first, slice):
        return _inner(_slice_rows(x, first), rest)
    return _outer(_row(x, first), rest)


def _as_row(x: Any) -> Any:
    """`x` as the only row of another tensor."""
    if isinstance(x, RaggedTensor):
        ends = arrays.stack([_NOTHING, _count(x)])
        return _made(x, ends, x)
    return arrays.expand_dims(x, 0)


def _count(x: RaggedTensor) -> Tensor:
    return arrays.shape(x.row_splits, "int64")[0] - 1


def _row(x: RaggedTensor, key: Any) -> Any:
    at = convert(key)
    splits = x.row_splits
    if not isinstance(at._value, Symbol):
        number = int(at._value)
        size = x.shape[0]
        if size is not None and not -size <= number < size:
            raise IndexError(f"row {number} is not one of {size} rows")
        if number < 0:
            at = arrays.cast(_count(x), at.dtype) + at
    return _between(x.values, splits[at], splits[at + 1])


def _between(values: Any, begin: Any, end: Any) -> Any:
    if isinstance(values, RaggedTensor):
        return _slice_rows(values, slice(begin, end))
    return values[begin:end]


def _slice_rows(x: RaggedTensor, key: slice) -> RaggedTensor:
    if key == slice(None):
        return x
    count = _count(x)
    begin, length, step = _bounds(key, count)
    if step != 1:
        rows = begin + arrays.range(length) * step
        return take_rows(x, rows)
    splits = x.row_splits[begin : begin + length + 1]
    values = _between(x.values, splits[0], splits[-1])
    return RaggedTensor(values, splits - splits[0])


def _bounds(key: slice, size: Tensor) -> tuple[Tensor, Tensor, int]:
    """First place, number of places and step of a slice of `size` places."""
    step = 1 if key.step is None else int(key.step)
    if step == 0:
        raise ValueError("slice step cannot be zero")
    zero = arrays.zeros_like(size)
    low, high = (zero, size) if step > 0 else (zero - 1, size - 1)

    def bound(given: Any, default: Tensor) -> Tensor:
        if given is None:
            return default
        place = zero + arrays.cast(convert(given), "int64")
        place = arrays.where(place < 0, place + size, place)
        return native("minimum", native("maximum", place, low), high)

    begin = bound(key.start, low if step > 0 else high)
    end = bound(key.stop, high if step > 0 else low)
    if step > 0:
        length = (end - begin + (step - 1)) // step
    else:
        length = (begin - end + (-step - 1)) // -step
    return begin, native("maximum", length, zero), step


def _inner(x: RaggedTensor, keys: list[Any]) -> Any:
    """Each row of `x` by `keys`."""
    if not keys:
        return x
    first, *rest = keys
    if first is None:
        found = _inner(x, rest)
        every = arrays.range(_count(x) + 1)
        return _made(found, every, x)
    if not isinstance(first, slice):
        raise ValueError("cannot index into an inner ragged dimension")
    if first != slice(None):
        begin, length, step = _bounds(first, lengths_of(x))
        places = _spread(_starts_of(x) + begin, length, step)
        x = _made(take_values(x.values, places), splits_of(length), x)
    if not rest:
        return x
    if isinstance(x.values, RaggedTensor):
        return x.with_values(_inner(x.values, rest))
    key = (slice(None), *rest)
    return x.with_values(x.values[key])


# ---- Several as one.


def _alike(values: Sequence[Any]) -> list[RaggedTensor]:
    """All as ragged tensors of one dtype and one ragged rank."""
    given = [v if isinstance(v, RaggedTensor) else convert(v) for v in values]
    depth = max(v.ragged_rank for v in given if isinstance(v, RaggedTensor))
    made = [_of_rank(v, depth) for v in given]
    splits = {v.row_splits.dtype.name for v in made}
    for each in made:
        operands(made[0].flat_values, each.flat_values)
    return [with_splits(v, "int64") for v in made] if len(splits) > 1 else made


def _of_rank(x: Any, depth: int) -> RaggedTensor:
    """`x` with so many ragged dimensions."""
    if isinstance(x, RaggedTensor):
        if x.ragged_rank == depth:
            return x
        return x.with_values(_of_rank(x.values, depth - 1))
    made = RaggedTensor.from_tensor(x)
    return made if depth == 1 else _of_rank(made, depth)


def with_splits(x: Any, dtype: Any) -> Any:
    if not isinstance(x, RaggedTensor):
        return x
    return RaggedTensor(
        with_splits(x.values, dtype), arrays.cast(x.row_splits, dtype)
    )


def concat(values: Sequence[Any], axis: int) -> Any:
    """`tf.concat` of ragged tensors, and of others beside them."""
    made = _alike(values)
    rank = made[0].shape.rank or 0
    if not -rank <= axis < rank:
        raise ValueError(f"axis must be less than {rank}; got {axis}")
    return _joined(list(made), axis % rank)


def _joined(parts: list[Any], axis: int) -> Any:
    first = parts[0]
    if not isinstance(first, RaggedTensor):
        return arrays.concat(parts, axis)
    if axis == 0:
        splits, end = [first.row_splits], first.row_splits[-1]
        for each in parts[1:]:
            splits.append(each.row_splits[1:] + end)
            end = end + each.row_splits[-1]
        values = _joined([p.values for p in parts], 0)
        return RaggedTensor(values, arrays.concat(splits, 0))
    if axis > 1:
        check_same_splits(parts)
        inner = _joined([p.values for p in parts], axis - 1)
        return first.with_values(inner)
    _check_same_counts(parts)
    # All rows one behind another, then the first of each, the second, ...
    rows = _joined(parts, 0)
    count = _count(first)
    steps = arrays.range(len(parts), dtype="int64") * count
    order = arrays.range(count)[:, None] + steps[None, :]
    order = arrays.reshape(order, [-1])
    places = _spread(
        arrays.take(_starts_of(rows), order),
        arrays.take(lengths_of(rows), order),
    )
    total = first.row_splits
    for each in parts[1:]:
        total = total + each.row_splits
    return RaggedTensor(take_values(rows.values, places), total)


def _check_same_counts(parts: list[RaggedTensor]) -> None:
    counts = {p.shape[0] for p in parts} - {None}
    if len(counts) > 1:
        raise refused(
            InvalidArgumentError,
            f"ragged tensors must have as many rows each; got {sorted(counts)}",
        )


def check_same_splits(parts: list[RaggedTensor]) -> None:
    """Refuses tensors that are known to have other rows."""
    for each in parts[1:]:
        one, two = parts[0].row_splits, each.row_splits
        if arrays.known_to_differ(one, two):
            raise refused(
                InvalidArgumentError,
                "ragged tensors must have rows of the same lengths; got "
                f"row_splits {one.numpy()} and {two.numpy()}",
            )


def stack(values: Sequence[Any], axis: int = 0) -> Any:
    """`tf.stack` of ragged tensors; of vectors of any length, rows."""
    given = [v if isinstance(v, RaggedTensor) else convert(v) for v in values]
    rank = (given[0].shape.rank or 0) + 1
    at = axis + rank if axis < 0 else axis
    if not any(isinstance(v, RaggedTensor) for v in given):
        if rank == 1 or (rank == 2 and at == 1):
            return arrays.stack(given, at)
        if rank == 2:
            # TensorFlow's splits of vectors are int32.
            lengths = [arrays.shape(v)[0] for v in given]
            return RaggedTensor.from_row_lengths(
                arrays.concat(given, 0), arrays.stack(lengths)
            )
        given = [RaggedTensor.from_tensor(v) for v in given]
    return _joined(list(_alike([expand(v, at) for v in given])), at)


def expand(x: Any, axis: int) -> Any:
    """A dimension of size 1 put in; a ragged one, where that matters."""
    rank = (x.shape.rank or 0) + 1
    at = axis + rank if axis < 0 else axis
    if at <= 1:
        is_ragged = isinstance(x, RaggedTensor)
        rows = _count(x) if is_ragged else arrays.shape(x, "int64")[0]
        # All rows as one, or each row as one.
        ends = arrays.range(rows + 1) if at else arrays.stack([_NOTHING, rows])
        return _made(x, ends, x) if is_ragged else RaggedTensor(x, ends)
    if not isinstance(x, RaggedTensor):
        return arrays.expand_dims(x, at)
    if at == 2 and not isinstance(x.values, RaggedTensor):
        return x.with_values(arrays.expand_dims(x.values, 1))
    return x.with_values(expand(x.values, at - 1))


def merge_dims(x: Any, outer: int, inner: int) -> Any:
    """`RaggedTensor.merge_dims`."""
    rank = x.shape.rank or 0
    low, high = (a + rank if a < 0 else a for a in (outer, inner))
    if not 0 <= low <= high < rank:
        raise ValueError(
            f"merge_dims needs outer_axis <= inner_axis < {rank}; got "
            f"{outer} and {inner}"
        )
    for _ in builtins.range(high - low):
        x = _merge_two(x, low)
    return x


def _merge_two(x: Any, axis: int) -> Any:
    """`x` with its dimensions `axis` and the next as one."""
    if not isinstance(x, RaggedTensor):
        dims = arrays.shape(x, "int64")
        sizes = [dims[:axis], np.array([-1]), dims[axis + 2 :]]
        return arrays.reshape(x, arrays.concat(sizes, 0))
    if axis == 0:
        return x.values
    if axis > 1:
        return x.with_values(_merge_two(x.values, axis - 1))
    if isinstance(x.values, RaggedTensor):
        splits = arrays.take(x.values.row_splits, x.row_splits)
        return RaggedTensor(x.values.values, splits)
    width = arrays.shape(x.values, x.row_splits.dtype)[1]
    return RaggedTensor(_merge_two(x.values, 0), x.row_splits * width)


def boolean_mask(data: Any, mask: Any) -> Any:
    """The items of `data` for which `mask`, of the same rows, is true."""
    which = mask if isinstance(mask, RaggedTensor) else convert(mask, "bool")
    values = data if isinstance(data, RaggedTensor) else convert(data)
    if not isinstance(which, RaggedTensor):
        if which.shape.rank == 1:
            places = arrays.reshape(arrays.where(which), [-1])
            return take_values(values, places)
        which = RaggedTensor.from_tensor(which)
    if not isinstance(values, RaggedTensor):
        values = RaggedTensor.from_tensor(values)
    check_same_splits([values, which])
    if isinstance(which.values, RaggedTensor):
        return values.with_values(boolean_mask(values.values, which.values))
    is_true = which.values
    kept = (
        boolean_mask(values.values, is_true)
        if isinstance(values.values, RaggedTensor)
        else arrays.boolean_mask(values.values, is_true)
    )
    before = splits_of(arrays.cast(is_true, "int64"))
    return _made(kept, arrays.take(before, values.row_splits), values)
