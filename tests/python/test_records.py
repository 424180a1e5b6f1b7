"""Serialized Examples, against what TensorFlow made of them."""

import json
from pathlib import Path

import numpy as np
import pytest

import penstock as ps

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "src/penstock/functions/testdata/records.json"
CASES = {case["name"]: case for case in json.loads(GOLDEN.read_text())}


def from_json(value):
    if isinstance(value, str):
        return bytes.fromhex(value)
    if isinstance(value, list):
        return [from_json(item) for item in value]
    return value


def feature(kind, dtype, *rest):
    if kind == "fixed":
        return ps.io.FixedLenFeature(rest[0], dtype, from_json(rest[1]))
    if kind == "sequence":
        return ps.io.FixedLenSequenceFeature(
            rest[0], dtype, True, from_json(rest[1])
        )
    if kind == "var":
        return ps.io.VarLenFeature(dtype)
    if kind == "ragged":
        return ps.io.RaggedFeature(dtype, row_splits_dtype=rest[0])
    index, value, size = rest
    return ps.io.SparseFeature(index, value, dtype, size)


def check(got, want):
    if "sparse" in want:
        assert type(got) is ps.Sparse
        for part, wanted in zip(got, want["sparse"], strict=True):
            check(part, wanted)
        return
    if "ragged" in want:
        assert type(got) is ps.Ragged
        for part, wanted in zip(got, want["ragged"], strict=True):
            check(part, wanted)
        return
    dtype = object if want["dtype"] == "string" else want["dtype"]
    values = np.array(from_json(want["values"]), dtype).reshape(want["shape"])
    if values.shape == ():
        if want["dtype"] == "string":
            assert got == values.item()
            return
        assert got.dtype == values.dtype
    np.testing.assert_array_equal(got, values)
    assert np.shape(got) == tuple(want["shape"])
    assert np.asarray(got).dtype == values.dtype


def results(dataset):
    """Its elements; None for one that is an error."""
    iterator = iter(dataset)
    found = []
    while True:
        try:
            found.append(next(iterator))
        except StopIteration:
            return found
        except ps.InvalidArgumentError:
            found.append(None)


def is_cut_between_entries(record):
    """Whether it has fewer bytes than its first length says.

    TensorFlow takes one that ends with an entry; ours, as protobuf does,
    refuses all.
    """
    return len(record) > 1 and record[1] < 128 and len(record) < 2 + record[1]


@pytest.mark.parametrize("name", CASES)
def test_as_tensorflow(name):
    case = CASES[name]
    features = {k: feature(*v) for k, v in case["features"].items()}
    records = np.array([bytes.fromhex(r) for r in case["records"]], object)
    dataset = ps.Dataset.from_tensor_slices(records)

    def check_all(got, want):
        assert (got is None) == (want is None)
        if want is not None:
            for key, value in want.items():
                check(got[key], value)

    single = results(
        dataset.map(lambda r: ps.io.parse_single_example(r, features))
    )
    assert len(single) == len(records)
    for record, got, want in zip(records, single, case["single"], strict=True):
        check_all(got, None if is_cut_between_entries(record) else want)
    batches = dataset.batch(len(records))
    (batch,) = results(batches.map(lambda r: ps.io.parse_example(r, features)))
    check_all(batch, case["batch"])
