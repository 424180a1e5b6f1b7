"""`map` with functions that read files.

`tf.io.read_file` of a name that an element gives is not a function of columns:
reading waits. So such a `map` becomes three steps, and all of them are the
engine's: the function up to the name, a dataset of the file's contents, and the
function with these in the place of the call.
"""

from __future__ import annotations

import contextvars
import dataclasses
import functools
import inspect
from typing import Any, NoReturn

from penstock import _files, _recording, _spec
from penstock._adapted import Adapted
from penstock._dataset import Dataset as Native
from penstock._errors import UnsupportedFunctionError
from penstock._pipeline import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY
from penstock._python import NativeFunction, PythonFunction
from penstock.compat.tf._boundary import adapt, enter, leave
from penstock.compat.tf._tensor import Tensor

# Files that are open at once; each gives one element, so order is kept.
_OPEN_FILES = 8


class _NameNeededError(UnsupportedFunctionError):
    """A recorded function wants to read a file whose contents are not known."""

    is_final = True

    def __init__(self, name: Tensor) -> None:
        super().__init__("a file is to be read")
        self.name = name


@dataclasses.dataclass
class _Files:
    """The contents of files that the function being recorded reads."""

    contents: list[Tensor]
    used: int = 0


_known: contextvars.ContextVar[_Files | None] = contextvars.ContextVar(
    "penstock_files", default=None
)


def contents_of(name: Tensor) -> Tensor:
    """What is in the file of a name that a recorded function computes."""
    files = _known.get()
    if files is None:
        _refuse()
    recording = _recording.current()
    replay = None if recording is None else recording.replay
    if replay is not None and replay.is_in_a_branch:
        _refuse()
    if files.used == len(files.contents):
        raise _NameNeededError(name)
    files.used += 1
    return files.contents[files.used - 1]


def _refuse() -> NoReturn:
    raise UnsupportedFunctionError(
        "tf.io.read_file cannot be recorded here: files are read in map, and "
        "not in a branch. Such a function runs as Python, with values."
    )


@dataclasses.dataclass(frozen=True)
class _Reading(Adapted):
    """A function of an element and of contents of files that it reads."""

    files: int = 0
    is_tuple: bool = False
    wants_name: bool = False

    @property
    def __signature__(self) -> inspect.Signature:
        if self.files:
            return inspect.signature(lambda element, contents: None)
        return inspect.signature(self.function)

    def __call__(self, *arguments: Any) -> Any:
        element: Any = arguments
        contents: Any = ()
        if self.files:
            element, contents = arguments
            element = element if self.is_tuple else (element,)
        call = functools.partial(self._result, element, contents)
        if _recording.current() is None:
            return call()
        from penstock.compat.tf._branches import explored

        return explored(call)

    def _result(self, element: Any, contents: Any) -> Any:
        """What the function gives, or the name of the file that it reads."""
        token = _known.set(_Files([enter(c) for c in contents]))
        try:
            result = self.function(*map(enter, element))
        except _NameNeededError as needed:
            if not self.wants_name:
                raise
            whole = element if self.is_tuple else element[0]
            return whole, contents, needed.name._value
        finally:
            _known.reset(token)
        if self.wants_name:
            raise AssertionError("the function asked for a file before")
        return leave(result)


def map_with_files(
    ds: Native, function: Any, parallel: Any, deterministic: Any
) -> Native:
    """`ds.map(function)`, whose function may read files."""
    if isinstance(function, (NativeFunction, PythonFunction)) or not callable(
        function
    ):
        return ds.map(adapt(function), parallel, deterministic)
    is_tuple = _spec.is_plain_tuple(ds.element_spec)
    length = ds.cardinality()
    files = 0
    while True:
        whole = _Reading(function, enter, leave, files, is_tuple)
        try:
            made = ds.map(whole, parallel, deterministic)
        except _NameNeededError:
            names = dataclasses.replace(whole, wants_name=True)
            ds = _with_contents(ds.map(names, parallel, deterministic))
            files += 1
            continue
        is_known = length not in (INFINITE_CARDINALITY, UNKNOWN_CARDINALITY)
        return made.assert_cardinality(length) if files and is_known else made


def _with_contents(named: Native) -> Native:
    """Elements (element, contents, name) as (element, contents and file's)."""

    def read(element: Any, contents: Any, name: Any) -> Native:
        rest = Native.from_tensors((element, contents))
        return Native.zip(rest, _files.whole_file(name)).map(
            lambda before, content: (before[0], (*before[1], content))
        )

    return named.interleave(read, cycle_length=_OPEN_FILES, block_length=1)
