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
from penstock.compat.tf._arithmetic import binary, native, refuse_dtype
from penstock.compat.tf._tensor import Tensor, convert

__all__ = [
    "Assert",
    "assert_all_finite",
    "assert_equal",
    "assert_greater",
    "assert_greater_equal",
    "assert_less",
    "assert_less_equal",
    "assert_non_negative",
    "assert_none_equal",
    "assert_positive",
    "assert_rank",
    "check_numerics",
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
