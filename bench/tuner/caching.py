"""Cases of rows that are kept: where, how many, and where not."""

from __future__ import annotations

import atexit
import contextlib
import tempfile
from pathlib import Path
from typing import Any

import data
from case import CORES, Axis, Case, Point, ahead
from parallel import small

_COUNT = 256
_BATCH = 32
_EPOCH = _COUNT // _BATCH
_CACHE = Axis((0, 1, 2), "cache")
_TASKS = Axis((1, 2, 3))
# Of cases whose rows are kept where the best settings are: they go by at the
# speed of memory.
_AT_MEMORY_SPEED = {"seconds": 0.4, "more_turns": 5}

_stack = contextlib.ExitStack()
_slow: Path | None = None  # a directory on a disk that is slow to read


def _source(lib: Any, count: int = _COUNT) -> Any:
    return lib.TFRecordDataset(data.photo_records(4, count // 4))


def _photos(lib: Any, point: Point) -> Any:
    """Kept: 1, files; 2, pixels."""
    ds = _source(lib)
    if point["cache"] == 1:
        ds = ds.cache()
    ds = ds.map(small(lib), num_parallel_calls=point["decode"])
    if point["cache"] == 2:
        ds = ds.cache()
    return ahead(ds.repeat().batch(_BATCH), point["ahead"])


def _augmented(lib: Any, point: Point) -> Any:
    ds = _source(lib)
    if point["cache"] == 1:
        ds = ds.cache()
    ds = ds.map(small(lib), num_parallel_calls=point["decode"])
    if point["cache"] == 2:
        ds = ds.cache()
    ds = ds.map(lambda x: lib.flip(x, 7))
    return ahead(ds.repeat().batch(_BATCH), 2)


def _too_large(lib: Any, point: Point) -> Any:
    """Pixels are 79 MB; kept: 1, files; 2, a half of the pixels."""
    ds = _source(lib)
    if point["cache"] == 1:
        ds = ds.cache()
    ds = ds.map(small(lib), num_parallel_calls=point["decode"])
    if point["cache"] == 2:
        half = _COUNT // 2
        ds = ds.take(half).cache().concatenate(ds.skip(half))
    return ahead(ds.repeat().batch(_BATCH), 2)


def _too_low(lib: Any, point: Point) -> Any:
    ds = _source(lib).cache()
    ds = ds.map(small(lib), num_parallel_calls=point["decode"])
    if point["cache"] == 2:
        ds = ds.cache()
    return ahead(ds.repeat().batch(_BATCH), 2)


def _enter_slow() -> str | None:
    global _slow
    from slow_disk import AbsentError, slow_disk

    folder = _stack.enter_context(tempfile.TemporaryDirectory())
    try:
        disk = slow_disk(folder, mb_per_second=20, writable=1)
        _slow = _stack.enter_context(disk)
    except AbsentError as error:
        return str(error)
    atexit.register(_stack.close)
    return None


def _slow_to_read(lib: Any, point: Point) -> Any:
    """Kept on the slow disk: 1, files; 2, pixels."""
    assert _slow is not None
    ds = _source(lib)
    if point["cache"] == 1:
        ds = ds.cache(str(_slow / f"files-{lib.is_ours}"))
    ds = ds.map(small(lib), num_parallel_calls=point["decode"])
    if point["cache"] == 2:
        ds = ds.cache(str(_slow / f"pixels-{lib.is_ours}"))
    ds = ahead(ds.repeat().batch(_BATCH), 2)
    return lib.keeping(ds, str(_slow))


def _judged_slow(ours: Any) -> list[tuple[str, bool]]:
    """Of what tune() does, and of what is said to who keeps pixels there."""
    from library import Ours

    import penstock as ps

    theirs = _slow_to_read(Ours(), {"decode": 2, "cache": 2})
    said = theirs.explain(seconds=5.0)
    ps.close()
    best = said.fixes[0] if said.fixes else None
    return [
        ("nothing is kept there", not ours.kept),
        (
            "it is said why",
            any("not kept on disk" in note for note in ours.before.notes),
        ),
        ("the user's own cache is named", "reads its rows" in said.verdict),
        (
            "leaving it out is the first advice",
            best is not None and best.title.startswith("leave out cache_"),
        ),
    ]


def _after_repeat(lib: Any, point: Point) -> Any:
    """Kept: 2, before the repeat; there is no end to what comes after."""
    ds = _source(lib).map(small(lib), num_parallel_calls=point["decode"])
    if point["cache"] == 2:
        ds = ds.cache()
    ds = ds.repeat().map(lambda x: x / 255.0)
    return ahead(ds.take(1 << 40).batch(_BATCH), 2)


CASES = (
    Case(
        8,
        "random before",
        "the last transformation is random: what it makes cannot be kept",
        _augmented,
        naive={"decode": 1, "cache": 0},
        axes={"decode": _TASKS, "cache": _CACHE},
        budget={"memory": "512MB"},
        warm_batches=_EPOCH + 2,
        **_AT_MEMORY_SPEED,
        expects=lambda ours: [
            ("kept before what is random", ours.kept == ("map_1",)),
        ],
    ),
    Case(
        9,
        "larger than memory",
        "pixels would be 79 MB, where 120 MB are for everything",
        _too_large,
        naive={"decode": 1, "cache": 0},
        axes={"decode": _TASKS, "cache": _CACHE},
        budget={"memory": "120MB"},
        warm_batches=_EPOCH + 2,
        expects=lambda ours: [
            ("within its 120 MB", ours.memory <= 1.05 * 120e6),
        ],
    ),
    Case(
        10,
        "kept too early",
        "the user keeps files; decoding them is the wall, and pixels fit",
        _too_low,
        naive={"decode": 1, "cache": 0},
        axes={"decode": _TASKS, "cache": Axis((0, 2), "cache")},
        budget={"memory": "512MB"},
        warm_batches=_EPOCH + 2,
        **_AT_MEMORY_SPEED,
        expects=lambda ours: [
            ("pixels are kept", bool(ours.kept)),
        ],
    ),
    Case(
        11,
        "slow to read back",
        "a disk for rows gives 20 MB/s: pixels are decoded faster than that",
        _slow_to_read,
        naive={"decode": 1, "cache": 0},
        axes={"decode": _TASKS, "cache": _CACHE},
        budget={"disk": "1GB"},
        warm_batches=_EPOCH + 2,
        enter=_enter_slow,
        expects=_judged_slow,
    ),
    Case(
        12,
        "after repeat",
        "what comes after a repeat has no end, and is cut off by a take",
        _after_repeat,
        naive={"decode": 1, "cache": 0},
        axes={"decode": _TASKS, "cache": Axis((0, 2), "cache")},
        budget={"memory": "512MB"},
        warm_batches=_EPOCH + 2,
        **_AT_MEMORY_SPEED,
        expects=lambda ours: [
            ("kept before the repeat", ours.kept == ("map_1",)),
        ],
    ),
    Case(
        31,
        "T2b: budget alone",
        "a naive pipeline, a memory budget, and nobody who tunes",
        _photos,
        naive={"decode": 1, "ahead": 0, "cache": 0},
        axes={
            "decode": Axis((1, CORES)),
            "ahead": Axis((0, 2), "ahead"),
            "cache": Axis((0, 2), "cache"),
        },
        budget={"memory": "1000MB"},
        warm_batches=_EPOCH + 2,
        **_AT_MEMORY_SPEED,
        online_seconds=0.5,
        is_as_written=True,
        share=0.9,
    ),
    Case(
        32,
        "misconfigured",
        "parallelism 1, nothing ready, nothing kept; pixels fit into memory",
        _photos,
        naive={"decode": 1, "ahead": 0, "cache": 0},
        axes={
            "decode": Axis((1, CORES)),
            "ahead": Axis((0, 2), "ahead"),
            "cache": _CACHE,
        },
        budget={"memory": "1000MB"},
        warm_batches=_EPOCH + 2,
        **_AT_MEMORY_SPEED,
        expects=lambda ours: [("pixels are kept", bool(ours.kept))],
    ),
)
