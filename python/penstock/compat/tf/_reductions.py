"""`tf.math` and its names in `tf`: arithmetic, comparisons, reductions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from penstock._symbol import Symbol
from penstock.compat.tf import _arrays as arrays
from penstock.compat.tf._arithmetic import (
    binary,
    invert,
    native,
    refuse_dtype,
    unary,
)
from penstock.compat.tf._composites import RaggedTensor, over_items
from penstock.compat.tf._tensor import Tensor, convert

# ---- Of one value.

_UNARY = {
    "abs": ("abs", "signed"),
    "negative": ("negative", "signed"),
    "sign": ("sign", "signed"),
    "square": ("square", "number"),
    "sqrt": ("sqrt", "float"),
    "reciprocal": ("reciprocal", "float"),
    "exp": ("exp", "float"),
    "expm1": ("expm1", "float"),
    "log": ("log", "float"),
    "log1p": ("log1p", "float"),
    "sin": ("sin", "float"),
    "cos": ("cos", "float"),
    "tan": ("tan", "float"),
    "tanh": ("tanh", "float"),
    "floor": ("floor", "float"),
    "ceil": ("ceil", "float"),
    "is_nan": ("isnan", "float"),
    "is_inf": ("isinf", "float"),
    "is_finite": ("isfinite", "float"),
    "logical_not": ("logical_not", "bool"),
}
_BINARY = {
    "add": "add",
    "subtract": "subtract",
    "multiply": "multiply",
    "divide": "true_divide",
    "truediv": "true_divide",
    "floordiv": "floor_divide",
    "floormod": "mod",
    "mod": "mod",
    "pow": "power",
    "maximum": "maximum",
    "minimum": "minimum",
    "equal": "equal",
    "not_equal": "not_equal",
    "less": "less",
    "less_equal": "less_equal",
    "greater": "greater",
    "greater_equal": "greater_equal",
}


def _make_unary(name: str, function: str, kinds: str) -> Callable[..., Any]:
    def call(x: Any, name: Any = None) -> Any:
        if isinstance(x, RaggedTensor):
            return x.with_values(call(x.values))
        return unary(function, x, kinds)

    call.__name__ = call.__qualname__ = name
    return call


def _make_binary(name: str, function: str) -> Callable[..., Tensor]:
    def call(x: Any, y: Any, name: Any = None) -> Any:
        return binary(function, x, y)

    call.__name__ = call.__qualname__ = name
    return call


def _make_logical(name: str) -> Callable[..., Tensor]:
    called = name

    def call(x: Any, y: Any, name: Any = None) -> Tensor:
        return native(called, convert(x, "bool"), convert(y, "bool"))

    call.__name__ = call.__qualname__ = name
    return over_items(call)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{n: _make_unary(n, f, k) for n, (f, k) in _UNARY.items()},
    **{n: _make_binary(n, f) for n, f in _BINARY.items()},
    **{
        n: _make_logical(n)
        for n in ("logical_and", "logical_or", "logical_xor")
    },
}


@over_items
def round(x: Any, name: Any = None) -> Tensor:
    found = convert(x)
    return found if found.dtype.is_integer else unary("round", found)


@over_items
def rsqrt(x: Any, name: Any = None) -> Tensor:
    return unary("reciprocal", unary("sqrt", x, "float"))


@over_items
def sigmoid(x: Any, name: Any = None) -> Tensor:
    found = convert(x)
    return 1.0 / (1.0 + unary("exp", -found, "float"))


def softmax(logits: Any, axis: int = -1, name: Any = None) -> Any:
    if isinstance(logits, RaggedTensor):
        from penstock.compat.tf import _ragged_items

        return _ragged_items.softmax(logits, axis)
    x = convert(logits)
    powers = unary("exp", x - reduce_max(x, axis, True), "float")
    return powers / reduce_sum(powers, axis, True)


@over_items
def divide_no_nan(x: Any, y: Any, name: Any = None) -> Any:
    quotient = binary("true_divide", x, y)
    is_zero = binary("equal", y, 0)
    return arrays.where(is_zero, arrays.zeros_like(quotient), quotient)


@over_items
def multiply_no_nan(x: Any, y: Any, name: Any = None) -> Any:
    product = binary("multiply", x, y)
    is_zero = binary("equal", y, 0)
    return arrays.where(is_zero, arrays.zeros_like(product), product)


@over_items
def squared_difference(x: Any, y: Any, name: Any = None) -> Tensor:
    return unary("square", binary("subtract", x, y))


def add_n(inputs: Any, name: Any = None) -> Any:
    first = inputs[0]
    total = first if isinstance(first, RaggedTensor) else convert(first)
    for each in inputs[1:]:
        total = total + each
    return total


def _bitwise(name: str) -> Callable[..., Tensor]:
    called = name

    def call(x: Any, y: Any, name: Any = None) -> Any:
        return binary(called, x, y)

    call.__name__ = call.__qualname__ = name
    return call


BITWISE: dict[str, Callable[..., Any]] = {
    **{
        name: _bitwise(name)
        for name in (
            "bitwise_and",
            "bitwise_or",
            "bitwise_xor",
            "left_shift",
            "right_shift",
        )
    },
    "invert": lambda x, name=None: invert(x),
}


# ---- Over axes.


def _axes(axis: Any) -> Any:
    if axis is None:
        return None
    found = np.asarray(axis).tolist()
    return tuple(found) if isinstance(found, list) else found


def _reduce(name: str, x: Tensor, axis: Any, keepdims: bool) -> Tensor:
    axes = _axes(axis)
    if not isinstance(x._value, Symbol):
        found = getattr(np, name)(x._value, axis=axes, keepdims=keepdims)
        return Tensor(np.asarray(found))
    return native(name, x, axis=axes, keepdims=keepdims)


def _number(name: str, given: Any) -> Tensor:
    x = convert(given)
    if not (x.dtype.is_integer or x.dtype.is_floating or x.dtype.is_complex):
        refuse_dtype(name, x.dtype)
    return x


def _of_rows(
    function: Any, x: RaggedTensor, axis: Any, keepdims: bool, empty: Any
) -> Any:
    from penstock.compat.tf import _ragged_items

    return _ragged_items.reduced(function, x, axis, keepdims, empty)


def reduce_sum(
    input_tensor: Any,
    axis: Any = None,
    keepdims: bool = False,
    name: Any = None,
) -> Any:
    """The sum, of the dtype of what is added.

    Example:
        >>> tf.reduce_sum([1, 2]).dtype
        tf.int32
    """
    if isinstance(input_tensor, RaggedTensor):
        return _of_rows(reduce_sum, input_tensor, axis, keepdims, 0)
    x = _number("reduce_sum", input_tensor)
    made: Tensor = arrays.cast(_reduce("sum", x, axis, keepdims), x.dtype)
    return made


def reduce_prod(
    input_tensor: Any,
    axis: Any = None,
    keepdims: bool = False,
    name: Any = None,
) -> Any:
    if isinstance(input_tensor, RaggedTensor):
        return _of_rows(reduce_prod, input_tensor, axis, keepdims, 1)
    x = _number("reduce_prod", input_tensor)
    made: Tensor = arrays.cast(_reduce("prod", x, axis, keepdims), x.dtype)
    return made


def reduce_mean(
    input_tensor: Any,
    axis: Any = None,
    keepdims: bool = False,
    name: Any = None,
) -> Any:
    """The mean; of integers, without its fraction.

    Example:
        >>> tf.reduce_mean([1, 2]).numpy(), tf.reduce_mean([1.0, 2.0]).numpy()
        (np.int32(1), np.float32(1.5))
    """
    if isinstance(input_tensor, RaggedTensor):
        from penstock.compat.tf import _ragged_items

        return _ragged_items.mean(reduce_sum, input_tensor, axis, keepdims)
    x = _number("reduce_mean", input_tensor)
    if not x.dtype.is_integer:
        made: Tensor = arrays.cast(_reduce("mean", x, axis, keepdims), x.dtype)
        return made
    # Summed in full width: TensorFlow's bytes do not overflow here either.
    total = reduce_sum(arrays.cast(x, "int64"), axis, keepdims)
    count = _reduce("sum", arrays.ones_like(x, "int64"), axis, keepdims)
    one = Tensor(np.ones((), np.int64))
    quotient = native("abs", total) // native("maximum", count, one)
    whole: Tensor = arrays.cast(native("sign", total) * quotient, x.dtype)
    return whole


def reduce_max(
    input_tensor: Any,
    axis: Any = None,
    keepdims: bool = False,
    name: Any = None,
) -> Any:
    if isinstance(input_tensor, RaggedTensor):
        empty = input_tensor.dtype.min
        return _of_rows(reduce_max, input_tensor, axis, keepdims, empty)
    return _reduce("max", _number("reduce_max", input_tensor), axis, keepdims)


def reduce_min(
    input_tensor: Any,
    axis: Any = None,
    keepdims: bool = False,
    name: Any = None,
) -> Any:
    if isinstance(input_tensor, RaggedTensor):
        empty = input_tensor.dtype.max
        return _of_rows(reduce_min, input_tensor, axis, keepdims, empty)
    return _reduce("min", _number("reduce_min", input_tensor), axis, keepdims)


def reduce_any(
    input_tensor: Any,
    axis: Any = None,
    keepdims: bool = False,
    name: Any = None,
) -> Any:
    if isinstance(input_tensor, RaggedTensor):
        return _of_rows(reduce_any, input_tensor, axis, keepdims, False)
    return _reduce("any", convert(input_tensor, "bool"), axis, keepdims)


def reduce_all(
    input_tensor: Any,
    axis: Any = None,
    keepdims: bool = False,
    name: Any = None,
) -> Any:
    if isinstance(input_tensor, RaggedTensor):
        return _of_rows(reduce_all, input_tensor, axis, keepdims, True)
    return _reduce("all", convert(input_tensor, "bool"), axis, keepdims)


def reduce_variance(
    input_tensor: Any,
    axis: Any = None,
    keepdims: bool = False,
    name: Any = None,
) -> Any:
    is_ragged = isinstance(input_tensor, RaggedTensor)
    x: Any = input_tensor if is_ragged else convert(input_tensor)
    if not x.dtype.is_floating:
        refuse_dtype("reduce_variance", x.dtype)
    if is_ragged:
        mean = reduce_mean(x, axis)
        spread = x - (mean if axis is None else arrays.expand_dims(mean, axis))
        return reduce_mean(spread * spread, axis, keepdims)
    off = x - reduce_mean(x, axis, True)
    return reduce_mean(unary("square", off), axis, keepdims)


def reduce_std(
    input_tensor: Any,
    axis: Any = None,
    keepdims: bool = False,
    name: Any = None,
) -> Tensor:
    return unary("sqrt", reduce_variance(input_tensor, axis, keepdims))


def reduce_logsumexp(
    input_tensor: Any,
    axis: Any = None,
    keepdims: bool = False,
    name: Any = None,
) -> Any:
    x = convert(input_tensor)
    most = reduce_max(x, axis, True)
    total = reduce_sum(unary("exp", x - most, "float"), axis, keepdims)
    return unary("log", total, "float") + reduce_max(x, axis, keepdims)


def count_nonzero(
    input: Any, axis: Any = None, keepdims: bool = False, dtype: Any = "int64",
    name: Any = None,
) -> Any:  # fmt: skip
    x = convert(input)
    is_there = x if x.dtype.is_bool else x != arrays.zeros_like(x)
    return reduce_sum(arrays.cast(is_there, dtype), axis, keepdims)


def argmax(
    input: Any, axis: Any = None, output_type: Any = "int64", name: Any = None
) -> Tensor:
    return _arg("argmax", input, axis, output_type)


def argmin(
    input: Any, axis: Any = None, output_type: Any = "int64", name: Any = None
) -> Tensor:
    return _arg("argmin", input, axis, output_type)


def _arg(name: str, input: Any, axis: Any, output_type: Any) -> Tensor:
    x = convert(input)
    if x.dtype.name == "string":
        refuse_dtype(name, x.dtype)
    along = 0 if axis is None else int(axis)
    if isinstance(x._value, Symbol):
        found = native(name, x, axis=along)
    else:
        found = Tensor(np.asarray(getattr(np, name)(x._value, along)))
    made: Tensor = arrays.cast(found, output_type)
    return made


def cumsum(
    x: Any, axis: int = 0, exclusive: bool = False, reverse: bool = False,
    name: Any = None,
) -> Tensor:  # fmt: skip
    found = _number("cumsum", x)
    if isinstance(found._value, Symbol):
        arrays.python_only("tf.cumsum")
    values = found._value
    if reverse:
        values = np.flip(values, axis)
    total = np.cumsum(values, axis, dtype=values.dtype)
    if exclusive:
        total = total - values
    return Tensor(np.flip(total, axis) if reverse else total)


def top_k(input: Any, k: int = 1, sorted: bool = True, name: Any = None) -> Any:
    found = convert(input)
    if isinstance(found._value, Symbol):
        arrays.python_only("tf.math.top_k")
    order = np.argsort(-found._value, axis=-1, kind="stable")[..., :k]
    values = np.take_along_axis(found._value, order, -1)
    return Tensor(values), Tensor(order.astype(np.int32))
