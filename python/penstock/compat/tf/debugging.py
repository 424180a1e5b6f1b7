"""`tf.debugging`: checks of values.

`check_numerics` is the engine's. Assertions run as Python, since their results
are used by nobody: a function that has one runs as Python as a whole.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from penstock._errors import InvalidArgumentError
from penstock._location import refused
from penstock._symbol import Symbol
from penstock.compat.tf import _arrays as arrays
from penstock.compat.tf._arithmetic import (
    binary,
    native,
    operands,
    refuse_dtype,
)
from penstock.compat.tf._tensor import Tensor, convert
from penstock.compat.tf._types import as_dtype

__all__ = [
    "Assert",
    "assert_all_finite",
    "assert_equal",
    "assert_greater",
    "assert_greater_equal",
    "assert_integer",
    "assert_less",
    "assert_less_equal",
    "assert_near",
    "assert_negative",
    "assert_non_negative",
    "assert_non_positive",
    "assert_none_equal",
    "assert_positive",
    "assert_proper_iterable",
    "assert_rank",
    "assert_rank_at_least",
    "assert_rank_in",
    "assert_same_float_dtype",
    "assert_scalar",
    "assert_shapes",
    "assert_type",
    "check_numerics",
    "disable_check_numerics",
    "enable_check_numerics",
    "is_numeric_tensor",
]


def check_numerics(tensor: Any, message: str, name: Any = None) -> Tensor:
    """`tensor`, or an error if an item of it is infinite or no number.

    Example:
        >>> tf.debugging.check_numerics([1.0, float("nan")], "loss")
        Traceback (most recent call last):
        ...
        penstock.InvalidArgumentError: loss : Tensor had NaN values
          at ...
    """
    x = convert(tensor)
    if not x.dtype.is_floating:
        refuse_dtype("check_numerics", x.dtype)
    if isinstance(x._value, Symbol):
        return native("check_numerics", x, message)
    found = [
        word
        for word, is_bad in (("Inf", np.isinf), ("NaN", np.isnan))
        if is_bad(x._value).any()
    ]
    if found:
        raise refused(
            InvalidArgumentError,
            f"{message} : Tensor had {' and '.join(found)} values",
        )
    return x


def assert_all_finite(x: Any, message: str, name: Any = None) -> Tensor:
    return check_numerics(x, message)


def Assert(condition: Any, data: Any, summarize: Any = None,  # noqa: N802
           name: Any = None) -> None:  # fmt: skip
    _check(convert(condition), lambda: f"assertion failed: {data}")


def _check(condition: Tensor, message: Callable[[], str]) -> None:
    if isinstance(condition._value, Symbol):
        arrays.python_only("an assertion")
    if not np.all(condition._value):
        raise refused(InvalidArgumentError, message())


def _comparison(name: str, function: str) -> Any:
    def check(x: Any, y: Any, message: Any = None, summarize: Any = None,
              name: Any = None) -> None:  # fmt: skip
        found = binary(function, x, y)
        _check(found, lambda: f"{message or label}: {x!r} and {y!r}")

    label = name
    check.__name__ = check.__qualname__ = name
    return check


assert_equal = _comparison("assert_equal", "equal")
assert_none_equal = _comparison("assert_none_equal", "not_equal")
assert_less = _comparison("assert_less", "less")
assert_less_equal = _comparison("assert_less_equal", "less_equal")
assert_greater = _comparison("assert_greater", "greater")
assert_greater_equal = _comparison("assert_greater_equal", "greater_equal")


def assert_positive(x: Any, message: Any = None, summarize: Any = None,
                    name: Any = None) -> None:  # fmt: skip
    assert_greater(x, 0, message or "assert_positive")


def assert_non_negative(x: Any, message: Any = None, summarize: Any = None,
                        name: Any = None) -> None:  # fmt: skip
    assert_greater_equal(x, 0, message or "assert_non_negative")


def assert_rank(x: Any, rank: Any, message: Any = None,
                name: Any = None) -> None:  # fmt: skip
    found = convert(x).ndim
    if found != int(rank):
        raise ValueError(
            f"{message or 'assert_rank'}: expected rank {rank}; got {found}"
        )


def assert_negative(x: Any, message: Any = None, summarize: Any = None,
                    name: Any = None) -> None:  # fmt: skip
    assert_less(x, 0, message or "assert_negative")


def assert_non_positive(x: Any, message: Any = None, summarize: Any = None,
                        name: Any = None) -> None:  # fmt: skip
    assert_less_equal(x, 0, message or "assert_non_positive")


def assert_near(
    x: Any, y: Any, rtol: Any = None, atol: Any = None, message: Any = None,
    summarize: Any = None, name: Any = None,
) -> None:  # fmt: skip
    """Whether |x - y| <= atol + rtol * |y|; both are 10 eps if not said."""
    a, b = operands(x, y)
    eps = 10 * float(np.finfo(a.dtype.dtype).eps) if a.dtype.is_floating else 0
    slack = arrays.cast(eps if atol is None else atol, a.dtype)
    part = arrays.cast(eps if rtol is None else rtol, a.dtype)
    limit = slack + part * native("abs", b)
    found = binary("less_equal", native("abs", a - b), limit)
    _check(found, lambda: f"{message or 'assert_near'}: {x!r} and {y!r}")


# ---- What is known before there are values.


def assert_rank_at_least(x: Any, rank: Any, message: Any = None,
                         name: Any = None) -> None:  # fmt: skip
    found = convert(x).ndim
    if found < int(rank):
        raise ValueError(
            f"{message or 'assert_rank_at_least'}: expected rank {rank} or "
            f"more; got {found}"
        )


def assert_rank_in(x: Any, ranks: Any, message: Any = None,
                   name: Any = None) -> None:  # fmt: skip
    found = convert(x).ndim
    if found not in [int(rank) for rank in ranks]:
        raise ValueError(
            f"{message or 'assert_rank_in'}: expected a rank of {ranks}; got "
            f"{found}"
        )


def assert_scalar(tensor: Any, message: Any = None, name: Any = None) -> Any:
    found = convert(tensor)
    if found.ndim != 0:
        raise ValueError(
            f"{message or 'assert_scalar'}: expected a scalar; got shape "
            f"{found.shape}"
        )
    return found


def assert_type(tensor: Any, tf_type: Any, message: Any = None,
                name: Any = None) -> None:  # fmt: skip
    found = convert(tensor).dtype
    if found != as_dtype(tf_type):
        raise TypeError(
            f"{message or 'assert_type'}: expected {as_dtype(tf_type)}; got "
            f"{found}"
        )


def assert_integer(x: Any, message: Any = None, name: Any = None) -> None:
    found = convert(x).dtype
    if not found.is_integer:
        raise TypeError(
            f"{message or 'assert_integer'}: expected integers; got {found}"
        )


def assert_same_float_dtype(tensors: Any = None, dtype: Any = None) -> Any:
    """The dtype of tensors, which must be one, of floats."""
    found = [convert(each).dtype for each in tensors or ()]
    wanted = as_dtype(dtype) if dtype is not None else None
    wanted = wanted or (found[0] if found else as_dtype("float32"))
    if any(each != wanted for each in found) or not wanted.is_floating:
        raise ValueError(f"expected floats of one dtype; got {found}, {dtype}")
    return wanted


def assert_proper_iterable(values: Any) -> None:
    if isinstance(values, (Tensor, np.ndarray, bytes, str)):
        raise TypeError(f"expected a list of values; got {type(values)}")
    if not hasattr(values, "__iter__"):
        raise TypeError(f"expected what can be iterated over; got {values!r}")


def assert_shapes(
    shapes: Any, data: Any = None, summarize: Any = None, message: Any = None,
    name: Any = None,
) -> None:  # fmt: skip
    """Shapes of tensors, whose sizes may have names: one name, one size.

    Example:
        >>> x, y = tf.zeros([2, 3]), tf.zeros([3, 4])
        >>> tf.debugging.assert_shapes([(x, ("N", "M")), (y, ("M", 4))])
        >>> tf.debugging.assert_shapes([(x, ("N", "M")), (y, ("N", 4))])
        Traceback (most recent call last):
        ...
        ValueError: assert_shapes: expected N to be one size; got 2 and 3
    """
    pairs = shapes.items() if isinstance(shapes, dict) else shapes
    known: dict[Any, int] = {}
    label = message or "assert_shapes"
    for tensor, wanted in pairs:
        found = convert(tensor).shape.as_list()
        sizes = [wanted] if isinstance(wanted, (int, str)) else list(wanted)
        if sizes and sizes[0] in (Ellipsis, "*"):
            kept = sizes[1:]
            found = found[len(found) - len(kept) :] if kept else []
            sizes = kept
        if len(found) != len(sizes):
            raise ValueError(
                f"{label}: expected shape {tuple(wanted)}; got "
                f"{convert(tensor).shape}"
            )
        for size, is_there in zip(sizes, found, strict=True):
            _check_size(label, size, is_there, known)


def _check_size(
    label: str, size: Any, found: int | None, known: dict[Any, int]
) -> None:
    if size in (None, "."):
        return
    if found is None:
        arrays.python_only("tf.debugging.assert_shapes of unknown sizes")
        raise AssertionError
    if isinstance(size, str) and not size.isdigit():
        if known.setdefault(size, found) != found:
            raise ValueError(
                f"{label}: expected {size} to be one size; got {known[size]} "
                f"and {found}"
            )
    elif int(size) != found:
        raise ValueError(f"{label}: expected size {size}; got {found}")


def is_numeric_tensor(tensor: Any) -> bool:
    """Whether it is a tensor of numbers."""
    if not isinstance(tensor, Tensor):
        return False
    dtype = tensor.dtype
    return dtype.is_integer or dtype.is_floating or dtype.is_complex


def enable_check_numerics(*args: Any, **kwargs: Any) -> None:
    """Nothing: `check_numerics` checks what is to be checked."""


def disable_check_numerics() -> None:
    """Nothing."""
