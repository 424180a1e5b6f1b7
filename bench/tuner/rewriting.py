"""Cases of pipelines in the wrong order, or in too many pieces."""

from __future__ import annotations

from typing import Any

import data
import numpy as np
from case import Axis, Case, Point, ahead
from parallel import burnt, small, vectors

_TASKS = Axis((1, 2, 3))
_FEW = Axis((1, 2))


def _late_filter(lib: Any, point: Point) -> Any:
    rows = np.random.default_rng(1).random((1000, 2048), np.float32)
    labels = np.arange(1000) % 10
    burn = burnt(lib, 6)
    ds = lib.Dataset.from_tensor_slices((rows, labels)).repeat()
    ds = ds.map(
        lambda x, label: (burn(x), label), num_parallel_calls=point["map"]
    )
    ds = ds.filter(lambda x, label: label == 3)
    return ahead(ds.batch(16), 2)


def _early_cast(lib: Any, point: Point) -> Any:
    pixels = np.random.default_rng(1).integers(
        0, 256, (512, 96, 96, 3), np.uint8
    )
    ds = lib.Dataset.from_tensor_slices(pixels).repeat()
    ds = ds.map(
        lambda x: lib.cast(x, lib.float32), num_parallel_calls=point["map"]
    )
    ds = ds.shuffle(1000, seed=3)
    return ahead(ds.batch(32), 2)


def _tiny(lib: Any, point: Point) -> Any:
    tasks = {"num_parallel_calls": point["map"]}
    ds = lib.TextLineDataset(data.text_file()).repeat()
    ds = ds.map(lambda line: lib.strings.strip(line), **tasks)
    ds = ds.map(lambda line: lib.strings.lower(line), **tasks)
    ds = ds.map(lambda line: (line, lib.strings.length(line)), **tasks)
    ds = ds.filter(lambda line, size: size > 8)
    ds = ds.map(lambda line, size: size, **tasks)
    return ahead(ds.batch(256), 2)


def _late_shuffle(lib: Any, point: Point) -> Any:
    ds = lib.TFRecordDataset(data.photo_records(4, 256)).repeat()
    ds = ds.map(small(lib, 128), num_parallel_calls=point["decode"])
    return ahead(ds.shuffle(1000, seed=3).batch(32), 2)


def _python(lib: Any, point: Point) -> Any:
    def slow(x: Any) -> Any:
        total = 0
        for i in range(3000):
            total += i % 7
        return np.int64(total + x)

    ds = lib.Dataset.range(1 << 40)
    ds = ds.map(lib.python(slow), num_parallel_calls=point["map"])
    return ahead(ds.batch(32), 2)


def _pairs(lib: Any, point: Point) -> Any:
    ds = vectors(lib, 1000, 64)
    ds = ds.batch(32).unbatch()
    ds = ds.map(lambda x: x * 2.0 + 1.0, num_parallel_calls=point["map"])
    return ahead(ds.batch(128), 2)


CASES = (
    Case(
        13,
        "late filter",
        "nine of ten rows are dropped after they were computed",
        _late_filter,
        naive={"map": 1},
        axes={"map": _TASKS},
    ),
    Case(
        14,
        "early cast",
        "pixels are made four times as large before they are shuffled",
        _early_cast,
        naive={"map": 1},
        axes={"map": _TASKS},
    ),
    Case(
        15,
        "tiny steps",
        "lines of text, five transformations of almost nothing",
        _tiny,
        naive={"map": 1},
        axes={"map": _TASKS},
        error_limit=0.25,
    ),
    Case(
        17,
        "late shuffle",
        "1,000 decoded images are shuffled, instead of their files",
        _late_shuffle,
        naive={"decode": 1},
        axes={"decode": _TASKS},
        warm_batches=40,
    ),
    Case(
        20,
        "Python",
        "a Python function that holds the interpreter's lock",
        _python,
        naive={"map": 1},
        axes={"map": Axis((1, 2, 4, 8))},
        error_limit=0.25,
    ),
    Case(
        21,
        "to and fro",
        "batched, unbatched, mapped, batched again",
        _pairs,
        naive={"map": 1},
        axes={"map": _FEW},
    ),
)
