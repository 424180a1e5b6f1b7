"""Datasets of what files hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock._dataset import Dataset
from penstock._errors import InvalidArgumentError
from penstock._location import refused
from penstock._pipeline import (
    AUTOTUNE,
    INFINITE_CARDINALITY,
    UNKNOWN_CARDINALITY,
    Pipeline,
    file_name,
    file_names,
    grow,
    integer,
)
from penstock._pipeline import value as value_of
from penstock._public import publish


class TextLineDataset(Dataset):
    r"""The lines of text files, without their line ends.

    Example:
        >>> import pathlib, tempfile
        >>> file = pathlib.Path(tempfile.mkdtemp()) / "lines.txt"
        >>> _ = file.write_text("one\ntwo\n")
        >>> list(ps.TextLineDataset(file))
        [b'one', b'two']

    Args:
        filenames: A name, a path, a list or array of them, or a dataset of
            names.
        compression_type: "", "GZIP", "ZLIB" or "ZSTD".
        buffer_size: Bytes read at once; left out, the engine chooses.
        num_parallel_reads: Files read in turn; one after another if left out.
        name: Not used.
    """

    def __init__(
        self,
        filenames: Any,
        compression_type: str | None = None,
        buffer_size: int | None = None,
        num_parallel_reads: int | None = None,
        name: Any = None,
    ) -> None:
        _read(
            self,
            {"text": {}, **_common(compression_type, buffer_size)},
            filenames,
            num_parallel_reads,
            lambda file: TextLineDataset(file, compression_type, buffer_size),
        )


class TFRecordDataset(Dataset):
    """The records of TFRecord files; their checksums are checked.

    Example:
        >>> import pathlib, tempfile
        >>> file = pathlib.Path(tempfile.mkdtemp()) / "words.tfrecord"
        >>> _ = file.write_bytes(bytes.fromhex(  # length, data, checksums
        ...     "0500000000000000eab2043e"
        ...     "68656c6c6f" "bb1f1c19"))
        >>> list(ps.TFRecordDataset(file))
        [b'hello']

    Args:
        filenames: As in `TextLineDataset`.
        compression_type: "", "GZIP", "ZLIB" or "ZSTD".
        buffer_size: Bytes read at once; left out, the engine chooses.
        num_parallel_reads: Files read in turn; one after another if left out.
        name: Not used.
    """

    def __init__(
        self,
        filenames: Any,
        compression_type: str | None = None,
        buffer_size: int | None = None,
        num_parallel_reads: int | None = None,
        name: Any = None,
    ) -> None:
        _read(
            self,
            {"tf_record": {}, **_common(compression_type, buffer_size)},
            filenames,
            num_parallel_reads,
            lambda file: TFRecordDataset(file, compression_type, buffer_size),
        )


class FixedLengthRecordDataset(Dataset):
    """Records of one length, after a header and before a footer.

    Example:
        >>> import pathlib, tempfile
        >>> file = pathlib.Path(tempfile.mkdtemp()) / "records"
        >>> _ = file.write_bytes(b"HEADaabbcc")
        >>> list(ps.FixedLengthRecordDataset(file, 2, header_bytes=4))
        [b'aa', b'bb', b'cc']

    Args:
        filenames: As in `TextLineDataset`.
        record_bytes: The length of a record.
        header_bytes: Left out at the beginning of each file.
        footer_bytes: Left out at its end.
        buffer_size: Bytes read at once; left out, the engine chooses.
        compression_type: "", "GZIP", "ZLIB" or "ZSTD".
        num_parallel_reads: Files read in turn; one after another if left out.
        name: Not used.
    """

    def __init__(
        self,
        filenames: Any,
        record_bytes: Any,
        header_bytes: Any = None,
        footer_bytes: Any = None,
        buffer_size: int | None = None,
        compression_type: str | None = None,
        num_parallel_reads: int | None = None,
        name: Any = None,
    ) -> None:
        sizes = {
            "record_bytes": record_bytes,
            "header_bytes": 0 if header_bytes is None else header_bytes,
            "footer_bytes": 0 if footer_bytes is None else footer_bytes,
        }
        fields = {key: value_of(key, size) for key, size in sizes.items()}
        _read(
            self,
            {
                "fixed_length": fields,
                **_common(compression_type, buffer_size),
            },
            filenames,
            num_parallel_reads,
            lambda file: FixedLengthRecordDataset(
                file,
                record_bytes,
                header_bytes,
                footer_bytes,
                buffer_size,
                compression_type,
            ),
        )


def _common(compression_type: str | None, buffer_size: Any) -> dict[str, Any]:
    if compression_type not in (None, "", "GZIP", "ZLIB", "ZSTD"):
        raise refused(
            InvalidArgumentError,
            f'compression_type must be "", "GZIP", "ZLIB" or "ZSTD"; got '
            f"{compression_type!r}",
        )
    return {
        "compression": compression_type or "NONE",
        **integer("buffer_size", "buffer_bytes", buffer_size),
    }


def _read(
    into: Dataset,
    body: dict[str, Any],
    files: Any,
    num_parallel_reads: int | None,
    open_one: Callable[[Any], Dataset],
) -> None:
    """Makes `into` read `files`, or what a dataset gives as their names."""
    reads = integer("num_parallel_reads", "", num_parallel_reads)
    if reads and reads[""] < 1:
        raise refused(
            InvalidArgumentError,
            f"num_parallel_reads must be at least 1; got {reads['']}",
        )
    if num_parallel_reads is None and not isinstance(files, Pipeline):
        grow(
            into,
            "read_files",
            {"files": file_names("filenames", files), **body},
        )
        return
    if not isinstance(files, Pipeline):
        many = files if isinstance(files, (list, tuple)) else [files]
        files = Dataset.from_tensor_slices(list(map(file_name, many)))
    if num_parallel_reads is None:
        made = files.flat_map(open_one)
    else:
        made = files.interleave(
            open_one,
            cycle_length=(
                None if num_parallel_reads == AUTOTUNE else num_parallel_reads
            ),
            num_parallel_calls=num_parallel_reads,
        )
    into.__dict__.update(made.__dict__)


# Files of which each is one element, read ahead of the one that is waited for.
FILES_AHEAD = 16


def whole_file(name: Any) -> Dataset:
    """What is in one file: one element."""
    contents = Dataset.__new__(Dataset)
    _read(contents, {"whole": {}, **_common(None, None)}, name, None, _never)
    return contents


def whole_files(names: Dataset) -> Dataset:
    """What is in each of the files that a dataset names, in its order."""
    length = names.cardinality()
    made = names.interleave(whole_file, cycle_length=FILES_AHEAD)
    if length in (INFINITE_CARDINALITY, UNKNOWN_CARDINALITY):
        return made
    return made.assert_cardinality(length)


def _never(file: Any) -> Dataset:
    raise AssertionError(f"{file} is read at once")


for _kind in (TextLineDataset, TFRecordDataset, FixedLengthRecordDataset):
    publish(_kind, _kind.__name__)
del _kind
