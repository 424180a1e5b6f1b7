"""Datasets of files whose records have parts."""

from __future__ import annotations

import os
import struct
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from penstock import _dtypes, _record, io
from penstock._dataset import Dataset
from penstock._errors import (
    InvalidArgumentError,
    InvalidTypeError,
    NotFoundError,
)
from penstock._files import (
    FILES_AHEAD,
    FixedLengthRecordDataset,
    TextLineDataset,
    _common,
    _never,
    _read,
    whole_file,
)
from penstock._location import refused
from penstock._pipeline import Pipeline


class TarDataset(Dataset):
    """Samples of tar archives, as WebDataset writes them.

    The members of a sample follow each other and have one name up to the first
    dot of its last part; what is behind the dot says which is which.

    Example:
        >>> import pathlib, tarfile, tempfile
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> _ = (folder / "7.txt").write_text("seven")
        >>> _ = (folder / "7.cls").write_text("1")
        >>> with tarfile.open(folder / "a.tar", "w") as tar:
        ...     tar.add(folder / "7.txt", "7.txt")
        ...     tar.add(folder / "7.cls", "7.cls")
        >>> list(ps.TarDataset(folder / "a.tar", ["txt", "cls"]))
        [{'__key__': b'7', 'txt': b'seven', 'cls': b'1'}]

    Args:
        filenames: As in `TextLineDataset`.
        extensions: Of the members that are wanted; a sample without one of them
            is an error. Letters may be small or large.
        compression_type: "", "GZIP", "ZLIB" or "ZSTD".
        buffer_size: Bytes read at once; left out, the engine chooses.
        num_parallel_reads: Files read in turn; one after another if left out.
    """

    def __init__(
        self,
        filenames: Any,
        extensions: Sequence[str],
        compression_type: str | None = None,
        buffer_size: int | None = None,
        num_parallel_reads: int | None = None,
    ) -> None:
        if isinstance(extensions, str) or not extensions:
            raise refused(
                InvalidTypeError,
                "extensions must be a list of at least one string; got "
                f"{extensions!r}",
            )
        wanted = [str(e).lstrip(".").lower() for e in extensions]
        samples = Dataset.__new__(Dataset)
        _read(
            samples,
            {"tar": {}, **_common(compression_type, buffer_size)},
            filenames,
            num_parallel_reads,
            lambda file: TarDataset._samples(
                file, compression_type, buffer_size
            ),
        )

        def untar(sample: Any) -> dict[str, Any]:
            parts = _record.call_parts(
                "io.untar",
                (sample,),
                {"extensions": wanted},
                count=len(wanted) + 1,
            )
            return dict(zip(["__key__", *extensions], parts, strict=True))

        _become(self, samples.map(untar))

    @staticmethod
    def _samples(
        file: Any, compression_type: str | None, buffer_size: int | None
    ) -> Dataset:
        samples = Dataset.__new__(Dataset)
        body = {"tar": {}, **_common(compression_type, buffer_size)}
        _read(samples, body, file, None, _never)
        return samples


class CsvDataset(Dataset):
    r"""The records of comma-separated files, as tuples of fields.

    Example:
        >>> import pathlib, tempfile
        >>> file = pathlib.Path(tempfile.mkdtemp()) / "rivers.csv"
        >>> _ = file.write_text("name,length\nAare,288\nRhine,1233\n")
        >>> rows = ps.CsvDataset(file, ["", 0], header=True)
        >>> [(name, int(length)) for name, length in rows]
        [(b'Aare', 288), (b'Rhine', 1233)]

    Args:
        filenames: As in `TextLineDataset`.
        record_defaults: As in `ps.io.decode_csv`.
        compression_type: "", "GZIP", "ZLIB" or "ZSTD".
        buffer_size: Bytes read at once; left out, the engine chooses.
        header: Whether the first line of each file is left out.
        field_delim: The character between fields.
        use_quote_delim: Whether a field may be in double quotes; an end of a
            line between them is part of it, as RFC 4180 has it.
        na_value: What stands for no value, as an empty field does.
        select_cols: The numbers of the fields that are wanted, ascending.
    """

    def __init__(
        self,
        filenames: Any,
        record_defaults: Sequence[Any],
        compression_type: str | None = None,
        buffer_size: int | None = None,
        header: bool = False,
        field_delim: str = ",",
        use_quote_delim: bool = True,
        na_value: str = "",
        select_cols: Sequence[int] | None = None,
    ) -> None:
        if header and not isinstance(filenames, Pipeline):
            names = (
                list(filenames)
                if isinstance(filenames, (list, tuple))
                else [filenames]
            )
            filenames = Dataset.from_tensor_slices(
                [os.fspath(n) for n in names]
            )
        text = {"field_delim": field_delim} if use_quote_delim else {}

        def records(file: Any) -> Dataset:
            found = Dataset.__new__(Dataset)
            body = {"text": text, **_common(compression_type, buffer_size)}
            _read(found, body, file, None, records)
            return found

        defaults = io._csv_defaults(record_defaults)
        if header:
            lines = filenames.flat_map(lambda file: _but_first(records(file)))
        else:
            lines = records(filenames)
        _become(
            self,
            lines.map(
                lambda line: tuple(
                    io.decode_csv(
                        line,
                        defaults,
                        field_delim,
                        use_quote_delim,
                        na_value,
                        select_cols,
                    )
                )
            ),
        )


