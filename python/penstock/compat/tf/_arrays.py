"""`tf.*`: making tensors, and their shapes and parts."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

import numpy as np

from penstock import _dtypes
from penstock._errors import (
    InvalidArgumentError,
    UnimplementedError,
    UnsupportedFunctionError,
)
from penstock._location import refused, user_line
from penstock._symbol import Symbol
from penstock.compat.tf._arithmetic import (
    native,
    operands,
    refuse_dtype,
    refuse_unknown_ranks,
)
from penstock.compat.tf._composites import (
    RaggedTensor,
    SparseTensor,
    over_items,
)
from penstock.compat.tf._tensor import Tensor, array_of, convert, first_tensor
from penstock.compat.tf._types import TensorShape, as_dtype


def constant(
    value: Any, dtype: Any = None, shape: Any = None, name: Any = "Const"
) -> Tensor:
    """A tensor of a value; Python's ints are int32, its floats float32.

    Example:
        >>> tf.constant([1, 2]).dtype, tf.constant(1.5).dtype
        (tf.int32, tf.float32)
    """
    if isinstance(value, Tensor):
        made = convert(value, dtype)
    else:
        wanted = None if dtype is None else as_dtype(dtype)
        made = Tensor(array_of(value, wanted))
    if shape is None:
        return made
    dims = TensorShape(shape).as_list()
    if made.shape.num_elements() == 1:
        return Tensor(np.full(dims, made._value.reshape(())))
    return reshape(made, dims)


def convert_to_tensor(
    value: Any, dtype: Any = None, dtype_hint: Any = None, name: Any = None
) -> Tensor:
    return convert(value, dtype, dtype_hint)


def is_tensor(x: Any) -> bool:
    return isinstance(x, (Tensor, SparseTensor, RaggedTensor))


def cast(x: Any, dtype: Any, name: Any = None) -> Any:
    """`x` as another dtype; fractions are cut off.

    Example:
        >>> tf.cast([1.8, -1.8], tf.int32).numpy()
        array([ 1, -1], dtype=int32)
    """
    wanted = as_dtype(dtype)
    if isinstance(x, SparseTensor):
        values = cast(x.values, wanted)
        return SparseTensor(x.indices, values, x.dense_shape, x._is_dense)
    if isinstance(x, RaggedTensor):
        return x.with_values(cast(x.values, wanted))
    found = convert(x)
    if found.dtype == wanted:
        return found
    if _dtypes.string in (found.dtype, wanted):
        raise refused(
            UnimplementedError, f"cast {found.dtype} to {wanted}: not possible"
        )
    if not isinstance(found._value, Symbol) and "bfloat16" not in (
        wanted.name,
        found.dtype.name,
    ):
        with np.errstate(all="ignore"):
            return Tensor(found._value.astype(wanted.dtype))
    return native("cast", found, wanted)


@over_items
def saturate_cast(value: Any, dtype: Any, name: Any = None) -> Tensor:
    """`cast` after `clip_by_value` to what `dtype` can hold."""
    x, wanted = convert(value), as_dtype(dtype)
    low = builtins.max(wanted.min, x.dtype.min)
    high = builtins.min(wanted.max, x.dtype.max)
    made: Tensor = cast(clip_by_value(x, low, high), wanted)
    return made


def identity(input: Any, name: Any = None) -> Any:
    return input if is_tensor(input) else convert(input)


# ---- Made of sizes and numbers.


def _sizes(value: Any) -> Any:
    """Sizes, as the engine's functions take them."""
    if isinstance(value, TensorShape):
        value = value.as_list()
    if isinstance(value, (list, tuple)) and not value:
        return np.empty(0, np.int64)
    found = convert(value)._value
    return found if isinstance(found, Symbol) else found.astype(np.int64)


def known_to_differ(one: Tensor, two: Tensor) -> bool:
    """Whether both have values, and not the same ones."""
    return not _has_symbols(one, two) and not np.array_equal(
        one._value, two._value
    )


def _has_symbols(*values: Any) -> bool:
    def look(value: Any) -> bool:
        found = first_tensor(value)
        while isinstance(value, (list, tuple)):
            return any(map(look, value))
        return found is not None and isinstance(found._value, Symbol)

    return any(map(look, values))


