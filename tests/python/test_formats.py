"""Files whose records have parts: tar, CSV, JSON Lines, NumPy, folders."""

import io
import tarfile

import numpy as np
import pytest

import penstock as ps


def write_tar(path, members, mode="w", **options):
    with tarfile.open(path, mode, **options) as tar:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))


@pytest.mark.parametrize(
    "form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT]
)
def test_tar_samples(tmp_path, form):
    long = "x" * 60 + "/" + "y" * 60
    members = [
        (f"{key}.{end}", f"{key}{end}".encode() * size)
        for size, key in enumerate(["a/1", "a/2", long, "b"])
        for end in ("jpg", "CLS")
    ]
    write_tar(tmp_path / "t.tar", members, format=form)
    ds = ps.TarDataset(tmp_path / "t.tar", ["jpg", "cls"])
    found = list(ds)
    assert [f["__key__"].decode() for f in found] == ["a/1", "a/2", long, "b"]
    assert found[1]["jpg"] == b"a/2jpg"
    assert found[3]["cls"] == b"bCLS" * 3
    iterator = iter(ds)
    next(iterator)
    state = iterator.state_dict()
    again = iter(ds)
    again.load_state_dict(state)
    assert [f["__key__"] for f in again] == [f["__key__"] for f in found[1:]]


def test_tar_errors_have_their_places(tmp_path):
    members = [("1.jpg", b"1"), ("2.cls", b"2"), ("3.jpg", b"3")]
    write_tar(tmp_path / "t.tar", members)
    iterator = iter(ps.TarDataset([tmp_path / "t.tar"] * 2, ["jpg"]))
    assert next(iterator)["jpg"] == b"1"
    with pytest.raises(
        ps.InvalidArgumentError,
        match='sample "2" must have a member jpg; found',
    ):
        next(iterator)
    assert next(iterator)["jpg"] == b"3"
    assert next(iterator)["jpg"] == b"1"
    write_tar(tmp_path / "u.tar", [("../1.jpg", b"1")])
    with pytest.raises(ps.InvalidArgumentError, match="inside it; found"):
        next(iter(ps.TarDataset(tmp_path / "u.tar", ["jpg"])))
    with pytest.raises(ps.InvalidTypeError, match="extensions"):
        ps.TarDataset(tmp_path / "u.tar", "jpg")


def test_tar_interleaved_and_compressed(tmp_path):
    for name in "ab":
        write_tar(
            tmp_path / f"{name}.tgz",
            [(f"{name}{i}.txt", b"x") for i in range(2)],
            mode="w:gz",
        )
    files = ps.Dataset.list_files(str(tmp_path / "*.tgz"), shuffle=False)
    ds = ps.TarDataset(files, ["txt"], "GZIP", num_parallel_reads=2)
    assert [f["__key__"] for f in ds] == [b"a0", b"b0", b"a1", b"b1"]


def test_csv_files(tmp_path):
    for name in "ab":
        text = f'n,x\n{name},1\n"{name},{name}",\n'
        (tmp_path / f"{name}.csv").write_text(text)
    files = [tmp_path / "a.csv", tmp_path / "b.csv"]
    found = list(ps.CsvDataset(files, ["", 0.5], header=True))
    assert [name for name, _ in found] == [b"a", b"a,a", b"b", b"b,b"]
    assert [float(x) for _, x in found] == [1, 0.5, 1, 0.5]
    one = ps.CsvDataset(files[0], [ps.string], select_cols=[0])
    assert [name for (name,) in one] == [b"n", b"a", b"a,a"]


def test_a_csv_file_that_is_not_there_is_an_error(tmp_path):
    there = tmp_path / "a.csv"
    there.write_text("n\n1\n")
    for header in (False, True):
        rows = ps.CsvDataset(tmp_path / "no.csv", [ps.int64], header=header)
        with pytest.raises(ps.NotFoundError, match=r"no\.csv"):
            list(rows)
    # The others are read.
    both = iter(ps.CsvDataset([tmp_path / "no.csv", there], [0], header=True))
    with pytest.raises(ps.NotFoundError):
        next(both)
    assert [int(n) for (n,) in both] == [1]


def test_csv_columns_have_no_names():
    with pytest.raises(ps.InvalidTypeError, match="record_defaults must be"):
        ps.CsvDataset("a.csv", {"n": ps.int64})


ROWS = [
    ("a", "one\ntwo"),
    ("b", 'say ""hi""\r\nthere'),
    ("c", ""),
    ("d\n", "\n\n"),
    ("e", "plain"),
]


def quoted(path, rows=ROWS):
    lines = [
        ",".join(
            f'"{field}"' if "\n" in field or '"' in field else field
            for field in row
        )
        for row in rows
    ]
    path.write_bytes(("\r\n".join(lines) + "\r\n").encode())
    return path


