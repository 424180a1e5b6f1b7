"""Reading SentencePiece's model files.

A model is a protocol buffer, of which a few fields are needed; reading them
takes no library.
"""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Iterator
from typing import Any

from penstock._errors import InvalidArgumentError
from penstock._location import refused

# Stands for a space in pieces; here, while a text is put together, a character
# that no text has does, since a mark that was spelt by bytes stays one.
_MARK = "\u2581".encode()
SPACE = "\ufdd0"

_UNKNOWN, _CONTROL, _BYTE = 2, 3, 6
_KINDS = {1: "unigram", 2: "bpe", 3: "word", 4: "char"}


@dataclasses.dataclass
class Model:
    """What encoding and decoding need."""

    pieces: list[bytes]
    scores: list[float]
    types: list[int]
    charsmap: bytes
    attrs: dict[str, Any]
    unknown_surface: bytes

    def surfaces(self) -> list[bytes]:
        """What each piece becomes in a decoded text."""
        out = []
        for piece, kind in zip(self.pieces, self.types, strict=True):
            if kind == _CONTROL:
                out.append(b"")
            elif kind == _UNKNOWN:
                out.append(self.unknown_surface)
            elif kind == _BYTE:
                out.append(bytes([int(piece[3:5], 16)]))
            else:
                out.append(piece.replace(_MARK, SPACE.encode()))
        return out

    def leading_pattern(self) -> str:
        """What is taken from the front of a decoded text."""
        if self.attrs["remove_extra_whitespaces"]:
            return rf"\A{SPACE}+"
        return rf"\A{SPACE}" if self.attrs["add_dummy_prefix"] else ""


def parse(data: bytes) -> Model:
    """The model in the bytes of a file.

    Raises:
        InvalidArgumentError: They are no model.
    """
    try:
        return _parse(data)
    except (ValueError, IndexError, struct.error, TypeError) as error:
        raise refused(
            InvalidArgumentError,
            f"expected a SentencePiece model; got bytes that are none: {error}",
        ) from None


def _parse(data: bytes) -> Model:
    pieces: list[bytes] = []
    scores: list[float] = []
    types: list[int] = []
    trainer: dict[int, Any] = {}
    normalizer: dict[int, Any] = {}
    for number, value in _fields(data):
        if number == 1:
            piece = dict(_fields(value))
            pieces.append(_bytes(piece.get(1, b"")))
            scores.append(struct.unpack("<f", piece.get(2, bytes(4)))[0])
            types.append(int(piece.get(3, 1)))
        elif number == 2:
            trainer = dict(_fields(value))
        elif number == 3:
            normalizer = dict(_fields(value))
    if not pieces:
        raise ValueError("it has no pieces")
    kind = trainer.get(3, 1)
    if kind not in _KINDS:
        kinds = ", ".join(f"{name} ({n})" for n, name in _KINDS.items())
        raise ValueError(f"its kind is {kind}, which is none of {kinds}")
    attrs = {
        "kind": _KINDS[kind],
        "byte_fallback": bool(trainer.get(35, 0)),
        "treat_whitespace_as_suffix": bool(trainer.get(24, 0)),
        "add_dummy_prefix": bool(normalizer.get(3, 1)),
        "remove_extra_whitespaces": bool(normalizer.get(4, 1)),
        "escape_whitespaces": bool(normalizer.get(5, 1)),
    }
    surface = _bytes(trainer.get(44, " \u2047 ".encode()))
    charsmap = _bytes(normalizer.get(2, b""))
    return Model(pieces, scores, types, charsmap, attrs, surface)


def _bytes(value: Any) -> bytes:
    if not isinstance(value, bytes):
        raise ValueError("a field that should be text is a number")
    return value


def _fields(data: Any) -> Iterator[tuple[int, Any]]:
    """Numbers and values of a message's fields; numbers of four bytes raw."""
    data = _bytes(data)
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        number, kind = key >> 3, key & 7
        value: Any
        if kind == 0:
            value, at = _varint(data, at)
        elif kind in (1, 2, 5):
            size = {1: 8, 5: 4}.get(kind, 0)
            if kind == 2:
                size, at = _varint(data, at)
            if at + size > len(data):
                raise ValueError("it is cut short")
            value = data[at : at + size]
            at += size
        else:
            raise ValueError(f"it has a field of kind {kind}")
        yield number, value


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise ValueError("it has a number of more than ten bytes")
