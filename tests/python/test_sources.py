"""Sources: what each gives."""

import gzip
import zlib
from pathlib import Path

import numpy as np
import pytest
from pipelines import Pair, Point, assert_equal, ints, lists
from records import record

import penstock as ps

Dataset = ps.Dataset


@pytest.mark.parametrize(
    "bounds", [(5,), (0,), (2, 5), (5, 2), (0, 10, 3), (5, 0, -2), (0, 5, -1)]
)
def test_range_is_pythons(bounds):
    assert ints(Dataset.range(*bounds)) == list(range(*bounds))


@pytest.mark.parametrize("dtype", [np.int32, np.uint8, np.float32, ps.int16])
def test_range_of_a_dtype(dtype):
    ds = Dataset.range(3, output_type=dtype)
    assert ds.element_spec.dtype == dtype
    assert [x.dtype for x in ds] == [np.dtype(dtype)] * 3


@pytest.mark.parametrize("bounds", [(0, 5, 0), (), (1, 2, 3, 4), ("x",)])
def test_range_refuses(bounds):
    with pytest.raises(ValueError):
        Dataset.range(*bounds)


def test_counter():
    assert ints(Dataset.counter(10, -3).take(3)) == [10, 7, 4]
    assert Dataset.counter().cardinality() == ps.INFINITE_CARDINALITY


def test_random_has_seeds():
    def draw(**options):
        return ints(Dataset.random(**options).take(5))

    assert draw(seed=1) == draw(seed=1)
    assert draw(seed=1) != draw(seed=2)
    assert draw(seed=0) == draw(seed=0)
    assert draw() != draw()


def test_random_may_change_with_each_iterator():
    same = Dataset.random(seed=1).take(5)
    assert ints(same) == ints(same)
    other = Dataset.random(seed=1, rerandomize_each_iteration=True).take(5)
    assert ints(other) != ints(other)


def test_from_tensors_keeps_the_whole():
    element = ({"b": np.arange(3), "a": np.float32(1)}, None, b"x")
    ds = Dataset.from_tensors(element)
    assert_equal(list(ds), [element])
    assert len(ds) == 1


@pytest.mark.parametrize(
    ("given", "want"),
    [
        ([1, 2], [np.int64(1), np.int64(2)]),
        (
            ([1, 2], [[1.0], [2.0]]),
            [
                (np.int64(1), np.array([1.0])),
                (np.int64(2), np.array([2.0])),
            ],
        ),
        (
            {"z": ["u"], "a": np.array([3], np.uint8)},
            [{"z": b"u", "a": np.uint8(3)}],
        ),
        (Point([1], [2]), [Point(np.int64(1), np.int64(2))]),
        (Pair([1], {"k": [2]}), [Pair(np.int64(1), {"k": np.int64(2)})]),
        (([1], None), [(np.int64(1), None)]),
        (np.zeros((2, 0)), [np.zeros(0), np.zeros(0)]),
        (np.zeros((0, 3)), []),
        ([[True], [False]], [np.array([True]), np.array([False])]),
        (np.arange(6).reshape(2, 3).T, list(np.arange(6).reshape(2, 3).T)),
    ],
)
def test_from_tensor_slices(given, want):
    assert_equal(list(Dataset.from_tensor_slices(given)), want)


def test_from_tensor_slices_of_a_large_array_that_changes_later():
    array = np.arange(20_000).reshape(10, -1)
    ds = Dataset.from_tensor_slices(array)
    want = array.copy()
    array[:] = 0
    np.testing.assert_array_equal(np.stack(list(ds)), want)


@pytest.mark.parametrize(
    "given",
    [3, ([1, 2], [1]), (), None, {"a": [1], "b": [1, 2]}, object(), [object()]],
)
def test_from_tensor_slices_refuses(given):
    with pytest.raises(ValueError):
        Dataset.from_tensor_slices(given)


