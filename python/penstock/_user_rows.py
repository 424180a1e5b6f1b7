"""What user code gives, as rows: values or, in their place, its exceptions."""

from __future__ import annotations

import os
import traceback
from typing import Any

from penstock import _chunk, _dtypes, _spec
from penstock._chunk import RowError


class Rows:
    """Rows of a chunk being gathered; None in place of an error's values."""

    def __init__(self) -> None:
        self._rows: list[list[_chunk.Array] | None] = []
        self._errors: list[RowError] = []
        self.size = 0

    @property
    def count(self) -> int:
        return len(self._rows)

    def fits(self, values: list[_chunk.Array]) -> bool:
        """Whether `values` have the ranks of the rows before them."""
        first = next((row for row in self._rows if row is not None), None)
        return first is None or all(
            a.ndim == b.ndim for a, b in zip(first, values, strict=True)
        )

    def add(self, values: list[_chunk.Array]) -> None:
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


def convert(structure: Any, value: Any) -> list[_chunk.Array]:
    specs = _spec.flatten(structure)
    values = _spec.flatten_like(structure, value)
    out = []
    for spec, item in zip(specs, values, strict=True):
        array = _dtypes.to_array(item, spec.dtype)
        if not spec.accepts(array.shape):
            raise ValueError(
                f"expected an element of shape {spec.shape}; got {array.shape}"
            )
        out.append(array)
    return out


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