def zeros(shape: Any, dtype: Any = "float32", name: Any = None) -> Tensor:
    wanted = as_dtype(dtype)
    if wanted == _dtypes.string:
        return fill(shape, b"")
    return fill(shape, Tensor(np.zeros((), wanted.dtype)))


def ones(shape: Any, dtype: Any = "float32", name: Any = None) -> Tensor:
    wanted = as_dtype(dtype)
    if wanted == _dtypes.string:
        refuse_dtype("ones", wanted)
    return fill(shape, Tensor(np.ones((), wanted.dtype)))


def fill(dims: Any, value: Any, name: Any = None) -> Tensor:
    sizes, item = _sizes(dims), convert(value)
    if not _has_symbols(sizes, item):
        return Tensor(np.full(np.atleast_1d(sizes), item._value))
    return native("fill", sizes, item)


@over_items
def zeros_like(input: Any, dtype: Any = None, name: Any = None) -> Tensor:
    x = convert(input)
    return zeros(_static_or_shape(x), dtype or x.dtype)


@over_items
def ones_like(input: Any, dtype: Any = None, name: Any = None) -> Tensor:
    x = convert(input)
    return ones(_static_or_shape(x), dtype or x.dtype)


def _static_or_shape(x: Tensor) -> Any:
    return x.shape if x.shape.is_fully_defined() else shape(x)


def range(
    start: Any, limit: Any = None, delta: Any = 1, dtype: Any = None,
    name: Any = "range",
) -> Tensor:  # fmt: skip
    """Numbers one after another; of Python ints, int32.

    Example:
        >>> tf.range(3).numpy(), tf.range(0, 1, 0.5).numpy()
        (array([0, 1, 2], dtype=int32), array([0. , 0.5], dtype=float32))
    """
    if limit is None:
        start, limit = 0, start
    parts = [start, limit, delta]
    if dtype is None:
        strong = [convert(p).dtype for p in parts if not _is_plain(p)]
        plain = [convert(p).dtype for p in parts]
        order = ["int32", "int64", "float16", "float32", "float64"]
        names = {p.name for p in (strong or plain)} | {
            p.name for p in plain if p.is_floating
        }
        dtype = next((n for n in reversed(order) if n in names), None)
        if dtype is None or not names <= {*order}:
            refuse_dtype("range", as_dtype(min(names - {*order})))
    made = [cast(convert(p), dtype)._value for p in parts]
    if not any(isinstance(p, Symbol) for p in made):
        return Tensor(np.arange(*made).astype(as_dtype(dtype).dtype))
    return native("arange", *made)


def _is_plain(value: Any) -> bool:
    return isinstance(value, (bool, int, float)) and not isinstance(
        value, np.generic
    )


def linspace(start: Any, stop: Any, num: int, name: Any = None) -> Tensor:
    a, b = operands(start, stop)
    if a.dtype.is_integer:
        wide = "float32" if a.dtype.size <= 2 else "float64"
        a, b = cast(a, wide), cast(b, wide)
    steps: Tensor = cast(range(num), a.dtype)
    last: Tensor = cast(builtins.max(num - 1, 1), a.dtype)
    return a + (b - a) * steps / last


@over_items
def one_hot(
    indices: Any, depth: Any, on_value: Any = None, off_value: Any = None,
    axis: int | None = None, dtype: Any = None, name: Any = None,
) -> Any:  # fmt: skip
    """Vectors with one item that differs.

    Example:
        >>> tf.one_hot(1, 3).numpy()
        array([0., 1., 0.], dtype=float32)
    """
    if dtype is None:
        given = [convert(v) for v in (on_value, off_value) if v is not None]
        dtype = given[0].dtype if given else "float32"
    wanted = as_dtype(dtype)
    on = convert(1 if on_value is None else on_value, hint=wanted)
    off = convert(0 if off_value is None else off_value, hint=wanted)
    x = convert(indices)
    if x.dtype.name not in ("uint8", "int8", "int32", "int64"):
        refuse_dtype("one_hot", x.dtype)
    x = cast(x, "int64")
    last = x.ndim if axis is None or axis == -1 else axis
    places = reshape(range(cast(depth, "int64")), [-1] + [1] * (x.ndim - last))
    hit = expand_dims(x, last) == places
    return where(hit, cast(on, wanted), cast(off, wanted))


