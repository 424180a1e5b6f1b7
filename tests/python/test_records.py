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
    if kind == "required":
        return ps.io.FixedLenSequenceFeature(rest[0], dtype)
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


def is_cut_off(record):
    """Whether it has fewer bytes than a length in it says.

    TensorFlow takes one that ends with an entry; ours, as protobuf does,
    refuses all. (Lengths of one byte suffice here.)
    """
    at = 0
    while at < len(record) and record[at] in (0x0A, 0x12):
        if at + 1 == len(record) or record[at + 1] >= 128:
            return False
        at += 2 + record[at + 1]
    return at > len(record)


def check_all(got, want):
    assert (got is None) == (want is None)
    if want is not None:
        assert got.keys() == want.keys()
        for key, value in want.items():
            check(got[key], value)


def features_of(wanted):
    return {key: feature(*value) for key, value in wanted.items()}


def dataset_of(case):
    records = [bytes.fromhex(record) for record in case["records"]]
    dataset = ps.Dataset.from_tensor_slices(np.array(records, object))
    return records, dataset


@pytest.mark.parametrize("name", [n for n in CASES if "features" in CASES[n]])
def test_as_tensorflow(name):
    case = CASES[name]
    features = features_of(case["features"])
    records, dataset = dataset_of(case)
    single = results(
        dataset.map(lambda r: ps.io.parse_single_example(r, features))
    )
    assert len(single) == len(records)
    for record, got, want in zip(records, single, case["single"], strict=True):
        check_all(got, None if is_cut_off(record) else want)
    batches = dataset.batch(len(records))
    (batch,) = results(batches.map(lambda r: ps.io.parse_example(r, features)))
    check_all(batch, case["batch"])


@pytest.mark.parametrize("name", [n for n in CASES if "context" in CASES[n]])
def test_sequences_as_tensorflow(name):
    case = CASES[name]
    context, lists = features_of(case["context"]), features_of(case["lists"])
    records, dataset = dataset_of(case)

    def check_parts(got, want):
        assert (got is None) == (want is None)
        for part, wanted in zip(got or (), want or (), strict=True):
            check_all(part, wanted)

    single = results(
        dataset.map(
            lambda r: ps.io.parse_single_sequence_example(r, context, lists)
        )
    )
    for record, got, want in zip(records, single, case["single"], strict=True):
        check_parts(got, None if is_cut_off(record) else want)
    batches = dataset.batch(len(records))
    (batch,) = results(
        batches.map(lambda r: ps.io.parse_sequence_example(r, context, lists))
    )
    check_parts(batch, case["batch"])
