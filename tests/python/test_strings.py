"""String functions and tables against Python's own, and in pipelines."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock as ps

SPACED = st.text(" \t\n\r\v\fabÄ,", max_size=40).map(str.encode)
ANY = st.one_of(st.binary(max_size=40), SPACED)
LISTS = st.lists(ANY, min_size=1, max_size=12)
SEPARATORS = st.sampled_from([",", " ", "a", "ab", "\n", "Ä", "\0"])


def each(function: Any, values: list[Any]) -> list[Any]:
    """What a pipeline of `values` gives, as Python's values."""
    ds = ps.Dataset.from_tensor_slices(objects(values)).map(function)
    return [x.tolist() if isinstance(x, np.ndarray) else x for x in ds]


def objects(values: list[Any]) -> np.ndarray[Any, Any]:
    array = np.empty(len(values), object)
    array[:] = values
    return array


@given(LISTS)
def test_split_at_space(values: list[bytes]) -> None:
    assert each(ps.strings.split, values) == [v.split() for v in values]


@given(LISTS, SEPARATORS)
def test_split_at_text(values: list[bytes], sep: str) -> None:
    got = each(lambda x: ps.strings.split(x, sep), values)
    assert got == [v.split(sep.encode()) for v in values]


@given(LISTS, SEPARATORS, st.integers(1, 3))
def test_split_some(values: list[bytes], sep: str, most: int) -> None:
    got = each(lambda x: ps.strings.split(x, sep, most), values)
    assert got == [v.split(sep.encode(), most) for v in values]


@given(LISTS)
def test_case_and_strip(values: list[bytes]) -> None:
    assert each(ps.strings.lower, values) == [v.lower() for v in values]
    assert each(ps.strings.upper, values) == [v.upper() for v in values]
    assert each(ps.strings.strip, values) == [v.strip() for v in values]


@given(st.lists(st.text(max_size=20), min_size=1, max_size=8))
def test_characters(values: list[str]) -> None:
    texts = [v.encode() for v in values]
    got = each(ps.strings.unicode_decode, texts)
    assert got == [[ord(c) for c in v] for v in values]
    got = each(ps.strings.unicode_split, texts)
    assert got == [[c.encode() for c in v] for v in values]
    got = each(lambda x: ps.strings.length(x, "UTF8_CHAR"), texts)
    assert got == [len(v) for v in values]


@given(LISTS)
def test_ill_formed_bytes_become_as_many_characters(
    values: list[bytes],
) -> None:
    got = each(ps.strings.unicode_decode, values)
    assert got == [[ord(c) for c in v.decode(errors="replace")] for v in values]


@given(LISTS, st.integers(0, 45), st.integers(0, 45))
def test_substr(values: list[bytes], pos: int, size: int) -> None:
    long = [v + bytes(pos) for v in values]
    got = each(lambda x: ps.strings.substr(x, pos, size), long)
    assert got == [v[pos : pos + size] for v in long]
    got = each(lambda x: ps.strings.substr(x, -pos, size), long)
    assert got == [v[len(v) - pos if pos else 0 :][:size] for v in long]


@given(LISTS)
def test_joins(values: list[bytes]) -> None:
    assert each(lambda x: b"<" + x + b">", values) == [
        b"<" + v + b">" for v in values
    ]
    assert ps.strings.reduce_join(values, separator="-") == b"-".join(values)
    got = each(lambda x: ps.strings.join([x, b"|", x]), values)
    assert got == [v + b"|" + v for v in values]


@given(st.lists(st.integers(-(1 << 63), (1 << 63) - 1), min_size=1))
def test_integers(values: list[int]) -> None:
    texts = ps.strings.as_string(np.array(values))
    assert texts.tolist() == [str(v).encode() for v in values]
    assert ps.strings.to_number(texts, ps.int64).tolist() == values


@given(st.lists(st.floats(allow_nan=False), min_size=1))
def test_floats(values: list[float]) -> None:
    texts = [repr(v).encode() for v in values]
    assert ps.strings.to_number(texts, ps.float64).tolist() == values


