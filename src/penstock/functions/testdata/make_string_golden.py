"""Writes string_golden.jsonl: what TensorFlow's string functions give.

    .venv-frameworks/bin/python src/penstock/functions/testdata/make_string_golden.py

A line is a call of `tf.strings` or of a table, and its result or the word
"error". Bytes are written as Latin-1 text.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

OUT = Path(__file__).parent / "string_golden.jsonl"

TEXTS = [
    b"",
    b"a",
    b"Hello, World",
    b"  two  words ",
    b"\t tabs\nand\rmore\v\f ",
    b"a,b,,c,",
    b",",
    b"nul\x00inside\x00",
    "Straße ÄÖÜ İstanbul ΑΣ Σ ﬁ ǅ".encode(),
    "日本語 テキスト 😀👍🏽".encode(),
    b"\xff\xfe bad",
    b"ok\xc3",
    b"\xe2\x82 \xf0\x9f\x98 \xed\xa0\x80 \xc0\x80 \xf4\x90\x80\x80",
    b"x" * 40,
    b"word " * 9,
    b"0123456789abcdef",
    b"0123456789abcdefg",
]
NUMBERS = [
    b"0", b"-0", b"1", b"+1", b" 12 ", b"1.5", b"-2.5e3", b"1e400", b"-1e400",
    b"1e-400", b"inf", b"-inf", b"nan", b"infinity", b"0x10", b"", b" ",
    b"abc", b"1 2", b"1_000", b"2147483647", b"2147483648", b"-2147483648",
    b"-2147483649", b"9223372036854775807", b"9223372036854775808",
    b"-9223372036854775808", b"-9223372036854775809", b"1.0", b"1\x00",
    b"3.4028235e38", b"3.5e38", b"16777217", b"0.1", b"00012",
    b"123456789012345678901234567890123456789",
]  # fmt: skip


def encoded(value: Any) -> Any:
    if isinstance(value, tf.RaggedTensor):
        return {
            "values": encoded(value.values),
            "row_splits": encoded(value.row_splits),
        }
    if isinstance(value, tf.Tensor):
        value = value.numpy()
    if isinstance(value, (bytes, str)):
        data = value if isinstance(value, bytes) else value.encode()
        return {"bytes": data.decode("latin-1")}
    array = np.asarray(value)
    if array.dtype == object or array.dtype.kind in "SU":
        flat = [
            (x if isinstance(x, bytes) else x.encode()).decode("latin-1")
            for x in array.astype(object).reshape(-1)
        ]
        return {"strings": flat, "shape": list(array.shape)}
    if array.dtype.kind == "c":
        flat = [[float(x.real), float(x.imag)] for x in array.reshape(-1)]
    elif array.dtype.kind == "f":
        flat = [float(x).hex() for x in array.reshape(-1)]
    else:
        flat = array.reshape(-1).tolist()
    return {
        "items": flat,
        "shape": list(array.shape),
        "dtype": str(array.dtype),
    }


class Writer:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def add(self, name: str, *args: Any, **options: Any) -> None:
        """One call: args are tensors, options are not."""
        function = getattr(tf.strings, name)
        try:
            if name == "join":
                result = encoded(function(list(args), **options))
            elif name in ("unicode_encode", "unicode_split"):
                result = encoded(function(*args, "UTF-8"))
            else:
                result = encoded(function(*args, **options))
        except (tf.errors.OpError, ValueError):
            result = "error"
        options = {
            key: value.name if isinstance(value, tf.DType) else value
            for key, value in options.items()
        }
        self.write(name, [encoded(arg) for arg in args], options, result)

    def write(self, name: str, args: Any, options: Any, result: Any) -> None:
        line = {"call": name, "args": args}
        if options:
            line["options"] = options
        line["result"] = result
        self.lines.append(json.dumps(line, separators=(",", ":")))


def add_strings(to: Writer) -> None:
    texts = np.array(TEXTS, object)
    empty = np.array([], object)
    for x in (texts, empty, texts[2], texts[:4].reshape(2, 2)):
        # With utf-8, TensorFlow ends a string at its first NUL.
        whole = x[[b"\x00" not in t for t in x]] if x is texts else x
        for name in ("lower", "upper"):
            to.add(name, x, encoding="")
            to.add(name, whole, encoding="utf-8")
        to.add("strip", x)
        for unit in ("BYTE", "UTF8_CHAR"):
            to.add("length", x, unit=unit)
        to.add("to_hash_bucket_fast", x, num_buckets=1000003)
        to.add("to_hash_bucket", x, num_buckets=1000003)
        to.add("to_hash_bucket_strong", x, num_buckets=1000003, key=[12345, -7])
        to.add("regex_full_match", x, pattern="[a-zA-Z, ]*")
        to.add("regex_replace", x, pattern=r"(\w)(\s+)", rewrite=r"\2\1")
        to.add("regex_replace", x, pattern="", rewrite="-")
        to.add(
            "regex_replace", x, pattern="o", rewrite="0", replace_global=False
        )
        to.add("reduce_join", x, axis=None, separator="|")
        to.add("join", x, b"<>", x, separator="-")
    to.add("reduce_join", texts[:4].reshape(2, 2), axis=0)
    to.add("reduce_join", texts[:4].reshape(2, 2), axis=[0, 1], separator="+")
    to.add("reduce_join", texts[:4].reshape(2, 2), axis=[1, 0], separator="+")
    to.add("reduce_join", texts[:4].reshape(2, 2), axis=-1, keepdims=True)
    for x in (*texts, texts, empty):
        for sep in (None, ",", "or", "\x00"):
            for maxsplit in (-1, 1):
                to.add("split", x, sep=sep, maxsplit=maxsplit)
        to.add("bytes_split", x)
        to.add("unicode_split", x)
        for errors in ("replace", "ignore", "strict"):
            to.add("unicode_decode", x, input_encoding="UTF-8", errors=errors)
    for text in texts:
        for unit in ("BYTE", "UTF8_CHAR"):
            for pos in (0, 3, -3, 13, -13):
                for size in (1, 100):
                    to.add("substr", text, pos, size, unit=unit)
    to.add("substr", texts[2:4], [1, 2], [3, 4])
    to.add("unicode_encode", [104, 228, 0x65E5, 0x1F600, 0])
    to.add("unicode_encode", np.array([], np.int32))


def add_numbers(to: Writer) -> None:
    for text in NUMBERS:
        for dtype in (tf.float32, tf.float64, tf.int32, tf.int64):
            to.add("to_number", text, out_type=dtype)
    floats = [0.0, -0.0, 1.5, -2.25, 1e20, 1e-20, np.inf, -np.inf, np.nan,
              3.14159265358979, 123456789.123, np.pi * 1e300]  # fmt: skip
    for dtype in (np.float32, np.float64):
        with np.errstate(over="ignore"):
            values = np.array(floats).astype(dtype)
        for options in (
            {},
            {"precision": 2},
            {"precision": 0},
            {"scientific": True},
            {"shortest": True},
            {"shortest": True, "precision": 3},
            {"width": 12},
            {"width": 12, "fill": "0"},
            {"width": 12, "precision": 3, "fill": "+"},
            {"fill": "-", "width": 9},
            {"scientific": True, "shortest": True},
            {"fill": "x", "width": 3},
        ):
            to.add("as_string", values, **options)
    for dtype in ("int8", "int32", "int64", "uint8", "uint64"):
        info = np.iinfo(dtype)
        values = np.array([0, 7, info.min, info.max], dtype)
        for options in (
            {},
            {"width": 6},
            {"width": 6, "fill": "0"},
            {"precision": 2},
        ):
            to.add("as_string", values, **options)
    to.add("as_string", np.array([True, False]))
    to.add("as_string", np.array([1 + 2j, -0.5j], np.complex64), precision=1)


def add_tables(to: Writer) -> None:
    words = [w for text in TEXTS for w in text.split()] + [b"", b"\x00"]
    keys = sorted(set(words))[::2]
    ids = np.arange(len(keys), dtype=np.int64)
    for buckets in (1, 7, 1000):
        table = tf.lookup.StaticVocabularyTable(
            tf.lookup.KeyValueTensorInitializer(keys, ids), buckets
        )
        found = table.lookup(tf.constant(words))
        args = [
            encoded(np.array(words, object)),
            encoded(np.array(keys, object)),
        ]
        to.write(
            "vocabulary", args, {"num_oov_buckets": buckets}, encoded(found)
        )
    table = tf.lookup.StaticVocabularyTable(
        tf.lookup.KeyValueTensorInitializer(
            np.array([5, -3, 1 << 40]), np.array([0, 1, 2], np.int64)
        ),
        5,
        lookup_key_dtype=tf.int64,
    )
    asked = np.array([5, 6, -3, -4, 1 << 40, -(1 << 63), (1 << 63) - 1])
    args = [encoded(asked), encoded(np.array([5, -3, 1 << 40]))]
    to.write(
        "vocabulary",
        args,
        {"num_oov_buckets": 5},
        encoded(table.lookup(tf.constant(asked))),
    )


def main() -> None:
    to = Writer()
    add_strings(to)
    add_numbers(to)
    add_tables(to)
    OUT.write_text("\n".join(to.lines) + "\n")
    print(f"{len(to.lines)} calls, {OUT.stat().st_size} bytes")


if __name__ == "__main__":
    main()
