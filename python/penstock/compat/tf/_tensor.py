"""Tensors that compute by TensorFlow's rules.

A `Tensor` is an array, or a symbol of a function that is being recorded, with
TensorFlow's operators: both operands have one dtype, a Python value takes that
of the tensor that it meets, and integers divide to floats. What an operator
does is said once, for both: numpy's functions do it to arrays and the engine's
functions of the same names, and the same results, to symbols.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import numpy as np

from penstock import _dtypes, _functions, _recording
from penstock._errors import (
    InvalidArgumentError,
    InvalidTypeError,
    UnsupportedFunctionError,
)
from penstock._location import refused, user_line
from penstock._symbol import Symbol
from penstock.compat.tf._types import ALL, DType, TensorShape, as_dtype

_WHY = "the value is known only when there is an element"
_IN_GRAPH = "Such a function runs as Python, with values."


def _binary(name: str, x: Any, y: Any) -> Any:
    from penstock.compat.tf._arithmetic import binary

    return binary(name, x, y)


def _unary(name: str, x: Any, kinds: str) -> Tensor:
    from penstock.compat.tf._arithmetic import unary

    return unary(name, x, kinds)


def _unsupported(what: str) -> NoReturn:
    raise UnsupportedFunctionError(
        f"{what} at {user_line()} cannot be recorded: {_WHY}. {_IN_GRAPH}"
    )


def _operator(name: str) -> Callable[[Tensor, Any], Tensor]:
    def operator(self: Tensor, other: Any) -> Any:
        return _binary(name, self, other)

    return operator


def _reflected(name: str) -> Callable[[Tensor, Any], Tensor]:
    def operator(self: Tensor, other: Any) -> Any:
        return _binary(name, other, self)

    return operator


class Tensor:
    """An array with TensorFlow's rules.

    Example:
        >>> x = tf.constant([1, 2, 3])
        >>> x.dtype, x.shape, x.numpy()
        (tf.int32, TensorShape([3]), array([1, 2, 3], dtype=int32))
        >>> (x / 2).dtype, (x // 2).dtype
        (tf.float64, tf.int32)
        >>> x + tf.constant(1.0)
        Traceback (most recent call last):
        ...
        penstock.InvalidTypeError: both operands must have one dtype; got
        tf.int32 and tf.float32. Use tf.cast.
          at ...
    """

    __slots__ = ("_value",)

    __array_priority__ = 1000
    _value: Any  # an ndarray or a Symbol

    def __init__(self, value: Any) -> None:
        self._value = value

    # ---- What is known.

    @property
    def dtype(self) -> DType:
        if isinstance(self._value, Symbol):
            return ALL[self._value.dtype.name]
        return ALL[_dtypes.from_numpy(self._value.dtype).name]

    @property
    def shape(self) -> TensorShape:
        if not isinstance(self._value, Symbol):
            return TensorShape(self._value.shape)
        return TensorShape(self._value._spec().shape)

    def get_shape(self) -> TensorShape:
        return self.shape

    @property
    def ndim(self) -> int:
        rank = self.shape.rank
        if rank is None:
            _unsupported("the rank of a tensor")
        return rank

    def set_shape(self, shape: Any) -> None:
        """Says what the shape is; an element of another one is an error."""
        found, wanted = self.shape, TensorShape(shape)
        if not found.is_compatible_with(wanted):
            raise refused(
                InvalidArgumentError,
                f"the shape must be {wanted}; got {found}",
            )
        merged = found.merge_with(wanted)
        if isinstance(self._value, Symbol) and merged != found:
            dims = [-1 if d is None else d for d in merged]
            self._value = _functions.ensure_shape(self._value, dims)

    @property
    def device(self) -> str:
        return "/job:localhost/replica:0/task:0/device:CPU:0"

    @property
    def name(self) -> str:
        return "tensor"

    # ---- Values.

    def numpy(self) -> Any:
        """The array; of a scalar, numpy's scalar or `bytes`."""
        if isinstance(self._value, Symbol):
            _unsupported("numpy()")
        return self._value[()]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        if isinstance(self._value, Symbol):
            _unsupported("a conversion to a numpy array")
        return np.array(self._value, dtype, copy=True if copy else None)

    def __bool__(self) -> bool:
        if isinstance(self._value, Symbol):
            recording = _recording.current()
            if recording is not None and recording.replay is not None:
                return bool(recording.replay.decide(self))
            _unsupported("a decision on an element's value (if, while, and)")
        return bool(self._value)

    def __int__(self) -> int:
        if isinstance(self._value, Symbol):
            _unsupported("int()")
        return int(self._value)

    def __float__(self) -> float:
        if isinstance(self._value, Symbol):
            _unsupported("float()")
        return float(self._value)

    def __index__(self) -> int:
        if isinstance(self._value, Symbol):
            _unsupported("the use as a Python integer")
        return int(self._value.__index__())

    def __len__(self) -> int:
        size = self.shape[0] if self.shape.rank else None
        if self.shape.rank == 0:
            raise TypeError("a scalar tensor has no len()")
        if size is None:
            _unsupported("len()")
        return int(size)

    def __iter__(self) -> Iterator[Tensor]:
        if self.shape.rank == 0:
            raise TypeError("a scalar tensor cannot be iterated over")
        return iter([self[i] for i in range(len(self))])

    def __hash__(self) -> NoReturn:
        if isinstance(self._value, Symbol):
            _unsupported("a look-up in a dict or set")
        raise TypeError("a tensor is unhashable; use tensor.ref()")

    def ref(self) -> int:
        """A key for dicts: one per object, as TensorFlow's."""
        return id(self)

    def __contains__(self, item: Any) -> NoReturn:
        raise TypeError("`in` is not offered; use tf.reduce_any(x == item)")

    def __repr__(self) -> str:
        if isinstance(self._value, Symbol):
            return f"<tf.Tensor: shape={self.shape}, dtype={self.dtype.name}>"
        return (
            f"<tf.Tensor: shape={self.shape}, dtype={self.dtype.name}, "
            f"numpy={self.numpy()!r}>"
        )

    def __str__(self) -> str:
        if isinstance(self._value, Symbol):
            _unsupported("a conversion to text")
        return (
            f"tf.Tensor({self.numpy()}, shape={self.shape}, "
            f"dtype={self.dtype.name})"
        )

    def __format__(self, spec: str) -> str:
        return format(self.numpy() if spec else str(self), spec)

    def __reduce__(self) -> tuple[Any, ...]:
        if isinstance(self._value, Symbol):
            raise TypeError("a value of a recorded function cannot be pickled")
        return (Tensor, (self._value,))

    def __getitem__(self, key: Any) -> Tensor:
        entries = key if isinstance(key, tuple) else (key,)
        if any(_is_array(e) for e in entries):
            raise TypeError(
                "an index must be an integer, a slice, ..., None or a scalar "
                "tensor; use tf.gather or tf.boolean_mask"
            )
        plain = tuple(map(_plain_index, entries))
        if not isinstance(self._value, Symbol):
            parts = [
                p
                for e in plain
                for p in (
                    (e.start, e.stop, e.step) if isinstance(e, slice) else (e,)
                )
            ]
            if not any(isinstance(p, Symbol) for p in parts):
                try:
                    return Tensor(np.asarray(self._value[plain]))
                except IndexError as error:
                    raise refused(InvalidArgumentError, str(error)) from None
            recording = next(
                p._recording for p in parts if isinstance(p, Symbol)
            )
            step = recording.add_constant(self._value)
            return Tensor(Symbol(recording, step)[plain])
        return Tensor(self._value[plain if len(plain) != 1 else plain[0]])

    # ---- Operators.

    __add__ = _operator("add")
    __radd__ = _reflected("add")
    __sub__ = _operator("subtract")
    __rsub__ = _reflected("subtract")
    __mul__ = _operator("multiply")
    __rmul__ = _reflected("multiply")
    __truediv__ = _operator("true_divide")
    __rtruediv__ = _reflected("true_divide")
    __floordiv__ = _operator("floor_divide")
    __rfloordiv__ = _reflected("floor_divide")
    __mod__ = _operator("mod")
    __rmod__ = _reflected("mod")
    __pow__ = _operator("power")
    __rpow__ = _reflected("power")
    __and__ = _operator("bitwise_and")
    __rand__ = _reflected("bitwise_and")
    __or__ = _operator("bitwise_or")
    __ror__ = _reflected("bitwise_or")
    __xor__ = _operator("bitwise_xor")
    __rxor__ = _reflected("bitwise_xor")
    __lt__ = _operator("less")
    __le__ = _operator("less_equal")
    __gt__ = _operator("greater")
    __ge__ = _operator("greater_equal")

    def __neg__(self) -> Tensor:
        return _unary("negative", self, "signed")

    def __pos__(self) -> Tensor:
        return self

    def __abs__(self) -> Tensor:
        return _unary("abs", self, "signed")

    def __invert__(self) -> Tensor:
        from penstock.compat.tf._arithmetic import invert

        return invert(self)

    def __matmul__(self, other: Any) -> Tensor:
        from penstock.compat.tf._values import matmul

        product: Tensor = matmul(self, other)
        return product

    def __eq__(self, other: object) -> Any:
        if other is None:
            return False
        return _binary("equal", self, other)

    def __ne__(self, other: object) -> Any:
        if other is None:
            return True
        return _binary("not_equal", self, other)

    def __array_ufunc__(
        self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any
    ) -> Any:
        from penstock.compat.tf._arithmetic import OF_UFUNC

        name = OF_UFUNC.get(ufunc.__name__)
        if method == "__call__" and not kwargs and name is not None:
            return _binary(name, *inputs)
        arrays = [np.asarray(x) if isinstance(x, Tensor) else x for x in inputs]
        return getattr(ufunc, method)(*arrays, **kwargs)


def _is_array(entry: Any) -> bool:
    if isinstance(entry, Tensor):
        return entry.shape.rank != 0 or entry.dtype.is_bool
    return isinstance(entry, (list, np.ndarray)) and np.ndim(entry) > 0


def _plain_index(entry: Any) -> Any:
    if isinstance(entry, slice):
        return slice(*map(_plain_index, (entry.start, entry.stop, entry.step)))
    if isinstance(entry, Tensor):
        value = entry._value
        return value if isinstance(value, Symbol) else int(value)
    if entry is None or entry is Ellipsis:
        return entry
    return np.asarray(entry).__index__()


# ---- Values of any kind as tensors.


def convert(value: Any, dtype: Any = None, hint: Any = None) -> Tensor:
    """`value` as a tensor, by TensorFlow's rules.

    Args:
        value: A tensor, array, Python value, or lists of any of them.
        dtype: What it must be: a Python value is converted, a tensor is not.
        hint: What a Python value or an array becomes if it can.
    """
    wanted = None if dtype is None else as_dtype(dtype)
    if isinstance(value, Symbol):
        value = Tensor(value)
    if isinstance(value, Tensor):
        if wanted is not None and value.dtype != wanted:
            raise refused(
                InvalidTypeError,
                f"expected a tensor of {wanted}; got one of {value.dtype}. "
                "Use tf.cast.",
            )
        return value
    if isinstance(value, (list, tuple)):
        first = first_tensor(value)
        if first is not None:
            return _stacked(value, wanted or first.dtype)
    if isinstance(value, TensorShape):
        value = np.array(value.as_list(), np.int32)
    found = array_of(value, wanted)
    if wanted is None and hint is not None:
        found = _hinted(found, as_dtype(hint), value)
    return Tensor(found)


def first_tensor(value: Any) -> Tensor | None:
    if isinstance(value, Tensor):
        return value
    if isinstance(value, Symbol):
        return Tensor(value)
    if isinstance(value, (list, tuple)):
        for item in value:
            found = first_tensor(item)
            if found is not None:
                return found
    return None


def _stacked(value: Any, dtype: DType) -> Tensor:
    parts = [
        _stacked(item, dtype)
        if isinstance(item, (list, tuple)) and first_tensor(item) is not None
        else convert(item, dtype)
        for item in value
    ]
    from penstock.compat.tf._arithmetic import native

    return native("stack", [part._value for part in parts], 0)


def array_of(value: Any, dtype: DType | None = None) -> Any:
    """The array of a Python value: ints are int32, floats float32.

    Raises:
        InvalidTypeError: Its kind is not that of `dtype`.
        ValueError: It is no array.
    """
    if value is None:
        raise ValueError("expected a tensor or what can be one; got None")
    if hasattr(value, "row_splits") or hasattr(value, "dense_shape"):
        raise refused(
            InvalidTypeError,
            f"expected a dense tensor; got a {type(value).__name__}. Use "
            "to_tensor() or tf.sparse.to_dense().",
        )
    # Arrays of numpy, and of others: they say what they are.
    is_numpy = hasattr(value, "__array__")
    try:
        array = _dtypes.to_array(value)
    except TypeError as error:
        raise refused(InvalidTypeError, str(error)) from None
    if dtype is not None:
        return _to_dtype(array, dtype, value)
    if is_numpy:
        return array
    leaf = _first_leaf(value)
    if array.dtype == np.float64:
        return array if _is_double(leaf) else array.astype(np.float32)
    if array.dtype == np.int64 and not isinstance(leaf, np.ndarray):
        small = np.iinfo(np.int32)
        if not array.size or (
            array.min() >= small.min and array.max() <= small.max
        ):
            return array.astype(np.int32)
    return array


def _is_double(leaf: Any) -> bool:
    return getattr(leaf, "dtype", None) == np.float64


def _first_leaf(value: Any) -> Any:
    while isinstance(value, (list, tuple)) and value:
        value = value[0]
    return value


def _to_dtype(array: Any, dtype: DType, value: Any) -> Any:
    if not _may_become(array, dtype):
        raise refused(
            InvalidTypeError,
            f"expected what can be {dtype}; got {value!r}",
        )
    if dtype == _dtypes.string:
        return array
    if dtype.name == "bfloat16" and dtype.dtype.kind != "V":
        return np.asarray(_functions.cast(array, dtype))
    return array.astype(dtype.dtype)


def _may_become(array: Any, dtype: DType) -> bool:
    kind = array.dtype.kind
    if dtype == _dtypes.string:
        return kind == "O" or not array.size
    if kind == "O":
        return False
    if dtype.is_bool:
        return kind == "b" or not array.size
    if dtype.is_integer:
        return kind in "biu" or not array.size
    return dtype.is_complex or kind != "c"


def _hinted(array: Any, hint: DType, value: Any) -> Any:
    if _may_become(array, hint) and array.dtype != hint.dtype:
        # Of the value itself: a Python float has the digits of float64.
        return _to_dtype(_dtypes.to_array(value), hint, array)
    return array


def wrap_value(value: Any) -> Tensor:
    """The tensor of what a function of Penstock's gave."""
    if isinstance(value, (Symbol, np.ndarray)):
        return Tensor(value)
    return Tensor(_dtypes.to_array(value))
