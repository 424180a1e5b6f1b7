"""Symbolic values: what a recorded function computes with."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from penstock import _chunk, _engine, _recording
from penstock._bytecode import names_on_line
from penstock._caught import is_asked_by_user
from penstock._dtypes import (
    DType,
    bfloat16,
    complex64,
    float16,
    float32,
    int64,
    string,
)
from penstock._errors import UnsupportedFunctionError
from penstock._location import is_done_by_us, user_frame, user_line
from penstock._recording import Recording
from penstock._spec import TensorSpec

# numpy's names where the native function has another.
_NUMPY_NAMES = {
    "absolute": "abs",
    "amax": "max",
    "amin": "min",
    "around": "round",
    "astype": "cast",
    "bitwise_invert": "invert",
    "bitwise_not": "invert",
    "concatenate": "concat",
    "divide": "true_divide",
    "fabs": "abs",
    "permute_dims": "transpose",
    "pow": "power",
    "remainder": "mod",
    "rint": "round",
}
# Functions that give floats for integers in numpy, and not here.
_OF_FLOATS = ("fabs", "rint")
# The same of `math`'s names.
_MATH_NAMES = {"atan": "arctan", "fabs": "abs", "pow": "power"}
# Functions of numpy that are short in native ones.
_WRITTEN = {
    "np.dot": "ps.sum(a * b)",
    "np.fmod": "x - y * ps.trunc(x / y)",
    "np.linalg.norm": "ps.sqrt(ps.sum(x * x))",
    "np.std": "ps.sqrt(ps.mean(ps.square(x - ps.mean(x))))",
    "np.var": "ps.mean(ps.square(x - ps.mean(x)))",
}
# Functions whose results may share memory with what they are given, or be it.
_VIEWS = frozenset(
    {
        "ensure_shape",
        "expand_dims",
        "getitem",
        "reshape",
        "round",
        "squeeze",
        "transpose",
    }
)
# Functions that give arrays without axes where others give scalars.
_WITHOUT_SCALARS = frozenset(
    {
        "fill",
        "full_like",
        "ones",
        "ones_like",
        "scatter",
        "where",
        "zeros",
        "zeros_like",
    }
)


_NOTHING: Mapping[str, Any] = {}


def call(
    name: str, tensors: Sequence[Any], attrs: Mapping[str, Any] = _NOTHING
) -> Any:
    """Calls a native function: records it, or runs it at once.

    Inside a recorded function, or with symbolic values, the call becomes a step
    and gives a symbolic value. With values alone it runs in the engine and
    gives an array.

    Args:
        name: From the engine's list.
        tensors: Symbols, arrays, scalars; None for one that is left out.
        attrs: What is part of the function: an axis, a dtype, a flag.
    """
    tensors = [tensor for tensor in tensors if tensor is not None]
    recording = _recording.current() or _recording_of(tensors)
    messages = {
        key: _recording.attr_to_json(value)
        for key, value in (attrs or {}).items()
    }
    if recording is None:
        return _evaluate(name, tensors, messages)
    args = [step_of(recording, tensor) for tensor in tensors]
    result = Symbol(recording, recording.add_call(name, args, messages))
    if name in _VIEWS and isinstance(tensors[0], Symbol):
        result._memory = tensors[0]._memory
        result._version = tensors[0]._version
        # x[..., 0] has no axes, and shares memory with x.
        result._is_scalar = name == "getitem" and "e" not in attrs["spec"]
    else:
        result._memory.is_writable = True
        result._is_scalar = name not in _WITHOUT_SCALARS
    return result


def call_parts(
    name: str,
    tensors: Sequence[Any],
    attrs: Mapping[str, Any] | None = None,
    *,
    count: int,
) -> list[Any]:
    """Calls a native function that has `count` results; else as `call`."""
    tensors = [tensor for tensor in tensors if tensor is not None]
    recording = _recording.current() or _recording_of(tensors)
    messages = {
        key: _recording.attr_to_json(value)
        for key, value in (attrs or {}).items()
    }
    if recording is None:
        return _evaluate_parts(name, tensors, messages, count)
    args = [step_of(recording, tensor) for tensor in tensors]
    steps = recording.add_parts(name, args, messages, count)
    return [Symbol.fresh(recording, step) for step in steps]


def _recording_of(tensors: Sequence[Any]) -> Recording | None:
    for tensor in tensors:
        if isinstance(tensor, Symbol):
            return tensor._recording
        if isinstance(tensor, (list, tuple)):
            found = _recording_of(tensor)
            if found is not None:
                return found
    return None


def step_of(recording: Recording, value: Any) -> int:
    """The step of `recording` that has this value, made if there is none."""
    if isinstance(value, Symbol):
        if value._version != value._memory.version:
            _unsupported(
                "an array that was changed through another",
                "Write x = x + y instead of x += y.",
                "they share their memory",
            )
        return recording.lift(value._recording, value._step)
    if isinstance(value, (list, tuple)) and _recording_of(value) is not None:
        parts = [step_of(recording, item) for item in value]
        attrs = {"axis": _recording.attr_to_json(0)}
        return recording.add_call("stack", parts, attrs)
    return recording.add_constant(value)


def _evaluate(name: str, tensors: Sequence[Any], attrs: Any) -> Any:
    return _evaluate_parts(name, tensors, attrs, 1)[0]


def _evaluate_parts(
    name: str, tensors: Sequence[Any], attrs: Any, count: int
) -> list[Any]:
    recording = Recording((), None, is_eager=True)
    args = [recording.add_constant(tensor) for tensor in tensors]
    results = recording.add_parts(name, args, attrs, count)
    tensor = {"tensor": {"dtype": "BOOL"}}
    function = {
        "steps": recording.steps,
        "outputs": results,
        "output": {"tuple": {"items": [tensor] * count}},
        "name": name,
    }
    reply = _engine.call("evaluate", {"function": function})
    columns, _, errors = _chunk.decode(_engine.from_base64(reply["chunk"]))
    if errors:
        from penstock._errors import from_status

        raise from_status(errors[0].code, errors[0].message)
    return [column[0] for column in columns]


class NoAttributeError(AttributeError):
    """A symbolic value has no such attribute; `hasattr` may ask for it."""


def refuse_type() -> NoReturn:
    """Refuses to tell the type of what stands in for a value."""
    _unsupported(
        "a question for a value's type (isinstance, __class__)",
        "Ask for its dtype, or let it run as Python (ps.python_function).",
        "a symbolic value is of another",
    )


_IN_PYTHON = "let it run as Python (ps.python_function)"
_NO_TEXT = (
    f"Use the functions in ps.strings (help(ps.strings)), or {_IN_PYTHON}."
)
_NOT_KNOWN = "the value is known only when there is an element"


def _unsupported(what: str, instead: str, why: str = _NOT_KNOWN) -> NoReturn:
    raise UnsupportedFunctionError(
        f"{what} at {user_line()} cannot be recorded: {why}. {instead}"
    )


class _Memory:
    """What an array and its views have in common."""

    __slots__ = ("is_writable", "version")

    def __init__(self) -> None:
        self.is_writable = False
        self.version = 0  # one more with each change


class PythonNumber:
    """What stands in for a number of Python's own, which is no numpy scalar."""

    __slots__ = ()

    def beside(self, value: Any) -> Symbol:
        """Itself, in the type that it has in an operation with `value`."""
        raise NotImplementedError


