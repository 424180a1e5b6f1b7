"""dtypes, shapes and specs as TensorFlow's: `tf.float32`, `tf.TensorSpec`."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator
from typing import Any

import numpy as np

from penstock import _dtypes, _spec


class DType(_dtypes.DType):
    """The type of a tensor's items: Penstock's, with TensorFlow's words.

    Example:
        >>> tf.float32
        tf.float32
        >>> tf.int32.max, tf.int32.is_integer, tf.uint8.as_numpy_dtype
        (2147483647, True, <class 'numpy.uint8'>)
        >>> tf.float32 == np.float32, tf.float32 == ps.float32
        (True, True)
    """

    __slots__ = ()
    __hash__ = _dtypes.DType.__hash__

    def __repr__(self) -> str:
        return f"tf.{self.name}"

    def __reduce__(self) -> tuple[Any, ...]:
        return (as_dtype, (self.name,))

    def __eq__(self, other: object) -> bool:
        return _dtypes.DType.__eq__(self, other)

    def _is(self, kinds: str) -> bool:
        return self.code != _dtypes.string.code and self.dtype.kind in kinds

    @property
    def as_numpy_dtype(self) -> Any:
        return self.dtype.type

    @property
    def is_floating(self) -> bool:
        return self.name == "bfloat16" or self._is("f")

    @property
    def is_integer(self) -> bool:
        return self.name != "bfloat16" and self._is("iu")

    @property
    def is_unsigned(self) -> bool:
        return self.name != "bfloat16" and self._is("u")

    @property
    def is_complex(self) -> bool:
        return self._is("c")

    @property
    def is_bool(self) -> bool:
        return self._is("b")

    @property
    def is_numpy_compatible(self) -> bool:
        return True

    @property
    def base_dtype(self) -> DType:
        return self

    @property
    def real_dtype(self) -> DType:
        names = {"complex64": "float32", "complex128": "float64"}
        return as_dtype(names.get(self.name, self.name))

    @property
    def as_datatype_enum(self) -> int:
        return self.code

    @property
    def size(self) -> int:
        return 1 if self.name == "string" else self.dtype.itemsize

    @property
    def min(self) -> Any:
        return self._limits()[0]

    @property
    def max(self) -> Any:
        return self._limits()[1]

    @property
    def limits(self) -> tuple[Any, Any]:
        return self._limits()

    def _limits(self) -> tuple[Any, Any]:
        if self.is_bool:
            return False, True
        if self.is_integer:
            found = np.iinfo(self.dtype)
            return int(found.min), int(found.max)
        if not self.is_floating:
            raise TypeError(f"{self} has no least and largest value")
        numbers = np.finfo(self.dtype)
        return float(numbers.min), float(numbers.max)

    def is_compatible_with(self, other: Any) -> bool:
        return self == as_dtype(other)


ALL = {
    dtype.name: DType(dtype.name, dtype.code, dtype._numpy)
    for dtype in _dtypes.ALL
}
_WORDS = {"half": "float16", "float": "float32", "double": "float64"}


def as_dtype(value: Any) -> DType:
    """The dtype that `value` names, as `tf.as_dtype`.

    Example:
        >>> tf.as_dtype("float"), tf.as_dtype(np.int64), tf.as_dtype(str)
        (tf.float32, tf.int64, tf.string)
    """
    if isinstance(value, DType):
        return value
    if value is float:
        return ALL["float32"]
    if value is int:
        return ALL["int32"]
    if isinstance(value, str):
        value = _WORDS.get(value, value)
    return ALL[_dtypes.DType.of(value).name]


class TensorShape:
    """Sizes that may not be known: None for one, or for all.

    Example:
        >>> shape = tf.TensorShape([None, 3])
        >>> shape.rank, shape[1], shape.as_list(), shape.is_fully_defined()
        (2, 3, [None, 3], False)
        >>> shape == (None, 3)
        True
    """

    __slots__ = ("_dims",)

    _dims: tuple[int | None, ...] | None

    def __init__(self, dims: Any) -> None:
        if isinstance(dims, TensorShape):
            self._dims = dims._dims
        elif dims is None:
            self._dims = None
        elif hasattr(dims, "__index__"):
            self._dims = (operator.index(dims),)
        else:
            self._dims = tuple(
                None if d is None or d == -1 else operator.index(d)
                for d in dims
            )

    @property
    def rank(self) -> int | None:
        return None if self._dims is None else len(self._dims)

    @property
    def ndims(self) -> int | None:
        return self.rank

    @property
    def dims(self) -> list[int | None] | None:
        return None if self._dims is None else list(self._dims)

    def _known(self) -> tuple[int | None, ...]:
        if self._dims is None:
            raise ValueError("the rank of the tensor is not known")
        return self._dims

    def as_list(self) -> list[int | None]:
        return list(self._known())

    def num_elements(self) -> int | None:
        if not self.is_fully_defined():
            return None
        return math.prod(size or 0 for size in self._known())

    def is_fully_defined(self) -> bool:
        return self._dims is not None and None not in self._dims

    def is_compatible_with(self, other: Any) -> bool:
        a, b = self._dims, TensorShape(other)._dims
        if a is None or b is None:
            return True
        return len(a) == len(b) and all(
            x is None or y is None or x == y for x, y in zip(a, b, strict=True)
        )

    def assert_is_compatible_with(self, other: Any) -> None:
        if not self.is_compatible_with(other):
            raise ValueError(f"shapes {self} and {other} are not compatible")

    def assert_has_rank(self, rank: int) -> None:
        if self.rank not in (None, rank):
            raise ValueError(f"shape {self} must have rank {rank}")

    def assert_same_rank(self, other: Any) -> None:
        rank = TensorShape(other).rank
        if None not in (self.rank, rank) and self.rank != rank:
            raise ValueError(f"shapes {self} and {other} must have one rank")

    def assert_is_fully_defined(self) -> None:
        if not self.is_fully_defined():
            raise ValueError(f"shape {self} must be fully defined")

    def with_rank(self, rank: int) -> TensorShape:
        """The shape, which must be of that rank."""
        return self.merge_with([None] * rank)

    def with_rank_at_least(self, rank: int) -> TensorShape:
        if self.rank is not None and self.rank < rank:
            raise ValueError(f"shape {self} must have rank {rank} or more")
        return self

    def with_rank_at_most(self, rank: int) -> TensorShape:
        if self.rank is not None and self.rank > rank:
            raise ValueError(f"shape {self} must have rank {rank} or less")
        return self

    def most_specific_compatible_shape(self, other: Any) -> TensorShape:
        """What is the same in two shapes."""
        a, b = self._dims, TensorShape(other)._dims
        if a is None or b is None or len(a) != len(b):
            return TensorShape(None)
        return TensorShape(
            [x if x == y else None for x, y in zip(a, b, strict=True)]
        )

    def merge_with(self, other: Any) -> TensorShape:
        self.assert_is_compatible_with(other)
        a, b = self._dims, TensorShape(other)._dims
        if a is None or b is None:
            return TensorShape(a if b is None else b)
        return TensorShape(
            [x if y is None else y for x, y in zip(a, b, strict=True)]
        )

    def concatenate(self, other: Any) -> TensorShape:
        b = TensorShape(other)._dims
        if self._dims is None or b is None:
            return TensorShape(None)
        return TensorShape(self._dims + b)

    def __len__(self) -> int:
        return len(self._known())

    def __iter__(self) -> Iterator[int | None]:
        return iter(self._known())

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return TensorShape(None if self._dims is None else self._dims[key])
        return None if self._dims is None else self._dims[key]

    def __bool__(self) -> bool:
        return self._dims is not None

    def __add__(self, other: Any) -> TensorShape:
        return self.concatenate(other)

    def __radd__(self, other: Any) -> TensorShape:
        return TensorShape(other).concatenate(self)

    def __eq__(self, other: object) -> bool:
        try:
            return self._dims == TensorShape(other)._dims
        except TypeError:
            return NotImplemented

    def __hash__(self) -> int:
        return hash(self._dims)

    def __repr__(self) -> str:
        return f"TensorShape({None if self._dims is None else self.as_list()})"

    def __str__(self) -> str:
        if self._dims is None:
            return "<unknown>"
        end = "," if len(self._dims) == 1 else ""
        return f"({', '.join(map(str, self._dims))}{end})"


class TensorSpec(_spec.TensorSpec):
    """The shape and dtype of a tensor.

    Example:
        >>> tf.TensorSpec([None, 2], tf.int32)
        TensorSpec(shape=(None, 2), dtype=tf.int32, name=None)
        >>> tf.data.Dataset.range(3).element_spec.shape
        TensorShape([])
    """

    __slots__ = ()

    def __init__(
        self, shape: Any = (), dtype: Any = "float32", name: str | None = None
    ) -> None:
        super().__init__((), "float32", name)
        self.shape = TensorShape(shape)  # type: ignore[assignment]
        self.dtype = as_dtype(dtype)

    def __reduce__(self) -> tuple[Any, ...]:
        dims = TensorShape(self.shape).dims
        return (TensorSpec, (dims, self.dtype.name, self.name))

    def __repr__(self) -> str:
        shape = str(self.shape)
        return (
            f"TensorSpec(shape={shape}, dtype={self.dtype}, name={self.name!r})"
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _spec.TensorSpec):
            return NotImplemented
        same_shape = TensorShape(self.shape) == TensorShape(other.shape)
        return same_shape and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype))

    def is_compatible_with(self, value: Any) -> bool:
        dtype, shape = as_dtype(value.dtype), TensorShape(value.shape)
        return self.dtype == dtype and shape.is_compatible_with(self.shape)

    @staticmethod
    def from_tensor(tensor: Any, name: str | None = None) -> TensorSpec:
        return TensorSpec(tensor.shape, tensor.dtype, name)


def native_spec(spec: Any) -> _spec.TensorSpec:
    """Penstock's own spec of the same meaning."""
    dims = TensorShape(spec.shape)._dims
    return _spec.TensorSpec(dims, spec.dtype)
