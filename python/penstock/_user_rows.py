"""What user code gives, as rows: values or, in their place, its exceptions."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np

from penstock import _chunk, _dtypes, _spec
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


def converter(structure: Any) -> Convert:
    """What `convert` does for many values, made ready once."""
    leaves = [_leaf(spec) for spec in _spec.flatten(structure)]
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


def _leaf(spec: _spec.TensorSpec) -> Callable[[Any], _chunk.Array]:
    dtype = spec.dtype

    def any_value(item: Any) -> _chunk.Array:
        array = _dtypes.to_array(item, dtype)
        if array is item or array.base is not None:
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
                copied: _chunk.Array = item.copy()
                return copied
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
    return f"{head}\n{''.join(lines).rstrip()}"


def _is_ours(file: str) -> bool:
    return file.startswith(os.path.dirname(__file__) + os.sep)


def summary(error: BaseException) -> str:
    """An error's message, whatever its class does when asked."""
    try:
        return str(error)
    except Exception:  # Of a class of the user's.
        return "(its message cannot be shown)"