# ---- Shapes.


def shape(input: Any, out_type: Any = "int32", name: Any = None) -> Tensor:
    """The sizes of a tensor, int32.

    Example:
        >>> tf.shape([[1, 2, 3]]).numpy()
        array([1, 3], dtype=int32)
    """
    x = convert(input)
    if x.shape.is_fully_defined():
        dims = np.array(x.shape.as_list(), as_dtype(out_type).dtype)
        return Tensor(dims)
    made: Tensor = cast(native("shape", x), out_type)
    return made


def shape_n(input: Any, out_type: Any = "int32", name: Any = None) -> Any:
    return [shape(each, out_type) for each in input]


def size(input: Any, out_type: Any = "int32", name: Any = None) -> Tensor:
    x = input.flat_values if isinstance(input, RaggedTensor) else convert(input)
    count = x.shape.num_elements()
    if count is not None:
        return Tensor(np.array(count, as_dtype(out_type).dtype))
    made: Tensor = cast(native("size", x), out_type)
    return made


def rank(input: Any, name: Any = None) -> Tensor:
    is_ragged = isinstance(input, RaggedTensor)
    found = input.shape.rank if is_ragged else convert(input).ndim
    return Tensor(np.array(found, np.int32))


def reshape(tensor: Any, shape: Any, name: Any = None) -> Tensor:
    x = convert(tensor)
    sizes = _sizes(shape)
    if not _has_symbols(x, sizes):
        try:
            return Tensor(x._value.reshape(np.atleast_1d(sizes)))
        except ValueError as error:
            raise refused(InvalidArgumentError, str(error)) from None
    made = native("reshape", x, sizes)
    if isinstance(shape, (list, tuple)):
        # What is known of sizes that are partly computed.
        known = [None if isinstance(s, Tensor) or s == -1 else s for s in shape]
        made.set_shape(known)
    return made


def expand_dims(input: Any, axis: Any, name: Any = None) -> Any:
    if isinstance(input, RaggedTensor):
        from penstock.compat.tf import _ragged

        return _ragged.expand(input, int(axis))
    return native("expand_dims", convert(input), int(axis))


def squeeze(input: Any, axis: Any = None, name: Any = None) -> Any:
    if isinstance(input, RaggedTensor) and axis in (0, [0]):
        return input.values
    x = convert(input)
    refuse_unknown_ranks([x])
    axes = None if axis is None else np.atleast_1d(axis).tolist()
    return native("squeeze", x, axes or None)


def transpose(
    a: Any, perm: Any = None, conjugate: bool = False, name: Any = None
) -> Tensor:
    axes = None if perm is None else np.asarray(perm).tolist()
    return native("transpose", convert(a), axes)


def broadcast_to(input: Any, shape: Any, name: Any = None) -> Tensor:
    x = convert(input)
    sizes = _sizes(shape)
    if not _has_symbols(x, sizes):
        return Tensor(np.broadcast_to(x._value, sizes).copy())
    everywhere = fill(Tensor(sizes), True)
    return native("where", everywhere, x, x)


def ensure_shape(x: Any, shape: Any, name: Any = None) -> Tensor:
    """`x`, of a shape that is known from here on."""
    found = convert(x)
    made = Tensor(found._value)
    made.set_shape(shape)
    return made


# ---- Parts and several as one.


def _same_dtype(values: Sequence[Any]) -> list[Tensor]:
    known = first_tensor(list(values))
    if known is None:
        known = convert(values[0])
    made = [convert(v, hint=known.dtype) for v in values]
    for each in made:
        operands(made[0], each)
    return made