def test_from_list_of_different_shapes():
    ds = Dataset.from_list([([1, 2], "a"), ([3], "bb")])
    assert ds.element_spec[0].shape == (None,)
    assert_equal(list(ds), [(np.array([1, 2]), b"a"), (np.array([3]), b"bb")])


@pytest.mark.parametrize("given", [[], [1, "a"], [(1,), (1, 2)], [[1], [[1]]]])
def test_from_list_refuses(given):
    with pytest.raises(ValueError):
        Dataset.from_list(given)


def test_zip_of_structures():
    a, b = Dataset.range(3), Dataset.range(10, 12)
    assert list(Dataset.zip(a, b)) == [(0, 10), (1, 11)]
    assert list(Dataset.zip((a, b))) == [(0, 10), (1, 11)]
    assert next(iter(Dataset.zip({"a": (a, b), "b": b}))) == {
        "a": (0, 10),
        "b": 10,
    }
    assert list(Dataset.zip(datasets=(a, b))) == [(0, 10), (1, 11)]


def test_zip_refuses():
    a = Dataset.range(3)
    for arguments in [([a, a],), (), (1,), (a, [a])]:
        with pytest.raises(TypeError):
            Dataset.zip(*arguments)
    with pytest.raises(TypeError):
        Dataset.zip(a, datasets=(a, a))


# ---- Files.


def compress(data, kind):
    if kind == "GZIP":
        return gzip.compress(data)
    return zlib.compress(data) if kind == "ZLIB" else data


@pytest.mark.parametrize("kind", [None, "", "GZIP", "ZLIB"])
def test_text_lines(tmp_path, kind):
    file = tmp_path / "f"
    file.write_bytes(compress(b"one\n\r\nthree\r\nlast", kind))
    ds = ps.TextLineDataset(file, compression_type=kind)
    assert list(ds) == [b"one", b"", b"three", b"last"]


@pytest.mark.parametrize("kind", [None, "GZIP", "ZLIB"])
def test_tf_records(tmp_path, kind):
    file = tmp_path / "f"
    records = [b"", b"x" * 1000, b"last"]
    file.write_bytes(compress(b"".join(map(record, records)), kind))
    assert list(ps.TFRecordDataset(file, kind)) == records


def test_a_damaged_record_is_an_error(tmp_path):
    file = tmp_path / "f"
    data = bytearray(record(b"one") + record(b"two"))
    data[12] ^= 1
    file.write_bytes(data)
    elements = iter(ps.TFRecordDataset(file))
    with pytest.raises(ps.DataLossError, match="f"):
        next(elements)


def test_fixed_length_records(tmp_path):
    file = tmp_path / "f"
    file.write_bytes(b"HEADaabbccF")
    ds = ps.FixedLengthRecordDataset(file, 2, 4, 1)
    assert list(ds) == [b"aa", b"bb", b"cc"]


def test_fixed_length_of_the_wrong_size_is_an_error(tmp_path):
    file = tmp_path / "f"
    file.write_bytes(b"aabbc")
    with pytest.raises(ps.PenstockError):
        list(ps.FixedLengthRecordDataset(file, 2))


@pytest.mark.parametrize("size", [0, -1, 1.5, "x"])
def test_fixed_length_refuses(tmp_path, size):
    with pytest.raises(ValueError):
        ps.FixedLengthRecordDataset(tmp_path / "f", size)


def forms(files):
    names = [str(file) for file in files]
    return {
        "paths": files,
        "tuple": tuple(files),
        "names": names,
        "bytes": [name.encode() for name in names],
        "array": np.array(names),
        "dataset": Dataset.from_tensor_slices(names),
    }


@pytest.mark.parametrize(
    "form", ["paths", "tuple", "names", "bytes", "array", "dataset"]
)
def test_forms_of_file_names(tmp_path, form):
    files = [tmp_path / "a", tmp_path / "b"]
    for i, file in enumerate(files):
        file.write_text(f"{i}0\n{i}1\n")
    given = forms(files)[form]
    assert list(ps.TextLineDataset(given)) == [b"00", b"01", b"10", b"11"]


