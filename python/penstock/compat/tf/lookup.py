"""`tf.lookup`: tables that are made once, as Penstock's."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock import _functions
from penstock import lookup as _lookup
from penstock import strings as _strings
from penstock._errors import InvalidTypeError
from penstock._location import refused
from penstock.compat.tf._calls import dressed
from penstock.compat.tf._composites import RaggedTensor, SparseTensor
from penstock.compat.tf._tensor import Tensor, array_of, convert
from penstock.compat.tf._types import DType, as_dtype

__all__ = [
    "KeyValueTensorInitializer",
    "StaticHashTable",
    "StaticVocabularyTable",
    "TextFileIndex",
    "TextFileInitializer",
]


class TextFileIndex:
    WHOLE_LINE = -2
    LINE_NUMBER = -1


class KeyValueTensorInitializer:
    """Keys and their values, as tensors."""

    def __init__(
        self, keys: Any, values: Any, key_dtype: Any = None,
        value_dtype: Any = None, name: Any = None,
    ) -> None:  # fmt: skip
        self.keys = convert(keys, key_dtype)._value
        self.values = convert(values, value_dtype)._value

    @property
    def key_dtype(self) -> DType:
        return Tensor(self.keys).dtype

    @property
    def value_dtype(self) -> DType:
        return Tensor(self.values).dtype


class TextFileInitializer(KeyValueTensorInitializer):
    """Keys and values from the lines of a file."""

    def __init__(
        self, filename: Any, key_dtype: Any, key_index: int, value_dtype: Any,
        value_index: int, vocab_size: Any = None, delimiter: str = "\t",
        name: Any = None, value_index_offset: int = 0,
    ) -> None:  # fmt: skip
        given = filename.numpy() if isinstance(filename, Tensor) else filename
        path = given.decode() if isinstance(given, bytes) else str(given)
        lines = _lookup._read_lines(path)[:vocab_size]
        self.keys = _column(lines, key_index, as_dtype(key_dtype), delimiter)
        self.values = _column(
            lines, value_index, as_dtype(value_dtype), delimiter
        )
        if value_index == TextFileIndex.LINE_NUMBER:
            self.values = self.values + value_index_offset


def _column(
    lines: list[bytes], index: int, dtype: DType, delimiter: str
) -> Any:
    if index == TextFileIndex.LINE_NUMBER:
        return np.arange(len(lines), dtype=np.int64)
    items = lines
    if index >= 0:
        items = [line.split(delimiter.encode())[index] for line in lines]
    if dtype.name == "string":
        made = np.empty(len(items), object)
        made[:] = items
        return made
    return np.array([float(i) if dtype.is_floating else int(i) for i in items],
                    dtype.dtype)  # fmt: skip


class _Table:
    """What tables have in common."""

    _table: Any
    key_dtype: DType
    value_dtype: DType

    def lookup(self, keys: Any, name: Any = None) -> Any:
        """The values of `keys`, in their shape."""
        if isinstance(keys, RaggedTensor):
            return keys.with_values(self.lookup(keys.values))
        if isinstance(keys, SparseTensor):
            found = self.lookup(keys.values)
            return SparseTensor(
                keys.indices, found, keys.dense_shape, keys._is_dense
            )
        tensor = self._checked(convert(keys))
        return dressed(self._table.lookup(_as_keys(tensor)))

    def _checked(self, keys: Tensor) -> Tensor:
        if keys.dtype != self.key_dtype:
            raise refused(
                InvalidTypeError,
                f"keys must be {self.key_dtype}; got {keys.dtype}",
            )
        return keys

    def __getitem__(self, keys: Any) -> Any:
        return self.lookup(keys)


def _as_keys(tensor: Tensor) -> Any:
    from penstock.compat.tf._arrays import cast

    if tensor.dtype.is_integer:
        return cast(tensor, "int64")._value
    return tensor._value


class StaticHashTable(_Table):
    """Values by their keys, and a default for other keys.

    Example:
        >>> table = tf.lookup.StaticHashTable(
        ...     tf.lookup.KeyValueTensorInitializer(["a", "b"], [1, 2]), -1)
        >>> table.lookup(tf.constant(["b", "x"])).numpy()
        array([ 2, -1], dtype=int32)
    """

    def __init__(
        self, initializer: KeyValueTensorInitializer, default_value: Any,
        name: Any = None, experimental_is_anonymous: bool = False,
    ) -> None:  # fmt: skip
        self.key_dtype = initializer.key_dtype
        self.value_dtype = initializer.value_dtype
        self.default_value = Tensor(
            array_of(_plain(default_value), self.value_dtype)
        )
        self._size = len(initializer.keys)
        self._pairs = (initializer.keys, initializer.values)
        self._table = _lookup.Table(
            initializer.keys, initializer.values, self.default_value._value
        )

    def size(self, name: Any = None) -> Tensor:
        return Tensor(np.array(self._size, np.int64))

    def export(self, name: Any = None) -> tuple[Tensor, Tensor]:
        return Tensor(self._pairs[0]), Tensor(self._pairs[1])


def _plain(value: Any) -> Any:
    return value._value if isinstance(value, Tensor) else value


class StaticVocabularyTable(_Table):
    """Words as numbers; other words go to buckets behind them.

    Example:
        >>> words = tf.lookup.KeyValueTensorInitializer(
        ...     ["a", "b"], tf.constant([0, 1], tf.int64))
        >>> table = tf.lookup.StaticVocabularyTable(words, num_oov_buckets=1)
        >>> table.lookup(tf.constant(["b", "x"])).numpy()
        array([1, 2])
    """

    def __init__(
        self, initializer: KeyValueTensorInitializer | None,
        num_oov_buckets: int, lookup_key_dtype: Any = None, name: Any = None,
        experimental_is_anonymous: bool = False,
    ) -> None:  # fmt: skip
        if num_oov_buckets <= 0:
            raise ValueError("num_oov_buckets must be greater than 0")
        self._buckets = int(num_oov_buckets)
        self.value_dtype = as_dtype("int64")
        self._words = 0
        self._table = None
        if initializer is None:
            self.key_dtype = as_dtype("string")
            return
        if initializer.value_dtype != self.value_dtype:
            raise refused(
                InvalidTypeError,
                "a vocabulary's values must be tf.int64; got "
                f"{initializer.value_dtype}",
            )
        self.key_dtype = as_dtype(lookup_key_dtype or initializer.key_dtype)
        self._words = len(initializer.keys)
        order = np.argsort(initializer.values, kind="stable")
        if np.array_equal(initializer.values[order], np.arange(len(order))):
            self._table = _lookup.Vocabulary(
                initializer.keys[order], self._buckets
            )
        else:
            self._table = _Numbered(initializer, self._buckets)

    def lookup(self, keys: Any, name: Any = None) -> Any:
        if self._table is None and not isinstance(
            keys, (RaggedTensor, SparseTensor)
        ):
            text = self._checked(convert(keys))._value
            return dressed(_strings.to_hash_bucket_fast(text, self._buckets))
        return super().lookup(keys)

    def size(self, name: Any = None) -> Tensor:
        return Tensor(np.array(self._words + self._buckets, np.int64))


class _Numbered:
    """Words with numbers of their own, and buckets from their count on."""

    def __init__(
        self, initializer: KeyValueTensorInitializer, buckets: int
    ) -> None:
        self._table = _lookup.Table(initializer.keys, initializer.values, -1)
        self._buckets = buckets
        self._first = len(initializer.keys)
        self._is_text = initializer.key_dtype.name == "string"

    def lookup(self, keys: Any) -> Any:
        found = self._table.lookup(keys)
        texts = keys if self._is_text else _strings.as_string(keys)
        bucket = _strings.to_hash_bucket_fast(texts, self._buckets)
        is_other = _functions.equal(found, -1)
        return _functions.where(
            is_other, _functions.add(bucket, self._first), found
        )
