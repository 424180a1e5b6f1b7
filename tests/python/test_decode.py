"""Raw bytes, CSV and base64, against what TensorFlow made of them."""

import json
from pathlib import Path

import numpy as np
import pytest
from test_records import check, from_json, results

import penstock as ps

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "src/penstock/functions/testdata/decoded.json"
CASES = {case["name"]: case for case in json.loads(GOLDEN.read_text())}


def strings(values):
    array = np.empty(len(values), object)
    array[:] = values
    return ps.Dataset.from_tensor_slices(array)


@pytest.mark.parametrize("name", [n for n in CASES if "csv" in CASES[n]])
def test_csv_as_tensorflow(name):
    case = CASES[name]
    defaults = [
        ps.DType.of(dtype)
        if value is None
        else np.array(from_json(value), "O" if dtype == "string" else dtype)
        for dtype, value in case["defaults"]
    ]
    options = case["options"]
    found = results(
        strings(from_json(case["csv"])).map(
            lambda line: ps.io.decode_csv(line, defaults, **options)
        )
    )
    for line, got, want in zip(
        from_json(case["csv"]), found, case["results"], strict=True
    ):
        if line.startswith(b"0x"):
            continue  # hexadecimal numbers are no numbers here
        assert (got is None) == (want is None), line
        for field, wanted in zip(got or (), want or (), strict=True):
            check(field, wanted)


def test_csv_in_batches():
    lines = strings([b"1,a", b'2,"b""c"', b"3,d"]).batch(2)
    one, two = lines.map(lambda line: ps.io.decode_csv(line, [0, ""]))
    np.testing.assert_array_equal(one[0], [1, 2])
    assert list(one[1]) == [b"a", b'b"c']
    np.testing.assert_array_equal(two[0], [3])
    assert one[0].dtype == np.int32


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"1", "a record must have 2 fields; found 1"),
        (b"x,2", 'field 0 must be int32; found "x"'),
        (b",2", "field 0 must have a value; found none"),
        (b'1,"x', "a quoted field must end with a quote"),
        (b'1,x"', "must be quoted"),
        (b'1,"x"y"', "must be written twice"),
    ],
)
def test_csv_says_what_is_wrong(line, message):
    with pytest.raises(ps.InvalidArgumentError, match=message):
        ps.io.decode_csv(line, [ps.int32, ""])


@pytest.mark.parametrize("name", [n for n in CASES if "raw" in CASES[n]])
def test_raw_as_tensorflow(name):
    case = CASES[name]
    data = from_json(case["raw"])
    values = np.array(data, object) if isinstance(data, list) else data
    want = case["result"]
    try:
        got = ps.io.decode_raw(values, case["dtype"], **case["options"])
    except ps.InvalidArgumentError:
        got = None
    assert (got is None) == (want is None)
    if want is None:
        return
    assert got.shape == tuple(want["shape"])
    assert got.dtype == case["dtype"]
    wanted = np.array(want["values"])
    if got.dtype.kind == "c":
        got = np.stack([got.real, got.imag], -1).reshape(wanted.shape)
    np.testing.assert_array_equal(got, wanted)


def test_base64_as_tensorflow():
    case = CASES["base64"]
    texts = from_json(case["texts"])
    for name, pad in (("encoded", False), ("padded", True)):
        for text, want in zip(texts, case[name], strict=True):
            check(ps.io.encode_base64(text, pad=pad), want[0])
    found = results(strings(case["coded"]).map(ps.io.decode_base64))
    for text, got, want in zip(
        case["coded"], found, case["decoded"], strict=True
    ):
        assert (got is None) == (want is None), text
        if want is not None:
            check(got, want[0])


def test_csv_numbers_are_read_exactly():
    rng = np.random.default_rng(7)
    words = rng.integers(0, 1 << 63, 2000, np.uint64)
    floats = [
        *(float(x) for x in words.view(np.float64)),
        *(float(x) / 10.0 ** (i % 40) for i, x in enumerate(words)),
        0.1, -0.0, 5e-324, 2.2250738585072014e-308, 1.7976931348623157e308,
    ]  # fmt: skip
    floats = [x for x in floats if np.isfinite(x)]
    ints = [int(x) for x in words.view(np.int64)]
    ints += [-1, 0, (1 << 63) - 1, -(1 << 63)]
    texts = [repr(x) for x in floats] + [f"{x:.3e}" for x in floats]
    exact = list(
        ps.Dataset.from_tensor_slices(texts).map(
            lambda text: ps.io.decode_csv(text, [ps.float64])[0]
        )
    )
    assert [float(x) for x in exact] == [float(text) for text in texts]
    read = list(
        ps.Dataset.from_tensor_slices([str(x) for x in ints]).map(
            lambda text: ps.io.decode_csv(text, [ps.int64])[0]
        )
    )
    assert [int(x) for x in read] == ints
