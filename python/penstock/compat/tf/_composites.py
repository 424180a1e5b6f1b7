"""Ragged and sparse tensors: Penstock's values with TensorFlow's words."""

from __future__ import annotations

import itertools
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
        lengths = np.asarray(convert(row_lengths, hint="int64"))
        splits = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        return RaggedTensor(values, splits)

    @staticmethod
    def from_tensor(
        tensor: Any, name: Any = None, row_splits_dtype: Any = "int64"
    ) -> RaggedTensor:
        from penstock.compat.tf import _arrays as arrays

        dense = convert(tensor)
        rows, width = (arrays.shape(dense, "int64")[i] for i in (0, 1))
        splits = arrays.range(0, (rows + 1) * width, width)
        rest = dense.shape[2:].as_list()
        flat = arrays.reshape(dense, [-1, *rest])
        return RaggedTensor(flat, arrays.cast(splits, row_splits_dtype))

    @property
    def flat_values(self) -> Tensor:
        inner = self.values
        if isinstance(inner, RaggedTensor):
            return inner.flat_values
        assert isinstance(inner, Tensor)
        return inner

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

    def row_lengths(self, axis: int = 1, name: Any = None) -> Tensor:
        return self.row_splits[1:] - self.row_splits[:-1]

    def row_starts(self, name: Any = None) -> Tensor:
        return self.row_splits[:-1]

    def nrows(self, out_type: Any = None, name: Any = None) -> Tensor:
        from penstock.compat.tf import _arrays as arrays

        dtype = out_type or self.row_splits.dtype
        return arrays.shape(self.row_splits, dtype)[0] - 1

    def bounding_shape(self) -> Tensor:
        from penstock.compat.tf import _arrays as arrays

        return arrays.stack(
            [self.nrows(), arrays.reduce_max(self.row_lengths())]
        )

    def to_tensor(
        self, default_value: Any = None, name: Any = None, shape: Any = None
    ) -> Tensor:
        """A dense tensor; rows are filled up with `default_value`."""
        from penstock.compat.tf import _arrays as arrays

        if isinstance(self.values, RaggedTensor):
            inner = self.values.to_tensor(default_value)
            return RaggedTensor(inner, self.row_splits).to_tensor(default_value)
        values = self.values
        width: Any = None
        if shape is not None:
            width = list(TensorShape(shape))[1]
        starts = arrays.cast(self.row_splits[:-1], "int64")
        lengths = arrays.cast(self.row_lengths(), "int64")
        if width is None:
            zero = np.zeros(1, np.int64)
            width = arrays.reduce_max(arrays.concat([lengths, zero], 0))
        columns = arrays.range(arrays.cast(width, "int64"))
        is_there = columns[None, :] < lengths[:, None]
        filler = default_of(values.dtype, default_value)
        rest = arrays.shape(values)[1:]
        padded = arrays.concat(
            [
                values,
                arrays.fill(arrays.concat([np.array([1]), rest], 0), filler),
            ],
            0,
        )
        places = starts[:, None] + columns[None, :]
        last = arrays.cast(arrays.shape(values)[0], "int64")
        return arrays.gather(padded, arrays.where(is_there, places, last))

    def to_list(self) -> list[Any]:
        splits = self.row_splits.numpy().tolist()
        if isinstance(self.values, RaggedTensor):
            items = self.values.to_list()
        else:
            items = self.values.numpy().tolist()
        return [items[a:b] for a, b in itertools.pairwise(splits)]

    def numpy(self) -> Any:
        rows = np.empty(len(self), object)
        for i in range(len(self)):
            rows[i] = self[i].numpy()
        return rows

    def with_values(self, values: Any) -> RaggedTensor:
        return RaggedTensor(values, self.row_splits)

    with_flat_values = with_values

    def merge_dims(self, outer_axis: int, inner_axis: int) -> Any:
        if (outer_axis, inner_axis) != (0, 1):
            raise NotImplementedError(
                "merge_dims is offered for the two outermost dimensions"
            )
        return self.values

    def __len__(self) -> int:
        return len(self.row_splits) - 1

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, (tuple, slice)) or key is Ellipsis:
            raise NotImplementedError(
                "a ragged tensor can be indexed by a row's number here; use "
                "to_tensor()"
            )
        at = convert(key)
        if not isinstance(at._value, Symbol) and int(at._value) < 0:
            at = convert(len(self)) + at
        return self.values[self.row_splits[at] : self.row_splits[at + 1]]

    def __iter__(self) -> Any:
        return iter([self[i] for i in range(len(self))])

    def __repr__(self) -> str:
        if isinstance(self.row_splits._value, Symbol):
            return f"<tf.RaggedTensor: {self.dtype}>"
        return f"<tf.RaggedTensor {self.to_list()}>"


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
        out[place._value] = values._value
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
