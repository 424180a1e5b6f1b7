"""String functions, by TensorFlow's names: `ps.strings`.

They are recorded in functions of datasets, and run at once with values. Strings
are bytes; Python's `str` is taken as UTF-8.

Example:
    >>> ds = ps.Dataset.from_tensor_slices(["a b", "c"])
    >>> for words in ds.map(ps.strings.split):
    ...     print(words)
    [b'a' b'b']
    [b'c']
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from penstock import _names, _record, _splits, _strings_functions
from penstock._errors import InvalidArgumentError
from penstock._location import refused
from penstock._strings_functions import *  # noqa: F403

__all__ = [
    *_strings_functions.__all__,
    "bytes_split",
    "format",
    "reduce_join",
    "split",
    "unicode_decode",
    "unicode_split",
]


def split(
    input: Any, sep: str | bytes | None = None, maxsplit: int = -1
) -> Any:
    """The parts of a string between separators.

    The parts are views: no bytes are copied.

    Example:
        >>> ps.strings.split(" two  words ")
        array([b'two', b'words'], dtype=object)
        >>> ps.strings.split("a,,b", ",")
        array([b'a', b'', b'b'], dtype=object)
        >>> ps.strings.split(["a b", "c"]).row_splits
        array([0, 2, 3])

    Args:
        input: A string, or a vector of them.
        sep: What stands between parts. None or "": any run of white space,
            which then neither begins nor ends a part.
        maxsplit: After so many splits the rest is one part; 0 or less: no
            limit.

    Returns:
        A vector of strings; of a vector, a `ps.Ragged`.
    """
    if isinstance(sep, bytes):
        sep = sep.decode()
    return _splits.call(
        "strings.split", input, {"sep": sep, "maxsplit": maxsplit}
    )


def format(
    template: str, inputs: Any, placeholder: str = "{}", summarize: int = 3
) -> Any:
    """A text with tensors in it, as TensorFlow writes them.

    Example:
        >>> ps.strings.format("{} of {}", (2, np.arange(9)))
        b'2 of [0 1 2 ... 6 7 8]'

    Args:
        template: With a placeholder for each input.
        inputs: A tensor, or a list or tuple of them.
        placeholder: What stands for an input.
        summarize: Of a dimension that has more than twice as many, so many
            items at either end; -1: all.
    """
    many = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
    if not many:
        if placeholder in template:
            raise refused(
                InvalidArgumentError,
                "a template must have a placeholder for each of its inputs, 0; "
                f"got {template!r}",
            )
        return template.encode()
    return _record.call(
        "strings.format",
        tuple(many),
        {
            "template": template,
            "placeholder": placeholder,
            "summarize": summarize,
        },
    )


def bytes_split(input: Any) -> Any:
    """The bytes of a string, each as a string.

    Example:
        >>> ps.strings.bytes_split("abc")
        array([b'a', b'b', b'c'], dtype=object)

    Args:
        input: A string, or a vector of them.

    Returns:
        A vector of strings; of a vector, a `ps.Ragged`.
    """
    return _splits.call("strings.bytes_split", input, {})


def unicode_split(input: Any) -> Any:
    r"""The characters of a UTF-8 string, each as a string.

    Example:
        >>> ps.strings.unicode_split("aä")
        array([b'a', b'\xc3\xa4'], dtype=object)

    Args:
        input: A string, or a vector of them. Ill-formed bytes become U+FFFD.

    Returns:
        A vector of strings; of a vector, a `ps.Ragged`.
    """
    return _splits.call("strings.unicode_split", input, {})


def unicode_decode(
    input: Any,
    input_encoding: str = "UTF-8",
    errors: str = "replace",
    replacement_char: int = 65533,
) -> Any:
    """The code points of a string.

    Example:
        >>> ps.strings.unicode_decode("aä")
        array([ 97, 228], dtype=int32)

    Args:
        input: A string, or a vector of them.
        input_encoding: "UTF-8".
        errors: What ill-formed bytes become: "replace" (`replacement_char`),
            "ignore" (nothing) or "strict" (an error).
        replacement_char: A code point.

    Returns:
        A vector of int32; of a vector, a `ps.Ragged`.
    """
    attrs = {
        "input_encoding": input_encoding,
        "errors": errors,
        "replacement_char": replacement_char,
    }
    return _splits.call("strings.unicode_decode", input, attrs)


def reduce_join(
    inputs: Any,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    separator: str = "",
) -> Any:
    """The strings along axes as one.

    Example:
        >>> ps.strings.reduce_join([["a", "b"], ["c", "d"]], axis=1)
        array([b'ab', b'cd'], dtype=object)
        >>> ps.strings.reduce_join(["a", "b"], separator=" ")
        b'a b'

    Args:
        inputs: Strings.
        axis: Along which to join, in this order; None: all, the last axis
            first.
        keepdims: Whether what is joined stays as a dimension of size 1.
        separator: What comes between.
    """
    axes = [axis] if axis is None or isinstance(axis, int) else list(axis)
    if len(axes) > 1 or not axes:
        rank = _splits.rank_of(inputs)
        wanted = [a + rank if a < 0 else a for a in axes if a is not None]
        for each in wanted:
            inputs = reduce_join(inputs, each, True, separator)
        if not keepdims and wanted:
            from penstock import _functions

            inputs = _functions.squeeze(inputs, tuple(wanted))
        return inputs
    attrs = {"axis": axes[0], "keepdims": keepdims, "separator": separator}
    return _record.call("strings.reduce_join", (inputs,), attrs)


def _show_as_public() -> None:
    for name in __all__:
        globals()[name].__module__ = __name__


_show_as_public()

if not TYPE_CHECKING:
    __getattr__ = _names.in_module(__name__, __all__)
