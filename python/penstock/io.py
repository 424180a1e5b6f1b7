"""Records and what is in them: `ps.io`.

The names and results are those of `tf.io`.
"""

from __future__ import annotations

import reprlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock import _dtypes, _names, _record, _spec
from penstock._dtypes import DType
from penstock._errors import InvalidArgumentError, InvalidTypeError
from penstock._features import (
    FixedLenFeature,
    FixedLenSequenceFeature,
    RaggedFeature,
    SparseFeature,
    VarLenFeature,
    Wanted,
)
from penstock._io_functions import (
    decode_base64,
    decode_raw,
    encode_base64,
    parse_tensor,
    serialize_tensor,
)
from penstock._location import refused
from penstock._reading import read_file
from penstock._spec import TensorSpec
from penstock._writers import JsonLinesWriter, TarWriter, TFRecordWriter

__all__ = [
    "FixedLenFeature",
    "FixedLenSequenceFeature",
    "JsonLinesWriter",
    "RaggedFeature",
    "SparseFeature",
    "TFRecordWriter",
    "TarWriter",
    "VarLenFeature",
    "decode_base64",
    "decode_csv",
    "decode_json",
    "decode_raw",
    "encode_base64",
    "parse_example",
    "parse_sequence_example",
    "parse_single_example",
    "parse_single_sequence_example",
    "parse_tensor",
    "read_file",
    "serialize_tensor",
]


def parse_single_example(
    serialized: Any, features: Mapping[str, Any]
) -> dict[str, Any]:
    """The features of one serialized `tf.train.Example`.

    Use it in `map`, before `batch`: the engine parses many at a time.

    Example:
        >>> record = bytes.fromhex("0a0d0a0b0a017812061a040a020305")
        >>> features = {"x": ps.io.FixedLenFeature([2], ps.int64)}
        >>> ps.io.parse_single_example(record, features)
        {'x': array([3, 5])}

    Args:
        serialized: A string.
        features: What is wanted, by key: `FixedLenFeature` and
            `FixedLenSequenceFeature` give dense tensors, `VarLenFeature` and
            `SparseFeature` a `ps.Sparse`, `RaggedFeature` a vector.

    Returns:
        A value by key. An Example that is damaged, lacks a feature that has no
        default, or has one of another type or number of values is an error of
        its element.
    """
    return _parse(serialized, features, is_batch=False)


def parse_example(
    serialized: Any, features: Mapping[str, Any]
) -> dict[str, Any]:
    """The features of a vector of serialized `tf.train.Example`s.

    `map(parse_single_example)` before `batch` is as fast and drops no more than
    the one element that is damaged.

    Example:
        >>> record = bytes.fromhex("0a0d0a0b0a017812061a040a020305")
        >>> features = {"x": ps.io.RaggedFeature(ps.int64)}
        >>> ps.io.parse_example([record, record], features)["x"].values
        array([3, 5, 3, 5])

    Args:
        serialized: A vector of strings.
        features: What is wanted, by key: `FixedLenFeature` and
            `FixedLenSequenceFeature` give dense tensors, `VarLenFeature` and
            `SparseFeature` a `ps.Sparse`, `RaggedFeature` a `ps.Ragged`, all
            with the batch as their first dimension.
    """
    return _parse(serialized, features, is_batch=True)


def _parse(
    serialized: Any, features: Mapping[str, Any], *, is_batch: bool
) -> dict[str, Any]:
    tensors = [serialized]
    wanted = Wanted(features, tensors, is_batch=is_batch)
    attrs = {
        "keys": wanted.keys,
        "features": wanted.lines,
        "is_batch": is_batch,
    }
    parts = _record.call_parts(
        "io.parse_example", tensors, attrs, count=wanted.count
    )
    return wanted.results(parts)


