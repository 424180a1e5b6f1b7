"""The user's own source line."""

from __future__ import annotations

import os
import sys
import warnings
from types import CodeType, FrameType, TracebackType
from typing import Any, TypeVar

Error = TypeVar("Error", bound=Exception)

# Who calls a thread of this package's own, and its commands.
_NOBODY = ("threading", "runpy")
_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep


def is_ours(file: str) -> bool:
    """Whether `file` is a source of this package."""
    return file.startswith(_PACKAGE)


# Code of ours that calls users' functions. What it seems to do, they do: those
# that are not written in Python have no frame of their own.
_CALLS_USERS: set[CodeType] = set()


def mark_caller(code: CodeType) -> None:
    """Marks code that calls a user's function, and does no more."""
    _CALLS_USERS.add(code)


def is_done_by_us(frame: FrameType) -> bool:
    """Whether what `frame` does is not the user's doing."""
    code = frame.f_code
    return is_ours(code.co_filename) and code not in _CALLS_USERS


def user_frame() -> FrameType | None:
    """The innermost frame outside of this package."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and is_ours(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is not None and frame.f_globals.get("__name__") in _NOBODY:
        return None
    return frame


def user_location() -> dict[str, Any]:
    """The Location message of the line that called into this package."""
    frame = user_frame()
    if frame is None:
        return {}
    code = frame.f_code
    return {
        "file": _shown(code.co_filename),
        "line": frame.f_lineno,
        "function": code.co_name,
    }


def location_of(function: Any) -> dict[str, Any]:
    """The Location message of where `function` was written."""
    code = getattr(function, "__code__", None)
    if code is None:
        return {}
    return {
        "file": _shown(code.co_filename),
        "line": code.co_firstlineno,
        "function": code.co_name,
    }


def user_line() -> str:
    """`file:line` of the line that called into this package."""
    frame = user_frame()
    if frame is None:
        return "an unknown line"
    return shown_line(frame.f_code.co_filename, frame.f_lineno)


def refused(kind: type[Error], message: str) -> Error:
    """What to raise of what the user wrote: `message`, and where that is."""
    if user_frame() is None:
        return kind(message)
    place = f"\n  at {user_line()}"
    return kind(message.replace(place, "") + place)


def warn(message: str) -> None:
    """Warns of what the user wrote, at that line."""
    frame = user_frame()
    if frame is None:
        warnings.warn(message, stacklevel=2)
        return
    warnings.warn_explicit(
        message,
        UserWarning,
        frame.f_code.co_filename,
        frame.f_lineno,
        frame.f_globals.get("__name__"),
        frame.f_globals.setdefault("__warningregistry__", {}),
    )


def users_part(trace: TracebackType | None) -> TracebackType | None:
    """`trace` without the frames of this package."""
    while trace is not None and is_ours(trace.tb_frame.f_code.co_filename):
        trace = trace.tb_next
    if trace is not None:
        trace.tb_next = users_part(trace.tb_next)
    return trace


def shown_line(file: str, line: int) -> str:
    """`file:line`, the file as people name it."""
    return f"{_shown(file)}:{line}"


def _shown(file: str) -> str:
    """`file` as people name it: from here, if it lies below."""
    try:
        here = os.getcwd() + os.sep
    except FileNotFoundError:
        return file
    return file.removeprefix(here)