@given(st.dictionaries(ANY, st.integers(-100, 100), min_size=1), LISTS)
@settings(max_examples=50)
def test_tables(known: dict[bytes, int], values: list[bytes]) -> None:
    asked = [*values, *known]
    table = ps.lookup.Table(objects(list(known)), list(known.values()), -1)
    assert each(table.lookup, asked) == [known.get(v, -1) for v in asked]
    words = ps.lookup.Vocabulary(objects(list(known)))
    places = {key: i for i, key in enumerate(known)}
    assert each(words.lookup, asked) == [places.get(v, -1) for v in asked]


@given(st.dictionaries(st.integers(-50, 50), ANY, min_size=1))
@settings(max_examples=50)
def test_tables_of_integers(known: dict[int, bytes]) -> None:
    table = ps.lookup.Table(list(known), objects(list(known.values())), b"?")
    got = table.lookup(np.arange(-50, 51, dtype=np.int8)).tolist()
    assert got == [known.get(i, b"?") for i in range(-50, 51)]


# ---- In pipelines.


def test_words_to_padded_batches(tmp_path: Path) -> None:
    (tmp_path / "lines.txt").write_text("the cat sat\n\nthe dog\na b c d e\n")
    (tmp_path / "vocab.txt").write_text("the\ncat\r\ndog\n")
    words = ps.lookup.Vocabulary(tmp_path / "vocab.txt", num_oov_buckets=1)
    ds = ps.TextLineDataset(str(tmp_path / "lines.txt"))
    ds = ds.map(lambda line: words.lookup(ps.strings.split(line)))
    ds = ds.filter(lambda ids: ps.shape(ids)[0] < 5).padded_batch(3)
    (batch,) = ds
    assert batch.tolist() == [[0, 1, 3], [0, 0, 0], [0, 2, 0]]
    assert words.size() == 4


def test_a_vector_of_strings_is_split_into_a_ragged() -> None:
    ds = ps.Dataset.from_tensor_slices(["a b", "", "c"]).batch(2)
    first, second = ds.map(ps.strings.split)
    assert isinstance(first, ps.Ragged)
    assert first.values.tolist() == [b"a", b"b"]
    assert first.row_splits.tolist() == [0, 2, 2]
    assert second.row_splits.tolist() == [0, 1]


def test_errors_are_of_their_rows() -> None:
    ds = ps.Dataset.from_tensor_slices(["1", "x", "3"])
    it = iter(ds.map(lambda x: ps.strings.to_number(x, ps.int64)))
    assert next(it) == 1
    with pytest.raises(ps.InvalidArgumentError, match="got 'x'"):
        next(it)
    assert next(it) == 3


def test_a_table_is_part_of_what_a_pipeline_is() -> None:
    ds = ps.Dataset.from_tensor_slices(["w1"])
    many = [f"w{i}" for i in range(3000)]

    def numbers(keys: list[str]) -> Any:
        words = ps.lookup.Vocabulary(keys)
        return ds.map(words.lookup)

    one, same, other = numbers(many), numbers(many), numbers(many[::-1])
    assert one.fingerprint() == same.fingerprint() != other.fingerprint()
    assert list(pickle.loads(pickle.dumps(one))) == [1]
    assert list(other) == [2998]


