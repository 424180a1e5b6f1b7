"""`tf.data`."""

from __future__ import annotations

from typing import Any

from penstock import _files as _native
from penstock._pipeline import (
    AUTOTUNE,
    INFINITE_CARDINALITY,
    UNKNOWN_CARDINALITY,
)
from penstock.compat.tf._boundary import DatasetSpec, plain
from penstock.compat.tf._dataset import Dataset
from penstock.compat.tf._iterator import (
    Iterator,
    IteratorSpec,
    NumpyIterator,
)
from penstock.compat.tf._options import Options, ThreadingOptions

__all__ = [
    "AUTOTUNE",
    "INFINITE_CARDINALITY",
    "UNKNOWN_CARDINALITY",
    "Dataset",
    "DatasetSpec",
    "FixedLengthRecordDataset",
    "Iterator",
    "IteratorSpec",
    "NumpyIterator",
    "Options",
    "TFRecordDataset",
    "TextLineDataset",
    "ThreadingOptions",
    "experimental",
]


def _names(filenames: Any) -> Any:
    if isinstance(filenames, Dataset):
        return filenames._ds
    found = plain(filenames)
    if isinstance(found, (list, tuple)):
        return [plain(item) for item in found]
    return found


class TextLineDataset(Dataset):
    """The lines of text files."""

    def __init__(
        self, filenames: Any, compression_type: Any = None,
        buffer_size: Any = None, num_parallel_reads: Any = None,
        name: Any = None,
    ) -> None:  # fmt: skip
        self._become(
            _native.TextLineDataset(
                _names(filenames),
                plain(compression_type),
                plain(buffer_size),
                plain(num_parallel_reads),
            )
        )


class TFRecordDataset(Dataset):
    """The records of TFRecord files."""

    def __init__(
        self, filenames: Any, compression_type: Any = None,
        buffer_size: Any = None, num_parallel_reads: Any = None,
        name: Any = None,
    ) -> None:  # fmt: skip
        self._become(
            _native.TFRecordDataset(
                _names(filenames),
                plain(compression_type),
                plain(buffer_size),
                plain(num_parallel_reads),
            )
        )


class FixedLengthRecordDataset(Dataset):
    """Records of one length."""

    def __init__(
        self, filenames: Any, record_bytes: Any, header_bytes: Any = None,
        footer_bytes: Any = None, buffer_size: Any = None,
        compression_type: Any = None, num_parallel_reads: Any = None,
        name: Any = None,
    ) -> None:  # fmt: skip
        self._become(
            _native.FixedLengthRecordDataset(
                _names(filenames),
                plain(record_bytes),
                plain(header_bytes),
                plain(footer_bytes),
                plain(buffer_size),
                plain(compression_type),
                plain(num_parallel_reads),
            )
        )


from penstock.compat.tf.data import experimental  # noqa: E402


def __getattr__(name: str) -> Any:
    from penstock.compat.tf._missing import missing

    raise missing("data", name)
