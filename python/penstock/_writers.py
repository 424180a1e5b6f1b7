"""Writing files of records."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, cast

import numpy as np

from penstock import _record
from penstock._errors import InvalidArgumentError, InvalidTypeError
from penstock._location import refused

# Records are framed by the engine, so many at a time.
_MAX_HELD = 1024
_MAX_HELD_BYTES = 1 << 20


class _Writer:
    """A file that is written in order, in a `with` block."""

    _file: IO[bytes]

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Writes what is held, and closes the file."""
        if not self._file.closed:
            try:
                self.flush()
            finally:
                self._file.close()

    def flush(self) -> None:
        """Hands all that was written to the file system."""
        self._file.flush()


class TFRecordWriter(_Writer):
    """Writes a TFRecord file.

    Example:
        >>> import pathlib, tempfile
        >>> file = pathlib.Path(tempfile.mkdtemp()) / "a.tfrecord"
        >>> with ps.io.TFRecordWriter(file) as writer:
        ...     writer.write(b"one")
        ...     writer.write(b"two")
        >>> list(ps.TFRecordDataset(file))
        [b'one', b'two']

    Args:
        path: The file, which is made anew.
        compression_type: "", "GZIP" or "ZSTD".
    """

    def __init__(self, path: Any, compression_type: str | None = None) -> None:
        self._file = _open(path, compression_type)
        self._held: list[bytes] = []
        self._num_bytes = 0

    def write(self, record: bytes) -> None:
        """Adds a record."""
        if not isinstance(record, bytes):
            raise refused(
                InvalidTypeError, f"a record must be bytes; got {record!r}"
            )
        self._held.append(record)
        self._num_bytes += len(record)
        if len(self._held) >= _MAX_HELD or self._num_bytes >= _MAX_HELD_BYTES:
            self._write_held()

    def flush(self) -> None:
        self._write_held()
        super().flush()

    def _write_held(self) -> None:
        if not self._held:
            return
        records = np.empty(len(self._held), object)
        records[:] = self._held
        self._held = []
        self._num_bytes = 0
        self._file.write(b"".join(_record.call("io.frame_record", (records,))))


class JsonLinesWriter(_Writer):
    r"""Writes a JSON text per line.

    Example:
        >>> import pathlib, tempfile
        >>> file = pathlib.Path(tempfile.mkdtemp()) / "a.jsonl"
        >>> with ps.io.JsonLinesWriter(file) as writer:
        ...     writer.write({"x": np.arange(2), "name": b"Aare"})
        >>> file.read_text()
        '{"x": [0, 1], "name": "Aare"}\n'

    Args:
        path: The file, which is made anew.
        compression_type: "", "GZIP" or "ZSTD".
    """

    def __init__(self, path: Any, compression_type: str | None = None) -> None:
        self._file = _open(path, compression_type)

    def write(self, value: Any) -> None:
        """Adds a value: what JSON has, arrays, and bytes in UTF-8."""
        text = json.dumps(value, default=_plain, ensure_ascii=False)
        self._file.write(text.encode() + b"\n")


class TarWriter(_Writer):
    """Writes samples to a tar archive, as WebDataset reads them.

    Example:
        >>> import pathlib, tempfile
        >>> file = pathlib.Path(tempfile.mkdtemp()) / "a.tar"
        >>> with ps.io.TarWriter(file) as writer:
        ...     writer.write({"__key__": "7", "txt": b"seven", "cls": b"1"})
        >>> list(ps.TarDataset(file, ["txt"]))
        [{'__key__': b'7', 'txt': b'seven'}]

    Args:
        path: The file, which is made anew.
        compression_type: "", "GZIP" or "ZSTD".
    """

    def __init__(self, path: Any, compression_type: str | None = None) -> None:
        self._file = _open(path, compression_type)
        self._tar = tarfile.TarFile.open(fileobj=self._file, mode="w|")

    def write(self, sample: Mapping[str, Any]) -> None:
        """Adds a sample: `__key__`, and bytes by extension."""
        key = sample.get("__key__")
        if isinstance(key, bytes):
            key = key.decode()
        parts = key.split("/") if isinstance(key, str) else []
        if not parts or "." in parts[-1] or ".." in parts or parts[0] == "":
            raise refused(
                InvalidArgumentError,
                "__key__ must be a name without a dot that leads to a place "
                f"inside the archive; got {key!r}",
            )
        for extension, data in sample.items():
            if extension == "__key__":
                continue
            if not isinstance(data, bytes):
                raise refused(
                    InvalidTypeError,
                    f"{extension!r} of a sample must be bytes; got {data!r}",
                )
            member = tarfile.TarInfo(f"{key}.{extension}")
            member.size = len(data)
            self._tar.addfile(member, io.BytesIO(data))

    def close(self) -> None:
        if not self._file.closed:
            self._tar.close()
        super().close()


class _ZstdFile(io.BufferedIOBase):
    """A file that is written as zstd frames, about a MiB in each."""

    def __init__(self, path: Any) -> None:
        self._inner = Path(path).open("wb")  # noqa: SIM115
        self._held = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._held += data
        if len(self._held) >= _MAX_HELD_BYTES:
            self._write_held()
        return len(data)

    def flush(self) -> None:
        if not self._inner.closed:
            self._write_held()
            self._inner.flush()

    def close(self) -> None:
        if not self._inner.closed:
            try:
                self._write_held()
            finally:
                self._inner.close()
        super().close()

    def _write_held(self) -> None:
        if self._held:
            held = bytes(self._held)
            self._held.clear()
            self._inner.write(_record.call("io.compress_zstd", (held,)))


def _open(path: Any, compression_type: str | None) -> IO[bytes]:
    if compression_type in (None, ""):
        return Path(path).open("wb")
    if compression_type == "ZSTD":
        return cast(IO[bytes], _ZstdFile(path))
    if compression_type == "GZIP":
        packed: IO[bytes] = gzip.open(path, "wb")  # noqa: SIM115
        return packed
    raise refused(
        InvalidArgumentError,
        'compression_type must be "", "GZIP" or "ZSTD"; got '
        f"{compression_type!r}",
    )


def _plain(value: Any) -> Any:
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    if isinstance(value, bytes):
        return value.decode()
    raise refused(
        InvalidTypeError,
        f"a JSON text cannot have a {type(value).__name__}; got {value!r}",
    )