def stack(values: Any, axis: int = 0, name: Any = "stack") -> Any:
    """Tensors of one shape as one, along a new dimension."""
    if isinstance(values, (list, tuple)) and any(
        isinstance(v, RaggedTensor) for v in values
    ):
        from penstock.compat.tf import _ragged

        return _ragged.stack(values, int(axis))
    if isinstance(values, Tensor):
        return values if axis == 0 else stack(unstack(values), axis)
    if first_tensor(list(values)) is None:
        found = array_of(list(values))
        return Tensor(np.moveaxis(found, 0, axis))
    return native("stack", list(_same_dtype(values)), axis)


def unstack(
    value: Any, num: int | None = None, axis: int = 0, name: Any = "unstack"
) -> list[Tensor]:
    x = convert(value)
    found = x.shape[axis] if num is None else num
    if found is None:
        raise UnsupportedFunctionError(
            f"unstack at {user_line()} cannot be recorded: its size is known "
            "only when there is an element"
        )
    at = axis + x.ndim if axis < 0 else axis
    before: tuple[Any, ...] = (slice(None),) * at
    keys = [(*before, i) for i in builtins.range(found)]
    return [x[key] for key in keys]


def concat(values: Any, axis: Any, name: Any = "concat") -> Any:
    if not isinstance(values, (list, tuple)):
        values = [values]
    if any(isinstance(v, RaggedTensor) for v in values):
        from penstock.compat.tf import _ragged

        return _ragged.concat(values, int(axis))
    made = _same_dtype(values)
    if not _has_symbols(*made):
        try:
            return Tensor(np.concatenate([m._value for m in made], int(axis)))
        except ValueError as error:
            raise refused(InvalidArgumentError, str(error)) from None
    return native("concat", made, int(axis))


def split(
    value: Any, num_or_size_splits: Any, axis: int = 0, num: Any = None,
    name: Any = "split",
) -> list[Tensor]:  # fmt: skip
    """Parts along a dimension: so many, or of such sizes."""
    is_ragged = isinstance(value, RaggedTensor)
    x: Any = value if is_ragged else convert(value)
    at = axis + (x.shape.rank if is_ragged else x.ndim) if axis < 0 else axis
    before: tuple[Any, ...] = (slice(None),) * at
    if np.ndim(num_or_size_splits) == 0:
        count = int(num_or_size_splits)
        whole = x.shape[at]
        if whole is None:
            whole = x.nrows() if is_ragged else shape(x)[at]
        step: Any = whole // count
        sizes: list[Any] = [step] * count
    else:
        sizes = list(num_or_size_splits)
    parts, begin = [], 0
    for each in sizes:
        end = begin + each
        key = (*before, slice(begin, end))
        parts.append(x[key])
        begin = end
    return parts


def slice_(input_: Any, begin: Any, size: Any, name: Any = None) -> Tensor:
    """The part of `size` from `begin` on; a size of -1 is the rest.

    Example:
        >>> tf.slice([[1, 2, 3], [4, 5, 6]], [0, 1], [2, 2]).numpy().tolist()
        [[2, 3], [5, 6]]
    """
    x = convert(input_)
    begins = _items(begin, x.ndim)
    sizes = _items(size, x.ndim)
    key = []
    for b, s in zip(begins, sizes, strict=True):
        if not isinstance(s, Tensor) and s == -1:
            key.append(builtins.slice(b, None))
        else:
            key.append(builtins.slice(b, b + s))
    made = x[tuple(key)]
    made.set_shape(
        [None if isinstance(s, Tensor) or s == -1 else s for s in sizes]
    )
    return made


def _items(value: Any, count: int) -> list[Any]:
    """The integers of a list or tensor: Python's, or tensors."""
    if isinstance(value, Tensor) and isinstance(value._value, Symbol):
        return [value[i] for i in builtins.range(count)]
    if isinstance(value, (list, tuple)):
        return [
            i if isinstance(i, Tensor) and _has_symbols(i) else int(i)
            for i in value
        ]
    return [int(i) for i in np.asarray(value).reshape(-1)]


