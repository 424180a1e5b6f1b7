"""Cases of rows that are kept: where, how many, and where not."""

from __future__ import annotations

from typing import Any

import data
from case import CORES, Axis, Case, Point, ahead
from parallel import small

_COUNT = 256
_BATCH = 32
_EPOCH = _COUNT // _BATCH
_CACHE = Axis((0, 1, 2), "cache")
_TASKS = Axis((1, 2, 3))


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
        expects=lambda ours: [
            ("pixels are kept", bool(ours.kept)),
        ],
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
        online_seconds=0.5,
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
        expects=lambda ours: [("pixels are kept", bool(ours.kept))],
    ),
)
