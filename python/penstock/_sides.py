"""Sizes that Python has as its own integers, while a function is recorded.

Python's integers take the type of the arrays that they meet, do not wrap
around, and raise where numpy's scalars warn. What is here gives the same; all
else refuses the recording.
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from penstock import _dtypes, _foreign, _recording
from penstock._caught import is_asked_by_user
from penstock._symbol import PythonNumber, Symbol, call, refuse_type

# No size is larger.
_MAX_SIZE = 1 << 40
# Larger ones are not exact as float64.
_LIMIT = 1 << 53
_TYPES = (_dtypes.int64, _dtypes.float32, _dtypes.float64)


def _refuse(*_: Any, **__: Any) -> NoReturn:
    _foreign.refuse("this use of a size")


class Side(PythonNumber):
    """What stands in for a Python integer that is a size, or made of sizes."""

    __slots__ = ("_most", "value")

    __array_ufunc__ = None  # numpy's arrays leave operators to it

    def __init__(self, value: Symbol, most: int = _MAX_SIZE) -> None:
        """As an int64, whose distance from 0 is at most `most`."""
        if most >= _LIMIT:
            _refuse()
        self.value = value.array(is_writable=False)
        self._most = most

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        if _recording.current() is not None and is_asked_by_user():
            refuse_type()
        return type(self)

    def beside(self, value: Any) -> Symbol:
        dtype = (
            value.dtype
            if isinstance(value, Symbol)
            else _dtypes.from_numpy(np.asarray(value).dtype)
        )
        if dtype not in _TYPES:
            _refuse()  # Python raises if it does not fit.
        return self.value.astype(dtype)

    # ---- Arithmetic.

    def _call(self, name: str, other: Any, most: Any) -> Any:
        if isinstance(other, Symbol):
            return NotImplemented  # which knows what to do
        if isinstance(other, (np.ndarray, np.generic)):
            return call(name, (self.beside(other), other))
        if isinstance(other, Side):
            return Side(
                call(name, (self.value, other.value)), most(other._most)
            )
        number = _whole(other)
        return Side(call(name, (self.value, number)), most(abs(number)))

    def _reflect(self, name: str, other: Any, most: Any) -> Any:
        if isinstance(other, (np.ndarray, np.generic)):
            return call(name, (other, self.beside(other)))
        number = _whole(other)
        return Side(call(name, (number, self.value)), most(abs(number)))

    def __add__(self, other: Any) -> Any:
        return self._call("add", other, lambda n: self._most + n)

    def __radd__(self, other: Any) -> Any:
        return self._reflect("add", other, lambda n: self._most + n)

    def __sub__(self, other: Any) -> Any:
        return self._call("subtract", other, lambda n: self._most + n)

    def __rsub__(self, other: Any) -> Any:
        return self._reflect("subtract", other, lambda n: self._most + n)

    def __mul__(self, other: Any) -> Any:
        return self._call("multiply", other, lambda n: self._most * n)

    def __rmul__(self, other: Any) -> Any:
        return self._reflect("multiply", other, lambda n: self._most * n)

    def _divide(self, name: str, other: Any) -> Any:
        # By 0 Python raises, and numpy warns.
        if isinstance(other, Side) or (
            not isinstance(other, (Symbol, np.ndarray, np.generic))
            and _whole(other) == 0
        ):
            _refuse()
        return self._call(name, other, lambda n: max(self._most + 1, n))

    def __floordiv__(self, other: Any) -> Any:
        return self._divide("floor_divide", other)

    def __mod__(self, other: Any) -> Any:
        return self._divide("mod", other)

    def __rfloordiv__(self, other: Any) -> Any:
        return self._of_array("floor_divide", other)

    def __rmod__(self, other: Any) -> Any:
        return self._of_array("mod", other)

    def __truediv__(self, other: Any) -> Any:
        if isinstance(other, Symbol):
            return NotImplemented
        if isinstance(other, (np.ndarray, np.generic)):
            return call("true_divide", (self.beside(other), other))
        return _refuse()  # a Python float

    def __rtruediv__(self, other: Any) -> Any:
        return self._of_array("true_divide", other)

    def _of_array(self, name: str, other: Any) -> Any:
        if isinstance(other, (np.ndarray, np.generic)):
            return call(name, (other, self.beside(other)))
        return _refuse()

    def __neg__(self) -> Side:
        return Side(-self.value, self._most)

    def __pos__(self) -> Side:
        return self

    def __round__(self, digits: int | None = None) -> Side:
        if digits is not None:
            _refuse()
        return self

    # ---- What only a value could answer.

    __abs__ = __bool__ = __complex__ = __divmod__ = __float__ = _refuse
    __format__ = __hash__ = __index__ = __int__ = __invert__ = _refuse
    __array__ = __and__ = __or__ = __xor__ = __lshift__ = __rshift__ = _refuse
    __rand__ = __ror__ = __rxor__ = __rlshift__ = __rrshift__ = _refuse
    __pow__ = __rpow__ = __rdivmod__ = __repr__ = __str__ = _refuse
    __ceil__ = __floor__ = __trunc__ = _refuse
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _refuse()


def _whole(value: Any) -> int:
    return value if type(value) is int else _refuse()


def array_of(items: Any) -> Any:
    """An array of sizes and Python integers; None if it is none."""
    if not isinstance(items, (list, tuple)) or not any(
        isinstance(item, Side) for item in items
    ):
        return None
    parts = [x.value if isinstance(x, Side) else _whole(x) for x in items]
    return call("stack", parts, {"axis": 0})
