"""Exceptions that a function catches while it is recorded.

Some are raised because there are symbols in the place of values. What the
function does after it has caught one is then not what it does with values.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from penstock._errors import UnsupportedFunctionError
from penstock._location import is_ours, refused


def is_library(module: str | None) -> bool:
    """Whether what a module of this name catches is its own business."""
    top = (module or "").partition(".")[0]
    return top in ("penstock", "numpy") or top in sys.stdlib_module_names


def is_asked_by_user() -> bool:
    """Whether the user's code asks what the caller of this answers.

    The libraries that it calls ask on its behalf.
    """
    frame: types.FrameType | None = sys._getframe(2)
    while frame is not None:
        if is_ours(frame.f_code.co_filename):
            return False
        module = frame.f_globals.get("__name__") or ""
        # cloudpickle looks at what we give it.
        if not is_library(module) and not module.startswith("cloudpickle"):
            return True
        frame = frame.f_back
    return False


@contextmanager
def refusing(caller: types.CodeType) -> Iterator[None]:
    """Refuses a recording in which the user's code has caught an exception.

    Args:
        caller: Code of ours that calls the user's, once.
    """
    seen: list[str] = []

    def look(frame: types.FrameType, event: str, argument: Any) -> Any:
        if event == "call" and not is_users(frame):
            return None
        if event == "exception" and not issubclass(argument[0], StopIteration):
            message = str(argument[1]).split("\n")[0]
            seen.append(f"{argument[0].__name__}: {message}")
        return look

    def is_users(frame: types.FrameType) -> bool:
        above = frame.f_back
        return (
            above is not None
            and (above.f_trace is look or above.f_code is caller)
            and not is_ours(frame.f_code.co_filename)
            and not is_library(frame.f_globals.get("__name__"))
        )

    before = sys.gettrace()
    sys.settrace(look)
    try:
        yield
    finally:
        sys.settrace(before)
    if seen:
        raise refused(
            UnsupportedFunctionError,
            "a function that catches an exception cannot be recorded, since "
            "it may be one that values do not raise; with symbolic values it "
            f"catches {seen[0]}",
        )
