"""Cases of work at once: too little, too much, in the wrong place."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import Any

import data
import limits
from case import CORES, Axis, Case, Point, ahead

_TASKS = Axis((1, 2, 3, 4))
_FEW = Axis((1, 2, 4))
_AHEAD = Axis((0, 2, 8), "ahead")
_RUN = 45.0  # seconds, beside a neighbour


def small(lib: Any, size: int = 160) -> Any:
    def decode(file: Any) -> Any:
        image = lib.decode_jpeg(file, channels=3)
        return lib.cast(lib.image.resize(image, (size, size)), lib.float32)

    return decode


def burnt(lib: Any, rounds: int) -> Any:
    """Work that is in proportion to `rounds`, and cannot fail."""

    def burn(x: Any) -> Any:
        for _ in range(rounds):
            x = lib.sin(x) * 1.5 + 0.25
        return x

    return burn


def vectors(lib: Any, count: int, floats: int) -> Any:
    """`count` vectors that cost nothing to make."""
    import numpy as np

    rows = np.random.default_rng(1).random((count, floats), np.float32)
    return lib.Dataset.from_tensor_slices(rows).repeat()


def _photos(lib: Any, point: Point) -> Any:
    ds = lib.TFRecordDataset(data.photo_records()).repeat()
    ds = ds.map(small(lib), num_parallel_calls=point["decode"])
    return ahead(ds.batch(32), point["ahead"])


def _crowd(lib: Any, point: Point) -> Any:
    files = lib.Dataset.from_tensor_slices(data.photo_records()).repeat()
    ds = files.interleave(
        lib.TFRecordDataset,
        cycle_length=4,
        num_parallel_calls=min(4, point["read"]),
    )
    ds = ds.map(small(lib), num_parallel_calls=point["decode"])
    ds = ds.map(lambda x: x / 255.0, num_parallel_calls=point["scale"])
    return ahead(ds.batch(32), 2)


def _skew(lib: Any, point: Point) -> Any:
    ds = lib.TFRecordDataset(data.photo_records()).repeat()
    ds = ds.map(small(lib), num_parallel_calls=point["costly"])
    ds = ds.map(lambda x: x / 255.0, num_parallel_calls=point["cheap"])
    return ahead(ds.batch(32), 2)


def _sequential(lib: Any, point: Point) -> Any:
    burn = burnt(lib, 8)
    ds = vectors(lib, 1000, 2048)
    ds = ds.map(burnt(lib, 2), num_parallel_calls=point["map"])

    def step(total: Any, x: Any) -> Any:
        y = burn(x + total)
        return lib.mean(y), y

    import numpy as np

    ds = ds.scan(np.float32(0), step)
    return ahead(ds.batch(64), point["ahead"])


def _tail(lib: Any, point: Point) -> Any:
    files = data.jpegs(100)
    files[37] = data.jpegs(1, scale=7)[0]
    ds = lib.Dataset.from_tensor_slices(files).repeat()
    ds = ds.map(small(lib), num_parallel_calls=point["decode"])
    return ahead(ds.batch(16), point["ahead"])


def _hoard(lib: Any, point: Point) -> Any:
    ds = lib.TFRecordDataset(data.photo_records()).repeat()
    ds = ds.map(small(lib, 224), num_parallel_calls=point["decode"])
    return ds.batch(32).prefetch(point["ahead"])


def _two_branches(lib: Any, point: Point) -> Any:
    slow = lib.TFRecordDataset(data.photo_records()).repeat()
    slow = slow.map(small(lib), num_parallel_calls=point["slow"])
    fast = vectors(lib, 1000, 256)
    fast = fast.map(burnt(lib, 2), num_parallel_calls=point["fast"])
    return ahead(lib.zip([slow, fast]).batch(32), 2)


def _nested(lib: Any, point: Point) -> Any:
    files = data.photo_records()
    decode = small(lib)

    def photos(i: Any) -> Any:
        ds = lib.TFRecordDataset(files).repeat(4)
        return ds.map(decode, num_parallel_calls=point["inner"])

    ds = lib.Dataset.range(8).repeat()
    ds = ds.interleave(
        photos, cycle_length=4, num_parallel_calls=point["outer"]
    )
    return ahead(ds.batch(32), 2)


def _bursts() -> Any:
    return lambda i: time.sleep(0.25) if i % 8 == 0 else None


def _slowly() -> Any:
    return lambda i: time.sleep(0.1)


def _beside_a_neighbour() -> Any:
    """Another program takes all cores for a third of the run."""
    begin = time.monotonic()
    started: list[subprocess.Popen[bytes]] = []

    def consume(i: int) -> None:
        if not started and time.monotonic() > begin + _RUN / 3:
            busy = f"import time\nend = time.time() + {_RUN / 3}\n"
            busy += "while time.time() < end: pass"
            started.extend(
                subprocess.Popen([sys.executable, "-c", busy])
                for _ in range(CORES)
            )
        elif started and time.monotonic() > begin + _RUN - 1:
            for process in started:
                process.wait()

    return consume


CASES = (
    Case(
        1,
        "all at one",
        "every parallelism 1, nothing kept ready",
        _photos,
        naive={"decode": 1, "ahead": 0},
        axes={"decode": _TASKS, "ahead": _AHEAD},
    ),
    Case(
        2,
        "64 tasks each",
        f"64 tasks for every transformation on {CORES} cores",
        _crowd,
        naive={"read": 64, "decode": 64, "scale": 64},
        axes={"read": _FEW, "decode": _TASKS, "scale": _FEW},
        expects=lambda ours: [
            ("fewer tasks than 128", ours.tasks < 128),
        ],
    ),
    Case(
        3,
        "100:1 skew",
        "two maps, one a hundred times as costly",
        _skew,
        naive={"costly": 1, "cheap": 1},
        axes={"costly": _TASKS, "cheap": _FEW},
    ),
    Case(
        4,
        "one in sequence",
        "a scan, which no task can share, is the bound",
        _sequential,
        naive={"map": 1, "ahead": 0},
        axes={"map": _FEW, "ahead": _AHEAD},
        expects=lambda ours: [
            ("names the scan", "scan" in ours.before.verdict),
        ],
    ),
    Case(
        16,
        "long tail",
        "in order, and one element of a hundred costs fifty times as much",
        _tail,
        naive={"decode": 2, "ahead": 0},
        axes={"decode": _TASKS, "ahead": Axis((0, 2, 8, 16), "ahead")},
    ),
    Case(
        18,
        "hoard",
        "1,024 large batches kept ready",
        _hoard,
        naive={"decode": 2, "ahead": 1024},
        axes={"decode": _FEW, "ahead": Axis((1, 2, 8), "ahead")},
        budget={"memory": "256MB"},
        expects=lambda ours: [
            ("within its 256 MB", ours.memory < 1.1 * 256e6),
        ],
    ),
    Case(
        19,
        "bursts",
        "nothing kept ready for a consumer that takes eight at once",
        _photos,
        naive={"decode": 2, "ahead": 0},
        axes={"decode": _FEW, "ahead": Axis((0, 2, 8, 16), "ahead")},
        consumer=_bursts,
        online_seconds=25,
    ),
    Case(
        23,
        "two branches",
        "a slow and a fast branch are joined",
        _two_branches,
        naive={"slow": 1, "fast": 1},
        axes={"slow": _TASKS, "fast": _FEW},
    ),
    Case(
        24,
        "slow consumer",
        "the consumer takes ten batches a second, whatever is done",
        _photos,
        naive={"decode": 8, "ahead": 8},
        axes={"decode": _FEW, "ahead": Axis((0, 2), "ahead")},
        consumer=_slowly,
        online_seconds=25,
    ),
    Case(
        25,
        "quota",
        "a control group of one core, where two are seen",
        _photos,
        naive={"decode": 1, "ahead": 0},
        axes={"decode": _FEW, "ahead": _AHEAD},
        enter=lambda: limits.enter_group(cores=1),
        expects=lambda ours: [
            ("sees one core", ours.before.cores <= 1.01),
        ],
    ),
    Case(
        26,
        "neighbour",
        "another program comes, takes all cores, and goes",
        _photos,
        naive={"decode": CORES, "ahead": 2},
        axes={},
        consumer=_beside_a_neighbour,
        has_peer=False,
        online_seconds=0.1,
        seconds=_RUN,
    ),
    Case(
        30,
        "nested",
        "an interleave of datasets that have parallel maps",
        _nested,
        naive={"outer": 1, "inner": 1},
        axes={"outer": _FEW, "inner": _FEW},
    ),
)
