#!/usr/bin/env python3
"""Writes what TensorFlow makes of records.

records.json has serialized Examples, decoded.json raw bytes, CSV and base64.

Needs tensorflow (tools/setup_frameworks makes .venv-frameworks with it):

    .venv-frameworks/bin/python src/penstock/functions/testdata/make_record_golden.py

A case has records in hex and features; its results are TensorFlow's for each
record alone (`single`) and for all in a batch (`batch`), null being an error.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

import tensorflow as tf

Json = Any
DTYPES = {"float32": tf.float32, "int64": tf.int64, "string": tf.string}


def field(number: int, body: bytes, wire_type: int = 2) -> bytes:
    head = varint(number << 3 | wire_type)
    return head + (varint(len(body)) if wire_type == 2 else b"") + body


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def feature(values: list[Any], kind: str, packed: bool = True) -> bytes:
    if kind == "string":
        return field(1, b"".join(field(1, v) for v in values))
    if kind == "float32":
        raw = [tf.constant(v, tf.float32).numpy().tobytes() for v in values]
        if packed:
            return field(2, field(1, b"".join(raw)) if values else b"")
        return field(2, b"".join(field(1, r, 5) for r in raw))
    if packed:
        body = b"".join(map(varint, values))
        return field(3, field(1, body) if values else b"")
    return field(3, b"".join(field(1, varint(v), 0) for v in values))


def entry(key: str, value: bytes) -> bytes:
    return field(1, field(1, key.encode()) + field(2, value))


def example(*entries: bytes) -> bytes:
    return field(1, b"".join(entries))


def sequence(context: bytes, *lists: bytes) -> bytes:
    return field(1, context) + field(2, b"".join(lists))


def frames(key: str, *features: bytes) -> bytes:
    return entry(key, b"".join(field(1, f) for f in features))


def to_tf(features: dict[str, Json]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name, (kind, dtype, *rest) in features.items():
        if kind == "fixed":
            shape, default = rest
            made[name] = tf.io.FixedLenFeature(
                shape, DTYPES[dtype], from_json(default)
            )
        elif kind == "sequence":
            shape, default = rest
            made[name] = tf.io.FixedLenSequenceFeature(
                shape, DTYPES[dtype], True, from_json(default)
            )
        elif kind == "required":
            made[name] = tf.io.FixedLenSequenceFeature(rest[0], DTYPES[dtype])
        elif kind == "var":
            made[name] = tf.io.VarLenFeature(DTYPES[dtype])
        elif kind == "ragged":
            made[name] = tf.io.RaggedFeature(
                DTYPES[dtype], row_splits_dtype=rest[0]
            )
        else:
            index, value, size = rest
            made[name] = tf.io.SparseFeature(index, value, DTYPES[dtype], size)
    return made


def from_json(value: Json) -> Any:
    if isinstance(value, str):
        return bytes.fromhex(value)
    if isinstance(value, list):
        return [from_json(v) for v in value]
    return value


def plain(value: Any) -> Json:
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, list):
        return [plain(v) for v in value]
    return value


def to_json(value: Any) -> Json:
    if isinstance(value, tf.SparseTensor):
        parts = (value.indices, value.values, value.dense_shape)
        return {"sparse": [to_json(part) for part in parts]}
    if isinstance(value, tf.RaggedTensor):
        parts = (value.values, value.row_splits)
        return {"ragged": [to_json(part) for part in parts]}
    array = value.numpy()
    items = array if isinstance(array, bytes) else array.tolist()
    dtype = "string" if value.dtype == tf.string else value.dtype.name
    return {
        "dtype": dtype,
        "shape": list(value.shape),
        "values": plain(items),
    }


def results(parse: Any, records: Any, features: Json) -> Json:
    try:
        parsed = parse(records, to_tf(features))
    except (tf.errors.InvalidArgumentError, UnicodeDecodeError):
        # The latter is its message: it quotes damaged bytes.
        return None
    return {name: to_json(parsed[name]) for name in features}


def sequence_results(parse: Any, records: Any, wanted: Json) -> Json:
    try:
        parsed = parse(records, *(to_tf(features) for features in wanted))
    except (tf.errors.InvalidArgumentError, UnicodeDecodeError):
        return None
    return [{name: to_json(part[name]) for name in part} for part in parsed]


def sequence_case(
    name: str,
    records: list[bytes],
    context: dict[str, Json],
    lists: dict[str, Json],
) -> Json:
    wanted = (context, lists)
    return {
        "name": name,
        "context": context,
        "lists": lists,
        "records": [record.hex() for record in records],
        "single": [
            sequence_results(
                tf.io.parse_single_sequence_example, record, wanted
            )
            for record in records
        ],
        "batch": sequence_results(
            tf.io.parse_sequence_example, records, wanted
        ),
    }


def sequences() -> list[Json]:
    cases = []
    for dtype, (a, b, c) in KINDS.items():
        for packed in (True, False):
            way = f"sequence {dtype} {'packed' if packed else 'unpacked'}"

            def of(*values: Any, dtype=dtype, packed=packed) -> bytes:
                return feature(list(values), dtype, packed)

            records = [
                sequence(entry("n", of(a)), frames("l", of(a), of(b), of(c))),
                sequence(entry("n", of(b)), frames("l", of(c))),
                sequence(entry("n", of(c))),
                sequence(b"", frames("l", of(a))),
                sequence(entry("n", of(a)), frames("l", of(a, b), of(), of(c))),
                sequence(entry("n", of(a)), frames("l")),
                sequence(entry("n", of(a)), frames("l", of(a), b"")),
            ]
            fixed = {"n": ["fixed", dtype, [], None]}
            var = {"n": ["var", dtype]}
            all_chosen = [[0, 1, 2], [4, 5]]
            if packed:
                all_chosen += [[0, 1], [0, 3], [0, 6]]
            for chosen in all_chosen:
                own = [records[i] for i in chosen]
                for kind, *rest in (
                    ("sequence", [], None),
                    ("required", [], None),
                    ("var",),
                    ("ragged", "int32"),
                    ("ragged", "int64"),
                ):
                    lists = {"l": [kind, dtype, *rest]}
                    label = f"{way} {chosen} {kind} {rest}"
                    cases.append(sequence_case(label, own, fixed, lists))
                lists = {"l": ["var", dtype]}
                label = f"{way} {chosen} var context"
                cases.append(sequence_case(label, own, var, lists))
    small = sequence(
        entry("n", feature([1, 300], "int64")),
        frames("l", feature([b"xy"], "string"), feature([], "string")),
    )
    cuts = [small[:n] for n in range(len(small) + 1)]
    context = {"n": ["fixed", "int64", [2], [0, 0]]}
    lists = {"l": ["var", "string"]}
    cases.append(sequence_case("every cut sequence", cuts, context, lists))
    return cases


def outcome(function: Any, *args: Any, **options: Any) -> Json:
    try:
        found = function(*args, **options)
    except (tf.errors.InvalidArgumentError, ValueError):
        return None
    found = found if isinstance(found, list) else [found]
    return [to_json(tensor) for tensor in found]


LINES = """1,2,x
-5, 7 ,y
,,
1,2
1,2,3,4
"1","2","x,y"
"1",2,"a""b"
1,2,"a"b"
1,2,a"b
1,2,"ab
1.5,2,x
1e3,2,x
+1,2,x
0x10,2,x
99999999999,2,x
NA,NA,NA
1,2,x,
1,inf,x
1,nan,x
1,1e400,x
1,1.17549435e-38,x
 1,2,x
