"""What a benchmark's file declares.

A file under bench/ is one row of the table. It has a `ROW`, and functions that
run in worker processes, so it imports what it measures inside them:

  a Compared row   ours() and peer(), datasets by the name of the variant;
                   check(batches), which refuses wrong results of ours
  a Cost row       measure(seconds), one figure in the row's unit, or a Noted
                   one; with `has_peer`, peer_measure(seconds), which is shown
                   beside it

`peer()` gives every form in which a user may reasonably write the workload; the
fastest of them counts.
"""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

BENCH = Path(__file__).resolve().parent
ROOT = BENCH.parent
PEER_PYTHON = ROOT / ".venv-frameworks/bin/python"
# Large enough that no run ends, for sources that only count.
ENDLESS = 1 << 40

# Every row, in the order of the table; `--only` knows them by these names.
NAMES = (
    "engine/map",
    "engine/shuffle",
    "engine/filter",
    "engine/tfrecord",
    "engine/tfrecord_inside",
    "engine/parse_example",
    "engine/parse_example_batched",
    "engine/text",
    "engine/padded_batch",
    "engine/tokens",
    "engine/csv",
    "engine/json_lines",
    "engine/tar",
    "engine/jpeg",
    "engine/jpeg_large",
    "engine/jpeg_augment",
    "engine/counters",
    "python/function",
    "python/pillow",
    "python/pillow_processes",
    "python/handover_small",
    "python/handover_large",
    "python/import_time",
    "python/first_element",
    "service/first_batch",
    "service/one_by_one",
    "service/batches",
    "service/large_tcp",
    "service/large_memory",
    "service/shared",
    "service/rounds",
    "service/worker_killed",
    "service/exactly_once",
)


@dataclass(frozen=True)
class Compared:
    """Elements a second, as a ratio to the peer's. More is better."""

    number: str  # in the list of targets
    title: str
    elements_per_batch: int  # of the source, behind one batch that comes out
    must_reach: float
    moonshot: float | None
    # The peer's side runs in the product's environment, with these variables.
    peer_variables: dict[str, str] = field(default_factory=dict)
    # Ours runs in the peer's environment too: it needs a package from there.
    is_ours_in_peers: bool = False
    # Of the rate of the row's `bare()`: stands in for the moonshot.
    share_of_bare: float | None = None
    # The sides are within a few per cent, which the best of a few runs cannot
    # tell apart: eight times the turns, each as much shorter, and medians.
    is_even: bool = False


@dataclass(frozen=True)
class Cost:
    """A figure that ours must keep below a limit. Less is better."""

    number: str
    title: str
    unit: str
    limit: float
    # The peer is measured too, once: it may take long, or fail.
    has_peer: bool = False
    digits: int = 1  # after the point


class Noted(float):
    """A figure, and what is to be said below the table of how it came."""

    note: str

    def __new__(cls, value: float, note: str) -> Noted:
        noted = super().__new__(cls, value)
        noted.note = note
        return noted


class AbsentError(Exception):
    """A side cannot run here; the message says why."""


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "bench_" + name.replace("/", "_"), BENCH / f"{name}.py"
    )
    if spec is None or spec.loader is None:
        raise ValueError(f"no benchmark {name}")
    module = importlib.util.module_from_spec(spec)
    # Known, so that those who look for a function's source find it.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
