"""Tokenizers that run in the engine: `ps.text`.

A tokenizer is made from the files of its model, which are read here and now.
`encode` gives the numbers of a text's pieces, and is recorded like any other
function; `decode` puts pieces together again.

Example:
    >>> tokenizer = ps.text.WordPiece(["[UNK]", "play", "##ing", "."])
    >>> tokenizer.encode("Playing.")
    array([1, 2, 3], dtype=int32)
    >>> tokenizer.decode([1, 2, 3])
    b'playing .'
"""

from __future__ import annotations

import abc
import json
import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock import _names, _sentencepiece, _splits, lookup, strings
from penstock._errors import InvalidArgumentError, NotFoundError
from penstock._location import refused

__all__ = ["ByteLevelBPE", "SentencePiece", "WordPiece"]

_Path = str | os.PathLike[str]


class _Tokenizer(abc.ABC):
    """Pieces by their numbers."""

    __slots__ = ("_pieces",)

    # Bytes by number, for decode.
    _pieces: lookup.Table

    @abc.abstractmethod
    def encode(self, text: Any) -> Any:
        """The numbers of the pieces of `text`, as int32.

        Args:
            text: A string in UTF-8, or a vector of them.

        Returns:
            A vector; of a vector of texts, a `ps.Ragged`.
        """

    def __len__(self) -> int:
        return len(self._pieces)


class ByteLevelBPE(_Tokenizer):
    """Byte-pair encoding over bytes, as GPT-2's.

    A text is parted into words by GPT-2's pattern. Within each, the pair of
    neighbours that comes first in the list of merges becomes one piece, again
    and again. Where the vocabulary has
    all bytes, every text has an encoding and decodes to itself; other bytes are
    left out.

    Example:
        >>> vocabulary = {"h": 0, "i": 1, "hi": 2, "Ġ": 3, "Ġhi": 4}
        >>> tokenizer = ps.text.ByteLevelBPE(vocabulary, ["h i", "Ġ hi"])
        >>> tokenizer.encode("hi hi")
        array([2, 4], dtype=int32)

    Args:
        vocabulary: A `vocab.json`, or its contents: numbers by pieces, whose
            characters stand for bytes as GPT-2 has it.
        merges: A `merges.txt`, or its lines: two pieces with a space between.
        add_prefix_space: Whether a text that does not begin with a space gets
            one.

    Raises:
        NotFoundError: There is no such file.
        InvalidArgumentError: A merge names a piece that the vocabulary lacks.
    """

    __slots__ = ("_bytes", "_merges", "_prefix")

    def __init__(
        self,
        vocabulary: _Path | Mapping[str, int],
        merges: _Path | Iterable[str],
        *,
        add_prefix_space: bool = False,
    ) -> None:
        if not isinstance(vocabulary, Mapping):
            vocabulary = _read_json(os.fspath(vocabulary))
        if isinstance(merges, (str, os.PathLike)):
            merges = _read(os.fspath(merges)).decode().split("\n")
        byte_of = {char: byte for byte, char in _byte_characters().items()}
        # What has other characters (<|endoftext|>) stands for itself.
        pieces = {
            number: (
                bytes(byte_of[char] for char in piece)
                if all(char in byte_of for char in piece)
                else piece.encode()
            )
            for piece, number in vocabulary.items()
        }
        self._pieces = lookup.Table(list(pieces), list(pieces.values()), b"")
        # -1: a byte that is left out.
        self._bytes = np.array(
            [vocabulary.get(c, -1) for c in _byte_characters().values()],
            np.int32,
        )
        self._merges = _merge_rows(merges, vocabulary)
        self._prefix = add_prefix_space

    def encode(self, text: Any) -> Any:
        """The numbers of the pieces of `text`, as int32.

        Args:
            text: A string in UTF-8, or a vector of them.

        Returns:
            A vector; of a vector of texts, a `ps.Ragged`.
        """
        if self._prefix:
            text = strings.regex_replace(text, r"\A([^ ])", r" \1")
        tables = (self._bytes, self._merges)
        return _splits.call("text.bpe", text, {}, tables)

    def decode(self, numbers: Any) -> Any:
        """The text of a vector of numbers; unknown ones are left out."""
        return strings.reduce_join(self._pieces.lookup(numbers), axis=-1)


def _merge_rows(
    merges: Iterable[str], vocabulary: Mapping[str, int]
) -> np.ndarray[Any, np.dtype[np.int32]]:
    """(left, right, both) as numbers, in order of rank."""
    rows: dict[tuple[int, int], int] = {}
    for i, line in enumerate(merges):
        if not line or (i == 0 and line.startswith("#version")):
            continue
        parts = line.rstrip("\r").split(" ")
        both = "".join(parts)
        if len(parts) != 2 or not {*parts, both} <= vocabulary.keys():
            raise refused(
                InvalidArgumentError,
                "a merge must be two pieces that the vocabulary has, together "
                f"and apart; got {line!r} at line {i + 1}",
            )
        pair = (vocabulary[parts[0]], vocabulary[parts[1]])
        rows.pop(pair, None)  # The last of equals counts.
        rows[pair] = vocabulary[both]
    array = [(*pair, both) for pair, both in rows.items()]
    return np.array(array, np.int32).reshape(-1, 3)


