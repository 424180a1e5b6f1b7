"""`tf.sparse`: sparse tensors taken apart and put together.

What puts items into another order needs values; the rest is recorded.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock._errors import InvalidArgumentError
from penstock._location import refused
from penstock._symbol import Symbol
from penstock.compat.tf import _arrays as arrays
from penstock.compat.tf._arithmetic import native, operands
from penstock.compat.tf._composites import SparseTensor, to_dense
from penstock.compat.tf._tensor import Tensor, convert
from penstock.compat.tf._types import as_dtype


def _known(name: str, x: SparseTensor) -> tuple[Any, Any, Any]:
    """Indices, values and shape as arrays; with symbols it is Python."""
    parts = (x.indices, x.values, x.dense_shape)
    if any(isinstance(part._value, Symbol) for part in parts):
        arrays.python_only(f"tf.sparse.{name}")
    shape = x.dense_shape._value.astype(np.int64)
    return x.indices._value.astype(np.int64), x.values._value, shape


def _made(indices: Any, values: Any, shape: Any) -> SparseTensor:
    return SparseTensor(
        Tensor(np.asarray(indices, np.int64)),
        Tensor(values),
        Tensor(np.asarray(shape, np.int64)),
    )


def _ordered(indices: Any, values: Any, shape: Any) -> SparseTensor:
    order = np.lexsort(indices.T[::-1]) if len(indices) else slice(None)
    return _made(indices[order], values[order], shape)


def _rank(x: SparseTensor) -> int:
    found = x.dense_shape.shape[0]
    if found is None:
        arrays.python_only("a sparse tensor of unknown rank")
        raise AssertionError
    return int(found)


# ---- The same items.


def map_values(op: Any, *args: Any, **kwargs: Any) -> SparseTensor:
    """`op` of the values of sparse tensors that have the same places."""
    given = [*args, *kwargs.values()]
    sparse = [x for x in given if isinstance(x, SparseTensor)]
    if not sparse:
        raise ValueError("map_values needs a sparse tensor; got none")
    for each in sparse[1:]:
        one, two = sparse[0].indices, each.indices
        if arrays.known_to_differ(one, two):
            raise refused(
                InvalidArgumentError,
                "map_values needs sparse tensors with the same indices",
            )

    def values(x: Any) -> Any:
        return x.values if isinstance(x, SparseTensor) else x

    made = op(*map(values, args), **{k: values(v) for k, v in kwargs.items()})
    return sparse[0].with_values(made)


def retain(sp_input: SparseTensor, to_retain: Any) -> SparseTensor:
    """Some of the items."""
    which = convert(to_retain, "bool")
    return SparseTensor(
        arrays.boolean_mask(sp_input.indices, which),
        arrays.boolean_mask(sp_input.values, which),
        sp_input.dense_shape,
    )


def reorder(sp_input: SparseTensor, name: Any = None) -> SparseTensor:
    """The items in the order of their places."""
    return _ordered(*_known("reorder", sp_input))


# ---- Another shape.


def reset_shape(sp_input: SparseTensor, new_shape: Any = None) -> SparseTensor:
    """The same items in a larger shape; in the smallest, if none is given."""
    if new_shape is None:
        indices, values, shape = _known("reset_shape", sp_input)
        least = indices.max(0) + 1 if len(indices) else np.zeros_like(shape)
        return _made(indices, values, least)
    wanted = arrays.cast(convert(new_shape), "int64")
    shape = sp_input.dense_shape
    if not arrays._has_symbols(wanted, shape) and (
        wanted._value.shape != shape._value.shape
        or np.any(wanted._value < shape._value)
    ):
        raise ValueError(
            f"the new shape must not be smaller than {shape.numpy()}; got "
            f"{wanted.numpy()}"
        )
    return SparseTensor(sp_input.indices, sp_input.values, wanted)


def reshape(
    sp_input: SparseTensor, shape: Any, name: Any = None
) -> SparseTensor:
    """The same items in a shape of as many places."""
    old = arrays.cast(sp_input.dense_shape, "int64")
    new = arrays.cast(convert(shape), "int64")
    total = arrays.reduce_prod(old)
    others = arrays.reduce_prod(arrays.where(new < 0, 1, new))
    new = arrays.where(new < 0, total // others, new)
    if not arrays._has_symbols(total, new) and np.prod(new._value) != int(
        total
    ):
        raise refused(
            InvalidArgumentError,
            f"a shape of {int(total)} places is needed; got {shape}",
        )
    place: Any = arrays.zeros_like(sp_input.indices[:, 0])
    for axis in range(_rank(sp_input)):
        place = place * old[axis] + sp_input.indices[:, axis]
    count = new.shape[0]
    if count is None:
        arrays.python_only("tf.sparse.reshape to an unknown rank")
        raise AssertionError
    columns: list[Any] = []
    for axis in reversed(range(count)):
        columns.insert(0, place % new[axis])
        place = place // new[axis]
    return SparseTensor(arrays.stack(columns, 1), sp_input.values, new)


def expand_dims(
    sp_input: SparseTensor, axis: Any = None, name: Any = None
) -> SparseTensor:
    """A dimension of size 1 put in; at the end, if nothing is said."""
    rank = _rank(sp_input)
    at = -1 if axis is None else int(axis)
    if not -rank - 1 <= at <= rank:
        raise ValueError(f"axis must be from {-rank - 1} to {rank}; got {axis}")
    at = at + rank + 1 if at < 0 else at
    shape = arrays.cast(sp_input.dense_shape, "int64")
    one = np.ones(1, np.int64)
    column = arrays.zeros_like(sp_input.indices[:, :1])
    indices = [sp_input.indices[:, :at], column, sp_input.indices[:, at:]]
    return SparseTensor(
        arrays.concat(indices, 1),
        sp_input.values,
        arrays.concat([shape[:at], one, shape[at:]], 0),
    )


def transpose(
    sp_input: SparseTensor, perm: Any = None, name: Any = None
) -> SparseTensor:
    indices, values, shape = _known("transpose", sp_input)
    order = np.asarray(
        range(len(shape))[::-1] if perm is None else perm, np.int64
    )
    return _ordered(indices[:, order], values, shape[order])


# ---- Parts, and several as one.


def slice_(
    sp_input: SparseTensor, start: Any, size: Any, name: Any = None
) -> SparseTensor:
    """The items of a part, which ends with the tensor at the latest."""
    begin = arrays.cast(convert(start), "int64")
    shape = arrays.cast(sp_input.dense_shape, "int64")
    zero = arrays.zeros_like(shape)
    wide = native(
        "maximum",
        native("minimum", arrays.cast(convert(size), "int64"), shape - begin),
        zero,
    )
    moved = sp_input.indices - begin[None, :]
    inside = native("logical_and", moved >= 0, moved < wide[None, :])
    which = native("all", inside, axis=1)
    return SparseTensor(
        arrays.boolean_mask(moved, which),
        arrays.boolean_mask(sp_input.values, which),
        wide,
    )


def split(
    sp_input: Any = None, num_split: Any = None, axis: Any = None,
    name: Any = None,
) -> list[SparseTensor]:  # fmt: skip
    """So many parts along a dimension; the first ones may be larger by 1."""
    rank = _rank(sp_input)
    at = int(np.asarray(axis)) % rank
    count = int(np.asarray(num_split))
    _, _, shape = _known("split", sp_input)
    if not 0 < count <= shape[at]:
        raise refused(
            InvalidArgumentError,
            f"num_split must be from 1 to {shape[at]}; got {count}",
        )
    small, more = divmod(int(shape[at]), count)
    parts, begin = [], 0
    for i in range(count):
        start, size = np.zeros_like(shape), shape.copy()
        start[at], size[at] = begin, small + (i < more)
        parts.append(slice_(sp_input, start, size))
        begin += small + (i < more)
    return parts


def concat(
    axis: Any, sp_inputs: Any, expand_nonconcat_dims: bool = False,
    name: Any = None,
) -> SparseTensor:  # fmt: skip
    """Sparse tensors one behind another along a dimension."""
    given = [_known("concat", each) for each in sp_inputs]
    rank = len(given[0][2])
    at = int(np.asarray(axis)) % rank
    shapes = np.array([shape for _, _, shape in given])
    others = np.delete(shapes, at, 1)
    if not expand_nonconcat_dims and np.any(others != others[0]):
        raise refused(
            InvalidArgumentError,
            "sparse tensors must have one shape but for the dimension along "
            f"which they are joined; got {shapes.tolist()}",
        )
    total = shapes.max(0)
    total[at] = shapes[:, at].sum()
    moved, begin = [], 0
    for indices, _, shape in given:
        each = indices.copy()
        each[:, at] += begin
        begin += shape[at]
        moved.append(each)
    values = [convert(each.values) for each in sp_inputs]
    for each in values[1:]:
        operands(values[0], each)
    joined = np.concatenate([each._value for each in values])
    return _ordered(np.concatenate(moved), joined, total)


# ---- With zeros in between.


def add(a: Any, b: Any, threshold: Any = 0) -> Any:
    """The sum: sparse of two sparse tensors, otherwise dense."""
    if not (isinstance(a, SparseTensor) and isinstance(b, SparseTensor)):
        one, two = (
            to_dense(x) if isinstance(x, SparseTensor) else convert(x)
            for x in (a, b)
        )
        return one + two
    made = _merged("add", a, b, np.add)
    least = np.asarray(threshold)
    kept = np.abs(made.values._value) > least if least > 0 else slice(None)
    return _made(
        made.indices._value[kept],
        made.values._value[kept],
        made.dense_shape._value,
    )


def maximum(
    sp_a: SparseTensor, sp_b: SparseTensor, name: Any = None
) -> SparseTensor:
    return _merged("maximum", sp_a, sp_b, np.maximum)


def minimum(
    sp_a: SparseTensor, sp_b: SparseTensor, name: Any = None
) -> SparseTensor:
    return _merged("minimum", sp_a, sp_b, np.minimum)


def _merged(
    name: str, a: SparseTensor, b: SparseTensor, fold: Any
) -> SparseTensor:
    """Items of either, put through `fold` with 0 where one is missing."""
    operands(a.values, b.values)
    one, two = _known(name, a), _known(name, b)
    if not np.array_equal(one[2], two[2]):
        raise refused(
            InvalidArgumentError,
            f"sparse tensors must have one shape; got {one[2]} and {two[2]}",
        )
    both = np.concatenate([one[0], two[0]])
    places, number = np.unique(both, axis=0, return_inverse=True)
    number = number.reshape(-1)
    parts = np.zeros((2, len(places)), one[1].dtype)
    parts[0, number[: len(one[0])]] = one[1]
    parts[1, number[len(one[0]) :]] = two[1]
    return _made(places, fold(parts[0], parts[1]), one[2])


def reduce_sum(
    sp_input: SparseTensor, axis: Any = None, keepdims: Any = None,
    output_is_sparse: bool = False, name: Any = None,
) -> Any:  # fmt: skip
    """The sum along axes, dense unless said otherwise."""
    from penstock.compat.tf import _reductions

    made = _reductions.reduce_sum(to_dense(sp_input), axis, bool(keepdims))
    return _from_dense(made) if output_is_sparse else made


def reduce_max(
    sp_input: SparseTensor, axis: Any = None, keepdims: Any = None,
    output_is_sparse: bool = False, name: Any = None,
) -> Any:  # fmt: skip
    """The largest items along axes; 0 where there are none."""
    from penstock.compat.tf import _reductions

    least = sp_input.dtype.min
    dense = to_dense(sp_input, least)
    made = _reductions.reduce_max(dense, axis, bool(keepdims))
    lowest = convert(least, hint=made.dtype)
    made = arrays.where(made == lowest, arrays.zeros_like(made), made)
    return _from_dense(made) if output_is_sparse else made


def _from_dense(x: Any) -> SparseTensor:
    from penstock.compat.tf._composites import from_dense

    return from_dense(x)


def sparse_dense_matmul(
    sp_a: Any, b: Any, adjoint_a: bool = False, adjoint_b: bool = False,
    name: Any = None,
) -> Any:  # fmt: skip
    """The product of matrices, of which one is sparse."""
    from penstock.compat.tf._values import matmul

    one, two = (
        to_dense(x) if isinstance(x, SparseTensor) else convert(x)
        for x in (sp_a, b)
    )
    return matmul(one, two, adjoint_a, adjoint_b)


def to_indicator(
    sp_input: SparseTensor, vocab_size: int, name: Any = None
) -> Any:
    """Whether each row has each number, as a dense tensor of bools."""
    indices, values, shape = _known("to_indicator", sp_input)
    if values.size and not 0 <= values.min() <= values.max() < vocab_size:
        raise refused(
            InvalidArgumentError,
            f"numbers must be from 0 to {vocab_size - 1}; got {values}",
        )
    made = np.zeros((*shape[:-1], int(vocab_size)), bool)
    places = (*indices[:, :-1].T, values)
    made[places] = True
    return Tensor(made)


def fill_empty_rows(
    sp_input: SparseTensor, default_value: Any, name: Any = None
) -> tuple[SparseTensor, Tensor]:
    """An item for each row that has none, and which those are."""
    indices, values, shape = _known("fill_empty_rows", sp_input)
    is_empty = ~np.isin(np.arange(shape[0]), indices[:, 0])
    rows = np.flatnonzero(is_empty)
    more = np.zeros((len(rows), len(shape)), np.int64)
    more[:, 0] = rows
    filler = convert(default_value, hint=sp_input.dtype)._value
    filled = np.full(len(rows), filler, values.dtype)
    made = _ordered(
        np.concatenate([indices, more]), np.concatenate([values, filled]), shape
    )
    return made, Tensor(is_empty)


def eye(
    num_rows: Any, num_columns: Any = None, dtype: Any = "float32",
    name: Any = None,
) -> SparseTensor:  # fmt: skip
    rows = int(np.asarray(num_rows))
    columns = rows if num_columns is None else int(np.asarray(num_columns))
    places = np.arange(min(rows, columns))
    return _made(
        np.stack([places, places], 1),
        np.ones(len(places), as_dtype(dtype).dtype),
        [rows, columns],
    )
