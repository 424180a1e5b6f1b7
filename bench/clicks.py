"""TFRecord files of tf.train.Examples, made once, without TensorFlow.

Each has 13 floats, 26 int64s of different sizes, a label and a tag, as
click-through data does. A few thousand are made and written over and over: the
parser must read each again, and the files are larger than any cache.
"""

from __future__ import annotations

import os
import struct
from pathlib import Path

import numpy as np
import records

FLOATS = tuple(f"f{i:02d}" for i in range(13))
INTS = tuple(f"c{i:02d}" for i in range(26))
DISTINCT = 5_000
_TIMES = 40
_FILES = 2


def files() -> list[str]:
    """The files; a single small one under BENCH_SMOKE=1."""
    if os.environ.get("BENCH_SMOKE"):
        return [str(_file("examples-smoke", 1))]
    return [str(_file(f"examples-{i}", _TIMES)) for i in range(_FILES)]


def columns() -> dict[str, np.ndarray]:
    """The values of the distinct Examples."""
    random = np.random.default_rng(5)
    values: dict[str, np.ndarray] = {}
    for name in FLOATS:
        values[name] = random.standard_normal(DISTINCT).astype(np.float32)
    for i, name in enumerate(INTS):
        # One to five bytes as varints.
        values[name] = random.integers(0, 1 << (4 + 28 * i // 25), DISTINCT)
    values["label"] = random.integers(0, 2, DISTINCT)
    tags = [b"tag-%d" % i for i in random.integers(0, 1000, DISTINCT)]
    values["tag"] = np.array(tags, object)
    return values


def _file(stem: str, times: int) -> Path:
    path = records.FOLDER / f"{stem}-{times}.tfrecord"
    if not path.exists():
        records.FOLDER.mkdir(parents=True, exist_ok=True)
        framed = b"".join(_framed(_serialized()))
        partial = path.with_suffix(f".{os.getpid()}")
        with partial.open("wb") as out:
            for _ in range(times):
                out.write(framed)
        partial.rename(path)
    return path


def _serialized() -> list[bytes]:
    values = columns()
    rows = zip(*(values[name].tolist() for name in values), strict=True)
    return [_example(dict(zip(values, row, strict=True))) for row in rows]


def _example(row: dict[str, object]) -> bytes:
    entries = []
    for name, value in row.items():
        if isinstance(value, bytes):
            feature = _field(1, _field(1, value))
        elif isinstance(value, float):
            feature = _field(2, _field(1, struct.pack("<f", value)))
        else:
            assert isinstance(value, int)
            feature = _field(3, _field(1, _varint(value)))
        entries.append(_field(1, _field(1, name.encode()) + _field(2, feature)))
    return _field(1, b"".join(entries))


def _field(number: int, body: bytes) -> bytes:
    return bytes([number << 3 | 2]) + _varint(len(body)) + body


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def _framed(examples: list[bytes]) -> list[bytes]:
    """Each with its length and checksums; those of a length at a time."""
    framed = [b""] * len(examples)
    lengths = np.array([len(example) for example in examples])
    for length in np.unique(lengths):
        (places,) = np.nonzero(lengths == length)
        body = np.frombuffer(b"".join(examples[i] for i in places), np.uint8)
        rows = records.framed(body.reshape(len(places), length))
        for place, row in zip(places, rows, strict=True):
            framed[place] = row.tobytes()
    return framed
