"""The least that any reader of TFRecord files has to do, in C++.

`tfrecord_bench` reads a file of 200-byte records in the page cache and verifies
the same checksums, and nothing else: E4's moonshot is a share of its rate.
"""

from __future__ import annotations

import re
import subprocess

import records
from workload import ROOT

BINARY = ROOT / "build/release/src/penstock/io/tfrecord_bench"


def records_per_s() -> list[float]:
    """The best of seven passes; nothing if the binary was not built."""
    if not BINARY.exists():
        return []
    records.FOLDER.mkdir(parents=True, exist_ok=True)
    said = subprocess.run(
        [BINARY, str(records.RECORD_BYTES), records.FOLDER / "bare.tfrecord"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    found = re.search(r"bare loop +([0-9.]+) M records/s", said)
    if found is None:
        raise ValueError(f"expected the bare loop's rate; got:\n{said}")
    return [float(found[1]) * 1e6]
