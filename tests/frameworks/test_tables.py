"""from_arrow, from_pandas and from_huggingface."""

import datetime
import pickle
import time

import datasets
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from complaints import refuses

import penstock as ps


def plain(value):
    """An element as Python's own values, strings as bytes."""
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    return value.tolist() if hasattr(value, "tolist") else value


def as_bytes(value):
    if isinstance(value, dict):
        return {key: as_bytes(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [as_bytes(part) for part in value]
    return value.encode() if isinstance(value, str) else value


def check(table, spec=None):
    """The dataset of `table` has its rows."""
    ds = ps.Dataset.from_arrow(table)
    found = [plain(row) for row in ds]
    assert found == [as_bytes(row) for row in table.to_pylist()]
    assert len(ds) == table.num_rows
    if spec is not None:
        assert ds.element_spec == {"x": spec}
    return ds


def of(values, kind=None):
    return pa.table({"x": pa.array(values, kind)})


# ---- Arrow's types.

TYPES = {
    "bool": ([True, False, True], pa.bool_(), ps.bool),
    "int8": ([1, -2, 3], pa.int8(), ps.int8),
    "int16": ([1, -2, 3], pa.int16(), ps.int16),
    "int32": ([1, -2, 3], pa.int32(), ps.int32),
    "int64": ([1, -2, 1 << 60], pa.int64(), ps.int64),
    "uint8": ([1, 2, 255], pa.uint8(), ps.uint8),
    "uint64": ([1, 2, (1 << 64) - 1], pa.uint64(), ps.uint64),
    "float16": ([1.5, -2, 3], pa.float16(), ps.float16),
    "float32": ([1.5, -2, 3], pa.float32(), ps.float32),
    "float64": ([1.5, -2, 3], pa.float64(), ps.float64),
    "string": (["a", "", "äöü"], pa.string(), ps.string),
    "large_string": (["a", "", "c"], pa.large_string(), ps.string),
    "string_view": (["a", "", "c" * 30], pa.string_view(), ps.string),
    "binary": ([b"a\0", b"", b"\xff"], pa.binary(), ps.string),
    "binary_view": ([b"a\0", b"", b"\xff" * 20], pa.binary_view(), ps.string),
    "fixed_size_binary": ([b"ab", b"cd", b"ef"], pa.binary(2), ps.string),
    "dictionary": (
        ["a", "b", "a"],
        pa.dictionary(pa.int8(), pa.string()),
        ps.string,
    ),
    "dictionary of numbers": (
        [7, 8, 7],
        pa.dictionary(pa.int8(), pa.int64()),
        ps.int64,
    ),
}


@pytest.mark.parametrize("name", TYPES)
def test_values(name):
    values, kind, dtype = TYPES[name]
    check(of(values, kind), ps.TensorSpec((), dtype))


@pytest.mark.parametrize("name", TYPES)
def test_slices_chunks_and_nothing(name):
    values, kind, _ = TYPES[name]
    table = of(values * 3, kind)
    check(table.slice(2, 5))
    check(table.slice(4, 0))
    check(pa.concat_tables([table.slice(1, 3), table.slice(5, 2), table]))
    check(pa.table({"x": pa.chunked_array([], kind)}))


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("make", [pa.list_, pa.large_list, pa.list_view])
def test_lists(name, make):
    values, kind, dtype = TYPES[name]
    lists = pa.array([values, [], values[:1]] * 3, make(kind))
    table = pa.table({"x": lists})
    spec = ps.TensorSpec((None,), dtype)
    check(table, spec)
    check(table.slice(2, 4), spec)
    check(pa.concat_tables([table.slice(1, 3), table]), spec)
    check(table.slice(0, 0), spec)


@pytest.mark.parametrize("name", TYPES)
def test_lists_of_a_fixed_size(name):
    values, kind, dtype = TYPES[name]
    lists = of([values, values[::-1], values], pa.list_(kind, 3))
    spec = ps.TensorSpec((3,), dtype)
    check(lists, spec)
    check(lists.slice(1, 2), spec)
    nested = of([[values, values]] * 2, pa.list_(pa.list_(kind, 3), 2))
    check(nested, ps.TensorSpec((2, 3), dtype))
    ragged = of([[values], [], [values] * 2], pa.list_(pa.list_(kind, 3)))
    check(ragged, ps.TensorSpec((None, 3), dtype))


def test_structs_are_dicts():
    rows = [
        {"b": i, "a": {"s": str(i), "l": [i] * i}, "c": [i, i]}
        for i in range(5)
    ]
    check(pa.table({"x": rows}))
    check(pa.table({"x": rows}).slice(2, 2))


def test_lists_of_structs_are_dicts_of_lists():
    rows = [[{"a": 1, "b": "u"}, {"a": 2, "b": "v"}], [], [{"a": 3, "b": "w"}]]
    ds = ps.Dataset.from_arrow(pa.table({"x": rows}).slice(0, 3))
    assert [plain(row) for row in ds] == [
        {"x": {"a": [1, 2], "b": [b"u", b"v"]}},
        {"x": {"a": [], "b": []}},
        {"x": {"a": [3], "b": [b"w"]}},
    ]


def test_times_are_counts():
    day = datetime.date(1970, 1, 3)
    moment = datetime.datetime(1970, 1, 1, 0, 0, 5)
    table = pa.table(
        {
            "date": pa.array([day], pa.date32()),
            "moment": pa.array([moment], pa.timestamp("ms")),
            "length": pa.array([7], pa.duration("us")),
            "clock": pa.array([9], pa.time32("s")),
        }
    )
    assert [plain(row) for row in ps.Dataset.from_arrow(table)] == [
        {"date": 2, "moment": 5000, "length": 7, "clock": 9}
    ]


def test_fixed_shape_tensors():
    array = np.arange(12, dtype=np.float32).reshape(2, 2, 3)
    tensors = pa.FixedShapeTensorArray.from_numpy_ndarray(array)
    ds = ps.Dataset.from_arrow(pa.table({"x": tensors}))
    assert ds.element_spec == {"x": ps.TensorSpec((2, 3), ps.float32)}
    assert np.array_equal([row["x"] for row in ds], array)


def test_nulls_of_floats_are_nan():
    table = pa.table({"x": [1.5, None], "l": [[1.0, None], [None]]})
    rows = list(ps.Dataset.from_arrow(table))
    assert np.isnan(rows[1]["x"]) and rows[0]["x"] == 1.5
    assert np.isnan(rows[0]["l"]).tolist() == [False, True]


NULLS = {
    "integers": pa.array([1, None]),
    "strings": pa.array(["a", None]),
    "bools": pa.array([True, None]),
    "lists": pa.array([[1], None]),
    "in lists": pa.array([[1, None]]),
    "fixed lists": pa.array([[1, 2], None], pa.list_(pa.int32(), 2)),
    "structs": pa.array([{"a": 1}, None]),
    "in structs": pa.array([{"a": 1}, {"a": None}]),
    "lists of structs": pa.array([[{"a": 1}, None]]),
    "dictionaries": pa.array(["a", None]).dictionary_encode(),
}


@pytest.mark.parametrize("name", NULLS)
def test_nulls_are_refused(name):
    table = pa.table({"size": NULLS[name]})
    with refuses(ps.InvalidArgumentError, "'size", "fill_null"):
        ps.Dataset.from_arrow(table)


UNSUPPORTED = {
    "lists of lists": [[[1], [2, 3]]],
    "decimals": pa.array([1], pa.decimal128(5, 2)),
    "maps": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())),
    "only nulls": pa.nulls(2),
    "empty structs": pa.array([{}], pa.struct([])),
}


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_other_types_are_refused(name):
    with refuses(ps.InvalidArgumentError, "'col"):
        ps.Dataset.from_arrow(pa.table({"col": UNSUPPORTED[name]}))


