"""Methods as users see them: by one class's name, with short tracebacks."""

from __future__ import annotations

import functools
from types import FunctionType
from typing import Any, NoReturn

from penstock._errors import InternalError, InvalidTypeError, PenstockError
from penstock._location import refused, users_part

_SPECIAL = ("__init__", "__iter__", "__len__")


def publish(cls: type, name: str) -> None:
    """Makes the methods of `cls` those of a class that users call `name`."""
    for key, found in list(vars(cls).items()):
        if key.startswith("_") and key not in _SPECIAL:
            continue
        is_static = isinstance(found, staticmethod)
        method = found.__func__ if is_static else found
        if isinstance(method, FunctionType):
            method.__qualname__ = f"{name}.{key}"
            short = _ending_here(method)
            setattr(cls, key, staticmethod(short) if is_static else short)


class ClassOnly(staticmethod):  # type: ignore[type-arg]
    """A static method that an instance would be left out of."""

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return super().__get__(instance, owner)
        return functools.partial(_refuse_instance, self.__name__)


def _refuse_instance(name: str, *args: Any, **kwargs: Any) -> NoReturn:
    raise refused(
        InvalidTypeError,
        f"{name} takes all datasets as arguments and must be called on the "
        "class; got a call on a dataset, which would be left out.\n"
        f"  Use ps.Dataset.{name}(a, b).",
    )


def _ending_here(method: FunctionType) -> FunctionType:
    """`method`, whose errors do not show what it calls in this package."""
    cut = shorten

    # A bare raise adds no frame; from Python 3.11 on this one goes as well.
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return method(*args, **kwargs)
        except Exception as error:
            cut(error)
            raise

    # Under the method's globals: by them doctest knows whose it is.
    made = FunctionType(
        call.__code__, method.__globals__, None, None, call.__closure__
    )
    functools.update_wrapper(made, method)
    return made


def shorten(error: BaseException) -> None:
    """Leaves out of a traceback the frames below a public method.

    The first frame is that of who asks for it, the next the public method's.
    Frames of functions that the user gave stay, and all frames of an error that
    is none of ours or that is ours to repair.
    """
    trace = error.__traceback__
    assert trace is not None
    public = trace.tb_next
    if (
        public is not None
        and isinstance(error, PenstockError)
        and not isinstance(error, InternalError)
    ):
        public.tb_next = users_part(public.tb_next)
    error.__traceback__ = public
