"""The methods that a user's class has."""

from __future__ import annotations

import types
from collections.abc import Iterator

from penstock._caught import is_library

# Dataclasses and named tuples have them written by Python.
_MADE = frozenset(
    {
        "__delattr__",
        "__eq__",
        "__ge__",
        "__gt__",
        "__hash__",
        "__init__",
        "__le__",
        "__lt__",
        "__new__",
        "__repr__",
        "__setattr__",
    }
)
MAKERS = frozenset({"__init__", "__new__", "__post_init__"})
_PICKLERS = frozenset(
    {"__del__", "__getstate__", "__reduce__", "__reduce_ex__", "__setstate__"}
)


def users_methods(kind: type) -> Iterator[tuple[str, types.FunctionType]]:
    """The functions, by name, that the user wrote in a class or its bases."""
    for each in kind.__mro__:
        if is_library(each.__module__):
            continue
        for name, found in vars(each).items():
            if isinstance(found, property):
                found = found.fget
            found = getattr(found, "__func__", found)
            if not isinstance(found, types.FunctionType):
                continue
            if is_library(found.__globals__.get("__name__")):
                continue  # wraps what is written by Python
            code = found.__code__
            is_written = name not in _MADE or code.co_filename != "<string>"
            if is_written and name not in _PICKLERS:
                yield name, found
