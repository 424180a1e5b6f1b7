"""Files that are missing, forbidden, cut, damaged or oddly named."""

import gzip
import os
import subprocess
import sys
import textwrap
import zlib
from pathlib import Path

import pytest
from complaints import check_message, outcomes, refuses
from records import record, write_records

import penstock as ps

Dataset = ps.Dataset
pytestmark = pytest.mark.usefixtures("nothing_left")

READERS = {
    "text": ps.TextLineDataset,
    "records": ps.TFRecordDataset,
    "fixed": lambda file, **options: ps.FixedLengthRecordDataset(
        file, 2, **options
    ),
}
ERRORS = (ps.DataLossError, ps.InvalidArgumentError, ps.OutOfRangeError)


@pytest.mark.parametrize("name", READERS)
def test_a_missing_file(name, tmp_path):
    file = tmp_path / "not there"
    with refuses(ps.NotFoundError, str(file), "No such file"):
        list(READERS[name](file))


@pytest.mark.parametrize("name", READERS)
def test_a_missing_file_among_others(name, tmp_path):
    here = tmp_path / "here"
    if name == "records":
        write_records(here, [b"ab"])
    else:
        here.write_bytes(b"ab")
    found = outcomes(READERS[name]([here, tmp_path / "gone", here]))
    assert [x for x in found if isinstance(x, bytes)] == [b"ab", b"ab"]
    (error,) = [x for x in found if not isinstance(x, bytes)]
    assert isinstance(error, FileNotFoundError)


@pytest.mark.parametrize("name", READERS)
def test_a_directory_in_place_of_a_file(name, tmp_path):
    with refuses(ps.PenstockError, str(tmp_path), "directory"):
        list(READERS[name](tmp_path))


def test_a_pipe_in_place_of_a_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with refuses(ps.PenstockError, "pipe"):
        list(ps.TextLineDataset(tmp_path / "pipe"))


