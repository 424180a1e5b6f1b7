"""Calls of functions that make several items of each string."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from penstock import _record
from penstock._composites import Ragged
from penstock._errors import InvalidArgumentError
from penstock._location import refused
from penstock._symbol import Symbol


def rank_of(value: Any) -> int:
    return value.ndim if isinstance(value, Symbol) else np.ndim(value)


def call(
    name: str, input: Any, attrs: dict[str, Any], tables: Sequence[Any] = ()
) -> Any:
    """A vector of what `name` makes of a string; of a vector, a Ragged.

    Args:
        name: The function of a scalar; that of a vector ends in `_ragged`.
        input: A string or a vector of them.
        attrs: What is part of the call.
        tables: Constant arguments behind the first.
    """
    rank = rank_of(input)
    if rank == 0:
        return _record.call(name, (input, *tables), attrs)
    if rank == 1:
        args = (input, *tables)
        return Ragged(
            *_record.call_parts(f"{name}_ragged", args, attrs, count=2)
        )
    raise refused(
        InvalidArgumentError,
        f"{name} needs a string or a vector of strings; got rank {rank}. Use "
        "ps.reshape first.",
    )
