"""The native functions of penstock.strings.

Made from the engine's list by `penstock functions --python strings`; not edited.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock import _record
from penstock._dtypes import DType

__all__ = [
    "as_string",
    "join",
    "length",
    "lower",
    "regex_extract",
    "regex_full_match",
    "regex_replace",
    "strip",
    "substr",
    "to_hash_bucket",
    "to_hash_bucket_fast",
    "to_hash_bucket_strong",
    "to_number",
    "unicode_encode",
    "upper",
]


def as_string(
    input: Any,
    precision: int = -1,
    scientific: bool = False,
    shortest: bool = False,
    width: int = -1,
    fill: str = "",
) -> Any:
    """The numbers as strings, as printf writes them.

    Example:
        >>> ps.strings.as_string([3.14159, 2.0], precision=2)
        array([b'3.14', b'2.00'], dtype=object)

    Args:
        input: Numbers or bools.
        precision: Digits after the point, if not negative.
        scientific: As 1.5e+00.
        shortest: Scientific or not, whichever is shorter.
        width: The least characters.
        fill: One of printf's flags: "0", " ", "+", "-", "#".
    """
    return _record.call(
        "strings.as_string",
        (input,),
        {
            "precision": precision,
            "scientific": scientific,
            "shortest": shortest,
            "width": width,
            "fill": fill,
        },
    )


def join(inputs: Sequence[Any], separator: str = "") -> Any:
    """The strings at each place, one after another.

    Example:
        >>> ps.strings.join([["a", "b"], "x"], "-")
        array([b'a-x', b'b-x'], dtype=object)

    Args:
        inputs: Strings of one shape, and scalars.
        separator: What comes between.
    """
    return _record.call("strings.join", (*inputs,), {"separator": separator})


def length(input: Any, unit: str = "BYTE") -> Any:
    """How long the strings are, as int32.

    Example:
        >>> ps.strings.length(["abc", "ä"])
        array([3, 2], dtype=int32)

    Args:
        input: Strings.
        unit: What is counted: "BYTE" or "UTF8_CHAR".
    """
    return _record.call("strings.length", (input,), {"unit": unit})


def lower(input: Any, encoding: str = "") -> Any:
    """The strings in lower case.

    Example:
        >>> ps.strings.lower(["Hello", "ÄB"], "utf-8")
        array([b'hello', b'\\xc3\\xa4b'], dtype=object)

    Args:
        input: Strings.
        encoding: "": letters of ASCII alone. "utf-8": all that Unicode
            knows; ill-formed bytes become U+FFFD.
    """
    return _record.call("strings.lower", (input,), {"encoding": encoding})


def regex_extract(input: Any, pattern: str, group: int = 0) -> Any:
    """What a pattern first matches in each string, "" if nothing.

    Example:
        >>> ps.strings.regex_extract("id=42;", "id=([0-9]+)", 1)
        b'42'

    Args:
        input: Strings.
        pattern: A regular expression, as RE2 has them.
        group: Which group of the match; 0: all of it.
    """
    return _record.call(
        "strings.regex_extract",
        (input,),
        {
            "pattern": pattern,
            "group": group,
        },
    )


def regex_full_match(input: Any, pattern: str) -> Any:
    """Whether the pattern matches the whole string.

    Example:
        >>> ps.strings.regex_full_match(["ab1", "1ab"], "[a-z]+[0-9]")
        array([ True, False])

    Args:
        input: Strings.
        pattern: A regular expression, as RE2 has them.
    """
    return _record.call(
        "strings.regex_full_match",
        (input,),
        {
            "pattern": pattern,
        },
    )


def regex_replace(
    input: Any,
    pattern: str,
    rewrite: str,
    replace_global: bool = True,
) -> Any:
    """The strings with what matches a pattern rewritten.

    Example:
        >>> ps.strings.regex_replace("a1b22", "[0-9]+", "#")
        b'a#b#'

    Args:
        input: Strings.
        pattern: A regular expression, as RE2 has them.
        rewrite: What a match becomes; a backslash and a digit stand for a
            group.
        replace_global: Every match, or the first alone.
    """
    return _record.call(
        "strings.regex_replace",
        (input,),
        {
            "pattern": pattern,
            "rewrite": rewrite,
            "replace_global": replace_global,
        },
    )


def strip(input: Any) -> Any:
    """The strings without ASCII's white space at both ends.

    Example:
        >>> ps.strings.strip(" a b\\n")
        b'a b'

    Args:
        input: Strings.
    """
    return _record.call("strings.strip", (input,))


def substr(input: Any, pos: Any, len: Any, unit: str = "BYTE") -> Any:
    """Parts of the strings. A pos outside of a string is an error.

    Example:
        >>> ps.strings.substr(["hello", "world"], -4, 2)
        array([b'el', b'or'], dtype=object)

    Args:
        input: Strings.
        pos: Where to begin; from the end if negative.
        len: How long; the end of a string ends it earlier.
        unit: What is counted: "BYTE" or "UTF8_CHAR".
    """
    return _record.call("strings.substr", (input, pos, len), {"unit": unit})


def to_hash_bucket(input: Any, num_buckets: int) -> Any:
    """As to_hash_bucket_fast, by TensorFlow's older hash.

    Example:
        >>> ps.strings.to_hash_bucket(["a", "b"], 100)
        array([68, 70])

    Args:
        input: Strings.
        num_buckets: How many there are.
    """
    return _record.call(
        "strings.to_hash_bucket",
        (input,),
        {
            "num_buckets": num_buckets,
        },
    )


def to_hash_bucket_fast(input: Any, num_buckets: int) -> Any:
    """A number below num_buckets for each string, by FarmHash.

    Example:
        >>> ps.strings.to_hash_bucket_fast(["a", "b"], 100)
        array([39, 22])

    Args:
        input: Strings.
        num_buckets: How many there are.
    """
    return _record.call(
        "strings.to_hash_bucket_fast",
        (input,),
        {
            "num_buckets": num_buckets,
        },
    )


def to_hash_bucket_strong(
    input: Any,
    num_buckets: int,
    key: int | Sequence[int],
) -> Any:
    """As to_hash_bucket_fast, by SipHash under a key: who does not know it cannot aim at a bucket.

    Example:
        >>> ps.strings.to_hash_bucket_strong(["a"], 100, (1, 2))
        array([46])

    Args:
        input: Strings.
        num_buckets: How many there are.
        key: Two integers that nobody can guess.
    """
    return _record.call(
        "strings.to_hash_bucket_strong",
        (input,),
        {
            "num_buckets": num_buckets,
            "key": key,
        },
    )


def to_number(input: Any, out_type: Any = "float32") -> Any:
    """The numbers that strings spell. Any other string is an error.

    Example:
        >>> ps.strings.to_number(["1.5", " 2e3"])
        array([1.5e+00, 2.0e+03], dtype=float32)

    Args:
        input: Strings.
        out_type: float32, float64, int32, int64, uint32 or uint64.
    """
    return _record.call(
        "strings.to_number",
        (input,),
        {
            "out_type": DType.of(out_type),
        },
    )


def unicode_encode(input: Any) -> Any:
    """The UTF-8 string of code points; what is none becomes U+FFFD.

    Example:
        >>> ps.strings.unicode_encode([104, 228])
        b'h\\xc3\\xa4'

    Args:
        input: A vector of integers.
    """
    return _record.call("strings.unicode_encode", (input,))


def upper(input: Any, encoding: str = "") -> Any:
    """The strings in upper case.

    Example:
        >>> ps.strings.upper("straße", "utf-8")
        b'STRASSE'

    Args:
        input: Strings.
        encoding: "": letters of ASCII alone. "utf-8": all that Unicode
            knows; ill-formed bytes become U+FFFD.
    """
    return _record.call("strings.upper", (input,), {"encoding": encoding})
