"""Elements' parts that are several tensors with one meaning."""

from __future__ import annotations

from typing import Any, NamedTuple


class Ragged(NamedTuple):
    """Rows of different lengths: their values in one, and where each begins.

    Row i is `values[row_splits[i]:row_splits[i + 1]]`.

    Example:
        >>> ragged = ps.strings.split([b"a b", b"c"])
        >>> ragged.values
        array([b'a', b'b', b'c'], dtype=object)
        >>> ragged.row_splits
        array([0, 2, 3])
    """

    values: Any
    row_splits: Any
