"""The user's own Python functions: what runs in processes beside the engine."""

from __future__ import annotations

import copy
import os
import pickle
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock import _captures, _engine, _recording, _spec
from penstock._adapted import users_own
from penstock._dtypes import string
from penstock._errors import (
    InvalidTypeError,
    PenstockError,
    UnsupportedFunctionError,
)
from penstock._location import location_of, refused
from penstock._record import Recorded, name_of, record

if TYPE_CHECKING:
    from penstock._pipeline import Pipeline

# Elements that are tried to learn what a function returns.
_TRIES = 10
_SPEC = "spec"
_VALUES = "values"


@dataclass(frozen=True)
class PythonFunction:
    """A function that is to run as Python; made by `python_function`."""

    function: Callable[..., Any]
    output_signature: Any = None
    rng: bool = False


@dataclass(frozen=True)
class NativeFunction:
    """A function that must be recorded; made by `native`."""

    function: Callable[..., Any]


def python_function(
    function: Callable[..., Any],
    *,
    output_signature: Any = None,
    rng: bool = False,
) -> PythonFunction:
    """Runs `function` as Python, and says what it returns.

    What `map` cannot record as a native function runs as Python by itself; this
    is for saying more about it. It runs in processes beside the engine, once
    for each element, with numpy values.

    Example:
        >>> f = ps.python_function(
        ...     lambda x: str(x).encode(),
        ...     output_signature=ps.TensorSpec((), ps.string))
        >>> list(ps.Dataset.range(3).map(f))
        [b'0', b'1', b'2']

    Args:
        function: Any function that can be pickled with cloudpickle.
        output_signature: The structure that it returns, with a `TensorSpec` for
            each tensor. Left out, it is learnt from the first elements, which
            are computed when the pipeline is built.
        rng: Whether it is called with `rng=`, a numpy `Generator` that is the
            same for the same element, seed and epoch, wherever it runs.
    """
    return PythonFunction(function, output_signature, rng)


def native(function: Callable[..., Any]) -> NativeFunction:
    """Refuses `function` unless it runs in the engine itself.

    Example:
        >>> ds = ps.Dataset.range(3).map(ps.native(lambda x: x + 1))
        >>> [int(x) for x in ds]
        [1, 2, 3]
    """
    return NativeFunction(function)


class FunctionCapture:
    """A pickled function in a sealed memfd, named by its contents."""

    def __init__(self, data: list[Any]) -> None:
        import hashlib

        self._size = sum(memoryview(part).nbytes for part in data)
        self._fd = _captures.memory_file(self._size)
        digest = hashlib.blake2b(digest_size=16)
        at = 0
        for part in data:
            view = memoryview(part).cast("B")
            digest.update(view)
            while len(view):
                written = os.pwrite(self._fd, view, at)
                view = view[written:]
                at += written
        _captures.seal(self._fd)
        self.id = f"python-{digest.hexdigest()}"
        _captures.hold(self, self._fd)

    def send(self, engine: _engine.Engine) -> None:
        body = {
            "id": self.id,
            "bytes": self._size,
            "interpreter": sys.executable,
            "path": [os.path.abspath(path or ".") for path in sys.path],
            "directory": os.getcwd(),
        }
        null = os.open(os.devnull, os.O_WRONLY)
        try:
            outputs = [fd if _is_open(fd) else null for fd in (1, 2)]
            engine.call("add_function", body, [self._fd, *outputs])
        finally:
            os.close(null)

    def __reduce__(self) -> tuple[Any, ...]:
        data = bytearray()
        while len(data) < self._size:
            data += os.pread(self._fd, self._size - len(data), len(data))
        return (FunctionCapture, ([bytes(data)],))


def _is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


def use(
    function: Any, dataset: Pipeline, output: _spec.TensorSpec | None = None
) -> Recorded:
    """`function` of the elements of `dataset`: recorded, else as Python.

    Args:
        function: Of the user.
        dataset: Whose elements it is called with.
        output: What it must return, where that is known.
    """
    if isinstance(function, NativeFunction):
        return record(function.function, [dataset.element_spec])
    if isinstance(function, PythonFunction):
        return _as_python(function, dataset, output, "it is asked to")
    try:
        return record(function, [dataset.element_spec])
    except UnsupportedFunctionError as error:
        if error.is_final:
            raise
        given = PythonFunction(function)
        return _as_python(given, dataset, output, str(error), error)


def _as_python(
    given: PythonFunction,
    dataset: Pipeline,
    output: _spec.TensorSpec | None,
    reason: str,
    cause: UnsupportedFunctionError | None = None,
) -> Recorded:
    function = given.function
    if not callable(function):
        raise refused(
            InvalidTypeError, f"expected a function; got {function!r}"
        )
    structure = output or given.output_signature
    if structure is None:
        if _recording.current() is not None:
            raise cause or refused(
                UnsupportedFunctionError,
                f"function {name_of(function)} inside another function must "
                "say what it returns; give python_function() an "
                "output_signature",
            )
        structure = _learn(given, dataset, reason)
    return _recorded(given, dataset, structure, _VALUES, reason)


def _recorded(
    given: PythonFunction,
    dataset: Pipeline,
    structure: Any,
    how: str,
    reason: str,
) -> Recorded:
    from penstock import _pool_worker

    function = given.function
    try:
        data = _pool_worker.pack_function(
            function, dataset.element_spec, structure, how, given.rng
        )
    except Exception as error:
        raise refused(
            UnsupportedFunctionError,
            f"function {name_of(function)} runs as Python in another process "
            f"and must be fit to be sent there; it cannot be pickled: {error}."
            f"\n  It is not native because: {reason}",
        ) from error
    capture = FunctionCapture(data)
    message = {
        "name": name_of(function),
        "made_at": location_of(users_own(function)),
        "output": _spec.to_json(structure),
        "python": {
            "capture": capture.id,
            "identity": _captures.identity_of(users_own(function)),
            "reason": reason.split("\n")[0],
            "is_random": given.rng,
        },
    }
    return Recorded(message, _spec.types_of(structure), None, (capture,))


def _learn(given: PythonFunction, dataset: Pipeline, reason: str) -> Any:
    """The structure of what the function returns for the first elements."""
    from penstock._options import Options
    from penstock._pipeline import append

    sample = copy.copy(dataset)
    sample._plan = _engine.call("sample", {"plan": dataset._plan})["plan"]
    sample._tokens = ()
    text = _spec.TensorSpec((), string)
    function = _recorded(given, sample, text, _SPEC, reason)
    probe = append(
        "map", {"function": function.message}, [sample], function=function
    ).with_options(Options(run_ahead=0))
    failure: PenstockError | None = None
    with iter(probe) as found:
        for _ in range(_TRIES):
            try:
                return pickle.loads(next(found))
            except StopIteration:
                break
            except PenstockError as error:
                failure = failure or error
    name = name_of(given.function)
    advice = (
        "\n  Give ps.python_function(f, output_signature=...) to say what it "
        f"returns. It runs as Python because: {reason}"
    )
    if failure is None:
        raise refused(
            UnsupportedFunctionError,
            f"what function {name} returns must be known; there is no element "
            f"to learn it from.{advice}",
        )
    raise refused(
        type(failure),
        f"function {name} must give a result for one of the first elements; "
        f"it fails: {failure}{advice}",
    ) from None
