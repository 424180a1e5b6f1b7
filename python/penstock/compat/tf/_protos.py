"""`tf.train.Example` and its parts, and tensors, as protocol buffers.

Just what these messages need of the format: varints, and fields with a length.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from penstock._errors import DataLossError, InvalidTypeError
from penstock._location import refused
from penstock.compat.tf._types import DType

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _field(number: int, data: bytes) -> bytes:
    return _varint(number << 3 | _BYTES) + _varint(len(data)) + data


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise refused(DataLossError, "a message is cut off or damaged")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & ((1 << 64) - 1), at
        shift += 7


def _fields(data: bytes) -> Iterator[tuple[int, int, Any]]:
    """Number, kind and value of each field."""
    at = 0
    while at < len(data):
        tag, at = _read_varint(data, at)
        kind = tag & 7
        if kind == _VARINT:
            value: Any
            value, at = _read_varint(data, at)
        else:
            size = {_FIXED64: 8, _FIXED32: 4}.get(kind)
            if kind == _BYTES:
                size, at = _read_varint(data, at)
            if size is None or at + size > len(data):
                raise refused(DataLossError, "a message is cut off or damaged")
            value = data[at : at + size]
            at += size
        yield tag >> 3, kind, value


def _signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value


class _Message:
    def __repr__(self) -> str:
        return f"{type(self).__name__}({vars(self)})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return id(self)


class BytesList(_Message):
    def __init__(self, value: Iterable[bytes] = ()) -> None:
        self.value = list(value)
        for item in self.value:
            if not isinstance(item, bytes):
                raise TypeError(
                    f"{item!r} has type {type(item).__name__}, but expected "
                    "one of: bytes"
                )

    def SerializeToString(self) -> bytes:  # noqa: N802
        return b"".join(_field(1, item) for item in self.value)


class FloatList(_Message):
    def __init__(self, value: Iterable[float] = ()) -> None:
        self.value = [float(np.float32(item)) for item in value]

    def SerializeToString(self) -> bytes:  # noqa: N802
        if not self.value:
            return b""
        return _field(1, np.array(self.value, "<f4").tobytes())


class Int64List(_Message):
    def __init__(self, value: Iterable[int] = ()) -> None:
        self.value = []
        for item in value:
            if isinstance(item, (float, np.floating, str, bytes)):
                raise TypeError(f"{item!r} is not an integer")
            self.value.append(int(item))

    def SerializeToString(self) -> bytes:  # noqa: N802
        if not self.value:
            return b""
        return _field(1, b"".join(map(_varint, self.value)))


class Feature(_Message):
    """One of `bytes_list`, `float_list` and `int64_list`."""

    def __init__(
        self,
        bytes_list: BytesList | None = None,
        float_list: FloatList | None = None,
        int64_list: Int64List | None = None,
    ) -> None:
        self._kind = None
        for kind, given in (
            ("bytes_list", bytes_list),
            ("float_list", float_list),
            ("int64_list", int64_list),
        ):
            if given is not None:
                self._kind = kind
        self.bytes_list = bytes_list or BytesList()
        self.float_list = float_list or FloatList()
        self.int64_list = int64_list or Int64List()

    def WhichOneof(self, name: str) -> str | None:  # noqa: N802
        return self._kind

    def SerializeToString(self) -> bytes:  # noqa: N802
        if self._kind is None:
            return b""
        numbers = {"bytes_list": 1, "float_list": 2, "int64_list": 3}
        inner = getattr(self, self._kind)
        return _field(numbers[self._kind], inner.SerializeToString())


class Features(_Message):
    def __init__(self, feature: Mapping[str, Feature] | None = None) -> None:
        self.feature = dict(feature or {})

    def SerializeToString(self) -> bytes:  # noqa: N802
        return b"".join(
            _field(
                1,
                _field(1, key.encode())
                + _field(2, self.feature[key].SerializeToString()),
            )
            for key in sorted(self.feature)
        )


class FeatureList(_Message):
    def __init__(self, feature: Iterable[Feature] = ()) -> None:
        self.feature = list(feature)

    def SerializeToString(self) -> bytes:  # noqa: N802
        return b"".join(_field(1, f.SerializeToString()) for f in self.feature)


class FeatureLists(_Message):
    def __init__(
        self, feature_list: Mapping[str, FeatureList] | None = None
    ) -> None:
        self.feature_list = dict(feature_list or {})

    def SerializeToString(self) -> bytes:  # noqa: N802
        return b"".join(
            _field(
                1,
                _field(1, key.encode())
                + _field(2, self.feature_list[key].SerializeToString()),
            )
            for key in sorted(self.feature_list)
        )


class Example(_Message):
    """Features by their names.

    Example:
        >>> feature = tf.train.Feature(
        ...     int64_list=tf.train.Int64List(value=[3, 5]))
        >>> example = tf.train.Example(
        ...     features=tf.train.Features(feature={"x": feature}))
        >>> record = example.SerializeToString()
        >>> again = tf.train.Example.FromString(record)
        >>> again.features.feature["x"].int64_list.value
        [3, 5]
    """

    def __init__(self, features: Features | None = None) -> None:
        self.features = features or Features()

    def SerializeToString(self) -> bytes:  # noqa: N802
        return _field(1, self.features.SerializeToString())

    def ParseFromString(self, data: bytes) -> int:  # noqa: N802
        for number, _, value in _fields(bytes(data)):
            if number == 1:
                self.features = Features(_parse_map(value, _parse_feature))
        return len(data)

    @staticmethod
    def FromString(data: bytes) -> Example:  # noqa: N802
        made = Example()
        made.ParseFromString(data)
        return made


class SequenceExample(_Message):
    """A context, and lists of features, by their names."""

    def __init__(
        self,
        context: Features | None = None,
        feature_lists: FeatureLists | None = None,
    ) -> None:
        self.context = context or Features()
        self.feature_lists = feature_lists or FeatureLists()

    def SerializeToString(self) -> bytes:  # noqa: N802
        return _field(1, self.context.SerializeToString()) + _field(
            2, self.feature_lists.SerializeToString()
        )


def _parse_map(data: bytes, parse: Any) -> dict[str, Any]:
    found = {}
    for number, _, entry in _fields(data):
        if number == 1:
            parts = {n: v for n, _, v in _fields(entry)}
            found[parts.get(1, b"").decode()] = parse(parts.get(2, b""))
    return found


def _parse_feature(data: bytes) -> Feature:
    for number, _, value in _fields(data):
        if number == 1:
            items = [v for n, _, v in _fields(value) if n == 1]
            return Feature(bytes_list=BytesList(items))
        if number == 2:
            packed = b"".join(v for n, _, v in _fields(value) if n == 1)
            floats = np.frombuffer(packed, "<f4").tolist()
            return Feature(float_list=FloatList(floats))
        if number == 3:
            return Feature(int64_list=Int64List(_parse_integers(value)))
    return Feature()


def _parse_integers(data: bytes) -> list[int]:
    found = []
    for number, kind, value in _fields(data):
        if number != 1:
            continue
        if kind == _VARINT:
            found.append(_signed(value))
            continue
        at = 0
        while at < len(value):
            item, at = _read_varint(value, at)
            found.append(_signed(item))
    return found


# ---- TensorProto, of numbers and strings. Codes are TensorFlow's DataTypes.

_CODES = {
    "float32": 1, "float64": 2, "int32": 3, "uint8": 4, "int16": 5, "int8": 6,
    "string": 7, "complex64": 8, "int64": 9, "bool": 10, "bfloat16": 14,
    "uint16": 17, "complex128": 18, "float16": 19, "uint32": 22, "uint64": 23,
}  # fmt: skip
_DTYPE, _SHAPE, _CONTENT, _STRINGS = 1, 2, 4, 8
_VALUES = {5: "<f4", 6: "<f8"}  # float_val, double_val
_INTEGERS = (7, 10, 11)  # int_val, int64_val, bool_val


def tensor_to_bytes(array: Any, dtype: DType) -> bytes:
    """The TensorProto of an array."""
    dims = b"".join(
        _field(2, _varint(1 << 3) + _varint(size)) for size in array.shape
    )
    out = _varint(_DTYPE << 3) + _varint(_CODES[dtype.name])
    out += _field(_SHAPE, dims)
    if dtype.name == "string":
        return out + b"".join(_field(_STRINGS, s) for s in array.reshape(-1))
    return out + _field(_CONTENT, array.tobytes())


def tensor_from_bytes(data: bytes, dtype: DType) -> Any:
    """The array of a TensorProto that must be of `dtype`."""
    code, dims, content = 0, [], None
    items: list[Any] = []
    for number, kind, value in _fields(data):
        if number == _DTYPE:
            code = value
        elif number == _SHAPE:
            for n, _, dim in _fields(value):
                if n == 2:
                    sizes = {k: v for k, _, v in _fields(dim)}
                    dims.append(_signed(sizes.get(1, 0)))
        elif number == _CONTENT:
            content = value
        elif number == _STRINGS:
            items.append(value)
        elif number in _VALUES:
            items += np.frombuffer(value, _VALUES[number]).tolist()
        elif number in _INTEGERS:
            wire = _varint(1 << 3 | kind)
            wire += _varint(value) if kind == 0 else _varint(len(value)) + value
            items += _parse_integers(wire)
    if code != _CODES[dtype.name]:
        names = {v: k for k, v in _CODES.items()}
        raise refused(
            InvalidTypeError,
            f"expected a tensor of {dtype}; got {names.get(code, code)}",
        )
    count = int(np.prod(dims, dtype=np.int64))
    if content is not None:
        if len(content) != count * dtype.dtype.itemsize:
            raise refused(DataLossError, "a tensor's content is cut off")
        return np.frombuffer(content, dtype.dtype).reshape(dims).copy()
    if len(items) not in (1, count) and count:
        raise refused(DataLossError, "a tensor's values are not all there")
    made = np.empty(count, dtype.dtype)
    made[:] = items * count if len(items) == 1 else items
    return made.reshape(dims)
