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
    "parse_tensor",
    "serialize_tensor",
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


def parse_tensor(
    serialized: Any,
    out_type: Any,
    shape: int | Sequence[int] | None = None,
) -> Any:
    """The tensor that serialize_tensor was given.

    Example:
        >>> data = ps.io.serialize_tensor([[1.5, 2.5]])
        >>> ps.io.parse_tensor(data, ps.float64)
        array([[1.5, 2.5]])

    Args:
        serialized: What serialize_tensor gave, or any TensorProto; a
            scalar.
        out_type: Of the tensor.
        shape: The sizes that the tensor must have, -1 for any; left out,
            not even its rank is known before.
    """
    return _record.call(
        "io.parse_tensor",
        (serialized,),
        {
            "out_type": DType.of(out_type),
            "shape": shape,
        },
    )


def serialize_tensor(tensor: Any) -> Any:
    """The bytes of a tensor, shape and dtype included.

    Example:
        >>> ps.io.serialize_tensor(np.array([1, 2], np.int8))
        b'\\x08\\x06\\x12\\x04\\x12\\x02\\x08\\x02"\\x02\\x01\\x02'

    Args:
        tensor: Any tensor.
    """
    return _record.call("io.serialize_tensor", (tensor,))
