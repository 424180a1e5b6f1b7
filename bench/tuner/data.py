"""Files that the cases read, made once by ours, read by both."""

from __future__ import annotations

import os
from pathlib import Path

import lines
import numpy as np
import photos
from workload import ROOT

FOLDER = ROOT / "build/bench-data/tuner"
HEIGHT, WIDTH = 375, 500


def jpegs(count: int = 256, scale: int = 1) -> list[bytes]:
    """Photographs of 500 x 375, `scale` times as large each way."""
    distinct = photos.files(HEIGHT * scale, WIDTH * scale, min(count, 64))
    return [distinct[i % len(distinct)] for i in range(count)]


def photo_records(files: int = 4, each: int = 64) -> list[str]:
    """TFRecord files of photographs."""
    return _files(f"photos-{files}x{each}", files, lambda i: jpegs(each))


def vector_records(
    files: int, each: int, floats: int, compression: str = ""
) -> list[str]:
    """TFRecord files of float32 vectors: record i is full of i's digits."""

    def records(file: int) -> list[bytes]:
        numbers = np.random.default_rng(file)
        return [
            numbers.random(floats, np.float32).tobytes() for _ in range(each)
        ]

    name = f"vectors-{files}x{each}x{floats}{compression.lower()}"
    return _files(name, files, records, compression)


def text_file() -> str:
    return lines.file()


def _files(
    name: str, count: int, records: object, compression: str = ""
) -> list[str]:
    folder = FOLDER / name
    if not folder.exists():
        import penstock as ps

        partial = folder.with_name(f"{name}.{os.getpid()}")
        partial.mkdir(parents=True)
        for i in range(count):
            path = str(partial / f"{i:03}.tfrecord")
            with ps.io.TFRecordWriter(path, compression or None) as writer:
                for record in records(i):  # type: ignore[operator]
                    writer.write(record)
        partial.rename(folder)
    return [str(folder / f"{i:03}.tfrecord") for i in range(count)]


def below(folder: Path, paths: list[str]) -> list[str]:
    """The same files, seen through another folder."""
    return [str(folder / Path(p).relative_to(FOLDER)) for p in paths]
