"""Functions that use another library which the engine knows a part of.

Such a function is recorded with stand-ins: a twin of it, with the same code,
finds them where it would find the library. What they do not know refuses the
recording. The library itself is never changed.
"""

from __future__ import annotations

import builtins
import dis
import enum
import functools
import importlib
import io
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import numpy as np

from penstock._caught import is_asked_by_user, is_library
from penstock._dtypes import string
from penstock._errors import UnsupportedFunctionError
from penstock._location import user_line
from penstock._symbol import Symbol, refuse_type

# Modules that have stand-ins. numpy has one as well, which knows all of it.
MODULES = frozenset({"PIL", "PIL.Image", "PIL.ImageOps", "io"})


def refuse(what: str) -> NoReturn:
    """Ends the recording: `what` is not known to the engine."""
    raise UnsupportedFunctionError(
        f"{what} at {user_line()} is not known to the engine"
    )


def is_known(value: Any) -> bool:
    """Whether there is a stand-in for `value`, by its identity."""
    if isinstance(value, types.ModuleType):
        name = value.__name__
        return name in MODULES and sys.modules.get(name) is value
    return _function_stand_in(value) is not None


def is_constant(module: types.ModuleType, name: str) -> bool:
    """Whether a module that has a stand-in has a constant of that name."""
    if not is_known(module):
        return False
    return _is_constant(getattr(module, name, None))


def imported(name: str) -> types.ModuleType | None:
    """The module of that name, if it has a stand-in and can be imported."""
    if name not in MODULES:
        return None
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


class Bytes:
    """What stands in for `io.BytesIO` of an element's bytes."""

    def __init__(self, contents: Any = None) -> None:
        if not isinstance(contents, Symbol):
            refuse("io.BytesIO of something else than an element's bytes")
        spec = contents._spec()
        if spec.dtype != string or spec.shape != ():
            refuse("io.BytesIO of something else than an element's bytes")
        self.contents = contents
        self.is_closed = False

    def __getattr__(self, name: str) -> Any:
        refuse(f"io.BytesIO.{name}")

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        if is_asked_by_user():
            refuse_type()
        return type(self)

    def __repr__(self) -> str:
        return str(refuse("a stream as text"))

    def __enter__(self) -> Bytes:
        return self

    def __exit__(self, *_: Any) -> None:
        self.is_closed = True

    def close(self) -> None:
        self.is_closed = True


