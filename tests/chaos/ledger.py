"""What trainers had, and what of that counts.

A trainer that was killed goes on from a checkpoint as another life, and what
the life before had after that checkpoint is undone. All readers of a job are
restored together, so lives are the job's.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np

RECORD = np.dtype([("id", "<u8"), ("who", "<u4"), ("at", "<f8")])


@dataclasses.dataclass
class Life:
    """A job's trainers from a start or a restore to their end."""

    number: int
    # The checkpoint it began with, and the life that saved that.
    checkpoint: str = ""
    parent: Life | None = None


def ledger_path(folder: Path, reader: int, life: int) -> Path:
    return folder / f"ledger-{reader}-{life}.bin"


def state_path(folder: Path, reader: int, checkpoint: str) -> Path:
    return folder / f"{checkpoint}-{reader}.json"


def read_ledger(path: Path) -> np.ndarray:
    """Whole records: the last one may have been cut off by a kill."""
    data = path.read_bytes() if path.exists() else b""
    return np.frombuffer(
        data[: len(data) // RECORD.itemsize * RECORD.itemsize], RECORD
    )


def lineage(folder: Path, reader: int, life: Life) -> np.ndarray:
    """The rows of a reader that count, in their order."""
    parts = [read_ledger(ledger_path(folder, reader, life.number))]
    while life.parent is not None:
        state = state_path(folder, reader, life.checkpoint)
        noted = json.loads(state.read_text())["noted"]
        life = life.parent
        before = read_ledger(ledger_path(folder, reader, life.number))
        parts.insert(0, before[:noted])
    return np.concatenate(parts)


@dataclasses.dataclass(frozen=True)
class Verdict:
    rows: int
    lost: list[int]
    doubled: list[int]

    def __bool__(self) -> bool:
        return not self.lost and not self.doubled


def judge(folder: Path, readers: int, life: Life, count: int) -> Verdict:
    """Compares what counts with a plain run: each id in [0, count) once."""
    ids = np.concatenate(
        [lineage(folder, reader, life)["id"] for reader in range(readers)]
    ).astype(np.int64)
    seen = np.bincount(ids, minlength=count)
    return Verdict(
        len(ids),
        np.flatnonzero(seen[:count] == 0).tolist(),
        np.flatnonzero(
            seen > (np.arange(len(seen)) < count).astype(int)
        ).tolist(),
    )
