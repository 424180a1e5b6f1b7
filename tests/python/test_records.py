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


def field(number, body):
    return bytes([number << 3 | 2, len(body)]) + body


def ints_example(**features):
    """An Example of small integers."""
    entries = b""
    for key, values in features.items():
        body = field(1, key.encode()) + field(
            2, field(3, field(1, bytes(values)))
        )
        entries += field(1, body)
    return field(1, entries)


def test_partitions():
    record = ints_example(
        v=[3, 1, 4, 1, 5, 9], s1=[0, 2, 3, 3, 6], s2=[0, 2, 3, 4]
    )
    splits = ps.io.RaggedFeature.RowSplits
    pairs = ps.io.RaggedFeature.UniformRowLength(2)

    def ragged(*partitions):
        return ps.io.RaggedFeature(ps.int64, "v", partitions)

    found = ps.io.parse_single_example(
        record,
        {
            "f1": ragged(),
            "f2": ragged(splits("s1")),
            "f3": ragged(splits("s2"), splits("s1")),
            "f4": ragged(pairs),
            "s1": ps.io.FixedLenFeature([5], ps.int64),
        },
    )
    assert found["f1"].tolist() == [3, 1, 4, 1, 5, 9]
    assert found["f2"].values.tolist() == [3, 1, 4, 1, 5, 9]
    assert found["f2"].row_splits.tolist() == [0, 2, 3, 3, 6]
    assert found["f2"].row_splits.dtype == np.int32
    assert found["f3"].row_splits.tolist() == [0, 2, 3, 4]
    assert found["f3"].values.row_splits.tolist() == [0, 2, 3, 3, 6]
    assert found["f4"].tolist() == [[3, 1], [4, 1], [5, 9]]
    assert found["s1"].tolist() == [0, 2, 3, 3, 6]
    with pytest.raises(ps.InvalidArgumentError, match="partitions"):
        ps.io.parse_example([record], {"f": ragged(splits("s1"))})


def test_composites_keep_their_classes(tmp_path):
    import pickle

    record = ints_example(a=[1, 2])
    features = {"a": ps.io.VarLenFeature(ps.int64)}
    ds = ps.Dataset.from_tensor_slices([record]).map(
        lambda r: ps.io.parse_single_example(r, features)
    )
    assert type(ds.element_spec["a"]) is ps.Sparse
    again = pickle.loads(pickle.dumps(ds)).map(
        lambda x: (x["a"], x["a"].values)
    )
    ((sparse, values),) = list(again)
    assert type(sparse) is ps.Sparse
    assert values.tolist() == [1, 2]
    assert sparse.dense_shape.tolist() == [2]


@pytest.mark.parametrize(
    ("features", "message"),
    [
        ({}, "at least one feature"),
        ({"a": ps.int64}, "must be a FixedLenFeature, VarLenFeature"),
        ({"a": ps.io.FixedLenFeature([], ps.int32)}, "Cast the result"),
        (
            {"a": ps.io.FixedLenFeature([None], ps.int64)},
            "sizes that are known",
        ),
        ({"a": ps.io.FixedLenFeature([2], ps.int64, [1])}, "of shape \\(2,\\)"),
        ({"a": ps.io.FixedLenSequenceFeature([], ps.int64)}, "allow_missing"),
        ({1: ps.io.VarLenFeature(ps.int64)}, "names of features"),
    ],
)
def test_wrong_features(features, message):
    with pytest.raises(
        (ps.InvalidArgumentError, ps.InvalidTypeError), match=message
    ):
        ps.io.parse_single_example(b"", features)
    with pytest.raises(ps.InvalidArgumentError, match="takes a vector"):
        ps.io.parse_example(b"", {"a": ps.io.VarLenFeature(ps.int64)})