1 ,2,x
"",2,x
"",,""
"\"",2,x"""
DEFAULTS = [
    [["int32", 0], ["float32", 1.5], ["string", "646566"]],
    [["int64", 3], ["float64", None], ["string", None]],
    [["string", None], ["string", ""], ["string", "61"]],
]
OPTIONS: list[dict[str, Any]] = [
    {},
    {"na_value": "NA"},
    {"use_quote_delim": False},
    {"field_delim": ";"},
    {"select_cols": [0, 1, 2]},
    {"select_cols": [0, 1, 3]},
]


def csv_cases() -> list[Json]:
    lines = [line.encode() for line in LINES.split("\n")]
    lines += [b"", b"1,2,x\n", b"\r\n1,2,x", b'1,2,"x\ny"', b"1,2,x\ny"]
    lines += [line.replace(b",", b";") for line in lines[:3]]
    cases = []
    for defaults in DEFAULTS:
        for options in OPTIONS:
            values = [
                tf.zeros([0], dtype)
                if value is None
                else tf.constant(from_json(value), dtype)
                for dtype, value in defaults
            ]
            found = [
                outcome(tf.io.decode_csv, line, values, **options)
                for line in lines
            ]
            cases.append(
                {
                    "name": f"csv {defaults} {options}",
                    "csv": [line.hex() for line in lines],
                    "defaults": defaults,
                    "options": options,
                    "results": found,
                }
            )
    return cases


def raw_cases() -> list[Json]:
    cases = []
    names = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64".split()
    for name in [*names, "float16", "float32", "float64", "complex64"]:
        dtype = tf.as_dtype(name)
        ones = b"\1\0\0\1\1\0\1\1"
        for data in (b"", ones, 2 * ones, ones[:3], [ones, ones[::-1]]):
            for options in ({}, {"little_endian": False}, {"fixed_length": 16}):
                try:
                    found = outcome(tf.io.decode_raw, data, dtype, **options)
                except tf.errors.NotFoundError:
                    continue  # TensorFlow lacks it
                if name.startswith("complex") and found is not None:
                    for tensor in found:
                        tensor["values"] = plain_complex(tensor["values"])
                cases.append(
                    {
                        "name": f"raw {name} {data!r} {options}",
                        "raw": plain(data),
                        "dtype": name,
                        "options": options,
                        "result": found and found[0],
                    }
                )
    # What is an error whatever the bytes is what TensorFlow lacks.
    known = {
        (case["dtype"], str(case["options"])) for case in cases if case["result"]
    }
    return [c for c in cases if (c["dtype"], str(c["options"])) in known]


def plain_complex(value: Any) -> Json:
    if isinstance(value, list):
        return [plain_complex(item) for item in value]
    return [value.real, value.imag]


def base64_cases() -> list[Json]:
    texts = [b"", b"a", b"ab", b"abc", bytes(range(256)), b"\xff\xfe\xfd"]
    coded = ["YQ", "YQ==", "YQ=", "YQ===", "YWI", "YWI=", "YWJj", "Y", "Y===",
             "_-8", "/+8", "YQ==YQ==", "====", "=", "Y W I", "YR"]
    return [
        {
            "name": "base64",
            "texts": plain(texts),
            "encoded": [outcome(tf.io.encode_base64, text) for text in texts],
            "padded": [
                outcome(tf.io.encode_base64, text, pad=True) for text in texts
            ],
            "coded": coded,
            "decoded": [outcome(tf.io.decode_base64, text) for text in coded],
        }
    ]


def case(name: str, records: list[bytes], features: dict[str, Json]) -> Json:
    return {
        "name": name,
        "features": features,
        "records": [record.hex() for record in records],
        "single": [
            results(tf.io.parse_single_example, record, features)
            for record in records
        ],
        "batch": results(tf.io.parse_example, records, features),
    }


KINDS = {"float32": (0.5, -3.25, 1e30), "int64": (7, -1, 1 << 40)}
KINDS["string"] = (b"", b"ab", b"x" * 40)  # type: ignore[assignment]


def by_hand() -> list[Json]:
    cases = []
    for dtype, values in KINDS.items():
        three = list(values)
        for packed in (True, False):
            records = [
                example(entry("a", feature(three[:n], dtype, packed)))
                for n in range(4)
            ]
            way = f"{dtype} {'packed' if packed else 'unpacked'}"
            default = plain(three[1])
            for kind, *rest in (
                ("fixed", [], None),
                ("fixed", [], default),
                ("fixed", [2], None),
                ("fixed", [3, 1], None),
                ("sequence", [], None),
                ("sequence", [], default),
                ("var",),
                ("ragged", "int32"),
                ("ragged", "int64"),
            ):
                wanted = {"a": [kind, dtype, *rest]}
                cases.append(case(f"{way} {kind} {rest}", records, wanted))
                cases.append(case(f"{way} {kind} one", records[1:2], wanted))
    one = feature([1], "int64")
    two = feature([2, 3], "int64")
    wrong = feature([1.0], "float32")
    fixed = {"a": ["fixed", "int64", [], 9]}
    var = {"a": ["var", "int64"]}
    unknown = field(9, b"abc") + field(8, varint(300), 0)
    for name, record in {
        "empty": b"",
        "no features": example(),
        "missing": example(entry("b", one)),
        "the last of equal keys": example(entry("a", two), entry("a", one)),
        "another type before": example(entry("a", wrong), entry("a", one)),
        "another type": example(entry("a", wrong)),
        "an empty feature": example(entry("a", b"")),
        "two maps": example(entry("a", one)) + example(entry("b", two)),
        "unknown fields": unknown + example(entry("a", one)) + unknown,
        "value before key": example(field(1, field(2, one) + field(1, b"a"))),
        "no value": example(field(1, field(1, b"a"))),
        "no key": example(field(1, field(2, one))),
        "an unknown list": example(entry("a", field(4, b""))),
        "a varint of ten bytes": example(entry("a", feature([-5], "int64"))),
        "floats cut off": example(
            entry("b", feature([1], "int64")),
            entry("a", field(2, field(1, b"\0\0\0"))),
        ),
        "a group": b"\x0b\x0c" + example(entry("a", one)),
    }.items():
        cases.append(case(f"{name}, fixed", [record], fixed))
        cases.append(case(f"{name}, var", [record], var))
    both = example(
        entry("i", feature([4, 0, 2], "int64")),
        entry("v", feature([0.5, 1.5, 2.5], "float32")),
    )
    wanted = {"s": ["sparse", "float32", "i", "v", 5]}
    cases.append(case("sparse", [both, both, example()], wanted))
    small = example(
        entry("a", feature([1, 300], "int64")),
        entry("b", feature([b"xyz"], "string")),
        entry("c", feature([1.5], "float32", packed=False)),
    )
    cuts = [small[:n] for n in range(len(small) + 1)]
    wanted = {
        "a": ["fixed", "int64", [2], [0, 0]],
        "b": ["var", "string"],
        "c": ["ragged", "float32", "int32"],
    }
    cases.append(case("every truncation", cuts, wanted))
    return cases


def by_chance(count: int, seed: int) -> list[Json]:
    chance = random.Random(seed)
    cases = []
    for number in range(count):
        names = [f"key{i}" + "x" * (i * 7) for i in range(6)]
        features: dict[str, Json] = {}
        kinds = {name: chance.choice(list(KINDS)) for name in names}
        for name in names:
            dtype = kinds[name]
            default = chance.choice([None, plain(KINDS[dtype][0])])
            features[name] = chance.choice(
                [
                    ["fixed", dtype, [], plain(KINDS[dtype][1])],
                    ["fixed", dtype, [1], None],
                    ["sequence", dtype, [], default],
                    ["var", dtype],
                    ["ragged", dtype, "int32"],
                ]
            )
        records = []
        for _ in range(chance.randrange(1, 5)):
            shuffled = [*names, "other"]
            chance.shuffle(shuffled)
            entries = []
            for name in shuffled:
                dtype = kinds.get(name, "int64")
                fixed = features.get(name, ["var"])[0] == "fixed"
                n = 1 if fixed else chance.randrange(4)
                values = [chance.choice(KINDS[dtype]) for _ in range(n)]
                if fixed or chance.random() < 0.8:
                    packed = chance.random() < 0.7
                    entries.append(entry(name, feature(values, dtype, packed)))
            records.append(example(*entries))
        cases.append(case(f"by chance {number}", records, features))
    return cases


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else __file__).parent
    for name, cases in {
        "records": by_hand() + by_chance(30, seed=1) + sequences(),
        "decoded": csv_cases() + raw_cases() + base64_cases(),
    }.items():
        lines = ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases)
        (folder / f"{name}.json").write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main()
