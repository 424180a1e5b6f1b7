"""`tf.io`: records, files, and what is in them."""

from __future__ import annotations

import glob as _glob
import os
import zlib
from typing import Any

import numpy as np

from penstock import image as _image
from penstock import io as _io
from penstock._errors import DataLossError, NotFoundError
from penstock._location import refused
from penstock._symbol import Symbol
from penstock.compat.tf import _arrays, _protos, _reading
from penstock.compat.tf._calls import bare, dressed, lifted
from penstock.compat.tf._composites import SparseTensor
from penstock.compat.tf._tensor import Tensor, convert
from penstock.compat.tf._types import as_dtype
from penstock.compat.tf.io import gfile
from penstock.io import (
    FixedLenFeature,
    FixedLenSequenceFeature,
    RaggedFeature,
    SparseFeature,
    VarLenFeature,
)

__all__ = [
    "FixedLenFeature",
    "FixedLenSequenceFeature",
    "RaggedFeature",
    "SparseFeature",
    "TFRecordOptions",
    "TFRecordWriter",
    "VarLenFeature",
    "decode_and_crop_jpeg",
    "decode_base64",
    "decode_bmp",
    "decode_compressed",
    "decode_csv",
    "decode_gif",
    "decode_image",
    "decode_jpeg",
    "decode_png",
    "decode_raw",
    "decode_webp",
    "encode_base64",
    "encode_jpeg",
    "encode_png",
    "extract_jpeg_shape",
    "gfile",
    "is_jpeg",
    "matching_files",
    "parse_example",
    "parse_sequence_example",
    "parse_single_example",
    "parse_single_sequence_example",
    "parse_tensor",
    "read_file",
    "serialize_tensor",
    "write_file",
]

# No string is larger than this when it is decompressed.
_MAX_INFLATED = 1 << 30

decode_and_crop_jpeg = lifted(_image.decode_and_crop_jpeg)
decode_base64 = lifted(_io.decode_base64, input="x")
decode_bmp = lifted(_image.decode_bmp)
decode_gif = lifted(_image.decode_gif)
decode_jpeg = lifted(_image.decode_jpeg)
decode_png = lifted(_image.decode_png)
decode_raw = lifted(_io.decode_raw)
encode_base64 = lifted(_io.encode_base64, input="x")
encode_jpeg = lifted(_image.encode_jpeg)
encode_png = lifted(_image.encode_png)
extract_jpeg_shape = lifted(_image.extract_jpeg_shape)
is_jpeg = lifted(_image.is_jpeg)


def decode_image(
    contents: Any, channels: int | None = None, dtype: Any = "uint8",
    name: Any = None, expand_animations: bool = True,
) -> Tensor:  # fmt: skip
    """An image of any kind.

    Of an animation with `expand_animations` all frames, which only values can
    say: a function that is recorded gets the first one.
    """
    text = convert(contents)
    is_gif = not isinstance(text._value, Symbol) and text.numpy()[:3] == b"GIF"
    made: Tensor = dressed(
        _image.decode_image(
            text._value,
            channels or 0,
            as_dtype(dtype),
            expand_animations and is_gif,
        )
    )
    return made


def decode_webp(
    contents: Any, channels: int = 0, dtype: Any = "uint8", name: Any = None
) -> Tensor:
    """A WebP image, uint8."""
    if as_dtype(dtype).name != "uint8":
        raise ValueError(f"dtype must be tf.uint8; got {dtype}")
    made: Tensor = dressed(
        _image.decode_webp(convert(contents)._value, channels)
    )
    return made


def read_file(filename: Any, name: Any = None) -> Tensor:
    """What is in a file.

    In `map` the engine reads it, many files at once.

    Example:
        >>> import pathlib, tempfile
        >>> file = pathlib.Path(tempfile.mkdtemp()) / "a.txt"
        >>> _ = file.write_text("hello")
        >>> ds = tf.data.Dataset.list_files(str(file.parent / "*"))
        >>> list(ds.map(tf.io.read_file).as_numpy_iterator())
        [b'hello']
    """
    given = convert(os.fspath(filename) if _is_path(filename) else filename)
    if isinstance(given._value, Symbol):
        return _reading.contents_of(given)
    path = given.numpy()
    try:
        with open(path, "rb") as file:
            return convert(file.read())
    except FileNotFoundError:
        raise refused(
            NotFoundError, f"{path.decode()}: No such file or directory"
        ) from None


def _is_path(value: Any) -> bool:
    return isinstance(value, os.PathLike)


def write_file(filename: Any, contents: Any, name: Any = None) -> None:
    path, data = convert(filename), convert(contents)
    if isinstance(path._value, Symbol) or isinstance(data._value, Symbol):
        _arrays.python_only("tf.io.write_file")
    os.makedirs(os.path.dirname(path.numpy()) or b".", exist_ok=True)
    with open(path.numpy(), "wb") as file:
        file.write(data.numpy())


def matching_files(pattern: Any, name: Any = None) -> Tensor:
    """The names of files that match patterns, sorted."""
    patterns = np.atleast_1d(convert(pattern).numpy()).tolist()
    names = sorted({n for p in patterns for n in _glob.glob(p)})
    return Tensor(_strings(names))


def _strings(items: list[bytes]) -> Any:
    made = np.empty(len(items), object)
    made[:] = items
    return made


# ---- Examples.


def _features(given: Any) -> Any:
    return None if given is None else {**given}