def _but_first(lines: Dataset) -> Dataset:
    # skip(1) would leave out an error there, too: of a file that is not there.
    numbered = lines.enumerate().filter(lambda number, line: number > 0)
    return numbered.map(lambda number, line: line)


class JsonLinesDataset(Dataset):
    r"""The lines of files, each a JSON text.

    Example:
        >>> import pathlib, tempfile
        >>> file = pathlib.Path(tempfile.mkdtemp()) / "rivers.jsonl"
        >>> _ = file.write_text('{"name": "Aare"}\n{"name": "Rhine"}\n')
        >>> list(ps.JsonLinesDataset(file, {"name": ps.string}))
        [{'name': b'Aare'}, {'name': b'Rhine'}]

    Args:
        filenames: As in `TextLineDataset`.
        schema: What is wanted of each, as in `ps.io.decode_json`.
        compression_type: "", "GZIP", "ZLIB" or "ZSTD".
        buffer_size: Bytes read at once; left out, the engine chooses.
        num_parallel_reads: Files read in turn; one after another if left out.
    """

    def __init__(
        self,
        filenames: Any,
        schema: Any,
        compression_type: str | None = None,
        buffer_size: int | None = None,
        num_parallel_reads: int | None = None,
    ) -> None:
        lines = TextLineDataset(
            filenames, compression_type, buffer_size, num_parallel_reads
        )
        _become(self, lines.map(lambda line: io.decode_json(line, schema)))


class NumpyDataset(Dataset):
    """The rows of arrays in .npy and .npz files, which are not loaded.

    Example:
        >>> import pathlib, tempfile
        >>> file = pathlib.Path(tempfile.mkdtemp()) / "a.npy"
        >>> np.save(file, np.arange(4).reshape(2, 2))
        >>> list(ps.NumpyDataset(file))
        [array([0, 1]), array([2, 3])]

    Args:
        filenames: A name, or a list of them, of arrays that have one dtype and
            shape but for their numbers of rows. Of .npz files, whose arrays
            must have as many rows each and must not be compressed, elements
            are dicts.
        buffer_size: Bytes read at once; left out, the engine chooses.
    """

    def __init__(self, filenames: Any, buffer_size: int | None = None) -> None:
        many = (
            list(filenames)
            if isinstance(filenames, (list, tuple))
            else [filenames]
        )
        if not many:
            raise refused(
                InvalidArgumentError, "expected at least one file; got none"
            )
        found = [_arrays_of(Path(name)) for name in many]
        for name, arrays in zip(many, found, strict=True):
            for key, array in arrays.items():
                first = found[0].get(key)
                if first is None or not array.is_like(first):
                    raise refused(
                        InvalidArgumentError,
                        f"arrays must have one dtype and shape: {many[0]} has "
                        f"{found[0]}, {name} has {arrays}",
                    )
        rows = {
            key: _rows([arrays[key] for arrays in found], buffer_size)
            for key in found[0]
        }
        if set(rows) == {""}:
            _become(self, rows[""])
        else:
            _become(self, Dataset.zip(rows))


class ImageFolderDataset(Dataset):
    """The files below a folder, with the number of the folder they are in.

    Example:
        >>> import pathlib, tempfile
        >>> root = pathlib.Path(tempfile.mkdtemp())
        >>> for name in ("cat", "dog"):
        ...     (root / name).mkdir()
        ...     _ = (root / name / "1.jpg").write_text("an image of a " + name)
        >>> ds = ps.ImageFolderDataset(root)
        >>> ds.class_names
        ['cat', 'dog']
        >>> [(image, int(label)) for image, label in ds]
        [(b'an image of a cat', 0), (b'an image of a dog', 1)]
        >>> [path.removeprefix(bytes(root)).decode()
        ...     for _, _, path in ps.ImageFolderDataset(root, with_paths=True)]
        ['/cat/1.jpg', '/dog/1.jpg']

    Args:
        directory: It has a folder for each class.
        extensions: Of the files that are taken, in any letters.
        shuffle: Whether files are taken in a random order instead of by name:
            all of them are shuffled, and another order is drawn for each epoch.
        seed: Fixes those orders.
        reshuffle_each_iteration: False for one order in all epochs.
        with_paths: Whether elements are `(contents, label, path)`.
    """

    class_names: list[str]

    def __init__(
        self,
        directory: Any,
        extensions: Sequence[str] = (
            ".bmp",
            ".gif",
            ".jpeg",
            ".jpg",
            ".png",
            ".webp",
        ),
        shuffle: bool = False,
        seed: int | None = None,
        reshuffle_each_iteration: bool = True,
        with_paths: bool = False,
    ) -> None:
        root = Path(directory)
        if not root.is_dir():
            kind = InvalidArgumentError if root.exists() else NotFoundError
            found = "a file" if root.exists() else "nothing"
            raise refused(
                kind,
                f"expected a folder with one folder for each class; found "
                f"{found} at {root.absolute()}",
            )
        classes = sorted(p.name for p in root.iterdir() if p.is_dir())
        ends = tuple(extension.lower() for extension in extensions)
        names: list[str] = []
        labels: list[int] = []
        for label, name in enumerate(classes):
            inside = sorted(
                str(path)
                for path in (root / name).rglob("*")
                if path.name.lower().endswith(ends) and path.is_file()
            )
            names += inside
            labels += [label] * len(inside)
        if not names:
            raise refused(
                InvalidArgumentError,
                f"expected files with one of {list(ends)} in folders of "
                f"{root}; found none",
            )
        files = Dataset.from_tensor_slices((names, np.array(labels)))
        if shuffle:
            files = files.shuffle(len(names), seed, reshuffle_each_iteration)
        # Each gives one element, so that the order stays; those ahead are
        # being read while one is waited for.
        read = _with_path if with_paths else _labelled
        made = files.interleave(read, cycle_length=FILES_AHEAD)
        _become(self, made.assert_cardinality(len(names)))
        self.class_names = classes