@pytest.mark.parametrize("data", [3, "x", [], [1], {"a": 1}, None], ids=str)
def test_what_is_no_table_is_refused(data):
    with refuses(ps.InvalidTypeError, "from_arrow"):
        ps.Dataset.from_arrow(data)


def test_columns_must_be_there_and_have_names_of_their_own():
    with refuses(ps.InvalidArgumentError, "'a'"):
        ps.Dataset.from_arrow(pa.table([[1], [2]], names=["a", "a"]))
    with refuses(ps.InvalidArgumentError, "column"):
        ps.Dataset.from_arrow(pa.table({}))


def test_batches_and_streams():
    table = pa.table({"x": [*range(10)]})
    expected = [{"x": i} for i in range(10)]
    batches = table.to_batches(max_chunksize=3)
    reader = pa.RecordBatchReader.from_batches(table.schema, batches)
    frame = pd.DataFrame({"x": [*range(10)]})  # gives an Arrow stream
    for data in (batches, iter(batches), reader, frame):
        ds = ps.Dataset.from_arrow(data)
        assert [plain(row) for row in ds] == expected
    assert len(ps.Dataset.from_arrow(batches[0])) == 3


def test_rows_resume_pickle_and_have_places():
    table = pa.table({"x": [*range(5000)], "l": [[i] for i in range(5000)]})
    ds = ps.Dataset.from_arrow(table).shuffle(100, seed=1).batch(7)
    it = iter(ds)
    [next(it) for _ in range(3)]
    state = it.state_dict()
    rest = [batch["x"].tolist() for batch in it]
    other = iter(pickle.loads(pickle.dumps(ds)))
    other.load_state_dict(state)
    assert [batch["x"].tolist() for batch in other] == rest
    assert plain(ps.Dataset.from_arrow(table).at(4321)) == {
        "x": 4321,
        "l": [4321],
    }
    assert "from_arrow" in ds.describe()


