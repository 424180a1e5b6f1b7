"""Tensors as text, as TensorFlow prints them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from penstock import strings as _strings
from penstock._symbol import Symbol
from penstock.compat.tf import _arrays as arrays
from penstock.compat.tf._tensor import Tensor

_ESCAPES = {
    ord(plain): "\\" + letter
    for plain, letter in zip("\n\r\t\"'\\", "nrt\"'\\", strict=True)
}


def shown(x: Tensor, summarize: int) -> Any:
    """What `tf.strings.format` puts in the place of `x`."""
    value = x._value
    if not isinstance(value, Symbol):
        ends = summarize if summarize >= 0 else value.size
        return _dimension(value, 0, ends).encode("latin-1")
    if x.shape.rank != 0 or not x.dtype.is_integer:
        arrays.python_only("tf.strings.format of more than an integer")
    return Tensor(_strings.as_string(value))


def _dimension(value: Any, depth: int, ends: int) -> str:
    """The part of a tensor from its dimension `depth` on."""
    if value.ndim == 0:
        return _item(value[()])
    gap = " "
    if value.ndim > 1:
        gap = "\n" * (value.ndim - 1) + " " * (depth + 1)
    count = len(value)
    parts = [
        _dimension(np.asarray(value[i]), depth + 1, ends)
        for i in range(min(ends, count))
    ]
    if count > 2 * ends:
        parts.append("...")
    parts += [
        _dimension(np.asarray(value[i]), depth + 1, ends)
        for i in range(max(ends, count - ends), count)
    ]
    return f"[{gap.join(parts)}]"


def _item(item: Any) -> str:
    if isinstance(item, bytes):
        return '"' + "".join(map(_character, item)) + '"'
    if isinstance(item, np.bool_):
        return str(int(item))
    if isinstance(item, np.complexfloating):
        return "?"
    if isinstance(item, np.integer):
        return str(int(item))
    return _number(item)


def _character(code: int) -> str:
    if code in _ESCAPES:
        return _ESCAPES[code]
    return chr(code) if 32 <= code != 127 else f"\\{code:03o}"


def _number(item: Any) -> str:
    """As few digits as say the number: 6 or 9, of float64 15 or 17."""
    is_double = isinstance(item, np.float64)
    kind = np.float64 if is_double else np.float32
    number = kind(item)
    if not math.isfinite(number):
        return str(float(number))
    few, enough = (15, 17) if is_double else (6, 9)
    text = f"{float(number):.{few}g}"
    return text if kind(text) == number else f"{float(number):.{enough}g}"
