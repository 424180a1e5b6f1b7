#!/usr/bin/env python3
"""What tuning while it runs costs: its CPU, of what the pipeline uses.

    .venv/bin/python bench/tuner/tuning_cost.py --seconds 600

Two pipelines, each with an engine of its own, are read at the pace of a
consumer that sleeps between batches: a light one of many small steps, of which
each look at its counters is a large part, and one that decodes photographs.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

# Batches a second.
_PACES = {"light": 5.0, "heavy": 2.0}


@dataclass(frozen=True)
class Cost:
    name: str
    wall_seconds: float
    batches: int
    engine_seconds: float  # CPU
    tuning_seconds: float  # of that

    @property
    def of_engine(self) -> float:
        return self.tuning_seconds / self.engine_seconds

    def __str__(self) -> str:
        return (
            f"{self.name}: {self.batches} batches in {self.wall_seconds:.0f} s;"
            f" the engine used {self.engine_seconds:.1f} s, "
            f"{self.engine_seconds / self.wall_seconds:.1%} of a core; tuning "
            f"{1e3 * self.tuning_seconds:.0f} ms: {self.of_engine:.2%} of the "
            f"engine's, {self.tuning_seconds / self.wall_seconds:.4%} of the "
            "time"
        )


def pipeline(name: str) -> Any:
    import penstock as ps

    if name == "light":
        return (
            ps.Dataset.range(1 << 40)
            .map(lambda x: x * 2)
            .filter(lambda x: x % 3 > 0)
            .map(lambda x: (x, ps.cast(x, ps.float32)))
            .shuffle(1000)
            .batch(1000)
            .prefetch(2)
        )
    import data
    from library import Ours
    from parallel import small

    ds = ps.Dataset.from_tensor_slices(data.jpegs(64)).repeat()
    return ds.shuffle(256).map(small(Ours())).batch(32)


def measured(name: str, seconds: float) -> Cost:
    """Reads it for so long; the engine is this process's own."""
    batches = iter(pipeline(name))
    begin = time.monotonic()
    count = 0
    while time.monotonic() < begin + seconds:
        next(batches)
        count += 1
        time.sleep(max(0.0, begin + count / _PACES[name] - time.monotonic()))
    stats = batches.stats()
    return Cost(
        name,
        stats.wall_ns / 1e9,
        count,
        stats.cpu_ns / 1e9,
        stats.tuning_ns / 1e9,
    )


def checked() -> str:
    """For a moment: "ok" if what tuning takes is counted."""
    import penstock as ps

    for name in _PACES:
        cost = measured(name, 1.0)
        assert 0 < cost.tuning_seconds < cost.engine_seconds, cost
        ps.close()
    return "ok"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--only", choices=tuple(_PACES), help="in this process")
    arguments = parser.parse_args()
    if arguments.only:
        print(json.dumps(asdict(measured(arguments.only, arguments.seconds))))
        return 0
    command = [sys.executable, __file__, "--seconds", str(arguments.seconds)]
    runs = [
        subprocess.Popen([*command, "--only", name], stdout=subprocess.PIPE)
        for name in _PACES
    ]
    failed = 0
    for run in runs:
        said, _ = run.communicate()
        failed += run.returncode != 0
        if run.returncode == 0:
            print(Cost(**json.loads(said.splitlines()[-1])), flush=True)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
