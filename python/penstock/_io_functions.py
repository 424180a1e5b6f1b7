"""The native functions of penstock.io.

Made from the engine's list by `penstock functions --python io`; not edited.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock import _record
from penstock._dtypes import DType

__all__ = [
    "decode_base64",
    "decode_raw",
    "encode_base64",
]


def decode_base64(x: Any) -> Any:
    """What encode_base64 was given.

    Example:
        >>> ps.io.decode_base64(b'cGVuc3RvY2s')
        b'penstock'

    Args:
        x: Strings in web-safe base64, with or without padding.
    """
    return _record.call("io.decode_base64", (x,))


def decode_raw(
    input_bytes: Any,
    out_type: Any,
    little_endian: bool = True,
    fixed_length: int | None = None,
) -> Any:
    """The bytes of strings as numbers, in a new last dimension.

    Example:
        >>> ps.io.decode_raw(b'\\1\\0\\2\\0', ps.int16)
        array([1, 2], dtype=int16)

    Args:
        input_bytes: Strings, all of one length in an element.
        out_type: Of the numbers.
        little_endian: Whether the bytes of a number go from low to high.
        fixed_length: Bytes to take of each string, which is cut or filled
            up with zeros.
    """
    return _record.call(
        "io.decode_raw",
        (input_bytes,),
        {
            "out_type": DType.of(out_type),
            "little_endian": little_endian,
            "fixed_length": fixed_length,
        },
    )


def encode_base64(x: Any, pad: bool = False) -> Any:
    """Strings in web-safe base64.

    Example:
        >>> ps.io.encode_base64(b'penstock')
        b'cGVuc3RvY2s'

    Args:
        x: Strings.
        pad: Whether = fills up the last four characters.
    """
    return _record.call("io.encode_base64", (x,), {"pad": pad})
