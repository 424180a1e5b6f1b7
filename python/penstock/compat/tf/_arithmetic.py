"""TensorFlow's rules for operators, over arrays and symbols alike."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from penstock import _dtypes, _functions
from penstock._errors import InvalidArgumentError, InvalidTypeError
from penstock._location import refused
from penstock._symbol import Symbol
from penstock.compat.tf._tensor import Tensor, convert, wrap_value
from penstock.compat.tf._types import ALL, DType

# ---- Calls of functions.


def _unwrap(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value._value
    if isinstance(value, list):
        return [_unwrap(item) for item in value]
    return value


def _is_symbolic(value: Any) -> bool:
    if isinstance(value, list):
        return any(map(_is_symbolic, value))
    return isinstance(value, Symbol)


def native(name: str, *args: Any, **attrs: Any) -> Tensor:
    """Calls the function of Penstock's that is called `name`."""
    plain = [_unwrap(arg) for arg in args]
    if not any(map(_is_symbolic, plain)):
        found = _NUMPY.get(name)
        if found is not None:
            with np.errstate(all="ignore"):
                return Tensor(np.asarray(found(*plain, **attrs)))
    return wrap_value(getattr(_functions, name)(*plain, **attrs))


def refuse_unknown_ranks(args: Any) -> None:
    """For functions of the engine that need a rank: others are Python."""
    for each in args:
        if isinstance(each, Tensor) and each.shape.rank is None:
            _ = each.ndim


# Those that do the same to arrays: a value is not sent to the engine for them.
_NUMPY: dict[str, Callable[..., Any]] = {
    name: getattr(np, name)
    for name in (
        "abs", "add", "bitwise_and", "bitwise_or", "bitwise_xor", "ceil",
        "clip", "cos", "equal", "exp", "expand_dims", "expm1", "floor",
        "floor_divide", "greater", "greater_equal", "invert", "isfinite",
        "isinf", "isnan", "left_shift", "less", "less_equal", "log", "log1p",
        "logical_and", "logical_not", "logical_or", "logical_xor", "maximum",
        "minimum", "mod", "multiply", "negative", "not_equal", "power",
        "reciprocal", "right_shift", "round", "sign", "sin", "sqrt", "square",
        "stack", "subtract", "tan", "tanh", "transpose", "true_divide", "where",
    )
}  # fmt: skip

# numpy's functions that are operators.
OF_UFUNC = {
    "add": "add",
    "subtract": "subtract",
    "multiply": "multiply",
    "divide": "true_divide",
    "true_divide": "true_divide",
    "floor_divide": "floor_divide",
    "remainder": "mod",
    "power": "power",
    "less": "less",
    "less_equal": "less_equal",
    "greater": "greater",
    "greater_equal": "greater_equal",
    "equal": "equal",
    "not_equal": "not_equal",
    "bitwise_and": "bitwise_and",
    "bitwise_or": "bitwise_or",
    "bitwise_xor": "bitwise_xor",
}
_COMPARISONS = ("less", "less_equal", "greater", "greater_equal")
_EQUALITIES = ("equal", "not_equal")
_BITWISE = ("bitwise_and", "bitwise_or", "bitwise_xor")


def operands(x: Any, y: Any) -> tuple[Tensor, Tensor]:
    """Two values as tensors of one dtype."""
    if isinstance(x, (Tensor, Symbol)) or not isinstance(y, (Tensor, Symbol)):
        a = convert(x)
        b = convert(y, hint=a.dtype)
    else:
        b = convert(y)
        a = convert(x, hint=b.dtype)
    if a.dtype != b.dtype:
        raise refused(
            InvalidTypeError,
            f"both operands must have one dtype; got {a.dtype} and {b.dtype}. "
            "Use tf.cast.",
        )
    return a, b


def binary(name: str, x: Any, y: Any) -> Any:
    """`x` and `y` through an operator, by TensorFlow's rules."""
    if hasattr(x, "row_splits") or hasattr(y, "row_splits"):
        from penstock.compat.tf import _ragged_items

        return _ragged_items.elementwise(functools.partial(binary, name), x, y)
    a, b = operands(x, y)
    dtype = a.dtype
    if dtype == _dtypes.string:
        if name == "add":
            return _joined(a, b)
        if name not in _EQUALITIES:
            refuse_dtype(name, dtype)
    elif dtype.is_bool:
        logical = {"multiply": "logical_and"}
        if name in logical:
            name = logical[name]
        elif name in _BITWISE:
            name = name.replace("bitwise", "logical")
        elif name not in _EQUALITIES:
            refuse_dtype(name, dtype)
    elif (name in _BITWISE and not dtype.is_integer) or (
        dtype.is_complex and name in (*_COMPARISONS, "floor_divide", "mod")
    ):
        refuse_dtype(name, dtype)
    if dtype.is_integer:
        if name == "true_divide":
            wide = ALL["float32" if dtype.size <= 2 else "float64"]
            a = native("cast", a, wide)
            b = native("cast", b, wide)
        else:
            _check_integers(name, b)
    result = native(name, a, b)
    if result.dtype != dtype and name in ("power",):
        return native("cast", result, dtype)
    return result


def _check_integers(name: str, b: Tensor) -> None:
    """Refuses what TensorFlow refuses, of values that are known."""
    if isinstance(b._value, Symbol):
        return
    if name in ("floor_divide", "mod") and not np.all(b._value):
        raise refused(InvalidArgumentError, "integer division by zero")
    if name == "power" and np.any(b._value < 0):
        raise refused(
            InvalidArgumentError,
            "integers to negative integer powers are not allowed",
        )


def _joined(a: Tensor, b: Tensor) -> Tensor:
    from penstock import strings

    return wrap_value(strings.join([a._value, b._value]))


def refuse_dtype(name: str, dtype: DType) -> NoReturn:
    raise refused(InvalidTypeError, f"{name} does not take {dtype}")


def unary(name: str, x: Any, kinds: str = "number") -> Tensor:
    """One value through a function that takes only some dtypes."""
    a = convert(x)
    dtype = a.dtype
    is_fit = {
        "number": dtype.is_integer or dtype.is_floating or dtype.is_complex,
        "signed": (dtype.is_integer and not dtype.is_unsigned)
        or dtype.is_floating
        or dtype.is_complex,
        "float": dtype.is_floating or dtype.is_complex,
        "bool": dtype.is_bool,
    }[kinds]
    if not is_fit:
        refuse_dtype(name, dtype)
    return native(name, a)


def invert(x: Any) -> Tensor:
    a = convert(x)
    if a.dtype.is_bool:
        return native("logical_not", a)
    if not a.dtype.is_integer:
        refuse_dtype("invert", a.dtype)
    return native("invert", a)
