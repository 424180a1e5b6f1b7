"""`tf.strings`: n-grams, offsets, encodings, and strings joined by number."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from penstock import strings as _strings
from penstock._errors import InvalidArgumentError
from penstock._location import refused
from penstock._symbol import Symbol
from penstock.compat.tf import _arrays as arrays
from penstock.compat.tf import _ragged
from penstock.compat.tf._calls import dressed
from penstock.compat.tf._composites import RaggedTensor
from penstock.compat.tf._tensor import Tensor, convert


def _strings_of(items: list[bytes]) -> Any:
    made = np.empty(len(items), object)
    made[:] = items
    return made


def _known(name: str, *given: Any) -> list[Any]:
    tensors = [convert(each) for each in given]
    if any(isinstance(each._value, Symbol) for each in tensors):
        arrays.python_only(f"tf.strings.{name}")
    return [each._value for each in tensors]


# ---- Characters, and where they begin.


def _offsets(characters: Any) -> Any:
    """Where characters begin among the bytes of their strings."""
    if not isinstance(characters, RaggedTensor):
        lengths = dressed(_strings.length(characters._value, "BYTE"))
        return _ragged.splits_of(lengths)[:-1]
    lengths = dressed(_strings.length(characters.flat_values._value, "BYTE"))
    inner: Any = characters
    while isinstance(inner.values, RaggedTensor):
        inner = inner.values
    ends = _ragged.splits_of(lengths)
    splits = arrays.cast(inner.row_splits, "int64")
    begin = arrays.take(ends, splits[:-1])
    first = arrays.take(begin, _ragged.row_numbers(inner))
    return characters.with_flat_values(ends[:-1] - first)


def unicode_split_with_offsets(
    input: Any, input_encoding: str, errors: str = "replace",
    replacement_char: int = 65533, name: Any = None,
) -> tuple[Any, Any]:  # fmt: skip
    """The characters of strings, and the bytes where they begin.

    Example:
        >>> text = "na\u00efve"
        >>> found = tf.strings.unicode_split_with_offsets(text, "UTF-8")
        >>> found[1].numpy()
        array([0, 1, 2, 4, 5])
    """
    from penstock.compat.tf.strings import unicode_split

    found = unicode_split(input, input_encoding, errors, replacement_char)
    return found, _offsets(found)


def unicode_decode_with_offsets(
    input: Any, input_encoding: str, errors: str = "replace",
    replacement_char: int = 65533, replace_control_characters: bool = False,
    name: Any = None,
) -> tuple[Any, Any]:  # fmt: skip
    """The code points of strings, and the bytes where they begin."""
    from penstock.compat.tf.strings import unicode_decode, unicode_split

    points = unicode_decode(
        input, input_encoding, errors, replacement_char,
        replace_control_characters,
    )  # fmt: skip
    return points, _offsets(unicode_split(input, input_encoding, errors))


_ENCODINGS = {
    "UTF-8": "utf-8",
    "UTF-16-BE": "utf-16-be",
    "UTF-32-BE": "utf-32-be",
}


def unicode_transcode(
    input: Any, input_encoding: str, output_encoding: str,
    errors: str = "replace", replacement_char: int = 65533,
    replace_control_characters: bool = False, name: Any = None,
) -> Any:  # fmt: skip
    r"""Strings in another encoding.

    Example:
        >>> tf.strings.unicode_transcode("a", "UTF-8", "UTF-16-BE").numpy()
        b'\x00a'
    """
    if output_encoding not in _ENCODINGS:
        raise ValueError(
            f"output_encoding must be one of {[*_ENCODINGS]}; got "
            f"{output_encoding!r}"
        )
    if errors not in ("replace", "ignore", "strict"):
        raise ValueError(
            f"errors must be replace, ignore or strict; got {errors!r}"
        )
    if isinstance(input, RaggedTensor):
        made = unicode_transcode(
            input.flat_values, input_encoding, output_encoding, errors,
            replacement_char, replace_control_characters,
        )  # fmt: skip
        return input.with_flat_values(made)
    (texts,) = _known("unicode_transcode", input)
    other = chr(replacement_char)
    out = np.empty(texts.shape, object)
    for place, text in np.ndenumerate(texts):
        try:
            found = text.decode(input_encoding, errors)
        except LookupError:
            raise refused(
                InvalidArgumentError,
                f"input_encoding must be a known one; got {input_encoding!r}",
            ) from None
        except UnicodeDecodeError as error:
            raise refused(
                InvalidArgumentError,
                f"strings must be {input_encoding}; got one that is not: "
                f"{error.reason}",
            ) from None
        found = found.replace("\ufffd", other)
        if replace_control_characters:
            found = "".join(
                other if ord(c) < 32 or ord(c) == 127 else c for c in found
            )
        out[place] = found.encode(_ENCODINGS[output_encoding], "replace")
    return Tensor(out)


# ---- Several strings as one.


def ngrams(
    data: Any, ngram_width: Any, separator: str = " ", pad_values: Any = None,
    padding_width: Any = None, preserve_short_sequences: bool = False,
    name: Any = None,
) -> Any:  # fmt: skip
    """All runs of so many strings of each row, joined.

    Example:
        >>> tf.strings.ngrams(["a", "b", "c"], 2).numpy()
        array([b'a b', b'b c'], dtype=object)
    """
    widths = np.atleast_1d(np.asarray(ngram_width)).tolist()
    if any(width < 1 for width in widths):
        raise ValueError(f"ngram_width must be 1 or more; got {ngram_width}")
    if isinstance(pad_values, (str, bytes)):
        pad_values = (pad_values, pad_values)
    pads = [_bytes(each) for each in pad_values or ()]
    most = None if padding_width is None else int(padding_width)

    def of_row(row: list[bytes]) -> list[bytes]:
        made: list[bytes] = []
        for width in widths:
            extra = 0
            if pads:
                extra = width - 1 if most is None else min(most, width - 1)
            full = row
            if extra:
                full = [pads[0]] * extra + row + [pads[1]] * extra
            made += [
                _bytes(separator).join(full[i : i + width])
                for i in range(len(full) - width + 1)
            ]
        if not made and preserve_short_sequences and row:
            made = [_bytes(separator).join(row)]
        return made

    if isinstance(data, RaggedTensor):
        return _ngrams_of_rows(data, of_row)
    (texts,) = _known("ngrams", data)
    if texts.ndim == 1:
        return Tensor(_strings_of(of_row(texts.tolist())))
    rows = texts.reshape(-1, texts.shape[-1])
    made = [of_row(row.tolist()) for row in rows]
    width = len(made[0]) if made else 0
    flat = _strings_of([item for row in made for item in row])
    return Tensor(flat.reshape(*texts.shape[:-1], width))


def _ngrams_of_rows(data: RaggedTensor, of_row: Any) -> RaggedTensor:
    if isinstance(data.values, RaggedTensor):
        return data.with_values(_ngrams_of_rows(data.values, of_row))
    items, splits = _known("ngrams", data.values, data.row_splits)
    if items.ndim != 1:
        raise ValueError(
            f"ngrams of a ragged tensor needs rows of strings; got shape "
            f"{data.shape}"
        )
    made = [of_row(items[a:b].tolist()) for a, b in itertools.pairwise(splits)]
    ends = np.cumsum([0, *map(len, made)]).astype(splits.dtype)
    return RaggedTensor(
        Tensor(_strings_of([item for row in made for item in row])),
        Tensor(ends),
    )


def _bytes(text: Any) -> bytes:
    found = text.numpy() if isinstance(text, Tensor) else text
    return found.encode() if isinstance(found, str) else bytes(found)


def unsorted_segment_join(
    inputs: Any, segment_ids: Any, num_segments: Any, separator: str = "",
    name: Any = None,
) -> Tensor:  # fmt: skip
    """The strings of each number as one."""
    texts, ids = _known("unsorted_segment_join", inputs, segment_ids)
    count = int(np.asarray(num_segments))
    if ids.size and ids.max() >= count:
        raise refused(
            InvalidArgumentError,
            f"segment ids must be less than {count}; got {ids.max()}",
        )
    rest = texts.shape[ids.ndim :]
    flat = texts.reshape(ids.size, -1)
    made = np.empty((count, flat.shape[1]), object)
    for i in range(count):
        rows = flat[ids.reshape(-1) == i]
        made[i] = [_bytes(separator).join(column) for column in rows.T]
    return Tensor(made.reshape(count, *rest))


def join_rows(x: RaggedTensor, axis: Any, separator: str) -> Any:
    """`reduce_join` of a ragged tensor."""
    if axis is None:
        flat = x.flat_values._value
        return dressed(_strings.reduce_join(flat, None, False, separator))
    rank = x.shape.rank or 0
    at = int(np.asarray(axis)) % rank
    if at > 1 and isinstance(x.values, RaggedTensor):
        return x.with_values(join_rows(x.values, at - 1, separator))
    if isinstance(x.values, RaggedTensor) or at > 1:
        raise ValueError(
            "rows of strings are joined along a ragged dimension; got axis "
            f"{axis} for shape {x.shape}"
        )
    if at == 1 and not separator:
        padded = x.to_tensor()._value
        return dressed(_strings.reduce_join(padded, [-1], False, ""))
    items, splits = _known("reduce_join", x.values, x.row_splits)
    rows = [items[a:b].tolist() for a, b in itertools.pairwise(splits)]
    if at == 0:
        width = max(map(len, rows), default=0)
        rows = [[r[i] for r in rows if i < len(r)] for i in range(width)]
    return Tensor(_strings_of([_bytes(separator).join(r) for r in rows]))