def parse_single_sequence_example(
    serialized: Any,
    context_features: Mapping[str, Any] | None = None,
    sequence_features: Mapping[str, Any] | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    r"""The features of one serialized `tf.train.SequenceExample`.

    Example:
        >>> four = b"\n\x05\x1a\x03\n\x01\x04"
        >>> record = b"\x12\x15\n\x13\n\x01x\x12\x0e" + four + four
        >>> features = {"x": ps.io.FixedLenSequenceFeature([], ps.int64)}
        >>> ps.io.parse_single_sequence_example(record, None, features)
        ({}, {'x': array([4, 4])})

    Args:
        serialized: A string.
        context_features: What is wanted of the context, as for
            `parse_single_example`.
        sequence_features: What is wanted of the feature lists:
            `FixedLenSequenceFeature` gives a dense tensor with a row for each
            Feature, `VarLenFeature` a `ps.Sparse` and `RaggedFeature` a
            `ps.Ragged` of two dimensions.

    Returns:
        The context's values and the feature lists', each by key.
    """
    context, lists, _ = _parse_sequence(
        serialized, context_features, sequence_features, is_batch=False
    )
    return context, lists


def parse_sequence_example(
    serialized: Any,
    context_features: Mapping[str, Any] | None = None,
    sequence_features: Mapping[str, Any] | None = None,
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    r"""The features of a vector of serialized `tf.train.SequenceExample`s.

    Example:
        >>> four = b"\n\x05\x1a\x03\n\x01\x04"
        >>> record = b"\x12\x15\n\x13\n\x01x\x12\x0e" + four + four
        >>> features = {"x": ps.io.FixedLenSequenceFeature([], ps.int64)}
        >>> ps.io.parse_sequence_example([record], None, features)
        ({}, {'x': array([[4, 4]])}, {'x': array([2])})

    Args:
        serialized: A vector of strings.
        context_features: As for `parse_example`.
        sequence_features: As for `parse_single_sequence_example`; results have
            the batch as their first dimension, and dense ones are filled up
            with zeros to the longest.

    Returns:
        The context's values, the feature lists', and how many Features each of
        the dense ones had, each by key.
    """
    return _parse_sequence(
        serialized, context_features, sequence_features, is_batch=True
    )


def _parse_sequence(
    serialized: Any,
    context_features: Mapping[str, Any] | None,
    sequence_features: Mapping[str, Any] | None,
    *,
    is_batch: bool,
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    tensors = [serialized]
    context = Wanted(context_features or {}, tensors, is_batch=is_batch)
    lists = Wanted(
        sequence_features or {}, tensors, is_batch=is_batch, is_list=True
    )
    attrs = {
        "context_keys": context.keys,
        "context_features": context.lines,
        "list_keys": lists.keys,
        "list_features": lists.lines,
        "is_batch": is_batch,
    }
    parts = _record.call_parts(
        "io.parse_sequence_example",
        tensors,
        attrs,
        count=context.count + lists.count,
    )
    values = context.results(parts[: context.count])
    sequences = lists.results(parts[context.count :])
    return values, sequences, lists.lengths


def decode_csv(
    records: Any,
    record_defaults: Sequence[Any],
    field_delim: str = ",",
    use_quote_delim: bool = True,
    na_value: str = "",
    select_cols: Sequence[int] | None = None,
) -> list[Any]:
    """The fields of comma-separated records.

    Example:
        >>> name, size = ps.io.decode_csv(b"sluice,7", ["", 0])
        >>> name, int(size)
        (b'sluice', 7)

    Args:
        records: Strings, each a record.
        record_defaults: For each field, what an empty one has; its dtype is the
            field's. An empty array, or a dtype: the field must have a value.
            Python's numbers are int32 and float32, as in tf.data.
        field_delim: The character between fields.
        use_quote_delim: Whether a field may be in double quotes.
        na_value: What stands for no value, as an empty field does.
        select_cols: The numbers of the fields that are wanted, ascending; by
            default all.

    Returns:
        A tensor for each field, of the shape of `records`. A record that does
        not fit is an error of its element.
    """
    defaults = _csv_defaults(record_defaults)
    attrs = {
        "field_delim": field_delim,
        "use_quote_delim": use_quote_delim,
        "na_value": na_value,
        "select_cols": None if select_cols is None else list(select_cols),
    }
    return _record.call_parts(
        "io.decode_csv", [records, *defaults], attrs, count=len(defaults)
    )


def _csv_defaults(record_defaults: Any) -> list[Any]:
    if isinstance(record_defaults, (str, bytes, Mapping)):
        raise refused(
            InvalidTypeError,
            "record_defaults must be a list with a default or a dtype for each "
            f"field; got {reprlib.repr(record_defaults)}\n"
            "  Fields have no names here: give them in a map, as "
            '.map(lambda a, b: {"a": a, "b": b}).',
        )
    return [_csv_default(value) for value in record_defaults]


def _csv_default(value: Any) -> Any:
    if isinstance(value, (_dtypes.DType, type)):
        return np.empty(0, _dtypes.DType.of(value).dtype)
    if isinstance(value, list) and len(value) == 1:
        return _csv_default(value[0])
    if isinstance(value, int):
        return _dtypes.to_array(value, _dtypes.int32)
    if isinstance(value, float):
        return _dtypes.to_array(value, _dtypes.float32)
    return _dtypes.to_array(value)


def decode_json(text: Any, schema: Any) -> Any:
    """Values of a JSON text.

    Example:
        >>> text = b'{"id": 7, "user": {"name": "Ada", "scores": [1, 2.5]}}'
        >>> ps.io.decode_json(
        ...     text,
        ...     {
        ...         "user": {
        ...             "name": ps.string,
        ...             "scores": ps.TensorSpec([None], ps.float32),
        ...         }
        ...     },
        ... )
        {'user': {'name': b'Ada', 'scores': array([1. , 2.5], dtype=float32)}}

    Args:
        text: A string.
        schema: What is wanted, in dicts as the text has objects: a dtype for a
            scalar, a `ps.TensorSpec` for arrays (None for a size that may be
            any), or a `FixedLenFeature` for a value that may be missing or
            null. What is not in the schema is passed over.

    Returns:
        `schema` with values in it. A text that is not JSON, lacks a value that
        has no default, or has one of another type is an error of its element.
    """
    tensors = [text]
    pointers: list[str] = []
    lines: list[str] = []

    def visit(pointer: str, node: Any) -> Any:
        if isinstance(node, Mapping):
            found = {}
            for key, part in node.items():
                if not isinstance(key, str):
                    raise refused(
                        InvalidTypeError,
                        f"keys of a schema must be strings; got {key!r}",
                    )
                step = key.replace("~", "~0").replace("/", "~1")
                found[key] = visit(f"{pointer}/{step}", part)
            return found
        pointers.append(pointer)
        lines.append(_json_line(pointer, node, tensors))
        return len(pointers) - 1

    structure = visit("", schema)
    if not pointers:
        raise refused(
            InvalidArgumentError,
            "schema must have at least one value; got none",
        )
    attrs = {"pointers": pointers, "values_wanted": lines}
    parts = _record.call_parts(
        "io.decode_json", tensors, attrs, count=len(pointers)
    )
    return _spec.map_structure(lambda place: parts[place], structure)


def _json_line(pointer: str, node: Any, tensors: list[Any]) -> str:
    default = "-"
    if isinstance(node, FixedLenFeature):
        spec = TensorSpec(node.shape, node.dtype)
        if node.default_value is not None:
            try:
                array = _dtypes.to_array(node.default_value, spec.dtype)
            except (TypeError, ValueError):
                raise refused(
                    InvalidArgumentError,
                    f"the default_value of {pointer!r} must be "
                    f"{spec.dtype.name}; got {node.default_value!r}",
                ) from None
            tensors.append(array)
            default = str(len(tensors) - 1)
    elif isinstance(node, TensorSpec):
        spec = node
    else:
        spec = TensorSpec((), DType.of(node))
    if spec.shape is None:
        raise refused(
            InvalidArgumentError,
            f"the rank of {pointer!r} must be known; got {spec}",
        )
    dims = ",".join(str(-1 if d is None else d) for d in spec.shape) or "-"
    return f"{spec.dtype.name} {dims} {default}"


if not TYPE_CHECKING:
    __getattr__ = _names.in_module(__name__, __all__)