# Of Python's numbers they make Python's numbers.
_ARITHMETIC = frozenset(
    {"add", "subtract", "multiply", "true_divide", "floor_divide", "mod"}
)


def _operate(name: str, x: Any, y: Any) -> Symbol:
    """An operator, as numpy has it for what may be Python's own numbers."""
    result: Symbol = call(name, (_beside(x, y), _beside(y, x)))
    result._is_size = name in _ARITHMETIC and _is_pythons(x) and _is_pythons(y)
    return result


def _is_pythons(value: Any) -> bool:
    if isinstance(value, Symbol):
        return value._is_size
    return type(value) in (int, float)


def _beside(x: Any, other: Any) -> Any:
    """`x` in the type that it has in an operation with `other`."""
    if isinstance(x, PythonNumber):
        return x.beside(other)
    if not isinstance(x, Symbol) or not x._is_size or _is_pythons(other):
        return x
    if not isinstance(other, (Symbol, np.ndarray, np.generic)):
        return x
    kind = DType.of(other.dtype)
    if kind in (float16, bfloat16, float32, complex64):
        return x.astype(float32 if kind == complex64 else kind)
    if kind.wire_name.startswith(("INT", "UINT")) and x.dtype == int64 != kind:
        why = "a size takes their type, and Python raises if it does not fit"
        instead = "Use ps.cast for the one or the other."
        _unsupported(f"an operation of a size and {kind.name}", instead, why)
    return x


