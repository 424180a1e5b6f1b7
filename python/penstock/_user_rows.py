"""What user code gives, as rows: values or, in their place, its exceptions."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np

from penstock import _chunk, _dtypes, _pool_code, _spec
from penstock._chunk import RowError


class Rows:
    """Rows of a chunk being gathered; None in place of an error's values."""

    def __init__(self) -> None:
        self._rows: list[list[_chunk.Array] | None] = []
        self._errors: list[RowError] = []
        self._ranks: list[int] | None = None  # of the rows so far
        self.size = 0

    @property
    def count(self) -> int:
        return len(self._rows)

    def fits(self, values: list[_chunk.Array]) -> bool:
        """Whether `values` have the ranks of the rows before them."""
        return self._ranks is None or self._ranks == [x.ndim for x in values]

    def add(self, values: list[_chunk.Array]) -> None:
        """Adds a row. `values` are kept, and so must not change."""
        if self._ranks is None:
            self._ranks = [value.ndim for value in values]
        self._rows.append(values)
        self.size += sum(map(_bytes, values))

    @property
    def errors(self) -> list[RowError]:
        return self._errors

    def add_error(self, code: int, message: str) -> None:
        self._errors.append(RowError(self.count, code, message))
        self._rows.append(None)

    def encode(self, specs: list[_spec.TensorSpec]) -> bytes:
        return self.chunk(specs).to_bytes()

    def chunk(self, specs: list[_spec.TensorSpec]) -> _chunk.Encoded:
        return _chunk.Encoded(self.columns(specs), self.count, self._errors)

    def columns(self, specs: list[_spec.TensorSpec]) -> list[_chunk.Column]:
        columns = []
        for i, spec in enumerate(specs):
            if not self._rows:
                empty = _chunk.placeholder(spec.dtype, spec.shape)
                columns.append(_chunk.Column(spec.dtype, empty[None][:0]))
                continue
            values = [row[i] for row in self._rows if row is not None]
            if self._errors:
                # An error's row is filled with a neighbour's value where there
                # is one: then it cannot make a dense column ragged.
                filler = (
                    values[0]
                    if values
                    else _chunk.placeholder(spec.dtype, spec.shape)
                )
                values = [
                    filler if row is None else row[i] for row in self._rows
                ]
            columns.append(_chunk.gather(spec.dtype, values))
        return columns


class DenseRows(Rows):
    """Rows that are likely to have one shape: each is copied but once.

    The first row says what room its columns need for `capacity` rows. They lie
    in `out` from the start if they fit. A row of another shape, or a string,
    makes these rows like all others.
    """

    def __init__(self, capacity: int, out: memoryview | None) -> None:
        super().__init__()
        self._capacity = capacity
        self._out = out
        self._columns: list[_chunk.Array] | None = None
        self._shapes: list[tuple[int, ...]] = []  # of a row
        self._is_dense = True

    def add(self, values: list[_chunk.Array]) -> None:
        """Adds a row; `values` may change afterwards."""
        if self._is_dense and self._columns is None:
            self._begin(values)
        columns = self._columns
        if columns is not None:
            row = self.count
            if [value.shape for value in values] == self._shapes:
                for column, value in zip(columns, values, strict=True):
                    column[row] = value
                self._rows.append(_IN_COLUMNS)
                return
            self._give_up()
        super().add([value.copy() for value in values])

    def add_error(self, code: int, message: str) -> None:
        for column in self._columns or ():
            column[self.count] = 0
        super().add_error(code, message)

    def columns(self, specs: list[_spec.TensorSpec]) -> list[_chunk.Column]:
        if self._columns is None:
            return super().columns(specs)
        return [
            _chunk.Column(spec.dtype, column[: self.count])
            for spec, column in zip(specs, self._columns, strict=True)
        ]

    def _begin(self, values: list[_chunk.Array]) -> None:
        self._ranks = [value.ndim for value in values]
        if any(value.dtype == object for value in values):
            self._is_dense = False
            return
        self._shapes = [value.shape for value in values]
        shapes = [(self._capacity, *shape) for shape in self._shapes]
        dtypes = [value.dtype for value in values]
        offsets, end = _chunk.dense_offsets(shapes, dtypes)
        if self._out is not None and end <= len(self._out):
            self._columns = [
                np.ndarray(shape, dtype, self._out, offset)
                for shape, dtype, offset in zip(
                    shapes, dtypes, offsets, strict=True
                )
            ]
        else:
            self._columns = [
                np.empty(shape, dtype)
                for shape, dtype in zip(shapes, dtypes, strict=True)
            ]
        for column in self._columns:
            column[: self.count] = 0

    def _give_up(self) -> None:
        """Copies the rows out of their columns, for good."""
        columns = self._columns or []
        self._rows = [
            None if row is None else [column[i].copy() for column in columns]
            for i, row in enumerate(self._rows)
        ]
        self._columns = None
        self._is_dense = False


