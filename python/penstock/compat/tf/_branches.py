"""Branches of recorded functions: both are computed, one result is taken.

That is right only if what is computed for nothing cannot fail: an element whose
branch is not taken must not become an error by it. So a branch may have only
steps of which that is known; a function with others runs as Python.

An `if` on a symbol is recorded by calling the function again: once as if the
condition held, and once as if not. Steps before the condition are the same ones
in both calls, so that what is random before it is drawn once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from penstock import _recording, _spec
from penstock._errors import UnsupportedFunctionError
from penstock._recording import Recording
from penstock._symbol import Symbol
from penstock.compat.tf import _arrays as arrays
from penstock.compat.tf._arithmetic import native
from penstock.compat.tf._tensor import Tensor, convert

Json = dict[str, Any]

_NEVER = frozenset(
    [
        "abs",
        "all",
        "any",
        "arctan",
        "cast",
        "ceil",
        "cos",
        "exp",
        "expm1",
        "floor",
        "invert",
        "isfinite",
        "isinf",
        "isnan",
        "log",
        "log10",
        "log1p",
        "log2",
        "logical_not",
        "lookup.find",
        "lookup.place",
        "mean",
        "negative",
        "one_hot",
        "ones_like",
        "positive",
        "prod",
        "rank",
        "reciprocal",
        "round",
        "shape",
        "sign",
        "sin",
        "size",
        "sqrt",
        "square",
        "strings.as_string",
        "strings.length",
        "strings.lower",
        "strings.regex_full_match",
        "strings.regex_replace",
        "strings.split",
        "strings.strip",
        "strings.upper",
        "sum",
        "tan",
        "tanh",
        "trunc",
        "zeros_like",
    ]
)
# Not if shapes fit, which is known of scalars and of shapes that are known.
_ELEMENTWISE = frozenset(
    [
        "add",
        "bitwise_and",
        "bitwise_or",
        "bitwise_xor",
        "clip",
        "equal",
        "floor_divide",
        "greater",
        "greater_equal",
        "left_shift",
        "less",
        "less_equal",
        "logical_and",
        "logical_or",
        "logical_xor",
        "maximum",
        "minimum",
        "mod",
        "multiply",
        "not_equal",
        "power",
        "right_shift",
        "strings.join",
        "subtract",
        "true_divide",
        "where",
    ]
)
# Not if all shapes are known: then it was looked at.
_OF_KNOWN_SHAPES = frozenset(
    [
        "concat",
        "ensure_shape",
        "expand_dims",
        "reshape",
        "squeeze",
        "stack",
        "transpose",
    ]
)
_OF_IMAGES = frozenset(
    f"image.{name}"
    for name in [
        "adjust_brightness",
        "adjust_contrast",
        "adjust_hue",
        "adjust_saturation",
        "convert_image_dtype",
        "flip_left_right",
        "flip_up_down",
        "hsv_to_rgb",
        "per_image_standardization",
        "random_flip_left_right",
        "random_flip_up_down",
        "resize",
        "rgb_to_grayscale",
        "rgb_to_hsv",
        "rot90",
        "transpose",
    ]
)
# Not if the sizes are constants.
_OF_SIZES = frozenset(["fill", "random_normal", "random_uniform"])


FOR_ALL = "a branch is computed for all elements, and that could fail"


def what_may_fail(recording: Recording, begin: int) -> str | None:
    """The first function, from step `begin` on, that could give an error."""
    for step in recording.steps[begin:]:
        call = step.get("call")
        if call is not None and not _cannot_fail(recording, call):
            return str(call["function"])
    return None


def _cannot_fail(recording: Recording, call: Json) -> bool:
    name, args = call["function"], call["args"]
    if name in _NEVER:
        return True
    constant = ["constant" in recording.steps[i] for i in args]
    if name in _OF_SIZES:
        return constant[0]
    if name == "random_int":
        return all(constant)
    shapes = [recording.spec(i).shape for i in args]
    is_known = all(s is not None and None not in s for s in shapes)
    if name in _ELEMENTWISE:
        return is_known or sum(s != () for s in shapes) <= 1
    if name in _OF_KNOWN_SHAPES:
        return is_known
    if name in _OF_IMAGES:
        return bool(shapes[0]) and shapes[0][-1] is not None  # type: ignore
    if name == "getitem":
        if "i" not in call["attrs"]["spec"]["text"]:
            return True  # A slice ends where its values do.
        return is_known and all(constant[1:])
    return False


def choose(is_true: Tensor, one: Any, two: Any) -> Tensor:
    """One of two results, by a condition that an element decides."""
    a = convert(one)
    b = convert(two, hint=a.dtype)
    if a.dtype != b.dtype or a.shape.rank != b.shape.rank:
        arrays.python_only(
            "a choice between two results",
            f"they must have one dtype and rank; got {a.dtype} of {a.shape} "
            f"and {b.dtype} of {b.shape}",
        )
    if a.shape.is_fully_defined() and a.shape == b.shape:
        return native("where", is_true, a, b)
    # Of sizes that may differ: one of two parts of a vector.
    flat = [arrays.reshape(x, [-1]) for x in (a, b)]
    sizes = [arrays.size(x, "int64") for x in (a, b)]
    zero = Tensor(np.zeros((), np.int64))
    start = arrays.where(is_true, zero, sizes[0])
    stop = arrays.where(is_true, sizes[0], sizes[0] + sizes[1])
    dims = [arrays.shape(x, "int64") for x in (a, b)]
    made = arrays.reshape(
        arrays.concat(flat, 0)[start:stop],
        arrays.where(is_true, dims[0], dims[1]),
    )
    known = [
        x if x == y else None for x, y in zip(a.shape, b.shape, strict=True)
    ]
    made.set_shape(known)
    return made


# ---- Functions with an `if`.

# As many conditions one after another: there are two results for each.
_MAX_CONDITIONS = 3


class _ForkError(UnsupportedFunctionError):
    """A recorded function wants to know what an element decides."""

    def __init__(self, condition: Tensor) -> None:
        super().__init__("a condition is to be decided")
        self.condition = condition


class Explorer:
    """Calls a function for each way that its conditions can turn out."""

    def __init__(self, recording: Recording, call: Callable[[], Any]) -> None:
        self._recording = recording
        self._call = call
        self._taken: list[bool] = []
        self._wanted: tuple[bool, ...] = ()
        self._ordinal = 0
        # Steps by the conditions before them and their number behind these.
        self._known: dict[tuple[tuple[bool, ...], int], int] = {}
        self._fork_at: int | None = None
        # Whether the call at hand did not learn what it asked for.
        self._is_asking = False

    def add(self, kind: Json) -> int:
        """The step of `kind`: that of another call, or a new one."""
        key = (tuple(self._taken), self._ordinal)
        self._ordinal += 1
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._recording.append(kind)
        else:
            step = dict(self._recording.steps[found])
            step.pop("made_at", None)
            if step != kind:
                arrays.python_only(
                    "a function with an `if`", "it differs between calls"
                )
        return found

    def decide(self, condition: Tensor) -> bool:
        if len(self._taken) == len(self._wanted):
            self._is_asking = True
            raise _ForkError(condition)
        choice = self._wanted[len(self._taken)]
        self._taken.append(choice)
        self._ordinal = 0
        return choice

    @property
    def is_in_a_branch(self) -> bool:
        return bool(self._taken)

    def explore(self) -> Any:
        """The function's result, whatever elements decide."""
        recording = self._recording
        recording.replay = self
        try:
            tree = self._visit(())
        finally:
            recording.replay = None
        if self._fork_at is not None:
            found = what_may_fail(recording, self._fork_at)
            if found is not None:
                arrays.python_only(f"an `if` with {found} in a branch", FOR_ALL)
        return _combine(tree)

    def _visit(self, wanted: tuple[bool, ...]) -> Any:
        self._wanted, self._taken, self._ordinal = wanted, [], 0
        self._is_asking = False
        try:
            result = _Result(self._call())
            if self._is_asking:
                arrays.python_only(
                    "a decision on an element's value", "a `try` is around it"
                )
            return result
        except _ForkError as fork:
            if len(wanted) == _MAX_CONDITIONS:
                arrays.python_only(
                    "a decision on an element's value",
                    f"there are more than {_MAX_CONDITIONS} in a row",
                )
            if self._fork_at is None:
                self._fork_at = len(self._recording.steps)
            condition = fork.condition
        return (
            condition,
            self._visit((*wanted, True)),
            self._visit((*wanted, False)),
        )


class _Result:
    def __init__(self, value: Any) -> None:
        self.value = value


def _combine(tree: Any) -> Any:
    if isinstance(tree, _Result):
        return tree.value
    condition, one, two = tree[0], _combine(tree[1]), _combine(tree[2])
    if condition.shape.rank != 0:
        arrays.python_only(
            "a decision", f"it must be a scalar's; got {condition.shape}"
        )
    if not condition.dtype.is_bool:
        condition = condition != arrays.zeros_like(condition)
    a, b = _spec.flatten(one), _spec.flatten_like(one, two)
    values = []
    for x, y in zip(a, b, strict=True):
        if x is y:
            values.append(x)
            continue
        if not all(isinstance(v, (Symbol, np.ndarray)) for v in (x, y)):
            arrays.python_only(
                "a choice between datasets", "both would be read"
            )
        made = choose(condition, Tensor(x), Tensor(y))
        values.append(made._value)
    return _spec.pack(one, values)


def explored(call: Callable[[], Any]) -> Any:
    """What `call` gives, which may decide by symbols while it is recorded."""
    recording = _recording.current()
    if recording is None or recording.replay is not None:
        return call()
    return Explorer(recording, call).explore()
