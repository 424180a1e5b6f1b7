"""`tf.math`: functions of numbers that are made of the engine's own."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from penstock._symbol import Symbol
from penstock.compat.tf import _arrays as arrays
from penstock.compat.tf._arithmetic import (
    binary,
    native,
    operands,
    refuse_dtype,
    unary,
)
from penstock.compat.tf._composites import RaggedTensor
from penstock.compat.tf._reductions import (
    add_n,
    reduce_all,
    reduce_logsumexp,
    reduce_max,
    reduce_sum,
)
from penstock.compat.tf._tensor import Tensor, convert

# ---- Of one number.


def _exp(x: Any) -> Any:
    return unary("exp", x, "float")


def _expm1(x: Any) -> Any:
    return unary("expm1", x, "float")


def _log(x: Any) -> Any:
    return unary("log", x, "float")


def _log1p(x: Any) -> Any:
    return unary("log1p", x, "float")


def _sqrt(x: Any) -> Any:
    return unary("sqrt", x, "float")


def _arctan(x: Any) -> Any:
    return unary("arctan", x, "float")


def _sinh(x: Any) -> Any:
    grown = _expm1(x)
    return (grown + grown / (grown + 1.0)) / 2.0


def _asin(x: Any) -> Any:
    return _arctan(x / _sqrt((1.0 - x) * (1.0 + x)))


def _asinh(x: Any) -> Any:
    size = unary("abs", x)
    more = size + size * size / (1.0 + _sqrt(size * size + 1.0))
    return unary("sign", x) * _log1p(more)


# By name: what numpy calls it, and what it is made of.
_MADE: dict[str, tuple[Any, Callable[[Any], Any]]] = {
    "acos": (np.arccos, lambda x: math.pi / 2 - _asin(x)),
    "acosh": (np.arccosh, lambda x: _log(x + _sqrt((x - 1.0) * (x + 1.0)))),
    "asin": (np.arcsin, _asin),
    "asinh": (np.arcsinh, _asinh),
    "atan": (np.arctan, _arctan),
    "atanh": (np.arctanh, lambda x: _log1p(2.0 * x / (1.0 - x)) / 2.0),
    "cosh": (np.cosh, lambda x: (_exp(x) + _exp(-x)) / 2.0),
    "rint": (np.rint, lambda x: unary("round", x, "float")),
    "sinh": (np.sinh, _sinh),
}


def _make(name: str) -> Callable[..., Any]:
    of_values, made_of = _MADE[name]

    def call(x: Any, name: Any = None) -> Any:
        if isinstance(x, RaggedTensor):
            return x.with_flat_values(call(x.flat_values))
        found = convert(x)
        if not found.dtype.is_floating:
            refuse_dtype(call.__name__, found.dtype)
        if isinstance(found._value, Symbol):
            return made_of(found)
        with np.errstate(all="ignore"):
            return Tensor(np.asarray(of_values(found._value)))

    call.__name__ = call.__qualname__ = name
    return call


def _by_python(name: str, function: Callable[[float], float]) -> Any:
    def call(x: Any, name: Any = None) -> Tensor:
        found = convert(x)
        if not found.dtype.is_floating:
            refuse_dtype(call.__name__, found.dtype)
        if isinstance(found._value, Symbol):
            arrays.python_only(f"tf.math.{call.__name__}")
        values = np.vectorize(function, otypes=[np.float64])(found._value)
        return Tensor(values.astype(found._value.dtype))

    call.__name__ = call.__qualname__ = name
    return call


def _lgamma(x: float) -> float:
    if math.isinf(x) or (x <= 0 and x == math.floor(x)):
        return math.inf
    return math.lgamma(x)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: _make(name) for name in _MADE},
    "erf": _by_python("erf", math.erf),
    "erfc": _by_python("erfc", math.erfc),
    "lgamma": _by_python("lgamma", _lgamma),
}


def softplus(features: Any, name: Any = None) -> Any:
    x = convert(features)
    zero = arrays.zeros_like(x)
    return _log1p(_exp(-unary("abs", x))) + native("maximum", x, zero)


def softsign(features: Any, name: Any = None) -> Any:
    x = convert(features)
    return x / (1.0 + unary("abs", x))


def log_sigmoid(x: Any, name: Any = None) -> Any:
    return -softplus(-convert(x))


def log_softmax(logits: Any, axis: Any = None, name: Any = None) -> Any:
    along = -1 if axis is None else int(axis)
    x = convert(logits)
    return x - reduce_logsumexp(x, along, True)


def l2_normalize(
    x: Any, axis: Any = None, epsilon: float = 1e-12, name: Any = None,
    dim: Any = None,
) -> Any:  # fmt: skip
    """`x` divided by its length along axes."""
    axis = dim if axis is None else axis
    found = convert(x)
    total = reduce_sum(found * found, axis, True)
    least = native("maximum", total, convert(epsilon, hint=found.dtype))
    return found * unary("reciprocal", _sqrt(least))


def reciprocal_no_nan(x: Any, name: Any = None) -> Any:
    found = convert(x)
    is_zero = found == arrays.zeros_like(found)
    one = unary("reciprocal", found, "float")
    return arrays.where(is_zero, arrays.zeros_like(found), one)


def conj(x: Any, name: Any = None) -> Any:
    found = convert(x)
    if not found.dtype.is_complex:
        return found
    return Tensor(np.conj(_known("conj", found)))


def _known(name: str, x: Tensor) -> Any:
    if isinstance(x._value, Symbol):
        arrays.python_only(f"tf.math.{name}")
    return x._value


def real(input: Any, name: Any = None) -> Any:
    x = convert(input)
    if not x.dtype.is_complex:
        return x
    return Tensor(np.asarray(np.real(_known("real", x))))


def imag(input: Any, name: Any = None) -> Any:
    x = convert(input)
    if not x.dtype.is_complex:
        return arrays.zeros_like(x)
    return Tensor(np.asarray(np.imag(_known("imag", x))))


def angle(input: Any, name: Any = None) -> Any:
    x = convert(input)
    found = _known("angle", x)
    return Tensor(np.angle(found).astype(found.real.dtype))


def complex_(real: Any, imag: Any, name: Any = None) -> Tensor:
    """Complex numbers of their parts."""
    a, b = operands(real, imag)
    one, two = _known("complex", a), _known("complex", b)
    wide = np.complex64 if one.dtype == np.float32 else np.complex128
    return Tensor(np.asarray(one + 1j * two).astype(wide))


# ---- Of two.


def atan2(y: Any, x: Any, name: Any = None) -> Any:
    """The angle of the point (x, y)."""
    a, b = operands(y, x)
    if not a.dtype.is_floating:
        refuse_dtype("atan2", a.dtype)
    if not arrays._has_symbols(a, b):
        return Tensor(np.asarray(np.arctan2(a._value, b._value)))
    half = arrays.where(a < 0, -math.pi, math.pi)
    plain = _arctan(a / b) + arrays.where(
        b < 0, arrays.cast(half, a.dtype), arrays.zeros_like(a + b)
    )
    upright = unary("sign", a) * (math.pi / 2)
    return arrays.where(b == 0, upright, plain)


def _unless_zero(x: Any, y: Any, function: Callable[[Any, Any], Any]) -> Any:
    a, b = operands(x, y)
    found = function(a, b)
    return arrays.where(a == 0, arrays.zeros_like(found), found)


def xlogy(x: Any, y: Any, name: Any = None) -> Any:
    return _unless_zero(x, y, lambda a, b: a * _log(b))


def xlog1py(x: Any, y: Any, name: Any = None) -> Any:
    return _unless_zero(x, y, lambda a, b: a * _log1p(b))


def xdivy(x: Any, y: Any, name: Any = None) -> Any:
    return _unless_zero(x, y, lambda a, b: a / b)


def scalar_mul(scalar: Any, x: Any, name: Any = None) -> Any:
    if convert(scalar).shape.rank not in (0, None):
        raise ValueError(f"only a scalar can multiply; got {scalar}")
    return binary("multiply", scalar, x)


def realdiv(x: Any, y: Any, name: Any = None) -> Any:
    """The quotient of floats."""
    a, b = operands(x, y)
    if a.dtype.is_integer:
        refuse_dtype("realdiv", a.dtype)
    return a / b


def truncatediv(x: Any, y: Any, name: Any = None) -> Any:
    """The quotient of integers, without its fraction."""
    a, b = operands(x, y)
    if not a.dtype.is_integer:
        return unary("trunc", a / b)
    if a.dtype.is_unsigned:
        return a // b
    whole = unary("abs", a) // unary("abs", b)
    return unary("sign", a) * unary("sign", b) * whole


def truncatemod(x: Any, y: Any, name: Any = None) -> Any:
    """What a truncated division leaves."""
    a, b = operands(x, y)
    return a - truncatediv(a, b) * b


def accumulate_n(
    inputs: Any, shape: Any = None, tensor_dtype: Any = None, name: Any = None
) -> Any:
    """The sum of tensors."""
    return add_n([convert(each, tensor_dtype) for each in inputs])


def polyval(coeffs: Any, x: Any, name: Any = None) -> Any:
    if not isinstance(coeffs, list):
        raise ValueError(f"coeffs must be a list; got {coeffs!r}")
    at = convert(x)
    total = arrays.zeros_like(at)
    for each in coeffs:
        total = total * at + convert(each, hint=at.dtype)
    return total


# ---- Of all.


def reduce_euclidean_norm(
    input_tensor: Any, axis: Any = None, keepdims: bool = False,
    name: Any = None,
) -> Any:  # fmt: skip
    x = convert(input_tensor)
    wide = x if x.dtype.is_floating else arrays.cast(x, "float64")
    root = _sqrt(reduce_sum(wide * wide, axis, keepdims))
    return arrays.cast(root, x.dtype)


def zero_fraction(value: Any, name: Any = None) -> Any:
    """What part of all items is zero, float32."""
    x = convert(value)
    is_zero = arrays.cast(x == arrays.zeros_like(x), "float32")
    return reduce_sum(is_zero) / arrays.cast(arrays.size(x), "float32")


def _in_order(x: Any, name: str) -> Any:
    flat = arrays.reshape(convert(x), [-1])
    return reduce_all(binary(name, flat[:-1], flat[1:]))


def is_non_decreasing(x: Any, name: Any = None) -> Any:
    return _in_order(x, "less_equal")


def is_strictly_increasing(x: Any, name: Any = None) -> Any:
    return _in_order(x, "less")


def clip_by_norm(
    t: Any, clip_norm: Any, axes: Any = None, name: Any = None
) -> Any:
    """`t`, made shorter if it is longer than `clip_norm`."""
    x = convert(t)
    length = _sqrt(reduce_sum(x * x, axes, True))
    limit = convert(clip_norm, hint=x.dtype)
    return x * limit / native("maximum", length, limit)


def global_norm(t_list: Any, name: Any = None) -> Any:
    """The length of all tensors of a list together."""
    total: Any = 0.0
    for each in t_list:
        if each is not None:
            x = convert(each)
            total = reduce_sum(x * x) + total
    return _sqrt(total)


def clip_by_global_norm(
    t_list: Any, clip_norm: Any, use_norm: Any = None, name: Any = None
) -> Any:
    """All tensors of a list, made shorter if they are too long together."""
    norm = global_norm(t_list) if use_norm is None else convert(use_norm)
    limit = convert(clip_norm, hint=norm.dtype)
    scale = limit / native("maximum", norm, limit)
    made = [None if t is None else convert(t) * scale for t in t_list]
    return made, norm


def in_top_k(targets: Any, predictions: Any, k: Any, name: Any = None) -> Any:
    """Whether the prediction of each target is among the `k` largest."""
    found, wanted = convert(predictions), convert(targets)
    at = arrays.cast(wanted, "int64")
    columns = arrays.range(arrays.shape(found, "int64")[1])
    is_target = columns[None, :] == at[:, None]
    none = arrays.zeros_like(found)
    own = reduce_sum(arrays.where(is_target, found, none), 1, True)
    larger = reduce_sum(arrays.cast(found > own, "int64"), 1)
    least = reduce_max(arrays.cast(is_target, "int64"), 1)
    is_in = larger < arrays.cast(convert(k), "int64")
    return native("logical_and", is_in, least > 0)
