"""What commands that run a user's pipeline have in common."""

from __future__ import annotations

import argparse
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, TextIO

from penstock import _inside
from penstock._dataset import Dataset
from penstock._location import is_ours
from penstock._units import bar, si

_BAR_SECONDS = 0.1
_LINE_SECONDS = 1.0
_BAR_WIDTH = 24


class UsageError(Exception):
    """What the user typed cannot be run."""


def command_parser(
    command: str, text: str, metavar: str, names: str
) -> argparse.ArgumentParser:
    """A command's parser: what it does, and the pipeline it is about.

    Args:
        command: Its name.
        text: Its help: the first paragraph is shown before the arguments.
        metavar: How the pipeline is named.
        names: What that means.
    """
    about, _, more = text.partition("\n\n")
    made = argparse.ArgumentParser(
        prog=f"penstock {command}",
        description=about,
        epilog=more,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("pipeline", metavar=metavar, help=names)
    return made


class Progress:
    """A line that is drawn over on a terminal; plain lines in a pipe."""

    def __init__(self, out: TextIO, total: int | None, seconds: float) -> None:
        self._out = out
        self._total = total
        self._seconds = seconds
        self._is_terminal = out.isatty()
        self._first = 0.0 if self._is_terminal else _LINE_SECONDS
        self._next = self._first
        self._last = 0.0

    def show(self, elements: int, elapsed: float) -> None:
        if elapsed < self._last:  # Another run has begun.
            self._next = self._first
        self._last = elapsed
        if elapsed < self._next:
            return
        step = _BAR_SECONDS if self._is_terminal else _LINE_SECONDS
        self._next = elapsed + step
        rate = elements / elapsed if elapsed else 0.0
        text = f"{elements_text(elements)}  {elapsed:.1f} s  {si(rate)}/s"
        if not self._is_terminal:
            print(text, file=self._out, flush=True)
            return
        done = self._share(elements, elapsed)
        if done is not None:
            text = f"{bar(done, _BAR_WIDTH)} {100 * done:3.0f} %  {text}"
        print(f"\r\x1b[K{text}", end="", file=self._out, flush=True)

    def end(self) -> None:
        if self._is_terminal:
            print("\r\x1b[K", end="", file=self._out, flush=True)

    def _share(self, elements: int, elapsed: float) -> float | None:
        shares = []
        if self._total:
            shares.append(elements / self._total)
        if self._seconds != float("inf"):
            shares.append(elapsed / self._seconds)
        return min(1.0, max(shares)) if shares else None


def seconds(text: str) -> float:
    """An argument that is a number of seconds."""
    return more_than_zero(float, "a number of seconds", text)


def more_than_zero(kind: Callable[[str], float], what: str, text: str) -> float:
    try:
        number = kind(text)
    except ValueError:
        number = 0
    if not number > 0:
        raise argparse.ArgumentTypeError(
            f"must be {what}, more than 0; got {text!r}"
        )
    return number


def load(target: str) -> Dataset:
    """The dataset that `FILE:NAME` names; FILE is imported by its own name."""
    file, _, name = target.rpartition(":")
    if not file or not name:
        raise UsageError(f"expected FILE:NAME; got {target!r}")
    path = Path(file)
    if not path.is_file():
        raise UsageError(f"there is no file {file!r}")
    # Under its own name, so that what it defines pickles and its `__main__`
    # part does not run.
    sys.path.insert(0, str(path.parent.resolve()))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    _inside.program = module
    spec.loader.exec_module(module)
    if not hasattr(module, name):
        raise UsageError(
            f"there is no such name as {name!r} in {file} "
            f"({_datasets_in(module)})"
        )
    found = getattr(module, name)
    if callable(found):
        found = _made_by(found, f"{name!r} in {file}")
    if not isinstance(found, Dataset):
        raise UsageError(
            f"{name!r} in {file} must be a Dataset or a function that makes "
            f"one; got {found!r} ({_datasets_in(module)})"
        )
    return found


def _datasets_in(module: ModuleType) -> str:
    names = [k for k, v in vars(module).items() if isinstance(v, Dataset)]
    return f"datasets there: {', '.join(names) or 'none'}"


def _made_by(function: Callable[..., Any], shown: str) -> Any:
    try:
        signature = inspect.signature(function)
        signature.bind()
    except TypeError:
        raise UsageError(
            f"{shown} must be a function without arguments; got one of "
            f"{signature}. Give them defaults, or add a function that calls "
            "it with what it needs."
        ) from None
    except ValueError:
        pass  # It does not say; the call will.
    return function()


def show_failure(command: str, target: str, error: Exception) -> None:
    """The user's own part of the traceback, then the error."""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not is_ours(frame.filename) and "importlib" not in frame.filename
    ]
    print(f"penstock {command}: {target} failed:", file=sys.stderr)
    for line in traceback.format_list(frames):
        print(line, end="", file=sys.stderr)
    for line in traceback.format_exception_only(type(error), error):
        print(line, end="", file=sys.stderr)


def elements_text(number: int) -> str:
    return f"{number:,} element" + ("" if number == 1 else "s")