def test_comparisons_and_where() -> None:
    ds = ps.Dataset.from_tensor_slices(["a", "b", "c"])
    got = list(ds.map(lambda x: ps.where(x < "b", "low", x + "!")))
    assert got == [b"low", b"b!", b"c!"]
    assert list(ds.filter(lambda x: x == "b")) == [b"b"]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ps.lookup.Vocabulary([]), "at least one key"),
        (lambda: ps.lookup.Vocabulary(["a", "b", "a"]), "b'a' at 0 and 2"),
        (lambda: ps.lookup.Vocabulary(["a"], -1), "must not be negative"),
        (lambda: ps.lookup.Vocabulary([["a"]]), "must be a vector"),
        (lambda: ps.lookup.Vocabulary([1.5]), "strings or integers"),
        (lambda: ps.lookup.Table(["a"], [1, 2], 0), "as many values"),
        (lambda: ps.lookup.Vocabulary("/no/such/file"), "must exist"),
        (lambda: ps.lookup.Vocabulary("/"), "must be readable"),
        (lambda: ps.strings.split([["a"]]), "rank 2"),
        (lambda: ps.strings.regex_replace("a", "(", ""), "RE2"),
        (lambda: ps.strings.lower(1), "needs strings"),
        (lambda: ps.strings.to_number("1", ps.int8), "out_type"),
        (lambda: ps.strings.as_string(1.5, width=10**9), "may be 4096"),
    ],
)
def test_what_is_refused(make: Any, message: str) -> None:
    with pytest.raises(ps.PenstockError, match=message):
        make()


# As tf.strings.format of TensorFlow 2.21 writes them.
FORMATTED = [
    (np.array(["a", 'b"\n']), {}, b'["a" "b\\"\\n"]'),
    (
        np.float32([1.5, 1 / 3, 1e10, 1e-7, np.nan, np.inf, -np.inf, 0.1]),
        {"summarize": -1},
        b"[1.5 0.333333343 1e+10 1e-07 nan inf -inf 0.1]",
    ),
    (
        np.float32([123456789.0, 100000.0, 1000000.0, 1e16]),
        {},
        b"[123456792 100000 1e+06 1e+16]",
    ),
    (
        np.array([1.5, 1 / 3, 1e10, 1e-7, 123456789.0, 1e300]),
        {},
        b"[1.5 0.33333333333333331 10000000000 1e-07 123456789 1e+300]",
    ),
    (np.array([True, False]), {}, b"[1 0]"),
    (np.int8([65, -3]), {}, b"[65 -3]"),
    (np.uint8([65, 3]), {}, b"[65 3]"),
    (np.float16([1.5, 1 / 3]), {}, b"[1.5 0.333251953]"),
    (np.uint64(1 << 63), {}, b"9223372036854775808"),
    (
        np.arange(24).reshape(2, 3, 4),
        {},
        b"[[[0 1 2 3]\n  [4 5 6 7]\n  [8 9 10 11]]\n\n "
        b"[[12 13 14 15]\n  [16 17 18 19]\n  [20 21 22 23]]]",
    ),
    (np.arange(10), {}, b"[0 1 2 ... 7 8 9]"),
    (np.arange(7), {}, b"[0 1 2 ... 4 5 6]"),
    (np.arange(6), {}, b"[0 1 2 3 4 5]"),
    (np.arange(10), {"summarize": 1}, b"[0 ... 9]"),
    (np.arange(10), {"summarize": 0}, b"[ ...]"),
    (np.int64(5), {"summarize": 0}, b"..."),
    (np.zeros((0, 3)), {}, b"[]"),
    (np.zeros((3, 0)), {}, b"[\n ...]"),
    (
        np.arange(64).reshape(8, 8),
        {"summarize": 1},
        b"[[0 ... 7]\n ...\n [56 ... 63]]",
    ),
]


@pytest.mark.parametrize(("value", "options", "text"), FORMATTED)
def test_format(value, options, text):
    assert ps.strings.format("{}", value, **options) == text
    ds = ps.Dataset.from_tensors(value).map(
        lambda x: ps.strings.format("<{}>", x, **options)
    )
    assert list(ds) == [b"<" + text + b">"]


def test_format_of_several():
    assert ps.strings.format("a {} b {}", (1, "x")) == b'a 1 b "x"'
    assert ps.strings.format("%t, {}", 1, placeholder="%t") == b"1, {}"
    assert ps.strings.format("none", []) == b"none"
    for template, inputs in (("{} {}", 1), ("{}", (1, 2)), ("{}", [])):
        with pytest.raises(ValueError, match="placeholder"):
            ps.strings.format(template, inputs)
    with pytest.raises(ValueError, match="numbers"):
        ps.strings.format("{}", 1j)