def test_parallel_reads_take_turns(tmp_path):
    for i in range(3):
        (tmp_path / str(i)).write_text(f"{i}0\n{i}1\n")
    files = [tmp_path / str(i) for i in range(3)]
    ds = ps.TextLineDataset(files, num_parallel_reads=2)
    assert list(ds) == [b"00", b"10", b"01", b"11", b"20", b"21"]


def test_a_missing_file_is_named():
    for kind in (ps.TextLineDataset, ps.TFRecordDataset):
        with pytest.raises(FileNotFoundError, match="no-such-file"):
            list(kind("/no-such-file"))


def test_no_files():
    assert list(ps.TextLineDataset([])) == []


def test_unknown_compression_is_refused(tmp_path):
    with pytest.raises(ValueError, match="LZ5"):
        list(ps.TextLineDataset(tmp_path / "f", "LZ5"))


def test_list_files(tmp_path):
    for name in ("b.txt", "a.txt", "c.bin"):
        (tmp_path / name).touch()
    ds = Dataset.list_files(tmp_path / "*.txt", shuffle=False)
    want = [str(tmp_path / name).encode() for name in ("a.txt", "b.txt")]
    assert list(ds) == want
    assert list(ds.repeat(2)) == want * 2
    both = Dataset.list_files(
        [str(tmp_path / "c*"), str(tmp_path / "a*")], shuffle=False
    )
    assert sorted(both) == sorted([want[0], str(tmp_path / "c.bin").encode()])


def test_list_files_shuffles_by_seed(tmp_path):
    for i in range(9):
        (tmp_path / str(i)).touch()

    def order(**options):
        return list(Dataset.list_files(tmp_path / "*", **options))

    assert sorted(order()) == order(shuffle=False)
    assert order(seed=1) == order(seed=1)
    assert order(seed=1) != order(shuffle=False)


def test_list_files_needs_a_match(tmp_path):
    with pytest.raises(ps.PenstockError, match="no-match"):
        list(Dataset.list_files(tmp_path / "no-match*"))


# ---- Of values of a recorded function.


def test_sources_inside_functions(tmp_path):
    files = []
    for i in range(2):
        file = tmp_path / str(i)
        file.write_text(f"{i}0\n{i}1\n")
        files.append(str(file))
    ds = Dataset.from_tensor_slices(files).flat_map(ps.TextLineDataset)
    assert list(ds) == [b"00", b"01", b"10", b"11"]
    ds = Dataset.range(2).flat_map(lambda x: Dataset.from_tensors((x, x + 1)))
    assert list(ds) == [(0, 1), (1, 2)]
    ds = Dataset.range(2).batch(2).flat_map(Dataset.from_tensor_slices)
    assert ints(ds) == [0, 1]
    ds = Dataset.range(2).flat_map(
        lambda x: Dataset.from_tensor_slices([x, x * 10])
    )
    assert ints(ds) == [0, 0, 1, 10]


def test_lists_of_batches():
    assert lists(Dataset.range(3).batch(2)) == [[0, 1], [2]]


def test_relative_names_start_from_the_directory_of_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.txt").write_text(name)
    ds = Dataset.list_files("*.txt").flat_map(ps.TextLineDataset)
    for name in ("a", "b"):
        monkeypatch.chdir(tmp_path / name)
        assert list(ds) == [name.encode()]
        assert list(ps.TextLineDataset("x.txt")) == [name.encode()]


@pytest.mark.parametrize("kind", ["from_tensors", "from_tensor_slices"])
def test_sources_are_shown_as_they_were_made(kind):
    ds = getattr(Dataset, kind)([1, 2])
    assert ds.batch(2).describe().splitlines()[1].startswith(f"  {kind}_0")
    assert not ds.describe().endswith("\n")
    assert Dataset.from_list([1]).describe().startswith("from_list_0")


def test_how_rows_were_made_is_not_what_they_are():
    same = Dataset.from_tensor_slices([1, 2]), Dataset.from_list([1, 2])
    assert same[0].fingerprint() == same[1].fingerprint()
