"""`tf.data.Iterator`, and optionals."""

from __future__ import annotations

from collections.abc import Iterator as IteratorABC
from typing import Any

import numpy as np

from penstock._errors import InvalidTypeError, OutOfRangeError
from penstock._iterator import Iterator as NativeIterator
from penstock._location import refused
from penstock.compat.tf._boundary import enter, enterer, leave_element
from penstock.compat.tf._tensor import Tensor


class Iterator(IteratorABC[Any]):
    """Gives tensors, one element after another.

    Example:
        >>> it = iter(tf.data.Dataset.range(2))
        >>> it.get_next().numpy(), next(it).numpy()
        (np.int64(0), np.int64(1))
        >>> it.get_next()
        Traceback (most recent call last):
        ...
        penstock.OutOfRangeError: End of sequence
          at ...
    """

    def __init__(self, native: NativeIterator, element_spec: Any) -> None:
        self.native = native
        self.element_spec = element_spec
        self._enter = enterer(native._dataset.element_spec)

    def __iter__(self) -> Iterator:
        return self

    def __next__(self) -> Any:
        return self._enter(next(self.native))

    def get_next(self, name: Any = None) -> Any:
        for element in self.native:
            return enter(element)
        raise refused(OutOfRangeError, "End of sequence")

    def get_next_as_optional(self) -> Optional:
        for element in self.native:
            return Optional(True, enter(element), self.element_spec)
        return Optional(False, None, self.element_spec)

    def state_dict(self) -> Any:
        """Where it is, exactly: as Penstock's iterators have it."""
        return self.native.state_dict()

    def load_state_dict(self, state: Any) -> None:
        self.native.load_state_dict(state)


class IteratorSpec:
    """What an iterator gives: the spec of its elements.

    Example:
        >>> tf.data.IteratorSpec(tf.TensorSpec([], tf.int64))
        IteratorSpec(TensorSpec(shape=(), dtype=tf.int64, name=None))
    """

    __slots__ = ("element_spec",)

    def __init__(self, element_spec: Any) -> None:
        self.element_spec = element_spec

    def __repr__(self) -> str:
        return f"IteratorSpec({self.element_spec!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IteratorSpec) and bool(
            self.element_spec == other.element_spec
        )

    def __hash__(self) -> int:
        return hash(repr(self))


class _IsNumpyIterator(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, NativeIterator)


class NumpyIterator(metaclass=_IsNumpyIterator):
    """What `as_numpy_iterator` gives: Penstock's iterator.

    Example:
        >>> it = tf.data.NumpyIterator(tf.data.Dataset.range(2))
        >>> list(it), isinstance(it, tf.data.NumpyIterator)
        ([np.int64(0), np.int64(1)], True)
    """

    def __new__(cls, dataset: Any) -> Any:
        return dataset.as_numpy_iterator()


class Optional:
    """An element, or the end of a dataset."""

    def __init__(self, has_value: bool, value: Any, element_spec: Any) -> None:
        self._has_value = has_value
        self._value = value
        self.element_spec = element_spec

    @staticmethod
    def from_value(value: Any) -> Optional:
        return Optional(True, enter(leave_element(value)), None)

    @staticmethod
    def empty(element_spec: Any) -> Optional:
        return Optional(False, None, element_spec)

    def has_value(self, name: Any = None) -> Tensor:
        return Tensor(np.array(self._has_value))

    def get_value(self, name: Any = None) -> Any:
        if not self._has_value:
            raise refused(InvalidTypeError, "the optional has no value")
        return self._value
