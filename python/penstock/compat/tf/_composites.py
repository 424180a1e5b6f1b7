"""Ragged and sparse tensors: Penstock's values with TensorFlow's words."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from penstock import _dtypes, _functions
from penstock._composites import Ragged, Sparse
from penstock._errors import InvalidArgumentError
from penstock._location import refused
from penstock._symbol import Symbol
from penstock.compat.tf._arithmetic import native
from penstock.compat.tf._tensor import Tensor, convert
from penstock.compat.tf._types import DType, TensorShape


class SparseTensor:
    """The items of a tensor that are not zero, and where they are.

    Example:
        >>> x = tf.sparse.SparseTensor([[0], [2]], [7, 8], [4])
        >>> tf.sparse.to_dense(x).numpy()
        array([7, 0, 8, 0], dtype=int32)
    """

    __slots__ = ("_is_dense", "dense_shape", "indices", "values")

    def __init__(
        self,
        indices: Any,
        values: Any,
        dense_shape: Any,
        _is_dense: bool = False,
    ) -> None:
        self.indices = convert(indices, hint="int64")
        self.values = convert(values)
        self.dense_shape = convert(dense_shape, hint="int64")
        # Whether it is a vector without gaps, as one Example's feature is.
        self._is_dense = _is_dense

    @property
    def dtype(self) -> DType:
        return self.values.dtype

    @property
    def shape(self) -> TensorShape:
        value = self.dense_shape._value
        if not isinstance(value, Symbol):
            return TensorShape(value.tolist())
        size = self.dense_shape.shape[0]
        return TensorShape(None if size is None else [None] * size)

    def get_shape(self) -> TensorShape:
        return self.shape

    def with_values(self, new_values: Any) -> SparseTensor:
        return SparseTensor(
            self.indices, new_values, self.dense_shape, self._is_dense
        )

    def __repr__(self) -> str:
        return (
            f"SparseTensor(indices={self.indices!r}, values={self.values!r}, "
            f"dense_shape={self.dense_shape!r})"
        )


class RaggedTensor:
    """Rows of different lengths.

    Example:
        >>> x = tf.RaggedTensor.from_row_splits([1, 2, 3], [0, 2, 3])
        >>> x.to_list(), x.to_tensor().numpy().tolist()
        ([[1, 2], [3]], [[1, 2], [3, 0]])
    """

    __slots__ = ("row_splits", "values")

    values: Any

    def __init__(self, values: Any, row_splits: Any) -> None:
        self.values = (
            values if isinstance(values, RaggedTensor) else convert(values)
        )
        self.row_splits = convert(row_splits, hint="int64")

    @staticmethod
    def from_row_splits(
        values: Any, row_splits: Any, name: Any = None, validate: bool = True
    ) -> RaggedTensor:
        return RaggedTensor(values, row_splits)

    @staticmethod
    def from_row_lengths(
        values: Any, row_lengths: Any, name: Any = None, validate: bool = True
    ) -> RaggedTensor:
        from penstock.compat.tf import _arrays as arrays
        from penstock.compat.tf import _ragged

        lengths = convert(row_lengths, hint="int64")
        splits = arrays.cast(_ragged.splits_of(lengths), lengths.dtype)
        return RaggedTensor(values, splits)

    @staticmethod
    def from_tensor(
        tensor: Any, lengths: Any = None, padding: Any = None,
        ragged_rank: int = 1, name: Any = None, row_splits_dtype: Any = "int64",
    ) -> RaggedTensor:  # fmt: skip
        """The rows of a tensor; without the padding at their ends, if said.

        Example:
            >>> x = [[1, 2, 0], [3, 0, 0]]
            >>> tf.RaggedTensor.from_tensor(x, padding=0)
            <tf.RaggedTensor [[1, 2], [3]]>
        """
        from penstock.compat.tf import _ragged

        made: RaggedTensor = _ragged.from_tensor(
            tensor, lengths, padding, ragged_rank
        )
        return made.with_row_splits_dtype(row_splits_dtype)

    @staticmethod
    def from_row_starts(
        values: Any, row_starts: Any, name: Any = None, validate: bool = True
    ) -> RaggedTensor:
        from penstock.compat.tf import _arrays as arrays

        inner = _inner_of(values)
        starts = convert(row_starts, hint="int64")
        end = arrays.cast(_rows_of(inner), starts.dtype)
        return RaggedTensor(inner, arrays.concat([starts, [end]], 0))

    @staticmethod
    def from_row_limits(
        values: Any, row_limits: Any, name: Any = None, validate: bool = True
    ) -> RaggedTensor:
        from penstock.compat.tf import _arrays as arrays

        limits = convert(row_limits, hint="int64")
        zero = arrays.zeros([1], limits.dtype)
        return RaggedTensor(values, arrays.concat([zero, limits], 0))

    @staticmethod
    def from_value_rowids(
        values: Any, value_rowids: Any, nrows: Any = None, name: Any = None,
        validate: bool = True,
    ) -> RaggedTensor:  # fmt: skip
        from penstock.compat.tf import _arrays as arrays
        from penstock.compat.tf import _reductions

        rows = convert(value_rowids, hint="int64")
        if nrows is None:
            none = arrays.constant([-1], rows.dtype)
            nrows = arrays.reduce_max(arrays.concat([rows, none], 0)) + 1
        numbers = arrays.range(arrays.cast(nrows, rows.dtype) + 1)
        is_before = rows[None, :] < numbers[:, None]
        splits = _reductions.count_nonzero(is_before, 1, dtype=rows.dtype)
        return RaggedTensor(values, splits)

    @staticmethod
    def from_uniform_row_length(
        values: Any, uniform_row_length: Any, nrows: Any = None,
        validate: bool = True, name: Any = None,
    ) -> RaggedTensor:  # fmt: skip
        from penstock.compat.tf import _arrays as arrays

        inner = _inner_of(values)
        length = arrays.cast(convert(uniform_row_length), "int64")
        if nrows is None:
            nrows = _rows_of(inner) // length
        count = arrays.cast(nrows, "int64")
        return RaggedTensor(inner, arrays.range(count + 1) * length)

    @staticmethod
    def from_nested_row_splits(
        flat_values: Any, nested_row_splits: Any, name: Any = None,
        validate: bool = True,
    ) -> Any:  # fmt: skip
        made = flat_values
        for splits in reversed(list(nested_row_splits)):
            made = RaggedTensor(made, splits)
        return made

    @staticmethod
    def from_nested_row_lengths(
        flat_values: Any, nested_row_lengths: Any, name: Any = None,
        validate: bool = True,
    ) -> Any:  # fmt: skip
        made = flat_values
        for lengths in reversed(list(nested_row_lengths)):
            made = RaggedTensor.from_row_lengths(made, lengths)
        return made

    @staticmethod
    def from_sparse(
        st_input: Any, name: Any = None, row_splits_dtype: Any = "int64"
    ) -> RaggedTensor:
        """The rows of a sparse matrix whose rows have no gaps."""
        made = RaggedTensor.from_value_rowids(
            st_input.values, st_input.indices[:, 0], st_input.dense_shape[0]
        )
        return made.with_row_splits_dtype(row_splits_dtype)

    @property
    def flat_values(self) -> Tensor:
        inner = self.values
        if isinstance(inner, RaggedTensor):
            return inner.flat_values
        assert isinstance(inner, Tensor)
        return inner

    @property
    def nested_row_splits(self) -> tuple[Tensor, ...]:
        inner = self.values
        rest = isinstance(inner, RaggedTensor)
        return (self.row_splits, *(inner.nested_row_splits if rest else ()))

    def nested_row_lengths(self, name: Any = None) -> tuple[Tensor, ...]:
        return tuple(s[1:] - s[:-1] for s in self.nested_row_splits)

    @property
    def dtype(self) -> DType:
        return self.flat_values.dtype

    @property
    def ragged_rank(self) -> int:
        inner = self.values
        more = inner.ragged_rank if isinstance(inner, RaggedTensor) else 0
        return 1 + more

    @property
    def shape(self) -> TensorShape:
        size = self.row_splits.shape[0]
        return TensorShape(
            [None if size is None else size - 1, None]
        ).concatenate(self.values.shape[1:])

    def get_shape(self) -> TensorShape:
        return self.shape

    def row_lengths(self, axis: int = 1, name: Any = None) -> Any:
        """The lengths of rows; of inner ones, as a ragged tensor."""
        if axis > 1:
            inner = self.values
            if isinstance(inner, RaggedTensor):
                return self.with_values(inner.row_lengths(axis - 1))
        return self.row_splits[1:] - self.row_splits[:-1]

    def row_starts(self, name: Any = None) -> Tensor:
        return self.row_splits[:-1]

    def row_limits(self, name: Any = None) -> Tensor:
        return self.row_splits[1:]

    def value_rowids(self, name: Any = None) -> Tensor:
        """The number of its row, for each value."""
        from penstock.compat.tf import _arrays as arrays
        from penstock.compat.tf import _ragged

        found = _ragged.row_numbers(self)
        made: Tensor = arrays.cast(found, self.row_splits.dtype)
        return made

    def nrows(self, out_type: Any = None, name: Any = None) -> Tensor:
        from penstock.compat.tf import _arrays as arrays

        dtype = out_type or self.row_splits.dtype
        return arrays.shape(self.row_splits, dtype)[0] - 1

    def bounding_shape(
        self, axis: Any = None, name: Any = None, out_type: Any = None
    ) -> Tensor:
        """The shape that `to_tensor` gives."""
        from penstock.compat.tf import _arrays as arrays

        dtype = out_type or self.row_splits.dtype
        sizes = [self.nrows(dtype)]
        zero = np.zeros(1, np.int64)
        for lengths in self.nested_row_lengths():
            many = arrays.concat([arrays.cast(lengths, "int64"), zero], 0)
            sizes.append(arrays.cast(arrays.reduce_max(many), dtype))
        inner = arrays.shape(self.flat_values, dtype)[1:]
        made: Tensor = arrays.concat([arrays.stack(sizes), inner], 0)
        return made if axis is None else arrays.take(made, convert(axis))

    def to_tensor(
        self, default_value: Any = None, name: Any = None, shape: Any = None
    ) -> Tensor:
        """A dense tensor; rows are filled up with `default_value`."""
        from penstock.compat.tf import _arrays as arrays

        wanted: Any = None if shape is None else TensorShape(shape).dims
        if isinstance(self.values, RaggedTensor):
            rest = None if wanted is None else [None, *wanted[2:]]
            inner = self.values.to_tensor(default_value, shape=rest)
            outer = None if wanted is None else wanted[:2]
            return RaggedTensor(inner, self.row_splits).to_tensor(
                default_value, shape=outer
            )
        values = self.values
        count: Any = None if wanted is None else wanted[0]
        width: Any = None if wanted is None else wanted[1]
        starts = arrays.cast(self.row_splits[:-1], "int64")
        lengths = arrays.cast(self.row_lengths(), "int64")
        if count is not None:
            none = np.zeros(count, np.int64)
            starts = arrays.concat([starts, none], 0)[:count]
            lengths = arrays.concat([lengths, none], 0)[:count]
        if width is None:
            zero = np.zeros(1, np.int64)
            width = arrays.reduce_max(arrays.concat([lengths, zero], 0))
        columns = arrays.range(arrays.cast(width, "int64"))
        is_there = columns[None, :] < lengths[:, None]
        filler = default_of(values.dtype, default_value)
        inner = arrays.shape(values)[1:]
        padded = arrays.concat(
            [
                values,
                arrays.fill(arrays.concat([np.array([1]), inner], 0), filler),
            ],
            0,
        )
        places = starts[:, None] + columns[None, :]
        last = arrays.cast(arrays.shape(values)[0], "int64")
        return arrays.take(padded, arrays.where(is_there, places, last))

    def to_sparse(self, name: Any = None) -> SparseTensor:
        """Its items, each with the number of its row and its place there."""
        from penstock.compat.tf import _arrays as arrays

        if self.ragged_rank != 1 or self.values.shape.rank != 1:
            raise ValueError(
                "to_sparse takes rows of items; got a ragged tensor of shape "
                f"{self.shape}"
            )
        rows = arrays.cast(self.value_rowids(), "int64")
        starts = arrays.cast(self.row_splits[:-1], "int64")
        count = arrays.shape(self.values, "int64")[0]
        columns = arrays.range(count) - arrays.take(starts, rows)
        return SparseTensor(
            arrays.stack([rows, columns], 1),
            self.values,
            self.bounding_shape(out_type="int64"),
        )

    def to_list(self) -> list[Any]:
        splits = self.row_splits.numpy().tolist()
        if isinstance(self.values, RaggedTensor):
            items = self.values.to_list()
        else:
            items = self.values.numpy().tolist()
        return [items[a:b] for a, b in itertools.pairwise(splits)]

    def numpy(self) -> Any:
        """An array of rows; an ordinary one if all are of one length."""
        parts = [self[i].numpy() for i in range(len(self))]
        if len({np.shape(part) for part in parts}) == 1 and (
            parts[0].dtype != object or self.dtype == _dtypes.string
        ):
            return np.stack(parts)
        rows = np.empty(len(self), object)
        rows[:] = parts
        return rows

    def with_values(self, new_values: Any) -> RaggedTensor:
        return RaggedTensor(new_values, self.row_splits)

    def with_flat_values(self, new_values: Any) -> RaggedTensor:
        inner = self.values
        if isinstance(inner, RaggedTensor):
            return self.with_values(inner.with_flat_values(new_values))
        return self.with_values(new_values)

    def with_row_splits_dtype(self, dtype: Any) -> RaggedTensor:
        from penstock.compat.tf import _ragged

        made: RaggedTensor = _ragged.with_splits(self, dtype)
        return made

    def merge_dims(self, outer_axis: int, inner_axis: int) -> Any:
        """Rows of rows as longer rows.

        Example:
            >>> x = tf.ragged.constant([[[1, 2], [3]], [[4]]])
            >>> x.merge_dims(1, 2)
            <tf.RaggedTensor [[1, 2, 3], [4]]>
        """
        from penstock.compat.tf import _ragged

        return _ragged.merge_dims(self, outer_axis, inner_axis)

    def __len__(self) -> int:
        return len(self.row_splits) - 1

    def __getitem__(self, key: Any) -> Any:
        """A row, rows, or parts of rows.

        Example:
            >>> x = tf.ragged.constant([[1, 2, 3], [4]])
            >>> x[0].numpy(), x[:, :2]
            (array([1, 2, 3], dtype=int32), <tf.RaggedTensor [[1, 2], [4]]>)
        """
        from penstock.compat.tf import _ragged

        return _ragged.item(self, key)

    def __iter__(self) -> Any:
        return iter([self[i] for i in range(len(self))])

    def __repr__(self) -> str:
        if isinstance(self.row_splits._value, Symbol):
            return f"<tf.RaggedTensor: {self.dtype}>"
        return f"<tf.RaggedTensor {self.to_list()}>"


def _binary(name: str, is_reflected: bool = False) -> Any:
    def operator(self: RaggedTensor, other: Any) -> Any:
        if other is None:
            return NotImplemented
        from penstock.compat.tf._arithmetic import binary

        if is_reflected:
            return binary(name, other, self)
        return binary(name, self, other)

    return operator


for _word, _name in {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "truediv": "true_divide",
    "floordiv": "floor_divide",
    "mod": "mod",
    "pow": "power",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
}.items():
    setattr(RaggedTensor, f"__{_word}__", _binary(_name))
    setattr(RaggedTensor, f"__r{_word}__", _binary(_name, True))
for _word, _name in {
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
    "eq": "equal",
    "ne": "not_equal",
}.items():
    setattr(RaggedTensor, f"__{_word}__", _binary(_name))


def _unary(name: str) -> Any:
    def operator(self: RaggedTensor) -> RaggedTensor:
        return self.with_flat_values(getattr(self.flat_values, name)())

    return operator


for _word in ("__neg__", "__abs__", "__invert__"):
    setattr(RaggedTensor, _word, _unary(_word))


def over_items(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of tensors, item by item, that takes ragged ones as well."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        for each in (*args, *kwargs.values()):
            if isinstance(each, RaggedTensor):
                from penstock.compat.tf import _ragged_items

                return _ragged_items.map_flat_values(function, args, kwargs)
        return function(*args, **kwargs)

    return call


def _inner_of(values: Any) -> Any:
    return values if isinstance(values, RaggedTensor) else convert(values)


def _rows_of(values: Any) -> Tensor:
    """How many rows a tensor has, int64."""
    from penstock.compat.tf import _arrays as arrays

    if isinstance(values, RaggedTensor):
        return values.nrows("int64")
    return arrays.shape(values, "int64")[0]


def default_of(dtype: DType, given: Any) -> Tensor:
    """What fills up a tensor of `dtype`."""
    if given is not None:
        return convert(given, dtype)
    if dtype == _dtypes.string:
        return convert(b"")
    return Tensor(np.zeros((), dtype.dtype))


# ---- tf.sparse


def to_dense(
    sp_input: Any,
    default_value: Any = None,
    validate_indices: bool = True,
    name: Any = None,
) -> Tensor:
    """`tf.sparse.to_dense`: a tensor with `default_value` where nothing is."""
    from penstock.compat.tf import _arrays as arrays

    if sp_input._is_dense:
        values: Tensor = sp_input.values
        return values
    shape = arrays.cast(sp_input.dense_shape, "int64")
    size = arrays.reduce_prod(shape)
    rank = sp_input.indices.shape[1]
    if rank is None:
        raise refused(
            InvalidArgumentError, "a sparse tensor's rank must be known"
        )
    place = arrays.zeros_like(sp_input.indices[:, 0])
    for axis in range(rank):
        place = place * shape[axis] + sp_input.indices[:, axis]
    filler = default_of(sp_input.dtype, default_value)
    flat = scatter(place, sp_input.values, size, filler)
    return arrays.reshape(flat, shape)


def scatter(place: Tensor, values: Tensor, size: Tensor, filler: Any) -> Tensor:
    """A vector that has `values` at `place`, and `filler` elsewhere."""
    parts = (place._value, values._value, size._value)
    if not any(isinstance(part, Symbol) for part in parts):
        out = np.full(int(size._value), filler._value)
        try:
            out[place._value] = values._value
        except IndexError as error:
            raise refused(InvalidArgumentError, str(error)) from None
        return Tensor(out)
    return native("scatter", place, values, size, filler)


def from_dense(tensor: Any, name: Any = None) -> SparseTensor:
    """`tf.sparse.from_dense`."""
    from penstock.compat.tf import _arrays as arrays

    x = convert(tensor)
    if x.dtype == _dtypes.string:
        is_there = x != b""
    elif x.dtype.is_bool:
        is_there = x
    else:
        is_there = x != 0
    return SparseTensor(
        arrays.where(is_there),
        arrays.boolean_mask(x, is_there),
        arrays.shape(x, "int64"),
    )


# ---- At the boundary of functions.


def wrap_composite(value: Any) -> Any:
    if isinstance(value, Ragged):
        inner = value.values
        return RaggedTensor(
            wrap_composite(inner) if isinstance(inner, Ragged) else inner,
            value.row_splits,
        )
    return SparseTensor(value.indices, value.values, value.dense_shape)


def unwrap_composite(value: Any) -> Any:
    if isinstance(value, RaggedTensor):
        inner = value.values
        return Ragged(
            unwrap_composite(inner)
            if isinstance(inner, RaggedTensor)
            else inner._value,
            value.row_splits._value,
        )
    indices = value.indices._value
    return Sparse(indices, value.values._value, _dims(value.dense_shape))


def _dims(dense_shape: Tensor) -> Any:
    value = dense_shape._value
    if isinstance(value, Symbol):
        return _functions.cast(value, "int64")
    return value.astype(np.int64)
