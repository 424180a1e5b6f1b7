"""TFRecord files of 200-byte records, made once, without TensorFlow.

Each record begins with its index, so that order and completeness can be
checked. Checksums are computed for many records at a time.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from workload import ROOT

RECORD_BYTES = 200
FOLDER = ROOT / "build/bench-data"
_FILES = 4
_RECORDS_PER_FILE = 250_000  # 216 MB in all
_SMOKE_RECORDS = 10_000
_AT_ONCE = 50_000


def files() -> list[str]:
    """The files, in order; a single small one under BENCH_SMOKE=1."""
    if os.environ.get("BENCH_SMOKE"):
        return [str(_file("smoke", 0, _SMOKE_RECORDS))]
    return [
        str(_file("records", i * _RECORDS_PER_FILE, _RECORDS_PER_FILE))
        for i in range(_FILES)
    ]


def index_of(record: bytes) -> int:
    return int.from_bytes(record[:8], "little")


def _file(stem: str, begin: int, count: int) -> Path:
    path = FOLDER / f"{stem}-{begin}-{count}.tfrecord"
    if not path.exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(f".{os.getpid()}")
        with partial.open("wb") as out:
            for at in range(begin, begin + count, _AT_ONCE):
                size = min(_AT_ONCE, begin + count - at)
                out.write(_records(at, size).tobytes())
        partial.rename(path)
    return path


def _records(begin: int, count: int) -> np.ndarray:
    random = np.random.default_rng(begin)
    body = random.integers(0, 256, (count, RECORD_BYTES), np.uint8)
    index = np.arange(begin, begin + count, dtype="<u8")
    body[:, :8] = index.view(np.uint8).reshape(count, 8)
    return framed(body)


def framed(records: np.ndarray) -> np.ndarray:
    """Rows of length, its checksum, the record, its checksum."""
    count, size = records.shape
    out = np.zeros((count, size + 16), np.uint8)
    out[:, 12:-4] = records
    length = np.full(count, size, "<u8")
    out[:, :8] = length.view(np.uint8).reshape(count, 8)
    out[:, 8:12] = _masked_crc32c(out[:, :8])
    out[:, -4:] = _masked_crc32c(out[:, 12:-4])
    return out


def _crc32c_table() -> np.ndarray:
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = (table >> 1) ^ np.where(table & 1, 0x82F63B78, 0).astype("u4")
    return table


def _masked_crc32c(rows: np.ndarray) -> np.ndarray:
    table = _crc32c_table()
    crc = np.full(len(rows), 0xFFFFFFFF, np.uint32)
    for byte in np.ascontiguousarray(rows.T):
        crc = table[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    crc = ~crc
    masked = ((crc >> 15) | (crc << 17)) + np.uint32(0xA282EAD8)
    return masked.astype("<u4").view(np.uint8).reshape(len(rows), 4)