def _binary(name: str) -> Callable[[Symbol, Any], Symbol]:
    def operator(self: Symbol, other: Any) -> Symbol:
        return _operate(name, self, other)

    return operator


def _reflected(name: str) -> Callable[[Symbol, Any], Symbol]:
    def operator(self: Symbol, other: Any) -> Symbol:
        return _operate(name, other, self)

    return operator


def _in_place(name: str) -> Callable[[Symbol, Any], Symbol]:
    def operator(self: Symbol, other: Any) -> Symbol:
        result = _operate(name, self, other)
        if self._is_scalar and self._spec().shape == ():
            return result  # A scalar does not change; a name does.
        why = _why_not_in_place(self, _beside(other, self), result)
        if why:
            instead = "Write it as x = x + y."
            _unsupported("a change of an array in its place", instead, why)
        if result.dtype != self.dtype:
            result = result.astype(self.dtype)
        # Whoever has this array sees the change; so do those that have views of
        # it, which here do not.
        self._step = result._step
        self._memory.version += 1
        self._version = self._memory.version
        return self

    return operator


def _why_not_in_place(x: Symbol, other: Any, result: Symbol) -> str:
    """Why `x` cannot become `result`; "" if it can, as numpy does it."""
    if not x._memory.is_writable or x._recording is not result._recording:
        return "it is read-only, or another function's"
    here, there = x._spec(), result._spec()
    plain = isinstance(here.dtype.dtype.type(), np.number | np.bool_)
    if not plain or not np.can_cast(
        there.dtype.dtype, here.dtype.dtype, "same_kind"
    ):
        return f"it has {here.dtype.name}, and the result {there.dtype.name}"
    sizes = (
        other._spec().shape if isinstance(other, Symbol) else np.shape(other)
    )
    if here.shape is None or sizes is None or len(sizes) > len(here.shape):
        return "the result may have another shape"
    for size, own in zip(reversed(sizes), reversed(here.shape), strict=False):
        if size != 1 and (size is None or size != own):
            return "the result may have another shape"
    return ""


def _unary(name: str) -> Callable[[Symbol], Symbol]:
    def operator(self: Symbol) -> Symbol:
        result: Symbol = call(name, (self,))
        return result

    return operator


def _reduction(name: str) -> Callable[..., Symbol]:
    def method(
        self: Symbol,
        axis: int | tuple[int, ...] | None = None,
        keepdims: bool = False,
    ) -> Symbol:
        attrs = {"axis": axis, "keepdims": keepdims}
        result: Symbol = call(name, (self,), attrs)
        return result

    return method


