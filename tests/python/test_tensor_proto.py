"""ps.io.serialize_tensor and parse_tensor, against TensorFlow's bytes."""

import json
from pathlib import Path

import numpy as np
import pytest

import penstock as ps

GOLDEN = json.loads(
    (
        Path(__file__).parents[2]
        / "src/penstock/functions/testdata/tensor_golden.json"
    ).read_text()
)


def tensor(case):
    if case["dtype"] == "string":
        made = np.empty(len(case["items"]), object)
        made[:] = [bytes.fromhex(item) for item in case["items"]]
    else:
        dtype = ps.DType.of(case["dtype"]).dtype
        made = np.frombuffer(bytes.fromhex(case["items"]), dtype)
    return made.reshape(case["shape"])


def same(found, wanted):
    found = np.asarray(found, None if wanted.dtype != object else object)
    assert found.shape == wanted.shape
    if wanted.dtype == object:
        assert found.tolist() == wanted.tolist()
    else:
        assert found.dtype == wanted.dtype
        assert found.tobytes() == wanted.tobytes()


@pytest.mark.parametrize(
    "case", GOLDEN, ids=lambda c: f"{c['dtype']}-{c['shape']}"
)
def test_bytes_are_tensorflows(case):
    wanted = tensor(case)
    data = bytes.fromhex(case["serialized"])
    if case["dtype"] == "bfloat16":  # numpy may have none
        again = ps.Dataset.from_tensors(data).map(
            lambda x: ps.io.serialize_tensor(ps.io.parse_tensor(x, ps.bfloat16))
        )
        assert list(again) == [data]
    else:
        assert ps.io.serialize_tensor(wanted) == data
    for proto in (data, *map(bytes.fromhex, case["others"])):
        same(ps.io.parse_tensor(proto, case["dtype"]), wanted)


def test_in_pipelines():
    rows = [np.arange(n, dtype=np.float32).reshape(1, n) for n in range(5)]
    ds = ps.Dataset.from_list(rows).map(ps.io.serialize_tensor)
    back = ds.map(lambda x: ps.io.parse_tensor(x, ps.float32, shape=(1, -1)))
    assert back.element_spec == ps.TensorSpec((1, None), ps.float32)
    for found, row in zip(back, rows, strict=True):
        same(found, row)


@pytest.mark.parametrize("calls", [None, 3])
def test_tensors_of_several_ranks(calls):
    rows = [np.zeros((1,) * rank, np.int64) for rank in (0, 3, 1, 1, 0, 2)]
    data = [ps.io.serialize_tensor(row) for row in rows]
    ds = ps.Dataset.from_tensor_slices(data).map(
        lambda x: ps.io.parse_tensor(x, ps.int64), num_parallel_calls=calls
    )
    assert ds.element_spec == ps.TensorSpec(None, ps.int64)
    assert [x.shape for x in ds] == [row.shape for row in rows]
    sums = ds.map(lambda x: ps.sum(x))
    assert [int(x) for x in sums] == [0] * 6


VECTOR = ps.io.serialize_tensor(np.arange(3))


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", "got type 0"),
        (b"abc", "the bytes of a TensorProto"),
        (VECTOR[:-1], "the bytes of a TensorProto"),
        (ps.io.serialize_tensor(np.float32(1)), "got float32"),
        (b"\x08\x09\x12\x02\x18\x01", "the bytes of a TensorProto"),
        # Four items and the bytes of one.
        (b"\x08\x09\x12\x04\x12\x02\x08\x04\x22\x08" + bytes(8), "32 bytes"),
        # 2^60 items, of which one is said.
        (
            b"\x08\x09\x12\x0c\x12\x0a\x08" + b"\x80" * 8 + b"\x10\x50\x01",
            "may take 2 GiB",
        ),
        # Dimensions whose product is no number of 64 bits.
        (
            b"\x08\x09\x12\x1a"
            + (b"\x12\x0a\x08" + b"\x80" * 8 + b"\x10") * 2
            + b"\x12\x00",
            "the bytes of a TensorProto",
        ),
    ],
)
def test_bad_bytes_are_errors(data, text):
    with pytest.raises(ps.InvalidArgumentError, match=text):
        ps.io.parse_tensor(data, ps.int64)


def test_other_shapes_are_errors():
    with pytest.raises(ps.InvalidArgumentError, match="must find a tensor of"):
        ps.io.parse_tensor(VECTOR, ps.int64, shape=(2,))
    found = ps.io.parse_tensor(VECTOR, ps.int64, shape=(-1,))
    assert found.tolist() == [0, 1, 2]


def test_cut_and_changed_bytes_never_crash():
    data = ps.io.serialize_tensor(np.array([[b"ab", b""], [b"c", b"d"]]))
    rng = np.random.default_rng(1)
    bad = [data[:n] for n in range(len(data))]
    for _ in range(500):
        changed = bytearray(data)
        changed[rng.integers(len(data))] = rng.integers(256)
        bad.append(bytes(changed))
    ds = ps.Dataset.from_tensor_slices(bad).map(
        lambda x: ps.io.parse_tensor(x, ps.string)
    )
    for found in ds.ignore_errors():
        assert np.size(found) < 1 << 20
