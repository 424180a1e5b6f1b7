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

# `row` is the number of the element that the id came with.
RECORD = np.dtype(
    [("id", "<u8"), ("who", "<u4"), ("row", "<u4"), ("at", "<f8")]
)


@dataclasses.dataclass
class Life:
    """A job's trainers from a start or a restore to their end."""

    number: int
    # The checkpoint it began with, and the life that saved that.
    checkpoint: str = ""
    parent: Life | None = None
    # Without a checkpoint: the round that it went on with, after the parent.
    from_round: int = 0


def ledger_path(folder: Path, reader: int, life: int) -> Path:
    return folder / f"ledger-{reader}-{life}.bin"


def state_path(folder: Path, reader: int, checkpoint: str) -> Path:
    return folder / f"{checkpoint}-{reader}.json"


def is_place(state: Path) -> bool:
    """Whether it was saved after a row.

    Before, there is nothing to go on from for the service, which takes whoever
    loads it for one that begins.
    """
    return int(json.loads(state.read_text())["row"]) > 0


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
        before = read_ledger(ledger_path(folder, reader, life.parent.number))
        if life.checkpoint:
            state = state_path(folder, reader, life.checkpoint)
            before = before[: json.loads(state.read_text())["noted"]]
        else:
            before = before[before["row"] < life.from_round]
        life = life.parent
        parts.insert(0, before)
    return np.concatenate(parts)


@dataclasses.dataclass(frozen=True)
class Verdict:
    rows: int
    lost: list[int]
    doubled: list[int]
    wrong: str = ""  # whatever else is

    def __bool__(self) -> bool:
        return not (self.lost or self.doubled or self.wrong)


def judge(folder: Path, readers: int, life: Life, count: int) -> Verdict:
    """Compares what counts with a plain run: each id in [0, count) once."""
    return compare(
        [lineage(folder, reader, life)["id"] for reader in range(readers)],
        count,
    )


def compare(had: list[np.ndarray], count: int) -> Verdict:
    """Whether all of these together are each id in [0, count) once."""
    ids = np.concatenate(had).astype(np.int64)
    seen = np.bincount(ids, minlength=count)
    return Verdict(
        len(ids),
        np.flatnonzero(seen[:count] == 0).tolist(),
        np.flatnonzero(
            seen > (np.arange(len(seen)) < count).astype(int)
        ).tolist(),
    )