def _byte_characters() -> dict[int, str]:
    """The printable characters by which GPT-2's files name bytes."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    named = dict(zip(printable, map(chr, printable), strict=True))
    others = [byte for byte in range(256) if byte not in named]
    for i, byte in enumerate(others):
        named[byte] = chr(256 + i)
    return dict(sorted(named.items()))


class WordPiece(_Tokenizer):
    """BERT's tokenizer.

    A text is cleaned, parted at space and punctuation, in lower case without
    accents if asked for; each word is then the longest pieces from the left, or
    the unknown token. No special tokens are added; `ps.concat` does that.

    Example:
        >>> tokenizer = ps.text.WordPiece(["[UNK]", "un", "##able"])
        >>> tokenizer.encode("Unable Ünable able")
        array([1, 2, 1, 2, 0], dtype=int32)

    Args:
        vocabulary: A `vocab.txt`, or its lines: the pieces by number.
        lowercase: Whether case is dropped.
        strip_accents: Whether accents are; None: as `lowercase`.
        handle_chinese_chars: Whether ideographs are words of their own.
        unknown_token: What stands for words that no pieces make.
        prefix: What pieces within a word begin with.
        max_characters: Longer words are unknown.

    Raises:
        NotFoundError: There is no such file.
        InvalidArgumentError: The vocabulary has no unknown token, or a piece
            twice.
    """

    __slots__ = ("_attrs", "_words")

    def __init__(
        self,
        vocabulary: _Path | Iterable[str],
        *,
        lowercase: bool = True,
        strip_accents: bool | None = None,
        handle_chinese_chars: bool = True,
        unknown_token: str = "[UNK]",
        prefix: str = "##",
        max_characters: int = 100,
    ) -> None:
        if isinstance(vocabulary, (str, os.PathLike)):
            path = os.fspath(vocabulary)
            lines = _read(path).decode().split("\n")
            if not lines[-1]:
                lines.pop()
            vocabulary = [line.rstrip("\r") for line in lines]
        words = list(vocabulary)
        if unknown_token not in words:
            raise refused(
                InvalidArgumentError,
                "a vocabulary must have the token for unknown words, "
                f"{unknown_token!r}; it has {len(words)} others",
            )
        self._pieces = lookup.Table(np.arange(len(words)), words, b"")
        self._words = lookup.Vocabulary(words)._keys
        self._attrs = {
            "lowercase": lowercase,
            "strip_accents": strip_accents,
            "handle_chinese_chars": handle_chinese_chars,
            "unknown": unknown_token,
            "prefix": prefix,
            "max_characters": max_characters,
        }

    def encode(self, text: Any) -> Any:
        """The numbers of the pieces of `text`, as int32.

        Args:
            text: A string in UTF-8, or a vector of them.

        Returns:
            A vector; of a vector of texts, a `ps.Ragged`.
        """
        tables = (self._words,)
        return _splits.call("text.wordpiece", text, self._attrs, tables)

    def decode(self, numbers: Any) -> Any:
        """The words of a vector of numbers, with spaces between."""
        words = self._pieces.lookup(numbers)
        joined = strings.reduce_join(words, axis=-1, separator=" ")
        prefix = str(self._attrs["prefix"])
        return strings.regex_replace(joined, " " + _quoted(prefix), "")


class SentencePiece(_Tokenizer):
    """A tokenizer from a SentencePiece model of any kind.

    Args:
        model: A `.model` file, or its bytes.

    Raises:
        NotFoundError: There is no such file.
        InvalidArgumentError: It is no such model.
    """

    __slots__ = ("_attrs", "_leading", "_tables")

    def __init__(self, model: _Path | bytes) -> None:
        data = model if isinstance(model, bytes) else _read(os.fspath(model))
        found = _sentencepiece.parse(data)
        self._tables = (
            _strings(found.pieces),
            np.array(found.scores, np.float32),
            np.array(found.types, np.int32),
            found.charsmap,
        )
        self._attrs = found.attrs
        self._pieces = lookup.Table(
            np.arange(len(found.pieces)), _strings(found.surfaces()), b""
        )
        self._leading = found.leading_pattern()

    def encode(self, text: Any) -> Any:
        """The numbers of the pieces of `text`, as int32.

        Args:
            text: A string in UTF-8, or a vector of them.

        Returns:
            A vector; of a vector of texts, a `ps.Ragged`.
        """
        attrs = self._attrs
        return _splits.call("text.sentencepiece", text, attrs, self._tables)

    def decode(self, numbers: Any) -> Any:
        """The text of a vector of numbers."""
        joined = strings.reduce_join(self._pieces.lookup(numbers), axis=-1)
        if self._leading:
            joined = strings.regex_replace(joined, self._leading, "")
        return strings.regex_replace(joined, _sentencepiece.SPACE, " ")


def _strings(values: list[bytes]) -> np.ndarray[Any, np.dtype[Any]]:
    array = np.empty(len(values), object)
    array[:] = values
    return array


def _quoted(text: str) -> str:
    r"""A pattern of RE2 that is `text`."""
    return "".join(c if c.isalnum() else f"\\{c}" for c in text)


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        raise refused(
            NotFoundError, f"a tokenizer's file must exist; got {path!r}"
        ) from None
    except OSError as error:
        raise refused(
            InvalidArgumentError,
            f"a tokenizer's file must be readable; got {path!r}: "
            f"{error.strerror}",
        ) from None


def _read_json(path: str) -> Mapping[str, int]:
    try:
        found = json.loads(_read(path))
    except ValueError as error:
        raise refused(
            InvalidArgumentError,
            f"a vocabulary must be JSON; got {path!r}: {error}",
        ) from None
    if not isinstance(found, dict) or not all(
        isinstance(number, int) for number in found.values()
    ):
        raise refused(
            InvalidArgumentError,
            "a vocabulary must be an object of numbers by pieces; got "
            f"{path!r}",
        )
    return found


for _each in (ByteLevelBPE, SentencePiece, WordPiece):
    _each.__module__ = __name__

if not TYPE_CHECKING:
    __getattr__ = _names.in_module(__name__, __all__)