def _dense(parsed: dict[str, Any], features: Any) -> dict[str, Any]:
    """What was parsed; a feature of one Example is known to have no gaps."""
    for key, feature in (features or {}).items():
        if isinstance(feature, VarLenFeature):
            found = parsed[key]
            parsed[key] = SparseTensor(
                found.indices, found.values, found.dense_shape, _is_dense=True
            )
    return parsed


def parse_single_example(
    serialized: Any, features: Any, example_names: Any = None, name: Any = None
) -> dict[str, Any]:
    """The features of one serialized Example, by their keys."""
    text = convert(serialized)._value
    made = dressed(_io.parse_single_example(text, _features(features)))
    return _dense(made, features)


def parse_example(
    serialized: Any, features: Any, example_names: Any = None, name: Any = None
) -> dict[str, Any]:
    """The features of a vector of serialized Examples, or of one."""
    texts = convert(serialized)
    if texts.shape.rank == 0:
        return parse_single_example(texts, features)
    made: dict[str, Any] = dressed(
        _io.parse_example(texts._value, _features(features))
    )
    return made


def parse_single_sequence_example(
    serialized: Any, context_features: Any = None,
    sequence_features: Any = None, example_name: Any = None, name: Any = None,
) -> tuple[dict[str, Any], dict[str, Any]]:  # fmt: skip
    context, lists = dressed(
        _io.parse_single_sequence_example(
            convert(serialized)._value,
            _features(context_features),
            _features(sequence_features),
        )
    )
    return _dense(context, context_features), lists


def parse_sequence_example(
    serialized: Any, context_features: Any = None,
    sequence_features: Any = None, example_names: Any = None, name: Any = None,
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:  # fmt: skip
    made: tuple[dict[str, Any], dict[str, Any], dict[str, Any]] = dressed(
        _io.parse_sequence_example(
            convert(serialized)._value,
            _features(context_features),
            _features(sequence_features),
        )
    )
    return made


def decode_csv(
    records: Any, record_defaults: Any, field_delim: str = ",",
    use_quote_delim: bool = True, na_value: str = "", select_cols: Any = None,
    name: Any = None,
) -> list[Tensor]:  # fmt: skip
    """The fields of comma-separated records."""
    defaults = [_csv_default(d) for d in record_defaults]
    made: list[Tensor] = dressed(
        _io.decode_csv(
            convert(records)._value,
            defaults,
            field_delim,
            use_quote_delim,
            na_value,
            select_cols,
        )
    )
    return made


def _csv_default(given: Any) -> Any:
    if isinstance(given, Tensor):
        return bare(given)
    if isinstance(given, list) and not given:
        return np.empty(0, np.float32)
    return given


def decode_compressed(
    bytes: Any, compression_type: str = "", name: Any = None
) -> Tensor:
    """Strings that were compressed: "ZLIB" or "GZIP", at most 1 GiB each."""
    x = convert(bytes)
    if isinstance(x._value, Symbol):
        _arrays.python_only("tf.io.decode_compressed")
    windows = {"": None, "ZLIB": zlib.MAX_WBITS, "GZIP": zlib.MAX_WBITS | 16}
    if compression_type not in windows:
        raise ValueError(
            "compression_type must be '', 'ZLIB' or 'GZIP'; got "
            f"{compression_type!r}"
        )
    window = windows[compression_type]
    if window is None:
        return x
    made = np.empty(x._value.shape, object)
    for place, text in np.ndenumerate(x._value):
        made[place] = _inflated(text, window)
    return Tensor(made)


def _inflated(text: Any, window: int) -> Any:
    stream = zlib.decompressobj(window)
    try:
        found = stream.decompress(text, _MAX_INFLATED)
    except zlib.error as error:
        raise refused(DataLossError, f"cannot be decompressed: {error}") from (
            None
        )
    if not stream.eof:
        raise refused(
            DataLossError,
            f"compressed strings must be whole, and {_MAX_INFLATED} bytes at "
            "most when they are decompressed; got one that is not",
        )
    return found


# ---- Tensors as strings.


def serialize_tensor(tensor: Any, name: Any = None) -> Tensor:
    """A tensor as a serialized TensorProto.

    Example:
        >>> text = tf.io.serialize_tensor([1, 2])
        >>> tf.io.parse_tensor(text, tf.int32).numpy()
        array([1, 2], dtype=int32)
    """
    x = convert(tensor)
    if isinstance(x._value, Symbol):
        return Tensor(_io.serialize_tensor(x._value))
    return convert(_protos.tensor_to_bytes(x._value, x.dtype))


def parse_tensor(serialized: Any, out_type: Any, name: Any = None) -> Tensor:
    """The tensor of a serialized TensorProto.

    In a recorded function not even its rank is known: `tf.ensure_shape`,
    `set_shape` or `tf.reshape` say more.
    """
    text = convert(serialized)
    if isinstance(text._value, Symbol):
        return Tensor(_io.parse_tensor(text._value, as_dtype(out_type)))
    return Tensor(_protos.tensor_from_bytes(text.numpy(), as_dtype(out_type)))


class TFRecordOptions:
    """How a TFRecord file is written: its compression."""

    def __init__(self, compression_type: str | None = None, **_: Any) -> None:
        self.compression_type = compression_type or ""


class TFRecordWriter(_io.TFRecordWriter):
    """Writes a TFRecord file."""

    def __init__(self, path: Any, options: Any = None) -> None:
        if isinstance(options, TFRecordOptions):
            options = options.compression_type
        name = bare(path)
        super().__init__(
            name.decode() if isinstance(name, bytes) else name, options
        )

    def write(self, record: Any) -> None:
        given = record.numpy() if isinstance(record, Tensor) else record
        super().write(given)
