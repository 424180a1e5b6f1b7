"""`tf.*`: tensors made larger, or of sizes: tiles, padding, masks."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from penstock import _dtypes
from penstock._symbol import Symbol
from penstock.compat.tf._arithmetic import native, refuse_dtype
from penstock.compat.tf._arrays import (
    _has_symbols,
    _items,
    broadcast_to,
    cast,
    concat,
    expand_dims,
    fill,
    range,
    reshape,
    shape,
    stack,
    take,
    where,
)
from penstock.compat.tf._composites import RaggedTensor
from penstock.compat.tf._tensor import Tensor, convert
from penstock.compat.tf._types import as_dtype


def tile(input: Any, multiples: Any, name: Any = None) -> Any:
    if isinstance(input, RaggedTensor):
        for axis, times in enumerate(np.asarray(multiples).tolist()):
            input = concat([input] * times, axis) if times != 1 else input
        return input
    x = convert(input)
    if not _has_symbols(x, multiples):
        return Tensor(np.tile(x._value, np.asarray(multiples)))
    for axis, times in enumerate(_items(multiples, x.ndim)):
        if not isinstance(times, Tensor):
            if times > 0:
                x = native("concat", [x] * times, axis) if times > 1 else x
                continue
            times = convert(times)
        width = cast(shape(x)[axis], "int64")
        places = range(width * cast(times, "int64")) % width
        x = take(x, places, axis)
    return x


def repeat(
    input: Any, repeats: Any, axis: int | None = None, name: Any = None
) -> Tensor:
    x = convert(input)
    if axis is None:
        x, axis = reshape(x, [-1]), 0
    times = convert(repeats)
    if not _has_symbols(x, times):
        return Tensor(np.repeat(x._value, times._value, axis))
    width = cast(shape(x)[axis], "int64")
    if times.ndim != 0:
        from penstock.compat.tf import _ragged

        many = broadcast_to(cast(times, "int64"), stack([width]))
        return take(x, _ragged.repeated(many), axis)
    each = cast(times, "int64")
    return take(x, range(width * each) // each, axis)


def pad(
    tensor: Any, paddings: Any, mode: str = "CONSTANT",
    constant_values: Any = 0, name: Any = None,
) -> Tensor:  # fmt: skip
    """A tensor with more around it.

    Example:
        >>> tf.pad([1, 2], [[0, 2]]).numpy()
        array([1, 2, 0, 0], dtype=int32)
    """
    x = convert(tensor)
    if not _has_symbols(x, paddings):
        widths = np.asarray(convert(paddings)._value)
        how = mode.lower()
        if how == "constant":
            filler = _filler(x, constant_values)._value
            return Tensor(
                np.pad(x._value, widths, "constant", constant_values=filler)
            )
        return Tensor(np.pad(x._value, widths, how))  # type: ignore[call-overload]
    if mode.upper() != "CONSTANT":
        return _mirrored(x, paddings, int(mode.upper() == "REFLECT"))
    for axis, pair in enumerate(_pairs(paddings, x.ndim)):
        parts: list[Any] = [x]
        for place, width in zip((0, 2), pair, strict=True):
            if not isinstance(width, Tensor) and width == 0:
                continue
            sizes = shape(x, "int64")
            dims = [
                cast(width, "int64")
                if i == axis
                else (sizes[i] if size is None else size)
                for i, size in enumerate(x.shape)
            ]
            parts.insert(place, fill(dims, _filler(x, constant_values)))
        if len(parts) > 1:
            known = x.shape.as_list()
            x = native("concat", parts, axis)
            known[axis] = x.shape[axis]
            x.set_shape(known)
    return x


def _filler(x: Tensor, value: Any) -> Tensor:
    if x.dtype == _dtypes.string and not isinstance(value, (str, bytes)):
        return convert(value if isinstance(value, Tensor) else b"")
    if x.dtype.is_bool and not isinstance(value, Tensor):
        return convert(bool(value))
    return convert(value, hint=x.dtype)


def _pairs(paddings: Any, count: int) -> list[tuple[Any, Any]]:
    if isinstance(paddings, Tensor) and isinstance(paddings._value, Symbol):
        return [(paddings[i, 0], paddings[i, 1]) for i in builtins.range(count)]
    if isinstance(paddings, Tensor):
        paddings = paddings.numpy().tolist()
    pairs = []
    for pair in paddings:
        low, high = _items(pair, 2)
        pairs.append((low, high))
    return pairs


def _mirrored(x: Tensor, paddings: Any, gap: int) -> Tensor:
    for axis, (low, high) in enumerate(_pairs(paddings, x.ndim)):
        width = cast(shape(x)[axis], "int64")
        low64, high64 = cast(low, "int64"), cast(high, "int64")
        places = range(-low64, width + high64)
        places = where(places < 0, -places - 1 + gap, places)
        last = width - 1
        over = 2 * last + 1 - places - gap
        x = take(x, where(places > last, over, places), axis)
    return x


def roll(input: Any, shift: Any, axis: Any, name: Any = None) -> Tensor:
    x = convert(input)
    width = cast(shape(x)[int(axis)], "int64")
    places = (range(width) - cast(shift, "int64")) % width
    return take(x, places, int(axis))


def meshgrid(*args: Any, indexing: str = "xy") -> list[Tensor]:
    vectors = [convert(a) for a in args]
    order = list(builtins.range(len(vectors)))
    if indexing == "xy" and len(order) > 1:
        order[0], order[1] = 1, 0
    dims = [shape(vectors[i])[0] for i in order]
    made = []
    for i, vector in enumerate(vectors):
        sizes = [1] * len(vectors)
        sizes[order.index(i)] = -1
        made.append(broadcast_to(reshape(vector, sizes), stack(dims)))
    return made


def eye(num_rows: int, num_columns: int | None = None,
        dtype: Any = "float32") -> Tensor:  # fmt: skip
    wanted = as_dtype(dtype)
    if wanted == _dtypes.string:
        refuse_dtype("eye", wanted)
    return Tensor(np.eye(num_rows, num_columns, dtype=wanted.dtype))


def sequence_mask(
    lengths: Any, maxlen: Any = None, dtype: Any = "bool", name: Any = None
) -> Tensor:
    """Whether each place is within a sequence's length.

    Example:
        >>> tf.sequence_mask([1, 3], 3).numpy().tolist()
        [[True, False, False], [True, True, True]]
    """
    from penstock.compat.tf._reductions import reduce_max

    x = convert(lengths)
    longest = reduce_max(x) if maxlen is None else convert(maxlen)
    made = range(longest) < expand_dims(cast(x, longest.dtype), -1)
    found: Tensor = cast(made, dtype)
    return found
