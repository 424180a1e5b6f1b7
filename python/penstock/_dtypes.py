"""Element types: what numpy calls them and what the engine calls them."""

from __future__ import annotations

import importlib
import re
import reprlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock._caught import is_asked_by_user
from penstock._errors import InvalidTypeError, UnsupportedFunctionError
from penstock._location import refused, user_line

if TYPE_CHECKING:
    import numpy.typing as npt  # Slow to import, and only needed here.


def _numpy_bfloat16() -> np.dtype[Any]:
    try:
        module = importlib.import_module("ml_dtypes")
    except ImportError:
        return np.dtype(np.uint16)
    found: np.dtype[Any] = np.dtype(module.bfloat16)
    return found


class DType:
    """The type of a tensor's items.

    Wherever one is asked for, numpy's dtypes, Python's `int`, `float`, `bool`,
    `str` and `bytes`, and names such as `"float32"` serve as well.

    Example:
        >>> ps.float32
        ps.float32
        >>> ps.DType.of("int64") is ps.int64
        True
        >>> np.dtype(ps.int32)
        dtype('int32')
    """

    __slots__ = ("_numpy", "code", "name")

    name: str
    code: int

    def __init__(self, name: str, code: int, numpy: Any = None) -> None:
        self.name = name
        self.code = code
        self._numpy = numpy

    @property
    def dtype(self) -> np.dtype[Any]:
        """The numpy dtype that arrays of this type have.

        Strings are `object` (items are `bytes`); bfloat16 is that of
        `ml_dtypes` where it is installed, else `uint16`.
        """
        if self._numpy is None:
            self._numpy = _numpy_bfloat16()
        result: np.dtype[Any] = self._numpy
        return result

    @property
    def wire_name(self) -> str:
        """The name in the plan's messages."""
        return self.name.upper()

    @staticmethod
    def of(value: Any) -> DType:
        """The type that `value` names; TypeError if it names none."""
        if isinstance(value, DType):
            return value
        if isinstance(value, str) and value in BY_NAME:
            return BY_NAME[value]
        if value in (str, bytes):
            return string
        name = getattr(value, "as_numpy_dtype", value)  # a TensorFlow dtype
        try:
            found = np.dtype(name)
        except TypeError:
            raise _unknown_dtype(value) from None
        return from_numpy(found)

    def __repr__(self) -> str:
        if type(self) is DType and _is_recording() and is_asked_by_user():
            raise UnsupportedFunctionError(
                f"a dtype as text at {user_line()} cannot be recorded: numpy's "
                "have others. Use x.dtype.name."
            )
        return f"ps.{self.name}"

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        if type(self) is DType and _is_recording() and is_asked_by_user():
            raise UnsupportedFunctionError(
                f"the type of a dtype at {user_line()} cannot be recorded: "
                "numpy's have others. Compare it, as in x.dtype == np.float32."
            )
        return type(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return (DType.of, (self.name,))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, DType):
            return self.code == other.code
        try:
            return DType.of(other).code == self.code
        except TypeError:
            return NotImplemented

    def __hash__(self) -> int:
        return hash(self.name)


def _is_recording() -> bool:
    from penstock import _recording

    return _recording.current() is not None


def _plain(name: str, code: int) -> DType:
    return DType(name, code, np.dtype(name))


bool_ = DType("bool", 1, np.dtype(np.bool_))
int8 = _plain("int8", 2)
int16 = _plain("int16", 3)
int32 = _plain("int32", 4)
int64 = _plain("int64", 5)
uint8 = _plain("uint8", 6)
uint16 = _plain("uint16", 7)
uint32 = _plain("uint32", 8)
uint64 = _plain("uint64", 9)
float16 = _plain("float16", 10)
bfloat16 = DType("bfloat16", 11)
float32 = _plain("float32", 12)
float64 = _plain("float64", 13)
complex64 = _plain("complex64", 14)
complex128 = _plain("complex128", 15)
string = DType("string", 16, np.dtype(object))

ALL = (
    bool_,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
    float16,
    bfloat16,
    float32,
    float64,
    complex64,
    complex128,
    string,
)
BY_NAME = {dtype.name: dtype for dtype in ALL}
BY_CODE = {dtype.code: dtype for dtype in ALL}
BY_WIRE_NAME = {dtype.wire_name: dtype for dtype in ALL}
_BY_NUMPY_NAME = {**BY_NAME, "str": string, "bytes": string, "object": string}


def from_numpy(dtype: np.dtype[Any]) -> DType:
    """The type of arrays of `dtype`; TypeError if there is none."""
    name = re.sub(r"\d+$", "", dtype.name) if dtype.kind in "SU" else dtype.name
    found = _BY_NUMPY_NAME.get(name)
    if found is None:
        raise _unknown_dtype(dtype)
    return found


def _unknown_dtype(value: Any) -> InvalidTypeError:
    shown = str(value) if isinstance(value, np.dtype) else repr(value)
    return refused(
        InvalidTypeError,
        f"dtype must be one of {', '.join(BY_NAME)}; got {shown}",
    )