class Symbol:
    """A value of a function being recorded: a tensor of an element to come.

    What is done to it becomes part of the recorded function. Its shape and
    dtype are known; its items are not, so `if`, `while` and `int()` cannot
    look at them.

    Example:
        >>> def halve(x):
        ...     return x / 2 if x.dtype == ps.int64 else x
        >>> list(ps.Dataset.range(2).map(halve))
        [np.float64(0.0), np.float64(0.5)]
    """

    __slots__ = (
        "_is_scalar",
        "_is_size",
        "_memory",
        "_recording",
        "_step",
        "_version",
    )

    __array_priority__ = 1000

    def __init__(self, recording: Recording, step: int) -> None:
        self._recording = recording
        self._step = step
        self._memory = _Memory()
        # Of its memory, when it was last in step with it.
        self._version = 0
        # Whether it is, if it has no axes, a scalar and not an array.
        self._is_scalar = False
        # Whether it is a Python number, made of an array's sizes.
        self._is_size = False

    @staticmethod
    def fresh(recording: Recording, step: int) -> Symbol:
        """A value that nobody else has."""
        result = Symbol(recording, step)
        result._memory.is_writable = result._is_scalar = True
        return result

    def array(self, *, is_writable: bool) -> Symbol:
        """The same values as another array, also if it has no axes."""
        result = Symbol(self._recording, self._step)
        result._memory.is_writable = is_writable
        return result

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        # `isinstance` asks for it: the answer would be for this, and not for
        # the value.
        if _recording.current() is not None and is_asked_by_user():
            refuse_type()
        return type(self)

    # ---- What is known.

    def _spec(self) -> TensorSpec:
        return self._recording.spec(self._step)

    @property
    def dtype(self) -> DType:
        return self._spec().dtype

    @property
    def shape(self) -> tuple[Any, ...]:
        """Sizes; those that differ between elements are symbolic."""
        shape = self._spec().shape
        if shape is None:
            _unsupported("the shape", "Its rank is not known; use ps.shape.")
        return tuple(
            self._size(i) if size is None else size
            for i, size in enumerate(shape)
        )

    def _size(self, axis: int) -> Any:
        size = call("shape", (self,))[axis]
        size._is_size = True
        make = self._recording.size_of
        return size if make is None else make(size)

    @property
    def ndim(self) -> int:
        shape = self._spec().shape
        if shape is None:
            _unsupported("the rank", "Set it with ps.reshape.")
        return len(shape)

    def __repr__(self) -> str:
        # Of a list or tuple, `str` and f-strings ask for it, too.
        is_users = not is_done_by_us(sys._getframe(1))
        if _recording.current() is not None and is_users:
            _unsupported("a conversion to text", _NO_TEXT)
        spec = self._spec()
        return f"Symbol(shape={spec.shape}, dtype={spec.dtype})"

    def __len__(self) -> int:
        return self._length("len()")

    def __iter__(self) -> Iterator[Symbol]:
        size = self._length("iteration")
        return iter([self[i] for i in range(size)])

    def _length(self, what: str) -> int:
        spec = self._spec()
        if spec.shape == () and spec.dtype == string:
            _unsupported(f"{what} of a string", _NO_TEXT)
        if spec.shape == ():
            why = "it is a scalar, which has no length"
            _unsupported(what, "Use the value itself.", why)
        if spec.shape is None or spec.shape[0] is None:
            _unsupported(what, "Use ps.shape(x)[0], or ps functions of x.")
        return spec.shape[0]

    # ---- Arithmetic.

    __add__ = _binary("add")
    __radd__ = _reflected("add")
    __sub__ = _binary("subtract")
    __rsub__ = _reflected("subtract")
    __mul__ = _binary("multiply")
    __rmul__ = _reflected("multiply")
    __truediv__ = _binary("true_divide")
    __rtruediv__ = _reflected("true_divide")

    def __divmod__(self, other: Any) -> tuple[Symbol, Symbol]:
        quotient, rest = call_parts("divmod", (self, other), count=2)
        return quotient, rest

    def __rdivmod__(self, other: Any) -> tuple[Symbol, Symbol]:
        quotient, rest = call_parts("divmod", (other, self), count=2)
        return quotient, rest

    __floordiv__ = _binary("floor_divide")
    __rfloordiv__ = _reflected("floor_divide")
    __mod__ = _binary("mod")
    __rmod__ = _reflected("mod")
    __pow__ = _binary("power")
    __rpow__ = _reflected("power")
    __and__ = _binary("bitwise_and")
    __rand__ = _reflected("bitwise_and")
    __or__ = _binary("bitwise_or")
    __ror__ = _reflected("bitwise_or")
    __xor__ = _binary("bitwise_xor")
    __rxor__ = _reflected("bitwise_xor")
    __lshift__ = _binary("left_shift")
    __rlshift__ = _reflected("left_shift")
    __rshift__ = _binary("right_shift")
    __rrshift__ = _reflected("right_shift")
    __lt__ = _binary("less")
    __le__ = _binary("less_equal")
    __gt__ = _binary("greater")
    __ge__ = _binary("greater_equal")
    __neg__ = _unary("negative")
    __pos__ = _unary("positive")
    __abs__ = _unary("abs")
    __invert__ = _unary("invert")

    __iadd__ = _in_place("add")
    __isub__ = _in_place("subtract")
    __imul__ = _in_place("multiply")
    __itruediv__ = _in_place("true_divide")
    __ifloordiv__ = _in_place("floor_divide")
    __imod__ = _in_place("mod")
    __ipow__ = _in_place("power")
    __iand__ = _in_place("bitwise_and")
    __ior__ = _in_place("bitwise_or")
    __ixor__ = _in_place("bitwise_xor")
    __ilshift__ = _in_place("left_shift")
    __irshift__ = _in_place("right_shift")

    def __eq__(self, other: object) -> Any:
        return _operate("equal", self, other)

    def __ne__(self, other: object) -> Any:
        return _operate("not_equal", self, other)

    def __round__(self, digits: int | None = None) -> NoReturn:
        if digits:
            why = "numbers are rounded to whole ones in this version"
            _unsupported(
                "round() to digits", "Use ps.round(x * 100) / 100.", why
            )
        why = "it gives a Python integer, and no array of the same type"
        _unsupported("round()", "Use ps.round.", why)

    # ---- Methods of arrays.

    sum = _reduction("sum")
    prod = _reduction("prod")
    mean = _reduction("mean")
    min = _reduction("min")
    max = _reduction("max")
    any = _reduction("any")
    all = _reduction("all")

    def argmax(self, axis: int | None = None) -> Symbol:
        result: Symbol = call("argmax", (self,), {"axis": axis})
        return result

    def argmin(self, axis: int | None = None) -> Symbol:
        result: Symbol = call("argmin", (self,), {"axis": axis})
        return result

    def astype(self, dtype: Any) -> Symbol:
        result: Symbol = call("cast", (self,), {"dtype": DType.of(dtype)})
        return result

    def reshape(self, *shape: Any) -> Symbol:
        wanted = shape[0] if len(shape) == 1 else shape
        result: Symbol = _native("reshape")(self, wanted)
        return result

    def flatten(self) -> Symbol:
        return self.reshape(-1)

    def transpose(self, *axes: Any) -> Symbol:
        wanted = axes[0] if len(axes) == 1 else axes or None
        result: Symbol = _native("transpose")(self, wanted)
        return result

    @property
    def T(self) -> Symbol:  # noqa: N802
        return self.transpose()

    def clip(self, min: Any, max: Any) -> Symbol:
        result: Symbol = _native("clip")(self, min, max)
        return result

    def __getitem__(self, key: Any) -> Symbol:
        from penstock._indexing import getitem

        return getitem(self, key)

    # ---- numpy's functions.

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any
    ) -> Any:
        is_float = ufunc.__name__ not in _OF_FLOATS or (
            "FLOAT" in DType.of(inputs[0].dtype).wire_name
        )
        if method != "__call__" or kwargs or not is_float:
            _unsupported(
                f"np.{ufunc.__name__}.{method}", "Use a Penstock function."
            )
        if len(inputs) == 2:
            x, y = inputs
            inputs = (_beside(x, y), _beside(y, x))
        return _native(ufunc.__name__)(*inputs)

    def __array_function__(
        self, func: Any, types: Any, args: Any, kwargs: Any
    ) -> Any:
        if func is np.shape and not kwargs and len(args) == 1:
            return args[0].shape if args[0] is self else self._no_shape()
        if func is np.size:
            self._no_shape()
        prefix = func.__module__.replace("numpy", "np", 1) + "."
        return _native(func.__name__, prefix)(*args, **kwargs)

    # ---- What only a value could answer.

    def _no_shape(self) -> NoReturn:
        why = "it gives Python integers"
        _unsupported("np.shape or np.size", "Use ps.shape or ps.size.", why)

    def __array__(self, *args: Any, **kwargs: Any) -> NoReturn:
        _unsupported(
            "a conversion to a numpy array",
            "Use ps.stack([a, b]) for an array of several values; a value "
            "alone is used as it is.",
        )

    def __bool__(self) -> NoReturn:
        _unsupported(
            "a decision on an element's value (if, while, and, or, not)",
            "Use ps.where, &, | or ~.",
        )

    def __int__(self) -> NoReturn:
        self._refuse_number("int()", "ps.cast(x, ps.int64)")

    def __float__(self) -> NoReturn:
        for name in _math_on_line():
            native = _MATH_NAMES.get(name, name)
            if not _is_native(native):
                _unsupported(
                    f"math.{name}",
                    f"Write it with the functions in ps, or {_IN_PYTHON}.",
                )
            _unsupported(f"math.{name}", f"Use ps.{native}.")
        self._refuse_number("float()", "ps.cast(x, ps.float64)")

    def _refuse_number(self, what: str, cast: str) -> NoReturn:
        if self.dtype == string:
            _unsupported(f"{what} of a string", _NO_TEXT)
        _unsupported(what, f"Use {cast}.")

    def __index__(self) -> NoReturn:
        _unsupported("the use as a Python integer", "Use Penstock functions.")

    def __hash__(self) -> NoReturn:
        # By identity it would never be found, and `dict.get` would silently
        # give its default for every element.
        _unsupported(
            "a look-up in a dict or set",
            "Use ps.lookup.Table; of numbers from 0 on, ps.take of an array.",
        )

    def __str__(self) -> NoReturn:
        _unsupported("a conversion to text", _NO_TEXT)

    def __format__(self, spec: str) -> NoReturn:
        _unsupported("a conversion to text", _NO_TEXT)

    def __contains__(self, item: Any) -> NoReturn:
        _unsupported("in", "Use ps.any(x == item).")

    def __setitem__(self, key: Any, value: Any) -> NoReturn:
        _unsupported("an assignment to items", "Use ps.where.")

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        spec = self._spec()
        what = "strings" if spec.dtype == string else f"values such as {spec!r}"
        instead = (
            _NO_TEXT
            if spec.dtype == string
            else f"Use the functions in ps (help(ps)), or {_IN_PYTHON}."
        )
        raise NoAttributeError(
            f".{name} at {user_line()} cannot be recorded: in a recorded "
            f"function {what} have no attribute {name!r}. {instead}"
        )


def _is_native(name: str) -> bool:
    from penstock import _functions

    return name in _functions.__all__


def _native(name: str, prefix: str = "np.") -> Callable[..., Any]:
    """The wrapper of the native function that has numpy's `name`."""
    from penstock import _functions

    known = _NUMPY_NAMES.get(name, name)
    if prefix != "np." or not _is_native(known):
        full = f"{prefix}{name}"
        written = _WRITTEN.get(full, "the functions in ps")
        _unsupported(
            full,
            f"Write it with {written}, or {_IN_PYTHON}.",
            "there is no native function of that name",
        )
    found: Callable[..., Any] = getattr(_functions, known)
    return found


def _math_on_line() -> list[str]:
    """The functions of `math` that the user's line names."""
    frame = user_frame()
    if frame is None:
        return []
    known = {**frame.f_globals, **frame.f_locals}
    names = names_on_line(frame)
    is_module_named = any(known.get(name) is math for name in names)
    return [
        name
        for name in names
        if callable(found := getattr(math, name, None))
        and (is_module_named or known.get(name) is found)
    ]