def _labelled(name: Any, label: Any) -> Dataset:
    """A file's bytes with its label: one element."""
    return Dataset.zip((whole_file(name), Dataset.from_tensors(label)))


def _with_path(name: Any, label: Any) -> Dataset:
    """The same with the file's name."""
    rest = (Dataset.from_tensors(label), Dataset.from_tensors(name))
    return Dataset.zip((whole_file(name), *rest))


def _become(into: Dataset, made: Dataset) -> None:
    into.__dict__.update(made.__dict__)


class _Array:
    """Where the rows of one array lie in a file."""

    def __init__(self, path: Path, file: IO[bytes], begin: int, end: int):
        """`file` stands at the array's header, which is at byte `begin`."""
        version = np.lib.format.read_magic(file)
        read = (
            np.lib.format.read_array_header_1_0
            if version == (1, 0)
            else np.lib.format.read_array_header_2_0
        )
        shape, is_fortran, dtype = read(file)
        self.path = str(path)
        self.dtype = dtype
        self.shape = shape[1:]
        self.row_bytes = int(dtype.itemsize * np.prod(shape[1:], dtype=int))
        self.header = begin + file.tell()
        self.footer = path.stat().st_size - end
        if not shape or is_fortran or dtype.hasobject or self.row_bytes == 0:
            raise refused(
                InvalidArgumentError,
                f"expected an array of numbers in C order, with rows that are "
                f"not empty; found {self!r} in {path}",
            )

    def is_like(self, other: _Array) -> bool:
        return self.dtype == other.dtype and self.shape == other.shape

    def __repr__(self) -> str:
        return f"rows of {self.dtype}{self.shape}"


def _arrays_of(path: Path) -> dict[str, _Array]:
    try:
        if not zipfile.is_zipfile(path):
            with path.open("rb") as file:
                return {"": _Array(path, file, 0, path.stat().st_size)}
        return _members_of(path)
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise refused(
            InvalidArgumentError,
            f"expected a .npy or .npz file; {path}: {error}",
        ) from None


def _members_of(path: Path) -> dict[str, _Array]:
    arrays = {}
    with zipfile.ZipFile(path) as archive, path.open("rb") as raw:
        for member in archive.infolist():
            if member.compress_type != zipfile.ZIP_STORED:
                raise refused(
                    InvalidArgumentError,
                    f"arrays of {path} must not be compressed; write them "
                    "with np.savez",
                )
            # The name and the extra field of a local header precede the data.
            raw.seek(member.header_offset + 26)
            sizes = struct.unpack("<HH", raw.read(4))
            begin = member.header_offset + 30 + sum(sizes)
            with archive.open(member) as file:
                name = member.filename.removesuffix(".npy")
                end = begin + member.file_size
                arrays[name] = _Array(path, file, begin, end)
    return arrays


def _rows(arrays: list[_Array], buffer_size: int | None) -> Dataset:
    first = arrays[0]
    dtype = first.dtype
    row_bytes = first.row_bytes
    places = (
        [array.path for array in arrays],
        np.array([array.header for array in arrays]),
        np.array([array.footer for array in arrays]),
    )

    def read(path: Any, header: Any, footer: Any) -> Dataset:
        return FixedLengthRecordDataset(
            path, row_bytes, header, footer, buffer_size
        )

    out_type = _dtypes.from_numpy(dtype.newbyteorder("="))
    is_little = dtype.newbyteorder("=") == dtype or dtype.itemsize == 1
    shape = first.shape
    decode: Callable[[Any], Any] = lambda row: io.decode_raw(  # noqa: E731
        row, out_type, is_little, row_bytes
    ).reshape(shape)
    return Dataset.from_tensor_slices(places).flat_map(read).map(decode)
