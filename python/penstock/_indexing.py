"""`x[...]` of a symbolic value, as calls of native functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock._dtypes import bool_
from penstock._errors import UnsupportedFunctionError
from penstock._location import user_line
from penstock._symbol import Symbol, call


def getitem(x: Symbol, key: Any) -> Symbol:
    """As numpy's: integers, slices, ..., None; or one mask or index array.

    Integers may be symbolic. The native function takes them as values after
    `x`, and a text that says what each is for: i an index, s a slice followed
    by a, b, c for its start, stop and step, e an ellipsis, n a new axis.
    """
    if not isinstance(key, tuple) and (picked := _pick(x, key)) is not None:
        return picked
    spec = ""
    values: list[Any] = [x]
    for entry in key if isinstance(key, tuple) else (key,):
        if entry is None:
            spec += "n"
        elif entry is Ellipsis:
            spec += "e"
        elif isinstance(entry, slice):
            spec += "s"
            parts = (entry.start, entry.stop, entry.step)
            for letter, part in zip("abc", parts, strict=True):
                if part is not None:
                    spec += letter
                    values.append(_integer(part))
        else:
            spec += "i"
            values.append(_integer(entry))
    result: Symbol = call("getitem", values, {"spec": spec})
    return result


def _pick(x: Symbol, key: Any) -> Symbol | None:
    """Entries by a mask or by an array of positions, if `key` is one."""
    if isinstance(key, (list, np.ndarray)):
        key = np.asarray(key)
        if key.ndim == 0:
            return None
        is_mask = key.dtype == np.bool_
    elif isinstance(key, Symbol):
        if key.ndim == 0 and key.dtype != bool_:
            return None
        is_mask = key.dtype == bool_
    else:
        return None
    result: Symbol = (
        call("boolean_mask", (x, key))
        if is_mask
        else call("take", (x, key), {"axis": 0})
    )
    return result


def _integer(entry: Any) -> Any:
    if isinstance(entry, Symbol):
        return entry
    if isinstance(entry, (bool, np.bool_)) or not hasattr(entry, "__index__"):
        raise UnsupportedFunctionError(
            f"an index at {user_line()} must be an integer, a slice, ..., None "
            f"or, alone, an array; got {entry!r}"
        )
    return int(entry.__index__())
