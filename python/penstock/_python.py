"""The user's own Python functions: what runs in processes beside the engine."""

from __future__ import annotations

import dataclasses
import inspect
import os
import pickle
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock import _captures, _engine, _inside, _recording, _spec
from penstock._adapted import Adapted, users_own
from penstock._dtypes import string
from penstock._errors import (
    InvalidArgumentError,
    InvalidTypeError,
    PenstockError,
    UnsupportedFunctionError,
)
from penstock._location import location_of, refused
from penstock._packed import (
    REDUCE,
    ROWS,
    SCAN,
    VALUES,
    Packed,
    pack,
    unpack,
)
from penstock._pool_calls import with_open_sizes
from penstock._purity import unwrap
from penstock._record import Recorded, name_of, record, record_known

if TYPE_CHECKING:
    from penstock._pipeline import Pipeline

# Elements that are tried to learn what a function returns.
_TRIES = 10
_ASKED = "it is asked to"
_USES_PILLOW = "it uses Pillow"


@dataclass(frozen=True)
class PythonFunction:
    """A function that is to run as Python; made by `python_function`."""

    function: Callable[..., Any]
    output_signature: Any = None
    rng: bool = False
    seed: int | None = None
    pure: bool = False


@dataclass(frozen=True)
class NativeFunction:
    """A function that must be recorded; made by `native`."""

    function: Callable[..., Any]


