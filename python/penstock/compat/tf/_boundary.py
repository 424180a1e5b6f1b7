"""Where Penstock's values become TensorFlow's, and back.

Functions of the user's are called with tensors and give tensors; Penstock calls
them with symbols or arrays and wants those. `adapt` puts itself between.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from penstock import _dtypes, _recording, _spec
from penstock._adapted import Adapted
from penstock._composites import Ragged, Sparse
from penstock._pipeline import Pipeline
from penstock._symbol import Symbol
from penstock.compat.tf._composites import (
    RaggedTensor,
    SparseTensor,
    unwrap_composite,
    wrap_composite,
)
from penstock.compat.tf._tensor import Tensor, convert, wrap_value
from penstock.compat.tf._types import TensorShape, TensorSpec, native_spec


def _map(
    structure: Any,
    is_leaf: Callable[[Any], bool],
    leaf: Callable[[Any], Any],
) -> Any:
    """`structure` with its leaves put through `leaf`."""
    if structure is None:
        return None
    if is_leaf(structure):
        return leaf(structure)
    if isinstance(structure, Mapping):
        return {k: _map(v, is_leaf, leaf) for k, v in structure.items()}
    if _spec.is_namedtuple(structure):
        parts = [_map(v, is_leaf, leaf) for v in structure]
        return type(structure)(*parts)
    if isinstance(structure, tuple):
        return tuple(_map(v, is_leaf, leaf) for v in structure)
    if _spec.is_dataclass(structure):
        named = {
            name: _map(getattr(structure, name), is_leaf, leaf)
            for name in _spec._fields(structure)
        }
        return type(structure)(**named)
    return leaf(structure)


# ---- Values.


def _is_composite(value: Any) -> bool:
    return isinstance(value, (Ragged, Sparse))


def enter(value: Any) -> Any:
    """Tensors and datasets in place of Penstock's values."""
    return _map(value, _is_composite, _enter_leaf)


def _enter_leaf(value: Any) -> Any:
    from penstock.compat.tf._dataset import Dataset

    if _is_composite(value):
        return wrap_composite(value)
    if isinstance(value, Pipeline):
        return Dataset._of(value)
    if isinstance(value, Symbol):
        return Tensor(value)
    return wrap_value(value)


def enterer(spec: Any) -> Callable[[Any], Any]:
    """`enter` for elements of one spec: what to do is decided once."""
    if isinstance(spec, _spec.TensorSpec):
        return _enter_string if spec.dtype == _dtypes.string else _enter_number
    if type(spec) is tuple:
        parts = [enterer(part) for part in spec]
        return lambda element: tuple(
            [make(item) for make, item in zip(parts, element, strict=True)]
        )
    if type(spec) is dict:
        keys = {key: enterer(part) for key, part in spec.items()}
        return lambda element: {
            key: make(element[key]) for key, make in keys.items()
        }
    return enter


def _enter_number(value: Any) -> Tensor:
    return Tensor(np.asarray(value))


def _enter_string(value: Any) -> Tensor:
    if isinstance(value, bytes):
        scalar = np.empty((), object)
        scalar[()] = value
        return Tensor(scalar)
    return Tensor(value)


def _is_tensor(value: Any) -> bool:
    return isinstance(value, (Tensor, RaggedTensor, SparseTensor))


def leave(value: Any) -> Any:
    """Penstock's values in place of tensors, datasets and Python's values.

    A list, such as `tf.numpy_function` gives, is taken for a tuple.
    """
    if isinstance(value, list):
        value = tuple(value)
    return leave_element(value)


def leave_element(value: Any) -> Any:
    return _map(value, _is_tensor, _leave_leaf)


def _leave_leaf(value: Any) -> Any:
    from penstock.compat.tf._dataset import Dataset

    if isinstance(value, Dataset):
        return value._ds
    if isinstance(value, (RaggedTensor, SparseTensor)):
        return unwrap_composite(value)
    try:
        found = convert(value)
    except ValueError as error:
        raise TypeError(f"expected tensors; got {value!r}: {error}") from None
    return found._value


@dataclasses.dataclass(frozen=True)
class Deciding(Adapted):
    """A function of tensors that may have an `if` on one."""

    def __call__(self, *arguments: Any) -> Any:
        call = functools.partial(Adapted.__call__, self, *arguments)
        if _recording.current() is None:
            return call()
        from penstock.compat.tf._branches import explored

        return explored(call)


