"""Tables from keys to values: `ps.lookup`.

A table is made once and is part of every function that uses it. Its contents
travel to the engine once, and are part of what a pipeline is: another
vocabulary is another fingerprint.

Example:
    >>> vocabulary = ps.lookup.Vocabulary(["the", "cat"], num_oov_buckets=1)
    >>> ds = ps.Dataset.from_tensor_slices(["the cat", "the dog"])
    >>> for ids in ds.map(lambda x: vocabulary.lookup(ps.strings.split(x))):
    ...     print(ids)
    [0 1]
    [0 2]
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock import _dtypes, _names, _record
from penstock._errors import (
    InvalidArgumentError,
    InvalidTypeError,
    NotFoundError,
)
from penstock._location import refused

__all__ = ["Table", "Vocabulary"]


class _Keys:
    """What the tables have in common: their keys."""

    __slots__ = ("_keys",)

    def __init__(self, keys: Any) -> None:
        array = _dtypes.to_array(keys)
        if array.ndim != 1:
            raise refused(
                InvalidArgumentError,
                f"keys of a table must be a vector; got shape {array.shape}",
            )
        if not array.size:
            raise refused(
                InvalidArgumentError,
                "a table needs at least one key; got none",
            )
        if np.issubdtype(array.dtype, np.integer):
            array = array.astype(np.int64)
        elif _dtypes.from_numpy(array.dtype) != _dtypes.string:
            raise refused(
                InvalidTypeError,
                "keys of a table must be strings or integers; got "
                f"{array.dtype}",
            )
        seen: dict[Any, int] = {}
        for i, key in enumerate(array.tolist()):
            if seen.setdefault(key, i) != i:
                raise refused(
                    InvalidArgumentError,
                    f"keys of a table must differ; got {key!r} at {seen[key]} "
                    f"and {i}",
                )
        self._keys = array

    def __len__(self) -> int:
        return len(self._keys)


class Table(_Keys):
    """Values by their keys, as tf.lookup.StaticHashTable.

    Example:
        >>> table = ps.lookup.Table([b"a", b"b"], [10, 20], default=0)
        >>> table.lookup([b"b", b"x"])
        array([20,  0])

    Args:
        keys: Strings or integers, all different.
        values: As many, of any one dtype.
        default: The value of every other key.
    """

    __slots__ = ("_default", "_values")

    def __init__(self, keys: Any, values: Any, default: Any) -> None:
        super().__init__(keys)
        self._values = _dtypes.to_array(values)
        if self._values.shape != self._keys.shape:
            raise refused(
                InvalidArgumentError,
                "a table needs as many values as keys; got shapes "
                f"{self._values.shape} and {self._keys.shape}",
            )
        dtype = _dtypes.from_numpy(self._values.dtype)
        self._default = _dtypes.to_array(default, dtype)

    def lookup(self, keys: Any) -> Any:
        """The values of `keys`, in their shape."""
        args = (keys, self._keys, self._values, self._default)
        return _record.call("lookup.find", args)

    __getitem__ = lookup


class Vocabulary(_Keys):
    """Words as numbers: their places in a list.

    As tf.lookup.StaticVocabularyTable: a word that is not in the list goes to
    one of `num_oov_buckets` numbers behind the last, by its fingerprint.

    Example:
        >>> words = ps.lookup.Vocabulary([b"a", b"b", b"c"])
        >>> words.lookup([b"c", b"x"])
        array([ 2, -1])
        >>> words.words([1, 2])
        array([b'b', b'c'], dtype=object)

    Args:
        source: The words, or the name of a file that has one on each line. It
            is read here and now.
        num_oov_buckets: How many numbers there are for other words.
        default: The number of other words if there are no buckets.

    Raises:
        NotFoundError: There is no such file.
        InvalidArgumentError: It is empty, or has a word twice.
    """

    __slots__ = ("_buckets", "_other")

    def __init__(
        self,
        source: str | os.PathLike[str] | Iterable[Any],
        num_oov_buckets: int = 0,
        default: int = -1,
    ) -> None:
        if isinstance(source, (str, os.PathLike)):
            source = _read_lines(os.fspath(source))
        elif not isinstance(source, np.ndarray):
            source = list(source)
        super().__init__(source)
        if num_oov_buckets < 0:
            raise refused(
                InvalidArgumentError,
                f"num_oov_buckets must not be negative; got {num_oov_buckets}",
            )
        self._buckets = num_oov_buckets
        self._other = default

    def lookup(self, words: Any) -> Any:
        """The numbers of `words`, as int64 of their shape."""
        attrs = {"num_oov_buckets": self._buckets, "default": self._other}
        return _record.call("lookup.place", (words, self._keys), attrs)

    __getitem__ = lookup

    def words(self, numbers: Any, default: Any = None) -> Any:
        """The words of `numbers`; `default`, or what is empty, for others."""
        if default is None:
            is_text = _dtypes.from_numpy(self._keys.dtype) == _dtypes.string
            default = b"" if is_text else 0
        places = np.arange(len(self._keys))
        return Table(places, self._keys, default).lookup(numbers)

    def size(self) -> int:
        """How many numbers there are: the words' and the buckets'."""
        return len(self._keys) + self._buckets


def _read_lines(path: str) -> list[bytes]:
    try:
        with open(path, "rb") as file:
            data = file.read()
    except FileNotFoundError:
        raise refused(
            NotFoundError, f"a vocabulary's file must exist; got {path!r}"
        ) from None
    except OSError as error:
        raise refused(
            InvalidArgumentError,
            f"a vocabulary's file must be readable; got {path!r}: "
            f"{error.strerror}",
        ) from None
    lines = data.split(b"\n")
    if not lines[-1]:
        lines.pop()
    return [line[:-1] if line.endswith(b"\r") else line for line in lines]


for _each in (Table, Vocabulary):
    _each.__module__ = __name__

if not TYPE_CHECKING:
    __getattr__ = _names.in_module(__name__, __all__)
