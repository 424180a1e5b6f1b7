"""`tf.strings`: Penstock's functions, whose results are TensorFlow's."""

from __future__ import annotations

from typing import Any

from penstock import strings as _strings
from penstock.compat.tf import _arrays as arrays
from penstock.compat.tf._calls import dressed, lifted
from penstock.compat.tf._composites import RaggedTensor, over_items
from penstock.compat.tf._ragged_items import map_flat_values
from penstock.compat.tf._showing import shown
from penstock.compat.tf._tensor import Tensor, convert
from penstock.compat.tf._texts import (
    join_rows,
    ngrams,
    unicode_decode_with_offsets,
    unicode_split_with_offsets,
    unicode_transcode,
    unsorted_segment_join,
)
from penstock.compat.tf._types import as_dtype

__all__ = [
    "as_string",
    "bytes_split",
    "format",
    "join",
    "length",
    "lower",
    "ngrams",
    "reduce_join",
    "regex_full_match",
    "regex_replace",
    "split",
    "strip",
    "substr",
    "to_hash_bucket",
    "to_hash_bucket_fast",
    "to_hash_bucket_strong",
    "to_number",
    "unicode_decode",
    "unicode_decode_with_offsets",
    "unicode_encode",
    "unicode_split",
    "unicode_split_with_offsets",
    "unicode_transcode",
    "unsorted_segment_join",
    "upper",
]

as_string = lifted(_strings.as_string)
bytes_split = lifted(_strings.bytes_split)
lower = lifted(_strings.lower)
regex_full_match = lifted(_strings.regex_full_match)
regex_replace = lifted(_strings.regex_replace)
strip = lifted(_strings.strip)
substr = lifted(_strings.substr)
to_hash_bucket = lifted(_strings.to_hash_bucket)
to_hash_bucket_fast = lifted(_strings.to_hash_bucket_fast)
to_hash_bucket_strong = lifted(_strings.to_hash_bucket_strong)
upper = lifted(_strings.upper)


def length(input: Any, unit: str = "BYTE", name: Any = None) -> Any:
    """How long each string is, int32."""
    found = lifted(_strings.length)(input, unit)
    return arrays.cast(found, "int32")


def to_number(input: Any, out_type: Any = "float32", name: Any = None) -> Any:
    """The numbers that strings say.

    Example:
        >>> tf.strings.to_number(["1.5", "2"]).numpy()
        array([1.5, 2. ], dtype=float32)
    """
    return lifted(_strings.to_number)(input, as_dtype(out_type))


def join(inputs: Any, separator: str = "", name: Any = None) -> Any:
    """Strings one behind another, item by item.

    Example:
        >>> tf.strings.join(["a", ["b", "c"]], "-").numpy()
        array([b'a-b', b'a-c'], dtype=object)
    """
    if any(isinstance(part, RaggedTensor) for part in inputs):
        return map_flat_values(
            lambda *parts: join(parts, separator), tuple(inputs), {}
        )
    parts = [convert(part)._value for part in inputs]
    made: Tensor = dressed(_strings.join(parts, separator))
    return made


def split(
    input: Any, sep: Any = None, maxsplit: int = -1, name: Any = None
) -> Any:
    """The parts of strings: of a scalar a vector, of a vector rows.

    Example:
        >>> tf.strings.split("a b").numpy()
        array([b'a', b'b'], dtype=object)
        >>> tf.strings.split(["a b", "c"])
        <tf.RaggedTensor [[b'a', b'b'], [b'c']]>
    """
    if isinstance(sep, Tensor):
        sep = sep.numpy()
    if isinstance(input, RaggedTensor):
        found = split(input.flat_values, sep, maxsplit)
        return input.with_flat_values(found)
    text = convert(input)
    if (text.shape.rank or 0) > 1:
        rows = RaggedTensor.from_tensor(text, ragged_rank=text.ndim - 1)
        return rows.with_flat_values(split(rows.flat_values, sep, maxsplit))
    return dressed(_strings.split(text._value, sep, maxsplit))


@over_items
def unicode_split(
    input: Any, input_encoding: str = "UTF-8", errors: str = "replace",
    replacement_char: int = 65533, name: Any = None,
) -> Any:  # fmt: skip
    """The characters of strings, each as a string."""
    _check_utf8(input_encoding)
    return dressed(_strings.unicode_split(convert(input)._value))


@over_items
def unicode_decode(
    input: Any, input_encoding: str = "UTF-8", errors: str = "replace",
    replacement_char: int = 65533, replace_control_characters: bool = False,
    name: Any = None,
) -> Any:  # fmt: skip
    """The code points of strings."""
    return dressed(
        _strings.unicode_decode(
            convert(input)._value, input_encoding, errors, replacement_char
        )
    )


def unicode_encode(
    input: Any, output_encoding: str = "UTF-8", errors: str = "replace",
    replacement_char: int = 65533, name: Any = None,
) -> Any:  # fmt: skip
    """The strings of code points."""
    _check_utf8(output_encoding)
    return lifted(_strings.unicode_encode)(input)


def _check_utf8(encoding: str) -> None:
    if encoding.upper() not in ("UTF-8", "UTF8"):
        raise ValueError(f"the encoding must be UTF-8 here; got {encoding}")


def reduce_join(
    inputs: Any, axis: Any = None, keepdims: bool = False, separator: str = "",
    name: Any = None,
) -> Any:  # fmt: skip
    """The strings along axes as one; of rows of words, a string each."""
    if isinstance(inputs, RaggedTensor):
        return join_rows(inputs, axis, separator)
    text = convert(inputs)._value
    axes = arrays.constant(axis).numpy().tolist() if axis is not None else None
    return dressed(_strings.reduce_join(text, axes, keepdims, separator))


def format(
    template: str, inputs: Any, placeholder: str = "{}", summarize: int = 3,
    name: Any = None,
) -> Any:  # fmt: skip
    """Tensors put into a text.

    Example:
        >>> tf.strings.format("{} of {}", (tf.range(9), "a")).numpy()
        b'[0 1 2 ... 6 7 8] of "a"'

    Args:
        template: The text.
        inputs: A tensor, or a list of as many as there are placeholders.
        placeholder: What stands for a tensor.
        summarize: So many items are shown at both ends of a dimension; -1: all.
        name: Not used.
    """
    values = inputs if isinstance(inputs, (list, tuple)) else [inputs]
    texts = template.split(placeholder)
    if len(texts) - 1 != len(values):
        raise ValueError(
            f"format needs as many tensors as placeholders, {len(texts) - 1}; "
            f"got {len(values)}"
        )
    parts: list[Any] = [texts[0]]
    for text, value in zip(texts[1:], values, strict=True):
        parts += [shown(convert(value), summarize), text]
    return join(parts)
