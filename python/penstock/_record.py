"""Plain functions as native ones: called once, with symbolic values."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock import (
    _caught,
    _engine,
    _foreign,
    _names,
    _pillow,
    _purity,
    _recording,
    _sides,
    _spec,
)
from penstock._adapted import Adapted, users_own
from penstock._errors import (
    InvalidTypeError,
    PenstockError,
    UnsupportedFunctionError,
)
from penstock._location import (
    location_of,
    mark_caller,
    refused,
    shown_line,
    users_part,
)
from penstock._recording import Recording
from penstock._symbol import (
    NoAttributeError,
    PythonNumber,
    Symbol,
    call,
    call_parts,
    step_of,
)

if TYPE_CHECKING:
    from penstock._pipeline import Pipeline

__all__ = ["Recorded", "call", "call_parts", "record"]


@dataclass(frozen=True)
class Recorded:
    """A recorded function: its message, and what that cannot say."""

    message: dict[str, Any]
    types: dict[str, type]
    # What flat_map and interleave read from; None if it returns tensors.
    dataset: Pipeline | None
    captures: tuple[_engine.Capture, ...] = ()
    # What it returns, with specs; None unless it was recorded with stand-ins.
    structure: Any = None


def record(function: Callable[..., Any], elements: Sequence[Any]) -> Recorded:
    """Records `function` of the elements whose structures are given.

    One element that is a plain tuple gives an argument per component.

    Raises:
        UnsupportedFunctionError: It cannot run in the engine.
    """
    if not callable(function):
        raise refused(
            InvalidTypeError, f"expected a function; got {function!r}"
        )
    containers = _check(function).containers
    recording = _begin(elements)
    with _recording.activate(recording):
        result = _run(recording, function, function, elements, containers)
        return _finish(recording, function, result)


def record_known(
    function: Callable[..., Any], elements: Sequence[Any]
) -> Recorded | None:
    """Records `function`, which uses Pillow: what the engine knows of it.

    An element for which a step is an error is not known, and must be computed
    by `function` itself.

    Returns:
        None if it uses nothing that there are stand-ins for.

    Raises:
        UnsupportedFunctionError: It does something that is not known.
    """
    reached = _check(function, may_be_foreign=True)
    if not reached.is_foreign:
        return None
    twin = _foreign.twin(function)

    def attempt(mode: str) -> tuple[Recorded, bool]:
        recording = _begin(elements)
        recording.size_of = _sides.Side
        assumption = _pillow.assume(recording, mode)
        with _recording.activate(recording):
            result = _run(
                recording, function, twin, elements, reached.containers
            )
            assumption.finish()
            _refuse_others(recording, function)
            if not _is_tensors(result):
                raise refused(
                    UnsupportedFunctionError,
                    f"function {name_of(function)} returns no tensors",
                )
            recorded = _finish(recording, function, result)
            specs = recording.infer(recorded.message["outputs"])
            structure = _spec.pack(result, specs)
        return (
            dataclasses.replace(recorded, structure=structure),
            assumption.is_used,
        )

    recorded, depends_on_mode = attempt("RGB")
    if depends_on_mode:
        # Files of other modes are not known: whatever becomes of them, it must
        # be of the same shape, or an error.
        for mode in _pillow.OTHER_MODES:
            try:
                other, _ = attempt(mode)
            except UnsupportedFunctionError as error:
                if _foreign.is_raised(error.__cause__):
                    continue
                raise
            if other.structure != recorded.structure:
                raise refused(
                    UnsupportedFunctionError,
                    f"what function {name_of(function)} returns depends on "
                    "the image's mode; convert() it first",
                )
    return recorded


def _returned(leaf: Any) -> Any:
    """What a result has in the place of `leaf`: an int is an int64 there."""
    return leaf.value if isinstance(leaf, _sides.Side) else leaf


# Functions of floats whose last bits are not numpy's.
_ROUNDED = frozenset(
    {
        "arctan",
        "cos",
        "exp",
        "expm1",
        "log",
        "log10",
        "log1p",
        "log2",
        "mean",
        "power",
        "prod",
        "sin",
        "sum",
        "tan",
        "tanh",
    }
)


def _refuse_others(recording: Recording, function: Callable[..., Any]) -> None:
    """Refuses what gives something else here than as Python.

    Elements that the engine does not know would have it otherwise than those
    that it does.
    """
    for step in recording.steps:
        call = step.get("call", {})
        name = call.get("function", "")
        if "random" in name or "sample" in name:
            why = f"draws random numbers ({name})"
        elif name in _ROUNDED and any(
            "INT" not in recording.spec(each).dtype.wire_name
            for each in call["args"]
        ):
            why = f"rounds ({name})"
        else:
            continue
        raise refused(
            UnsupportedFunctionError,
            f"function {name_of(function)} {why}, which the engine does "
            "otherwise than Python",
        )


def _is_tensors(result: Any) -> bool:
    return not isinstance(result, list) and not any(
        isinstance(leaf, (_pillow.Image, _foreign.Bytes, list))
        for leaf in _spec.flatten(result)
    )


def _check(
    function: Callable[..., Any], may_be_foreign: bool = False
) -> _purity.Reached:
    try:
        return _purity.check(
            users_own(function), may_be_foreign, isinstance(function, Adapted)
        )
    except _purity.TooDeepError:
        refusal = refused(
            UnsupportedFunctionError,
            f"what function {name_of(function)} captures must be nested at "
            f"most {_spec.MAX_DEPTH} deep; got more",
        )
        refusal.is_final = True
        raise refusal from None


def _leaves(elements: Sequence[Any]) -> list[Any]:
    return [leaf for each in elements for leaf in _spec.flatten(each)]


def _begin(elements: Sequence[Any]) -> Recording:
    specs = [_spec.tensor_spec(leaf) for leaf in _leaves(elements)]
    return Recording(specs, _recording.current())


def _run(
    recording: Recording,
    function: Callable[..., Any],
    called: Callable[..., Any],
    elements: Sequence[Any],
    containers: _purity.Containers,
) -> Any:
    """What `called`, in the place of `function`, returns for symbols."""
    leaves = enumerate(_leaves(elements))
    values = iter([_value(recording, i, x) for i, x in leaves])
    arguments = tuple(_spec.pack(e, values) for e in elements)
    of_what = (
        "the state and the element" if len(elements) > 1 else "the element"
    )
    if len(arguments) == 1 and _spec.is_plain_tuple(arguments[0]):
        arguments = arguments[0]
        of_what = "a tuple's components are passed as separate arguments"
    _check_arity(function, arguments, of_what)
    try:
        result = _call(called, arguments)
    finally:
        changed = _purity.put_back(containers)
    if changed is not None:
        _purity.refuse_changes(users_own(function), changed)
    return result


def _check_arity(
    function: Callable[..., Any], arguments: tuple[Any, ...], of_what: str
) -> None:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return  # It does not say; the call will.
    try:
        signature.bind(*arguments)
    except TypeError:
        number = len(arguments)
        hint = ""
        if "rng" in signature.parameters:
            hint = (
                ".\n  Use ps.python_function(f, rng=True) if rng should be a "
                "generator of random numbers"
            )
        refusal = refused(
            UnsupportedFunctionError,
            f"function {name_of(function)} must take {number} "
            f"argument{'' if number == 1 else 's'} ({of_what}); got one "
            f"of {signature}{hint}",
        )
        refusal.is_final = True
        raise refusal from None


def _value(recording: Recording, step: int, leaf: Any) -> Any:
    """What a function is called with for a component."""
    if isinstance(leaf, _spec.DatasetSpec):
        from penstock._nested import argument

        return argument(recording, step, leaf.element_spec)
    return Symbol.fresh(recording, step)


def _result(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    return function(*arguments)


mark_caller(_result.__code__)


def _call(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    try:
        if isinstance(function, Adapted):  # which may call it several times
            return _result(function, arguments)
        with _caught.refusing(_result.__code__):
            return _result(function, arguments)
    except PenstockError:
        raise
    except NoAttributeError as error:
        raise refused(UnsupportedFunctionError, str(error)) from None
    except Exception as error:
        trace = error.__traceback__ = users_part(error.__traceback__)
        where = ""
        if trace is not None:
            file = trace.tb_frame.f_code.co_filename
            where = f" at {shown_line(file, trace.tb_lineno)}"
        mistake = _mistake(error, arguments)
        if mistake:
            text = f"function {name_of(function)} must {mistake}{where}"
        else:
            text = (
                f"function {name_of(function)} cannot be recorded as a native "
                f"function: called with symbolic values it raises "
                f"{type(error).__name__}{where}: {error}"
            )
        refusal = refused(UnsupportedFunctionError, text)
        refusal.is_final = bool(mistake)
        raise refusal from error


def _mistake(error: Exception, arguments: tuple[Any, ...]) -> str:
    """What would be as wrong with values as it is with symbols; else ""."""
    if _names.is_unknown(error):
        return f"use names that are there: {error}"
    dicts = [x for x in arguments if isinstance(x, Mapping)]
    keys = ", ".join(map(_keys, dicts))
    if isinstance(error, KeyError) and dicts:
        return f"use the element's keys, {keys}; got {error}"
    if isinstance(error, AttributeError) and any(
        error.obj is each for each in dicts
    ):
        return (
            f"use the element's keys, {keys}, as in x[{error.name!r}]; got "
            f"the attribute {error.name!r}"
        )
    return ""


def _keys(given: Mapping[str, Any]) -> str:
    """The keys of a dict, and those of dicts inside it."""
    inner = [
        f"{key!r}: {_keys(part)}" if isinstance(part, Mapping) else repr(key)
        for key, part in given.items()
    ]
    return f"{{{', '.join(inner)}}}"


def _finish(
    recording: Recording, function: Callable[..., Any], result: Any
) -> Recorded:
    from penstock._pipeline import Pipeline

    message: dict[str, Any] = {
        "name": name_of(function),
        "made_at": location_of(_purity.unwrap(function)),
    }
    if isinstance(result, Pipeline):
        number = result._num_bound(recording)
        message["outputs"] = recording.bound[:number]
        message["steps"] = recording.steps
        return Recorded(message, {}, result, tuple(recording.captures))
    if isinstance(result, list):
        # As in tf.data: more often several tensors than one to be stacked.
        result = tuple(result)
    _check_result(function, result)
    message["outputs"] = [
        step_of(recording, _returned(leaf)) for leaf in _spec.flatten(result)
    ]
    message["output"] = _spec.to_json(result)
    message["steps"] = recording.steps
    types = _spec.types_of(result)
    return Recorded(message, types, None, tuple(recording.captures))


def _check_result(function: Callable[..., Any], result: Any) -> None:
    from penstock import _dtypes

    for leaf in _spec.flatten(result):
        if isinstance(leaf, (Symbol, PythonNumber, list)):
            continue
        try:
            _dtypes.to_array(leaf)
        except TypeError:
            raise refused(
                InvalidTypeError,
                f"function {name_of(function)} must return tensors, or "
                "tuples, dicts, named tuples or dataclasses of them; got "
                f"{leaf!r} of type {type(leaf).__name__}",
            ) from None


def name_of(function: Any) -> str:
    function = users_own(function)
    if isinstance(function, functools.partial):
        return name_of(function.func)
    found = getattr(function, "__qualname__", None)
    name = str(found or type(function).__qualname__)
    return name.rpartition("<locals>.")[2]