def adapt(function: Any) -> Any:
    """The user's function, as Penstock calls it."""
    from penstock._python import NativeFunction, PythonFunction

    if isinstance(function, PythonFunction):
        signature = function.output_signature
        return PythonFunction(
            Deciding(function.function, enter, leave),
            None if signature is None else leave_spec(signature),
            pure=function.pure,
        )
    if isinstance(function, NativeFunction):
        return NativeFunction(Deciding(function.function, enter, leave))
    if not callable(function):
        return function
    return Deciding(function, enter, leave)


def plain(value: Any) -> Any:
    """A parameter: what is in a tensor, or the value itself."""
    if isinstance(value, Tensor):
        held = value._value
        return held if isinstance(held, Symbol) else held[()]
    return value


# ---- Specs.


class RaggedTensorSpec:
    """The dtype and shape of a ragged tensor."""

    __slots__ = ("dtype", "ragged_rank", "row_splits_dtype", "shape")

    def __init__(
        self,
        shape: Any = None,
        dtype: Any = "float32",
        ragged_rank: int | None = None,
        row_splits_dtype: Any = "int64",
    ) -> None:
        from penstock.compat.tf._types import as_dtype

        self.shape = TensorShape(shape)
        self.dtype = as_dtype(dtype)
        rank = self.shape.rank
        self.ragged_rank = (
            (1 if rank is None else rank - 1)
            if ragged_rank is None
            else ragged_rank
        )
        self.row_splits_dtype = as_dtype(row_splits_dtype)

    def native(self) -> Any:
        """Penstock's spec of the same meaning."""
        rank = self.shape.rank
        rest = [] if rank is None else list(self.shape)[self.ragged_rank + 1 :]
        spec: Any = _spec.TensorSpec([None, *rest], self.dtype)
        splits = _spec.TensorSpec([None], self.row_splits_dtype)
        for _ in range(self.ragged_rank):
            spec = Ragged(spec, splits)
        return spec

    def __repr__(self) -> str:
        return (
            f"RaggedTensorSpec({self.shape!r}, {self.dtype}, "
            f"{self.ragged_rank}, {self.row_splits_dtype})"
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RaggedTensorSpec) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))


class SparseTensorSpec:
    """The dtype and shape of a sparse tensor."""

    __slots__ = ("dtype", "shape")

    def __init__(self, shape: Any = None, dtype: Any = "float32") -> None:
        from penstock.compat.tf._types import as_dtype

        self.shape = TensorShape(shape)
        self.dtype = as_dtype(dtype)

    def native(self) -> Any:
        """Penstock's spec of the same meaning."""
        rank = self.shape.rank
        return Sparse(
            _spec.TensorSpec([None, rank], _dtypes.int64),
            _spec.TensorSpec([None], self.dtype),
            _spec.TensorSpec([rank], _dtypes.int64),
        )

    def __repr__(self) -> str:
        return f"SparseTensorSpec({self.shape!r}, {self.dtype})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SparseTensorSpec) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))


class DatasetSpec:
    """The spec of a dataset inside an element."""

    __slots__ = ("element_spec",)

    def __init__(self, element_spec: Any, dataset_shape: Any = ()) -> None:
        self.element_spec = element_spec

    def __repr__(self) -> str:
        return f"DatasetSpec({self.element_spec!r}, TensorShape([]))"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DatasetSpec) and bool(
            self.element_spec == other.element_spec
        )

    def __hash__(self) -> int:
        return hash(repr(self))


def enter_spec(spec: Any) -> Any:
    """TensorFlow's specs in place of Penstock's."""
    return _map(spec, _is_composite, _enter_spec)


def _enter_spec(spec: Any) -> Any:
    if isinstance(spec, Ragged):
        rank, inner = 1, spec.values
        while isinstance(inner, Ragged):
            rank, inner = rank + 1, inner.values
        rest = None if inner.shape is None else inner.shape[1:]
        shape = None if rest is None else [None] * (rank + 1) + list(rest)
        return RaggedTensorSpec(shape, inner.dtype, rank, spec.row_splits.dtype)
    if isinstance(spec, Sparse):
        dims = spec.dense_shape.shape
        known = dims is not None and dims[0] is not None
        shape = [None] * dims[0] if known else None
        return SparseTensorSpec(shape, spec.values.dtype)
    if isinstance(spec, _spec.DatasetSpec):
        return DatasetSpec(enter_spec(spec.element_spec))
    return TensorSpec(spec.shape, spec.dtype)


def leave_spec(spec: Any) -> Any:
    """Penstock's specs in place of TensorFlow's."""

    def leaf(each: Any) -> Any:
        if isinstance(each, (RaggedTensorSpec, SparseTensorSpec)):
            return each.native()
        if isinstance(each, DatasetSpec):
            return _spec.DatasetSpec(leave_spec(each.element_spec))
        return native_spec(each)

    return _map(spec, lambda _: False, leaf)
