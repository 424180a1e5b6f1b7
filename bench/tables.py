"""The same rows as comma-separated values, as JSON lines and in tar archives.

A row is what clicks have: some floats, some integers, a short text.
"""

from __future__ import annotations

import io
import json
import os
import tarfile
from collections.abc import Iterator

import numpy as np
from workload import ROOT

FLOATS = 6
INTS = 6
MEMBER_BYTES = 1_500
_FOLDER = ROOT / "build/bench-data"
_ROWS = 200_000
_SAMPLES = 20_000
_SMOKE_ROWS = 2_000


def rows() -> int:
    return _SMOKE_ROWS if os.environ.get("BENCH_SMOKE") else _ROWS


def samples() -> int:
    return _SMOKE_ROWS if os.environ.get("BENCH_SMOKE") else _SAMPLES


def csv_file() -> str:
    return _made(
        f"rows-{rows()}.csv",
        lambda: "".join(
            ",".join([*map(str, floats), *map(str, ints), text]) + "\n"
            for floats, ints, text in _rows(rows())
        ).encode(),
    )


def json_file() -> str:
    return _made(
        f"rows-{rows()}.jsonl",
        lambda: "".join(
            json.dumps({"floats": floats, "ints": ints, "text": text}) + "\n"
            for floats, ints, text in _rows(rows())
        ).encode(),
    )


def tar_file() -> str:
    """Samples of a member of MEMBER_BYTES and of a small one."""
    return _made(f"samples-{samples()}.tar", _tar)


def _rows(count: int) -> Iterator[tuple[list[float], list[int], str]]:
    random = np.random.default_rng(5)
    floats = random.normal(size=(count, FLOATS)).round(4).tolist()
    ints = random.integers(0, 100_000, (count, INTS)).tolist()
    for i in range(count):
        yield floats[i], ints[i], f"row {i}"


def _tar() -> bytes:
    out = io.BytesIO()
    body = np.random.default_rng(6).bytes(MEMBER_BYTES)
    with tarfile.open(fileobj=out, mode="w") as tar:
        for i in range(samples()):
            for extension, data in (("bin", body), ("cls", str(i).encode())):
                member = tarfile.TarInfo(f"{i:08}.{extension}")
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
    return out.getvalue()


def _made(name: str, make) -> str:
    path = _FOLDER / name
    if not path.exists():
        _FOLDER.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f"{name}.{os.getpid()}")
        partial.write_bytes(make())
        partial.rename(path)
    return str(path)
