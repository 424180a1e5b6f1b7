"""Cases of storage that is slow: a file system that waits."""

from __future__ import annotations

import atexit
import contextlib
from pathlib import Path
from typing import Any

import data
from case import Axis, Case, Point, ahead
from parallel import burnt

_stack = contextlib.ExitStack()
_mounted: Path | None = None


def _enter(**options: float) -> Any:
    """Mounts the files of the cases as slow ones."""

    def enter() -> str | None:
        global _mounted
        from slow_disk import AbsentError, slow_disk

        try:
            _mounted = _stack.enter_context(slow_disk(data.FOLDER, **options))
        except AbsentError as error:
            return str(error)
        atexit.register(_stack.close)
        return None

    return enter


def _seen(paths: list[str]) -> list[str]:
    assert _mounted is not None
    return data.below(_mounted, paths)


def _vector(lib: Any) -> Any:
    return lambda record: lib.decode_raw(record, lib.float32)


def _latency(lib: Any, point: Point) -> Any:
    paths = _seen(data.vector_records(64, 16, 1024))
    files = lib.Dataset.from_tensor_slices(paths).repeat()
    ds = files.interleave(
        lib.TFRecordDataset, cycle_length=16, num_parallel_calls=point["read"]
    )
    return ahead(ds.map(_vector(lib)).batch(16), point["ahead"])


def _seeks(lib: Any, point: Point) -> Any:
    paths = _seen(data.vector_records(16, 512, 2048))
    files = lib.Dataset.from_tensor_slices(paths).repeat()
    ds = files.interleave(
        lib.TFRecordDataset, cycle_length=16, num_parallel_calls=point["read"]
    )
    return ahead(ds.map(_vector(lib)).batch(64), 2)


def _bandwidth(lib: Any, point: Point) -> Any:
    paths = _seen(data.vector_records(16, 64, 4096))
    ds = lib.Dataset.from_tensor_slices(paths).interleave(
        lib.TFRecordDataset, cycle_length=4, num_parallel_calls=point["read"]
    )
    if point["cache"]:
        ds = ds.cache()
    ds = ds.map(_vector(lib), num_parallel_calls=point["map"])
    ds = ds.map(burnt(lib, 2), num_parallel_calls=point["map"])
    return ahead(ds.repeat().batch(64), 2)


def _gzip(lib: Any, point: Point) -> Any:
    paths = data.vector_records(1, 2048, 1024, "GZIP")
    ds = lib.TFRecordDataset(paths, compression_type="GZIP")
    if point["cache"]:
        ds = ds.cache()
    ds = ds.map(_vector(lib), num_parallel_calls=point["map"])
    return ahead(ds.repeat().batch(64), 2)


CASES = (
    Case(
        5,
        "20 ms a read",
        "one read at a time of files that take 20 ms to open and to read",
        _latency,
        naive={"read": 1, "ahead": 0},
        axes={
            "read": Axis((1, 2, 4, 8, 16)),
            "ahead": Axis((0, 2), "ahead"),
        },
        enter=_enter(open_ms=20, read_ms=20),
    ),
    Case(
        6,
        "seeks",
        "sixteen files read at once on a disk with one head, 10 ms a seek",
        _seeks,
        naive={"read": 16},
        axes={"read": Axis((1, 2, 4, 8, 16))},
        seconds=5,  # Files of the same length end, and begin, all at once.
        enter=_enter(seek_ms=10, mb_per_second=100),
    ),
    Case(
        7,
        "slow disk",
        "a disk of 20 MB/s; cores are idle, and the data fit into memory",
        _bandwidth,
        naive={"read": 1, "map": 1, "cache": 0},
        axes={
            "read": Axis((1, 4)),
            "map": Axis((1, 2)),
            "cache": Axis((0, 1), "cache"),
        },
        budget={"memory": "256MB"},
        warm_batches=18,
        enter=_enter(mb_per_second=20),
        expects=lambda ours: [
            ("names the disk", ours.before.wall.kind.startswith("disk")),
            ("rows are kept", bool(ours.kept)),
        ],
    ),
    Case(
        22,
        "one gzip file",
        "one compressed file, which only one task can read",
        _gzip,
        naive={"map": 1, "cache": 0},
        axes={"map": Axis((1, 2)), "cache": Axis((0, 1), "cache")},
        budget={"memory": "256MB"},
        warm_batches=34,
    ),
)