class _Module:
    """What stands in for a module: some names of it, and its constants."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        module = sys.modules[self._name]
        found = getattr(module, name)  # An AttributeError is the user's own.
        stand_in = of(found)
        if stand_in is not found:
            return stand_in
        if _is_constant(found):
            return found
        return refuse(f"{self._name}.{name}")


class _Numpy:
    """numpy, whose arrays may be made of what is recorded."""

    def __getattr__(self, name: str) -> Any:
        return of(getattr(np, name))


def _is_constant(value: Any) -> bool:
    if isinstance(value, type):
        return issubclass(value, enum.Enum)
    return isinstance(value, (int, enum.Enum)) and not isinstance(value, bool)


# Types that whole numbers are converted to alike, here and in Python.
_SIDE_TYPES = (int, float, np.int64, np.float32, np.float64)


def _array_maker(own: Callable[..., Any]) -> Callable[..., Any]:
    """What stands in for `np.array` or `np.asarray`."""

    def make(value: Any, dtype: Any = None, **kwargs: Any) -> Any:
        from penstock import _sides
        from penstock._pillow import Image

        is_image = isinstance(value, Image)
        if is_image:
            value = value.to_array()
        sides = _sides.array_of(value)
        if sides is not None:
            if dtype is not None and dtype not in _SIDE_TYPES:
                refuse("this conversion to an array")
            value = sides
        if not isinstance(value, Symbol):
            return own(value, dtype, **kwargs)
        copy = kwargs.pop("copy", None)
        if kwargs or copy not in (None, True) or value.dtype == string:
            refuse("this conversion to an array")
        if dtype is not None and value.dtype != dtype:
            return value.astype(dtype).array(is_writable=True)
        if own is np.array or copy:
            return value.array(is_writable=True)
        if is_image:
            return value.array(is_writable=False)  # Pillow's are read-only.
        return value if value.ndim else value.array(is_writable=True)

    return make


_ARRAY_MAKERS = [(own, _array_maker(own)) for own in (np.array, np.asarray)]


def _function_stand_in(value: Any) -> Any:
    for own, stand_in in _ARRAY_MAKERS:
        if value is own:
            return stand_in
    if value is io.BytesIO:
        return Bytes
    from penstock import _pillow

    return _pillow.stand_in(value)


def of(value: Any) -> Any:
    """The stand-in of `value`, else `value` itself."""
    if isinstance(value, types.ModuleType):
        if value is np:
            return _Numpy()
        return _Module(value.__name__) if is_known(value) else value
    found = _function_stand_in(value)
    return value if found is None else found


def _import(
    name: str,
    globals: Any = None,
    locals: Any = None,
    fromlist: Any = (),
    level: int = 0,
) -> Any:
    return of(builtins.__import__(name, globals, locals, fromlist, level))


class Twins:
    """Functions with the code of the user's, in a world of stand-ins."""

    def __init__(self) -> None:
        # By identity; what they are of is kept alive.
        self._made: dict[int, tuple[Any, Any]] = {}
        self._globals: dict[int, dict[str, Any]] = {}

    def of(self, value: Any) -> Any:
        """The twin of `value`, which a function may call."""
        if id(value) in self._made:
            return self._made[id(value)][1]
        if isinstance(value, types.FunctionType):
            stand_in = of(value)
            if stand_in is not value or is_library(value.__module__):
                return stand_in
            return self._function(value)
        if isinstance(value, functools.partial):
            function = self.of(value.func)
            return functools.partial(function, *value.args, **value.keywords)
        if isinstance(value, types.MethodType):
            return types.MethodType(self.of(value.__func__), value.__self__)
        return of(value)

    def _function(self, function: types.FunctionType) -> types.FunctionType:
        cells = tuple(types.CellType() for _ in function.__closure__ or ())
        namespace = self._namespace(function.__globals__)
        twin = types.FunctionType(
            function.__code__,
            namespace,
            function.__name__,
            function.__defaults__,
            cells,
        )
        twin.__kwdefaults__ = function.__kwdefaults__
        twin.__qualname__ = function.__qualname__
        twin.__module__ = function.__module__
        self._made[id(function)] = function, twin
        for cell, own in zip(cells, function.__closure__ or (), strict=True):
            try:
                contents = own.cell_contents
            except ValueError:
                continue  # not yet assigned
            cell.cell_contents = self.of(contents)
        for name in _names(function.__code__):
            if name in function.__globals__:
                namespace[name] = self.of(function.__globals__[name])
        return twin

    def _namespace(self, own: dict[str, Any]) -> dict[str, Any]:
        if id(own) not in self._globals:
            names = {**builtins.__dict__, "__import__": _import}
            self._globals[id(own)] = {**own, "__builtins__": names}
        return self._globals[id(own)]


def _is_twins(frame: types.FrameType) -> bool:
    return frame.f_builtins.get("__import__") is _import


def _names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


def twin(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, to be called once with symbolic values."""
    from penstock._purity import unwrap

    made = Twins()
    if isinstance(
        function, (types.FunctionType, types.MethodType, functools.partial)
    ):
        found: Callable[..., Any] = made.of(function)
        return found
    # An object that can be called.
    inside = unwrap(function)
    if not isinstance(inside, types.FunctionType):
        return function
    return types.MethodType(made.of(inside), function)


def is_raised(error: BaseException | None) -> bool:
    """Whether a raise or assert statement of the user's own raised `error`."""
    trace = error.__traceback__ if error is not None else None
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None or not _is_twins(trace.tb_frame):
        return False
    instruction = trace.tb_frame.f_code.co_code[trace.tb_lasti]
    return instruction == dis.opmap["RAISE_VARARGS"]