def to_array(value: Any, dtype: DType | None = None) -> npt.NDArray[Any]:
    """`value` as a C-ordered array; of strings, an object array of bytes.

    Args:
        value: Anything that numpy makes an array of.
        dtype: The type to convert to, by numpy's `same_kind` rule and with
            Python scalars taking any type that holds them.

    Raises:
        TypeError: The value is not an array of a type that elements can have.
    """
    if dtype is not None and dtype != string:
        return _to_dtype(value, dtype)
    array = value if isinstance(value, np.ndarray) else _as_array(value)
    if array.dtype.kind in "SUO":
        return _string_array(array)
    if dtype == string:
        raise TypeError(f"expected strings; got {array.dtype}")
    from_numpy(array.dtype)
    return _plain_order(array)


_NUMBERS = (bool, int, float, complex, np.generic)


def _plain_order(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if array.dtype.byteorder == ">":
        array = array.astype(array.dtype.newbyteorder("<"))
    return np.require(array, requirements="C")


def _as_array(value: Any) -> npt.NDArray[Any]:
    if isinstance(value, (str, bytes)):
        # numpy cuts trailing zero bytes off; an object keeps them.
        scalar = np.empty((), object)
        scalar[()] = value
        return scalar
    if isinstance(value, (list, tuple)) and _has_strings(value):
        return np.array(value, dtype=object)
    array = np.asarray(value)
    if array.dtype.kind in "SU" and isinstance(value, (list, tuple)):
        # numpy made strings of the numbers before a string.
        return np.array(value, dtype=object)
    return array


def _has_strings(value: Any) -> bool:
    while isinstance(value, (list, tuple)) and value:
        value = value[0]
    return isinstance(value, (str, bytes))


def _string_array(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    out = np.empty(array.shape, object)
    flat = out.reshape(-1) if out.ndim else out.reshape(1)
    items = array.reshape(-1).tolist()
    for i, item in enumerate(items):
        if isinstance(item, str):
            item = item.encode()
        elif isinstance(item, (list, tuple, np.ndarray)):
            raise ValueError("items have different shapes")
        elif not isinstance(item, bytes):
            raise TypeError(_wrong_items(items, array.shape))
        flat[i] = item
    return out


def _wrong_items(items: list[Any], shape: tuple[int, ...]) -> str:
    """What keeps items of several types from being one array."""

    def find(is_it: Callable[[Any], bool]) -> str:
        for i, item in enumerate(items):
            if is_it(item):
                index = [int(n) for n in np.unravel_index(i, shape)]
                where = f" at index {index}" if index else ""
                return f"{reprlib.repr(item)} ({type(item).__name__}){where}"
        return ""

    other = find(lambda item: not isinstance(item, (str, bytes, *_NUMBERS)))
    number = find(lambda item: isinstance(item, _NUMBERS))
    text = find(lambda item: isinstance(item, (str, bytes)))
    expected = "a tensor must be all numbers, all bools or all strings; got "
    if other:
        return expected + other
    if text:
        return f"{expected}{number} and {text}"
    return (
        f"{expected}{number} among objects. Use an array of a dtype; integers "
        "have at most 64 bits."
    )


def _to_dtype(value: Any, dtype: DType) -> npt.NDArray[Any]:
    target = dtype.dtype
    if isinstance(value, np.ndarray | np.generic):
        array = np.asarray(value)
        if array.dtype.kind in "SUO":
            raise TypeError(f"expected {dtype.name}; got strings or objects")
        if array.dtype != target and not np.can_cast(
            array.dtype, target, "same_kind"
        ):
            raise TypeError(f"expected {dtype.name}; got {array.dtype}")
        _check_range(array, dtype)
        return _plain_order(array.astype(target, copy=False))
    plain = np.asarray(value)
    if plain.dtype.kind in "SUO":
        raise TypeError(f"expected {dtype.name}; got {value!r}")
    # Of a Python value only the kind counts: 1 may become a float32, but 1.5
    # never an int.
    if plain.dtype.kind == "b" and target.kind != "b":
        raise TypeError(f"expected {dtype.name}; got bool")
    if plain.size and not np.can_cast(plain.dtype, target, "same_kind"):
        is_int_to_unsigned = plain.dtype.kind == "i" and target.kind == "u"
        if not is_int_to_unsigned:
            raise TypeError(f"expected {dtype.name}; got {plain.dtype}")
    _check_range(plain, dtype)
    return _plain_order(plain.astype(target))


def _check_range(array: npt.NDArray[Any], dtype: DType) -> None:
    """TypeError if integers do not fit into an integer type."""
    kinds = dtype.dtype.kind + array.dtype.kind
    if not array.size or not set(kinds) <= {"i", "u"}:
        return
    if np.can_cast(array.dtype, dtype.dtype, "safe"):
        return
    limits = np.iinfo(dtype.dtype)
    low, high = int(array.min()), int(array.max())
    if low < limits.min or high > limits.max:
        found = high if high > limits.max else low
        raise TypeError(f"expected {dtype.name}; got {found}")