@pytest.mark.parametrize("size", [None, 1, 5, 64])
@pytest.mark.parametrize("header", [False, True])
def test_csv_fields_over_lines(tmp_path, size, header):
    files = [quoted(tmp_path / f"{i}.csv") for i in range(2)]
    ds = ps.CsvDataset(files, ["", ""], buffer_size=size, header=header)
    each = [
        tuple(field.replace('""', '"').encode() for field in row)
        for row in ROWS[int(header) :]
    ]
    whole = list(ds)
    assert whole == each + each
    it = iter(ds)
    for position in range(len(whole)):
        resumed = iter(ds)
        resumed.load_state_dict(it.state_dict())
        assert list(resumed) == whole[position:]
        next(it)


def test_a_stray_quote_is_an_error_of_its_record(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text('a,1\nb"b,2\n"c"c,3\nd,4\n')
    kept = ps.CsvDataset(file, ["", 0]).ignore_errors()
    assert [name for name, _ in kept] == [b"a", b"d"]
    lines = ps.CsvDataset(file, ["", 0], use_quote_delim=False)
    assert len(list(lines)) == 4


def test_a_quote_that_is_never_closed_is_one_error(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text('a,1\n"b,2\nc,3\n')
    assert len(list(ps.CsvDataset(file, ["", 0]).ignore_errors())) == 1


def test_json_lines(tmp_path):
    file = tmp_path / "a.jsonl"
    file.write_text('{"x": 1}\nnonsense\n{"x": 3}\n')
    iterator = iter(ps.JsonLinesDataset(file, {"x": ps.int64}))
    assert next(iterator) == {"x": 1}
    with pytest.raises(ps.InvalidArgumentError, match="expected a JSON text"):
        next(iterator)
    assert next(iterator) == {"x": 3}


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", ">i4", "<i8", "float16", ">f8", "complex64"]
)
def test_numpy_rows(tmp_path, dtype):
    files = []
    parts = []
    for i in range(3):
        parts.append((np.arange(i * 6).reshape(i, 2, 3) % 5).astype(dtype))
        files.append(tmp_path / f"{i}.npy")
        np.save(files[-1], parts[-1])
    found = list(ps.NumpyDataset(files))
    np.testing.assert_array_equal(found, np.concatenate(parts))
    assert found[0].dtype == np.dtype(dtype).newbyteorder("=")


def test_npz_rows(tmp_path):
    file = tmp_path / "a.npz"
    np.savez(file, x=np.arange(6).reshape(3, 2), y=np.arange(3.0))
    found = list(ps.NumpyDataset(file))
    assert [row["x"].tolist() for row in found] == [[0, 1], [2, 3], [4, 5]]
    assert [float(row["y"]) for row in found] == [0, 1, 2]


def test_numpy_refusals(tmp_path):
    cases = {
        "scalar.npy": lambda f: np.save(f, np.array(1)),
        "objects.npy": lambda f: np.save(
            f, np.array([None]), allow_pickle=True
        ),
        "fortran.npy": lambda f: np.save(f, np.asfortranarray(np.ones((2, 2)))),
        "packed.npz": lambda f: np.savez_compressed(f, x=np.ones(2)),
        "nothing.npy": lambda f: f.write_bytes(b""),
        "cut.npy": lambda f: f.write_bytes(b"\x93NUMPY\x01\x00v"),
    }
    for name, write in cases.items():
        write(tmp_path / name)
        with pytest.raises(ps.InvalidArgumentError):
            ps.NumpyDataset(tmp_path / name)
    np.save(tmp_path / "a.npy", np.ones((2, 2)))
    np.save(tmp_path / "b.npy", np.ones((2, 3)))
    with pytest.raises(ps.InvalidArgumentError, match="one dtype and shape"):
        ps.NumpyDataset([tmp_path / "a.npy", tmp_path / "b.npy"])
    whole = (tmp_path / "a.npy").read_bytes()
    (tmp_path / "a.npy").write_bytes(whole[:-1])
    with pytest.raises(ps.InvalidArgumentError, match="found a file of"):
        list(ps.NumpyDataset(tmp_path / "a.npy"))


def test_image_folders(tmp_path):
    for name in ("b", "a"):
        (tmp_path / name / "deep").mkdir(parents=True)
        (tmp_path / name / "deep" / "1.JPG").write_bytes(name.encode())
        (tmp_path / name / "2.png").write_bytes(b"")
        (tmp_path / name / "notes.txt").write_bytes(b"no image")
    ds = ps.ImageFolderDataset(tmp_path)
    assert ds.class_names == ["a", "b"]
    found = [(image, int(label)) for image, label in ds]
    assert found == [(b"", 0), (b"a", 0), (b"", 1), (b"b", 1)]
    assert len(ds) == 4
    with_paths = list(ps.ImageFolderDataset(tmp_path, with_paths=True))
    assert [(image, int(label)) for image, label, _ in with_paths] == found
    assert with_paths[1][2] == bytes(tmp_path / "a" / "deep" / "1.JPG")
    with pytest.raises(ps.InvalidArgumentError, match="found none"):
        ps.ImageFolderDataset(tmp_path, extensions=[".gif"])


@pytest.fixture
def folder(tmp_path):
    """Two classes of 40 files that hold their own number."""
    for i in range(80):
        (tmp_path / str(i % 2)).mkdir(exist_ok=True)
        (tmp_path / str(i % 2) / f"{i:02}.png").write_bytes(b"%d" % i)
    return tmp_path


def _numbers(ds):
    rows = [(int(image), int(label)) for image, label in ds]
    assert all(label == number % 2 for number, label in rows)
    return [number for number, _ in rows]


def test_image_folders_are_shuffled_anew_in_each_epoch(folder):
    ds = ps.ImageFolderDataset(folder, shuffle=True)
    epochs = [_numbers(ds) for _ in range(3)]
    assert len({tuple(epoch) for epoch in epochs}) == 3
    assert all(sorted(epoch) == list(range(80)) for epoch in epochs)
    assert _numbers(ds.repeat(2))[:80] != _numbers(ds.repeat(2))[80:]


def test_image_folders_are_shuffled_by_their_seed(folder):
    def epochs(seed, **options):
        ds = ps.ImageFolderDataset(folder, shuffle=True, seed=seed, **options)
        return [_numbers(ds) for _ in range(2)]

    first = epochs(1)
    assert first[0] != first[1]
    assert epochs(1) == first
    assert epochs(2)[0] != first[0]
    kept = epochs(1, reshuffle_each_iteration=False)
    assert kept[0] == kept[1]


def test_image_folders_resume(folder):
    ds = ps.ImageFolderDataset(folder, shuffle=True)
    it = iter(ds)
    for _ in range(33):
        next(it)
    state = it.state_dict()
    rest = _numbers(it)
    again = iter(ds)
    again.load_state_dict(state)
    assert _numbers(again) == rest
    assert len(rest) == 47


def test_a_missing_image_is_an_error_at_its_place(folder):
    ds = ps.ImageFolderDataset(folder)
    (folder / "0" / "04.png").unlink()
    it = iter(ds)
    assert [int(next(it)[0]) for _ in range(2)] == [0, 2]
    with pytest.raises(ps.NotFoundError, match=r"04\.png"):
        next(it)
    assert len(list(it)) == 77
    assert len(list(ds.ignore_errors())) == 79


@pytest.mark.parametrize("compression", ["", "GZIP", "ZSTD"])
def test_writers(tmp_path, compression):
    records = [bytes([i % 256]) * (i % 300) for i in range(3000)]
    file = tmp_path / "a"
    with ps.io.TFRecordWriter(file, compression) as writer:
        for record in records:
            writer.write(record)
    assert list(ps.TFRecordDataset(file, compression)) == records
    with ps.io.JsonLinesWriter(file, compression) as writer:
        for i in range(5):
            writer.write({"x": np.int64(i), "y": [b"a", "\u20ac"]})
    schema = {"x": ps.int64, "y": ps.TensorSpec([2], ps.string)}
    found = list(ps.JsonLinesDataset(file, schema, compression))
    assert [int(f["x"]) for f in found] == list(range(5))
    assert list(found[0]["y"]) == [b"a", "\u20ac".encode()]
    with ps.io.TarWriter(file, compression) as writer:
        for i in range(5):
            writer.write({"__key__": f"d/{i}", "bin": bytes([i]) * i})
    found = list(ps.TarDataset(file, ["bin"], compression))
    assert [f["bin"] for f in found] == [bytes([i]) * i for i in range(5)]
    assert found[3]["__key__"] == b"d/3"


def test_writers_refuse(tmp_path):
    with pytest.raises(ps.InvalidArgumentError, match="compression_type"):
        ps.io.TFRecordWriter(tmp_path / "a", "LZ4")
    with (
        ps.io.TFRecordWriter(tmp_path / "a") as writer,
        pytest.raises(ps.InvalidTypeError, match="must be bytes"),
    ):
        writer.write("text")
    for key in ("../a", "a.b", "", None, "/a"):
        with (
            ps.io.TarWriter(tmp_path / "b") as writer,
            pytest.raises(ps.InvalidArgumentError, match="__key__"),
        ):
            writer.write({"__key__": key, "x": b""})
    with (
        ps.io.JsonLinesWriter(tmp_path / "c") as writer,
        pytest.raises(ps.InvalidTypeError, match="cannot have a set"),
    ):
        writer.write({"x": {1}})


def test_read_file(tmp_path):
    names = []
    for i in range(40):
        names.append(str(tmp_path / f"{i}.txt"))
        (tmp_path / f"{i}.txt").write_bytes(b"x" * i)
    files = ps.Dataset.from_list(names)
    ds = files.map(ps.io.read_file)
    assert "map_1(read_file)" in ds.describe()
    assert len(ds) == 40
    assert [len(x) for x in ds] == list(range(40))
    assert ds.describe().startswith("assert_cardinality")
    (tmp_path / "7.txt").unlink()
    assert [len(x) for x in ds.ignore_errors()][6:8] == [6, 8]
    with pytest.raises(ps.NotFoundError, match=r"7\.txt"):
        ps.io.read_file(tmp_path / "7.txt")
    # Among other things it runs as Python.
    with_size = files.take(3).map(lambda x: (ps.io.read_file(x), x))
    assert [(len(a), b) for a, b in with_size] == [
        (i, names[i].encode()) for i in range(3)
    ]