def python_function(
    function: Callable[..., Any],
    *,
    output_signature: Any = None,
    rng: bool = False,
    seed: int | None = None,
    pure: bool = False,
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
            each tensor. Left out, structure, dtypes and ranks are learnt from
            the first elements, which are computed when the pipeline is built;
            sizes stay unknown (`ps.ensure_shape` says them afterwards).
        rng: Whether it is called with `rng=`, a numpy `Generator` that is the
            same for the same element, seed and epoch, wherever it runs.
        seed: Makes what `rng` gives the same in every run of the program. Left
            out, one is drawn for each dataset and kept in its state.
        pure: Whether the same element always gives the same result, and it does
            not matter how often it is called: then results may be kept from one
            epoch to the next. Penstock cannot find that out by itself.
    """
    if seed is not None and not rng:
        raise refused(
            InvalidArgumentError,
            "seed is for functions with rng=True; got rng=False",
        )
    if pure and rng:
        raise refused(
            InvalidArgumentError,
            "a function with rng=True gives other results in every epoch; got "
            "pure=True",
        )
    return PythonFunction(function, output_signature, rng, seed, pure)


def native(function: Callable[..., Any]) -> NativeFunction:
    """Refuses `function` unless it runs in the engine itself.

    Example:
        >>> ds = ps.Dataset.range(3).map(ps.native(lambda x: x + 1))
        >>> [int(x) for x in ds]
        [1, 2, 3]
    """
    return NativeFunction(function)


def plain(function: Any) -> Any:
    """What the user said `python_function` or `native` of, if so."""
    if isinstance(function, (PythonFunction, NativeFunction)):
        return function.function
    return function


def like(given: Any, function: Callable[..., Any]) -> Any:
    """`function`, around that of `given`, to be run as that is."""
    if isinstance(given, PythonFunction):
        return PythonFunction(
            function, rng=given.rng, seed=given.seed, pure=given.pure
        )
    if isinstance(given, NativeFunction):
        return NativeFunction(function)
    return function


class FunctionCapture:
    """A pickled function in a sealed memfd, named by its contents."""

    def __init__(self, data: list[Any], packed: Packed | None = None) -> None:
        import hashlib

        self._packed = packed
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

    def packed(self) -> Packed:
        """The function itself, and how it is used."""
        if self._packed is None:
            self._packed = unpack(self._fd, self._size)
        return self._packed

    def data(self) -> bytes:
        """The pickle, as `unpack` reads it."""
        data = bytearray()
        while len(data) < self._size:
            data += os.pread(self._fd, self._size - len(data), len(data))
        return bytes(data)

    def __reduce__(self) -> tuple[Any, ...]:
        return (FunctionCapture, ([self.data()],))


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
    return _use(function, [dataset.element_spec], dataset, VALUES, output)


def use_key(
    function: Any, key: _spec.TensorSpec, output: _spec.TensorSpec
) -> Recorded:
    """`function` of one number: recorded, else as Python."""
    return _use(function, [key], None, VALUES, output)


def fold(
    function: Any, dataset: Pipeline, how: str, state: Any, structure: Any
) -> Recorded:
    """`function` of a state and an element: recorded, else as Python.

    Args:
        function: Of the user.
        dataset: Whose elements it is called with.
        how: SCAN or REDUCE.
        state: The first one.
        structure: Of the state, with specs.
    """
    output = None
    if how == REDUCE and _signature(function) is None:
        output = with_open_sizes(structure)
    return _use(
        function, [structure, dataset.element_spec], dataset, how, output, state
    )


def datasets(
    function: Any, dataset: Pipeline, parallelism: dict[str, Any]
) -> tuple[Pipeline, Recorded]:
    """What `flat_map` and `interleave` read: their input and their function.

    A function that cannot be recorded is called for each element by a map of
    its own, which gives its rows as datasets inside elements.
    """
    found = record_datasets(function, [dataset.element_spec])
    if isinstance(found, Recorded):
        return dataset, found
    return rows_of(function, dataset, dataset.element_spec, found, parallelism)


def record_datasets(
    function: Any, elements: list[Any]
) -> Recorded | UnsupportedFunctionError:
    """`function`, which makes datasets, or why it must run as Python."""
    if isinstance(function, PythonFunction):
        return refused(UnsupportedFunctionError, _ASKED)
    if _is_generator(function):
        return refused(UnsupportedFunctionError, "it is a generator function")
    try:
        return _native(function, elements)
    except UnsupportedFunctionError as error:
        if error.is_final or isinstance(function, NativeFunction):
            raise
        return error


def rows_of(
    function: Any,
    dataset: Pipeline,
    element: Any,
    cause: UnsupportedFunctionError,
    parallelism: dict[str, Any],
) -> tuple[Pipeline, Recorded]:
    """The rows that a Python function gives, as `datasets` has them.

    Args:
        function: Of the user.
        dataset: Whose elements it is called with.
        element: Their structure, as the function is to see it.
        cause: Why it runs as Python.
        parallelism: The field of the map that calls it.
    """
    from penstock._pipeline import append

    given = function
    if not isinstance(function, PythonFunction):
        given = PythonFunction(function)
    recorded = _as_python(
        given, dataset, ROWS, None, str(cause), cause, elements=[element]
    )
    rows = append(
        "map",
        {"function": recorded.message, **parallelism},
        [dataset],
        function=recorded,
    )
    return rows, record(_itself, [rows.element_spec])


def _itself(dataset: Any) -> Any:
    return dataset


def _is_generator(function: Any) -> bool:
    if isinstance(function, NativeFunction):
        return False
    return inspect.isgeneratorfunction(unwrap(function))


def _signature(function: Any) -> Any:
    if isinstance(function, PythonFunction):
        return function.output_signature
    return None


def _native(function: Any, elements: list[Any]) -> Recorded:
    if isinstance(function, NativeFunction):
        function = function.function
    return record(function, elements)


def _use(
    function: Any,
    elements: list[Any],
    dataset: Pipeline | None,
    how: str,
    output: Any,
    state: Any = None,
) -> Recorded:
    if isinstance(function, PythonFunction):
        return _as_python(
            function, dataset, how, output, _ASKED, None, state, elements
        )
    try:
        return _native(function, elements)
    except UnsupportedFunctionError as error:
        if error.is_final or isinstance(function, NativeFunction):
            raise
        given = PythonFunction(function)
        if how == VALUES and output is None:
            known = _partly_native(function, elements, error)
            if isinstance(known, Recorded):
                return known
            error = known
        return _as_python(
            given, dataset, how, output, str(error), error, state, elements
        )


def _partly_native(
    function: Any, elements: list[Any], cause: UnsupportedFunctionError
) -> Recorded | UnsupportedFunctionError:
    """`function` as steps for what the engine knows, and as Python.

    Or why it must run as Python for every element.
    """
    if isinstance(function, Adapted) or _recording.current() is not None:
        return cause
    if _inside.refuse_functions() is not None:
        return cause
    try:
        known = record_known(function, elements)
    except UnsupportedFunctionError as error:
        return error
    except PenstockError:
        return cause  # What is wrong with symbols may be right with values.
    if known is None:
        return cause
    packed = Packed(
        function, name_of(function), elements[-1], known.structure, VALUES
    )
    # Whatever it reaches gives the same for the same element.
    python = _recorded(packed, known.structure, _USES_PILLOW, pure=True)
    steps = {key: known.message[key] for key in ("steps", "outputs")}
    return Recorded(
        {**python.message, **steps},
        known.types,
        None,
        (*known.captures, *python.captures),
    )


def _as_python(
    given: PythonFunction,
    dataset: Pipeline | None,
    how: str,
    output: Any,
    reason: str,
    cause: UnsupportedFunctionError | None = None,
    state: Any = None,
    elements: list[Any] | None = None,
) -> Recorded:
    function = given.function
    if not callable(function):
        raise refused(
            InvalidTypeError, f"expected a function; got {function!r}"
        )
    refusal = _inside.refuse_functions()
    if refusal is not None:
        raise refused(UnsupportedFunctionError, f"{refusal} ({reason})")
    inputs = elements[-1] if elements else dataset and dataset.element_spec
    structure = given.output_signature if output is None else output
    packed = Packed(
        function, name_of(function), inputs, structure, how, given.rng
    )
    if structure is None:
        if _recording.current() is not None or dataset is None:
            raise cause or refused(
                UnsupportedFunctionError,
                f"function {name_of(function)} inside another function must "
                "say what it returns; give python_function() an "
                "output_signature",
            )
        asked = dataclasses.replace(packed, is_asked=True)
        if how == SCAN and elements is not None:
            asked = dataclasses.replace(
                asked, outputs=with_open_sizes(elements[0]), state=state
            )
        structure = _learn(asked, dataset, reason)
        packed = dataclasses.replace(packed, outputs=structure)
    shown = _spec.DatasetSpec(structure) if how == ROWS else structure
    return _recorded(packed, shown, reason, given.seed, given.pure)


def _recorded(
    packed: Packed,
    output: Any,
    reason: str,
    seed: int | None = None,
    pure: bool = False,
) -> Recorded:
    from penstock import _pipeline

    function = packed.function
    try:
        data = pack(packed)
    except Exception as error:
        raise refused(
            UnsupportedFunctionError,
            f"function {packed.name} runs as Python in another process "
            f"and must be fit to be sent there; it cannot be pickled: {error}."
            f"\n  It is not native because: {reason}",
        ) from error
    capture = FunctionCapture(data, packed)
    message = {
        "name": packed.name,
        "made_at": location_of(users_own(function)),
        "output": _spec.to_json(output),
        "python": {
            "capture": capture.id,
            "identity": _captures.identity_of(users_own(function)),
            "reason": reason.split("\n")[0],
            "is_random": packed.has_rng,
            "is_pure": pure,
            **_pipeline.seed(seed),
        },
    }
    return Recorded(message, _spec.types_of(output), None, (capture,))


def _learn(packed: Packed, dataset: Pipeline, reason: str) -> Any:
    """The structure of what the function returns for the first elements."""
    from penstock._options import Options
    from penstock._pipeline import append, sample_of

    sample = sample_of(dataset)
    text = _spec.TensorSpec((), string)
    function = _recorded(packed, text, reason)
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
    name = packed.name
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
    is_raised = str(failure).startswith(f"in {name}, for element ")
    if not is_raised or "): what it returned: " in str(failure):
        raise refused(
            type(failure),
            f"function {name} must give a result for one of the first "
            f"elements, to learn what it returns; found: {failure}"
            f"{advice}",
        ) from None
    hint = ""
    if "missing 1 required" in str(failure) and "'rng'" in str(failure):
        hint = (
            "\n  Use ps.python_function(f, rng=True), which gives it a "
            "generator of random numbers."
        )
    raise refused(
        type(failure),
        f"{failure}{hint}\n  Function {name} was run for the first elements, "
        "when the pipeline was built, to learn what it returns. It runs as "
        f"Python because: {reason}",
    ) from None
