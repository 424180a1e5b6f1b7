"""The pipelines that trainers read: every row carries its id and a check."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

import penstock as ps

# Where a worker's folder says which process it is.
WHO = "/proc/self/cwd/who"
# Members of a group: what they have in common is computed once.
GROUPS = ("share", "skip", "rounds")
# Elements of "skip", 8 kB each, that an engine may have before its trainer:
# 128 MiB of bundles that have ended and as much of those that it reads, and
# what is between it and the trainer.
SKIP_AHEAD = 40_000
KINDS = (
    *("rows", "batches", "ordered", "shuffled", "files", "wide", "who"),
    *GROUPS,
)
_PRIME = 2654435761
_SPACE = 1 << 32
_WIDTH = 2048
_WORK = 20_000
_LINES = 500
_SHARED_WIDTH = 128
_SKIP_WIDTH = 1000
_ENDLESS = 10**6  # more than anybody comes to read
_LENGTHS = 40
_BUCKETS = [8, 16, 24, 32]
_BUCKET_ROWS = 16
_LONG_FILES = 300
_LONG_LINES = 40

Rows = tuple[np.ndarray[Any, Any], bool, int]


def row_count(kind: str, scale: float) -> int:
    """Rows of an epoch that lasts for some seconds.

    Of the pipeline "skip", which has no end: what each member reads of it.
    """
    each = {
        "rows": 400,
        "files": 400,
        "wide": 40,
        "who": 130,
        "share": 200,
        "skip": 80,
        "rounds": 500,
    }.get(kind, 3000)
    count = int(each * 1000 * scale)
    return count // _LINES * _LINES if kind == "files" else count


def write_files(folder: Path, count: int) -> None:
    """What the pipeline "files" reads."""
    folder.mkdir(parents=True)
    for i in range(0, count, _LINES):
        lines = (f"{j} {check(j)}\n" for j in range(i, i + _LINES))
        (folder / f"{i:09}.txt").write_text("".join(lines))


def write_lines(store: Path) -> None:
    """What the pipeline "lines" reads: too much to be read ahead."""
    store.mkdir(parents=True)
    for i in range(_LONG_FILES):
        lines = (f"{i} {check(i)} {'x' * 10_000}\n" for _ in range(_LONG_LINES))
        (store / f"{i:04}.txt").write_text("".join(lines))


def link_lines(store: Path, folder: Path) -> Path:
    """The same files in a folder of their own.

    Returns:
        The last of them, which shares its bytes with nobody.
    """
    folder.mkdir()
    for path in store.iterdir():
        os.link(path, folder / path.name)
    last = folder / f"{_LONG_FILES - 1:04}.txt"
    text = last.read_bytes()
    last.unlink()
    last.write_bytes(text)
    return last


def has_all_lines(ids: np.ndarray[Any, Any]) -> bool:
    """Whether these are the ids of the pipeline "lines", each as often."""
    seen = np.bincount(ids.astype(np.int64), minlength=_LONG_FILES)
    return len(seen) == _LONG_FILES and bool((seen == _LONG_LINES).all())


def check(row: Any) -> Any:
    return row * _PRIME % _SPACE


def make(kind: str, count: int, folder: Path) -> ps.Dataset:
    """A pipeline with the ids 0 to `count`, to be distributed."""
    if kind == "files":
        names = ps.Dataset.list_files(str(folder / "*.txt"))
        return names.interleave(ps.TextLineDataset, cycle_length=2)
    if kind == "lines":
        names = ps.Dataset.list_files(str(folder / "*.txt"), shuffle=False)
        return names.flat_map(ps.TextLineDataset)
    if kind == "who":
        # Slow to compute, so that nobody has many of them in store.
        slow = ps.Dataset.range(count).map(lambda x: (np.arange(_WORK) + x)[0])
        return slow.batch(16).flat_map(
            lambda x: ps.TextLineDataset(WHO).map(
                lambda who: (x, check(x), who)
            )
        )
    if kind == "skip":
        ds = ps.Dataset.range(_ENDLESS).repeat()
        return ds.map(lambda x: ps.fill([_SKIP_WIDTH], x))
    if kind == "rounds":
        ds = ps.Dataset.range(count)
        ds = ds.map(lambda x: ps.fill([1 + x * 7919 % _LENGTHS], x + 1))
        return ds.bucket_by_sequence_length(
            lambda x: ps.size(x),
            bucket_boundaries=_BUCKETS,
            bucket_batch_sizes=[_BUCKET_ROWS] * (len(_BUCKETS) + 1),
        )
    ds = ps.Dataset.range(count).map(lambda x: (x, check(x)))
    if kind == "share":
        ds = ds.map(lambda x, y: (x, y, np.arange(_SHARED_WIDTH) + x))
        return ds.shuffle(500).batch(64)
    if kind == "rows":
        return ds
    if kind == "wide":
        return ds.map(lambda x, y: (x, y, np.arange(_WIDTH) + x))
    if kind == "shuffled":
        ds = ds.shuffle(500)
    return ds.batch(64)


def read(kind: str, element: Any) -> Rows:
    """Ids of an element, whether all of it is right, and who computed it."""
    who = 0
    if kind == "skip":
        return element[:1], bool((element == element[0]).all()), who
    if kind == "rounds":
        return element[:, 0] - 1, _is_padded(element), who
    if kind in ("files", "lines"):
        words = element.split()[:2]
        found, checked = (np.atleast_1d(int(word)) for word in words)
        is_right = True
    elif kind == "who":
        found, checked = np.atleast_1d(element[0]), np.atleast_1d(element[1])
        is_right, who = True, int(element[2])
    elif kind == "wide":
        found, checked = np.atleast_1d(element[0]), np.atleast_1d(element[1])
        is_right = bool((element[2] == np.arange(_WIDTH) + element[0]).all())
    elif kind == "share":
        found, checked = element[:2]
        wide = np.arange(_SHARED_WIDTH) + found[:, None]
        is_right = bool((element[2] == wide).all())
    else:
        found, checked = np.atleast_1d(element[0]), np.atleast_1d(element[1])
        is_right = True
    return found, is_right and bool((checked == check(found)).all()), who


def _is_padded(batch: np.ndarray[Any, Any]) -> bool:
    """Whether each row of "rounds" is as long as it should be, and then 0."""
    lengths = 1 + (batch[:, 0] - 1) * 7919 % _LENGTHS
    is_inside = np.arange(batch.shape[1]) < lengths[:, None]
    whole = np.where(is_inside, batch[:, :1], 0)
    return bool((batch == whole).all()) and batch.shape[1] == max(lengths)


def bundle_rows(count: int) -> int:
    """Rows of a bundle of a range: as the workers cut it."""
    most = -(-count // 1024)
    return max(most, min(count, min(max(count // 64, 64), 1024)))