def test_rows_do_not_become_objects():
    n = 2_000_000
    lengths = np.arange(n + 1, dtype=np.int32)
    lists = pa.ListArray.from_arrays(lengths, np.arange(n))
    words = pa.array(np.arange(n)).cast(pa.string())
    began = time.process_time()
    ds = ps.Dataset.from_arrow(pa.table({"l": lists, "s": words}))
    assert time.process_time() - began < 1  # a microsecond a row is 4 s
    assert plain(ds.at(n - 1)) == {"l": [n - 1], "s": b"%d" % (n - 1)}


# ---- pandas.


def test_frames():
    frame = pd.DataFrame(
        {
            "i": np.arange(3, dtype=np.int32),
            "f": [0.5, np.nan, 2],
            "s": ["a", "b", "ä"],
            "c": pd.Categorical(["u", "v", "u"]),
            "n": pd.array([1, 2, 3], "Int64"),
            "b": [True, False, True],
            "t": pd.to_datetime(["1970-01-01 00:00:01"] * 3).astype(
                "datetime64[ns]"
            ),
            "l": [np.array([1, 2]), np.array([]), np.array([3])],
        }
    )
    ds = ps.Dataset.from_pandas(frame[frame.i != 1])
    assert list(ds.element_spec) == list(frame.columns)
    first, last = (plain(row) for row in ds)
    assert first == {
        "i": 0,
        "f": 0.5,
        "s": b"a",
        "c": b"u",
        "n": 1,
        "b": True,
        "t": 1_000_000_000,
        "l": [1.0, 2.0],
    }
    assert last["s"] == "ä".encode()
    assert ds.element_spec["i"].dtype == ps.int32
    series = ps.Dataset.from_pandas(pd.Series([1, 2], name="x"))
    assert [plain(row) for row in series] == [{"x": 1}, {"x": 2}]