def gather(
    params: Any, indices: Any, validate_indices: Any = None, axis: Any = None,
    batch_dims: int = 0, name: Any = None,
) -> Any:  # fmt: skip
    """Parts of `params` by their places.

    Example:
        >>> tf.gather([5, 6, 7], [2, 0]).numpy()
        array([7, 5], dtype=int32)
        >>> tf.gather([[5, 6], [7, 8]], [[1], [0]], batch_dims=1).numpy()
        array([[6],
               [7]], dtype=int32)
    """
    from penstock.compat.tf import _places

    return _places.gather(params, indices, axis, int(batch_dims))


def take(x: Tensor, at: Tensor, along: int = 0) -> Tensor:
    """Parts of `x` by places that are known to be there."""
    if _has_symbols(x, at):
        return native("take", x, at, along)
    return Tensor(np.asarray(np.take(x._value, at._value, along)))


def boolean_mask(
    tensor: Any, mask: Any, axis: Any = None, name: Any = "boolean_mask"
) -> Any:
    """The parts of a tensor for which a mask is true.

    Example:
        >>> tf.boolean_mask([[1, 2], [3, 4]], [False, True], axis=1).numpy()
        array([[2],
               [4]], dtype=int32)
    """
    from penstock.compat.tf import _places

    return _places.boolean_mask(tensor, mask, axis)


def where(
    condition: Any, x: Any = None, y: Any = None, name: Any = None
) -> Any:
    """Items of `x` or of `y`; of a condition alone, where it is true.

    Example:
        >>> tf.where([True, False], 1, 2).numpy()
        array([1, 2], dtype=int32)
        >>> tf.where([False, True]).numpy()
        array([[1]])
    """
    if x is not None or y is not None:
        return _chosen(condition, x, y)
    if isinstance(condition, RaggedTensor):
        items = condition.to_sparse()
        return boolean_mask(items.indices, items.values)
    is_true = convert(condition)
    if not is_true.dtype.is_bool:
        is_true = is_true != 0
    return _places(is_true)


@over_items
def _chosen(condition: Any, x: Any, y: Any) -> Any:
    is_true = convert(condition)
    if not is_true.dtype.is_bool:
        refuse_dtype("where", is_true.dtype)
    a, b = operands(x, y)
    return native("where", is_true, a, b)


def _places(is_true: Tensor) -> Tensor:
    if not isinstance(is_true._value, Symbol):
        return Tensor(np.argwhere(is_true._value))
    count = cast(native("size", is_true), "int64")
    flat = native("reshape", is_true, np.array([-1]))
    at = native("boolean_mask", range(count), flat)
    dims = shape(is_true, "int64")
    columns: list[Tensor] = []
    for axis in reversed(builtins.range(is_true.ndim)):
        columns.insert(0, at % dims[axis])
        at = at // dims[axis]
    return native("stack", columns, 1)


def reverse(tensor: Any, axis: Any, name: Any = None) -> Any:
    is_ragged = isinstance(tensor, RaggedTensor)
    x: Any = tensor if is_ragged else convert(tensor)
    rank = x.shape.rank if is_ragged else x.ndim
    axes = {a % rank for a in np.atleast_1d(axis).tolist()}
    return x[
        tuple(
            slice(None, None, -1) if i in axes else slice(None)
            for i in builtins.range(rank)
        )
    ]


@over_items
def clip_by_value(
    t: Any, clip_value_min: Any, clip_value_max: Any, name: Any = None
) -> Tensor:
    x = convert(t)
    low, high = (
        convert(v, hint=x.dtype) for v in (clip_value_min, clip_value_max)
    )
    operands(x, low)
    operands(x, high)
    return native("minimum", native("maximum", x, low), high)


# ---- What only values can do: such a function runs as Python.


def python_only(
    what: str, why: str = "the engine has no such function"
) -> None:
    """Refuses what cannot be recorded: the function around it is Python."""
    raise UnsupportedFunctionError(
        f"{what} at {user_line()} cannot be recorded: {why}. Such a function "
        "runs as Python, with values."
    )


def reduce_max(*args: Any, **kwargs: Any) -> Any:
    from penstock.compat.tf import _reductions

    return _reductions.reduce_max(*args, **kwargs)


def reduce_prod(*args: Any, **kwargs: Any) -> Any:
    from penstock.compat.tf import _reductions

    return _reductions.reduce_prod(*args, **kwargs)