def test_no_permission(tmp_path):
    file = tmp_path / "secret"
    file.write_text("x\n")
    file.chmod(0)
    script = """
        import sys
        import penstock as ps
        try:
            list(ps.TextLineDataset(sys.argv[1]))
        except ps.PermissionDeniedError as error:
            assert isinstance(error, PermissionError)
            print(error)
        """
    # Root may read anything, unless it gives that up.
    as_others = ["setpriv", "--bounding-set=-all"] if os.getuid() == 0 else []
    out = subprocess.run(
        [*as_others, sys.executable, "-c", textwrap.dedent(script), str(file)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert out.returncode == 0, out.stderr
    check_message(out.stdout, "Permission denied", str(file))
    assert "<string>:" in out.stdout


def test_no_file_matches(tmp_path):
    with refuses(ps.NotFoundError, "no file matches", "Check the path"):
        list(Dataset.list_files(str(tmp_path / "*.nothing")))


def test_a_name_with_a_zero_byte(tmp_path):
    file = tmp_path / "a"
    file.write_text("x\n")
    with refuses(ps.InvalidArgumentError, "zero byte"):
        list(ps.TextLineDataset(str(file) + "\0b"))


# ---- Names that are not UTF-8.


@pytest.fixture
def odd(tmp_path):
    name = os.fsencode(tmp_path) + b"/caf\xe9-\xff.txt"
    with open(name, "wb") as file:
        file.write(b"one\n")
    return name


def test_odd_names_as_bytes(odd):
    assert list(ps.TextLineDataset(odd)) == [b"one"]
    assert list(ps.TextLineDataset([odd, odd])) == [b"one", b"one"]


def test_odd_names_as_the_system_gives_them(odd):
    text = os.fsdecode(odd)
    assert list(ps.TextLineDataset(text)) == [b"one"]
    assert list(ps.TextLineDataset(Path(text))) == [b"one"]
    assert list(ps.TextLineDataset([text], num_parallel_reads=2)) == [b"one"]


@pytest.mark.parametrize("as_name", [bytes, os.fsdecode])
def test_odd_names_are_listed_and_read(odd, as_name):
    pattern = as_name(odd.replace(b"-\xff", b"*"))
    files = Dataset.list_files(pattern)
    assert list(files) == [odd]
    assert list(files.interleave(ps.TextLineDataset)) == [b"one"]
    assert list(ps.TextLineDataset(files)) == [b"one"]


def test_odd_names_in_messages(tmp_path):
    name = os.fsencode(tmp_path) + b"/\xff\xfe"
    with refuses(ps.NotFoundError, "No such file"):
        list(ps.TextLineDataset(name))


# ---- TFRecords, cut and damaged at each byte.

RECORDS = [b"first", b"", b"the third record"]


def whole():
    return b"".join(map(record, RECORDS))


def records_in(data, file):
    file.write_bytes(data)
    return outcomes(ps.TFRecordDataset(file))


def test_records_cut_at_every_byte(tmp_path):
    file = tmp_path / "records"
    data = whole()
    ends = [0]
    for payload in RECORDS:
        ends.append(ends[-1] + len(record(payload)))
    for size in range(len(data)):
        found = records_in(data[:size], file)
        complete = sum(end <= size for end in ends[1:])
        assert found[:complete] == RECORDS[:complete]
        if size in ends:
            assert len(found) == complete
            continue
        (error,) = found[complete:]
        assert isinstance(error, ps.DataLossError), error
        check_message(str(error), str(file), file="test_bad_files.py")


@pytest.mark.parametrize("bit", [0x01, 0x80])
def test_records_damaged_at_every_byte(tmp_path, bit):
    file = tmp_path / "records"
    data = whole()
    for i in range(len(data)):
        damaged = data[:i] + bytes([data[i] ^ bit]) + data[i + 1 :]
        found = records_in(damaged, file)
        errors = [x for x in found if not isinstance(x, bytes)]
        assert len(errors) == 1, (i, found)
        assert isinstance(errors[0], ps.DataLossError)
        check_message(str(errors[0]), str(file), file="test_bad_files.py")
        good = [x for x in found if isinstance(x, bytes)]
        assert all(x in RECORDS for x in good)


def test_what_is_no_record_file(tmp_path):
    file = tmp_path / "records"
    for data in (b"x", b"\0" * 100, os.urandom(1000), b"\xff" * 64):
        found = records_in(data, file)
        assert isinstance(found[0], ps.DataLossError)


# ---- Compressed files, cut and damaged at each byte.

LINES = b"".join(b"line number %d\n" % i for i in range(20))


def compressed(kind):
    if kind == "GZIP":
        return gzip.compress(LINES, mtime=0)
    return zlib.compress(LINES)


def reference(data, kind):
    return zlib.decompress(data, 31 if kind == "GZIP" else 15)


@pytest.mark.parametrize("kind", ["GZIP", "ZLIB"])
def test_compressed_files_cut_at_every_byte(tmp_path, kind):
    file = tmp_path / "lines"
    data = compressed(kind)
    want = LINES.splitlines()
    for size in range(1, len(data)):
        file.write_bytes(data[:size])
        found = outcomes(ps.TextLineDataset(file, compression_type=kind))
        *lines, error = found
        assert lines == want[: len(lines)]
        assert isinstance(error, ps.DataLossError), (size, error)
        assert f"the file ends at byte {size}" in str(error)
        assert str(file) in str(error)
        assert "test_bad_files.py:" in str(error)


@pytest.mark.parametrize("kind", ["GZIP", "ZLIB"])
def test_compressed_files_damaged_at_every_byte(tmp_path, kind):
    file = tmp_path / "lines"
    data = compressed(kind)
    want = LINES.splitlines()
    for i in range(len(data)):
        file.write_bytes(data[:i] + bytes([data[i] ^ 0x10]) + data[i + 1 :])
        found = outcomes(ps.TextLineDataset(file, compression_type=kind))
        errors = [x for x in found if not isinstance(x, bytes)]
        if not errors:
            # Bits that mean nothing: of gzip's header, after the last block.
            assert found == want
            assert reference(file.read_bytes(), kind) == LINES
            continue
        assert isinstance(errors[0], ERRORS), errors[0]
        assert str(file) in str(errors[0])
        assert "test_bad_files.py:" in str(errors[0])


@pytest.mark.parametrize("kind", ["GZIP", "ZLIB"])
def test_a_file_that_is_not_compressed(tmp_path, kind):
    file = tmp_path / "lines"
    file.write_bytes(LINES)
    found = outcomes(ps.TextLineDataset(file, compression_type=kind))
    (error,) = found
    assert isinstance(error, ERRORS)
    assert f"corrupt {kind.lower()} data" in str(error)
    assert str(file) in str(error)
    assert "test_bad_files.py:" in str(error)


def test_compressed_records_cut_at_every_byte(tmp_path):
    file = tmp_path / "records"
    data = gzip.compress(whole(), mtime=0)
    for size in range(1, len(data)):
        file.write_bytes(data[:size])
        found = outcomes(ps.TFRecordDataset(file, compression_type="GZIP"))
        *records, error = found
        assert records == RECORDS[: len(records)]
        assert isinstance(error, ps.DataLossError)


def test_a_fixed_length_file_with_a_rest(tmp_path):
    file = tmp_path / "records"
    file.write_bytes(b"abcde")
    (error,) = outcomes(ps.FixedLengthRecordDataset(file, 2))
    assert isinstance(error, ERRORS)
    check_message(str(error), str(file), file="test_bad_files.py")