# Stands for a row whose values lie in columns.
_IN_COLUMNS: list[_chunk.Array] = []


def _bytes(value: _chunk.Array) -> int:
    if value.dtype != object:
        return value.nbytes
    return sum(len(item) for item in value.reshape(-1).tolist())


Convert = Callable[[Any], list[_chunk.Array]]


def convert(structure: Any, value: Any) -> list[_chunk.Array]:
    """The arrays of `value`, which must be like `structure` of specs.

    They are copies: user code may give one buffer again and again.
    """
    return converter(structure)(value)


def converter(structure: Any, *, copies: bool = True) -> Convert:
    """What `convert` does for many values, made ready once.

    Without `copies`, arrays may be the user's own and change later.
    """
    leaves = [_leaf(spec, copies) for spec in _spec.flatten(structure)]
    if _spec.is_leaf(structure):
        only = leaves[0]
        return lambda value: [only(value)]

    def convert_all(value: Any) -> list[_chunk.Array]:
        values = _spec.flatten_like(structure, value)
        return [leaf(item) for leaf, item in zip(leaves, values, strict=True)]

    if not _spec.is_plain_tuple(structure) or not all(
        map(_spec.is_leaf, structure)
    ):
        return convert_all
    count = len(leaves)

    def convert_tuple(value: Any) -> list[_chunk.Array]:
        if type(value) is not tuple or len(value) != count:
            return convert_all(value)
        return [leaf(item) for leaf, item in zip(leaves, value, strict=True)]

    return convert_tuple


def _leaf(
    spec: _spec.TensorSpec, copies: bool
) -> Callable[[Any], _chunk.Array]:
    dtype = spec.dtype

    def any_value(item: Any) -> _chunk.Array:
        array = _dtypes.to_array(item, dtype)
        if copies and (array is item or array.base is not None):
            array = array.copy()
        if not spec.accepts(array.shape):
            raise ValueError(
                f"expected an element of shape {spec.shape}; got {array.shape}"
            )
        return array

    if dtype == _dtypes.string:
        return any_value
    wanted = dtype.dtype
    # Most values are what they must be, and then need no more than a look.
    if spec.shape != ():

        def array(item: Any) -> _chunk.Array:
            if (
                type(item) is np.ndarray
                and item.dtype == wanted
                and item.flags.c_contiguous
                and spec.accepts(item.shape)
            ):
                same: _chunk.Array = item.copy() if copies else item
                return same
            return any_value(item)

        return array
    scalar = wanted.type
    is_int64 = wanted == np.int64

    def number(item: Any) -> _chunk.Array:
        if type(item) is scalar or (
            is_int64 and type(item) is int and -1 << 63 <= item < 1 << 63
        ):
            return np.asarray(item)
        return any_value(item)

    return number


def describe(error: BaseException) -> str:
    """Type, message and traceback, without this package's own frames."""
    trace = error.__traceback__
    while trace is not None and _is_ours(trace.tb_frame.f_code.co_filename):
        trace = trace.tb_next
    lines = traceback.format_exception(type(error), error, trace)
    head = f"{type(error).__name__}: {summary(error)}"
    return _pool_code.shown(f"{head}\n{''.join(lines).rstrip()}")


def _is_ours(file: str) -> bool:
    return file.startswith(os.path.dirname(__file__) + os.sep)


def summary(error: BaseException) -> str:
    """An error's message, whatever its class does when asked."""
    try:
        return str(error)
    except Exception:  # Of a class of the user's.
        return "(its message cannot be shown)"