def test_wrong_frames_are_refused():
    with refuses(ps.InvalidTypeError, "DataFrame"):
        ps.Dataset.from_pandas([1])
    with refuses(ps.InvalidTypeError, "rename"):
        ps.Dataset.from_pandas(pd.DataFrame([[1, 2]]))
    with refuses(ps.InvalidTypeError, "mixed"):
        ps.Dataset.from_pandas(pd.DataFrame({"mixed": [1, "a"]}))
    with refuses(ps.InvalidArgumentError, "'x'", "fillna"):
        ps.Dataset.from_pandas(pd.DataFrame({"x": ["a", None]}))


# ---- Hugging Face.


def make_split():
    return datasets.Dataset.from_dict(
        {
            "id": list(range(10)),
            "text": [f"t{i}" for i in range(10)],
            "tokens": [[i] * (i % 3) for i in range(10)],
            "label": [i % 2 for i in range(10)],
        }
    ).cast_column("label", datasets.ClassLabel(names=["no", "yes"]))


def test_splits():
    split = make_split()
    found = [plain(row) for row in ps.Dataset.from_huggingface(split)]
    assert found == [as_bytes(row) for row in split]


def test_the_order_of_a_split_is_kept():
    split = make_split().shuffle(seed=3).filter(lambda row: row["id"] != 4)
    split = split.select(range(1, 8)).with_format("numpy")
    ds = ps.Dataset.from_huggingface(split)
    assert [int(row["id"]) for row in ds] == [int(i) for i in split["id"]]
    none = ps.Dataset.from_huggingface(split.select([]))
    assert list(none) == [] and none.element_spec == ds.element_spec


def test_images_are_their_bytes():
    png = ps.image.encode_png
    images = [np.full((3, 4, 3), value, np.uint8) for value in (10, 20)]
    encoded = list(ps.Dataset.from_tensor_slices(np.stack(images)).map(png))
    kind = pa.struct({"bytes": pa.binary(), "path": pa.string()})
    table = pa.table(
        {"image": pa.array([{"bytes": b, "path": None} for b in encoded], kind)}
    )
    features = datasets.Features({"image": datasets.Image()})
    split = datasets.Dataset(table.cast(features.arrow_schema)).cast(features)
    ds = ps.Dataset.from_huggingface(split).map(
        lambda row: ps.image.decode_png(row["image"], channels=3)
    )
    assert np.array_equal(np.stack(list(ds)), np.stack(images))

    table = pa.table({"image": pa.array([{"path": "a.png"}], kind)})
    split = datasets.Dataset(table).cast(features)
    with refuses(ps.InvalidArgumentError, "'image'", "ImageFolderDataset"):
        ps.Dataset.from_huggingface(split)


def test_arrays_have_their_shape():
    features = datasets.Features({"x": datasets.Array2D((2, 3), "float32")})
    values = np.arange(12, dtype=np.float32).reshape(2, 2, 3)
    split = datasets.Dataset.from_dict({"x": list(values)}, features)
    ds = ps.Dataset.from_huggingface(split)
    assert ds.element_spec == {"x": ps.TensorSpec((2, 3), ps.float32)}
    assert np.array_equal(np.stack([row["x"] for row in ds]), values)


@pytest.mark.parametrize("has_features", [True, False])
def test_streams(has_features):
    split = make_split()
    stream = split.to_iterable_dataset(num_shards=2)
    if not has_features:
        stream = stream.map(lambda row: {**row, "id": row["id"] + 1})
        assert stream.features is None
    ds = ps.Dataset.from_huggingface(stream)
    expected = [as_bytes(row) for row in stream]
    assert [plain(row) for row in ds] == expected
    assert [plain(row) for row in ds] == expected  # another epoch

    it = iter(ds)
    [next(it) for _ in range(4)]
    other = iter(ps.Dataset.from_huggingface(stream))
    other.load_state_dict(it.state_dict())
    assert [plain(row) for row in other] == expected[4:]


def test_one_split_is_taken():
    both = datasets.DatasetDict(train=make_split(), test=make_split())
    with refuses(ps.InvalidTypeError, "['test', 'train']"):
        ps.Dataset.from_huggingface(both)
    with refuses(ps.InvalidTypeError, "datasets.Dataset"):
        ps.Dataset.from_huggingface([1])
