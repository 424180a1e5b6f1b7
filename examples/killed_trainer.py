"""Kills a trainer in mid-epoch, starts it again, and looks at what it learnt.

For the examples that train from a service. The service outlives the trainer, as
it does where trainers are pre-empted. A trainer writes a line for each step,
`step epoch id id ...`; a step that is there twice was taken again after the
kill, from the last checkpoint on, and its last line is what the model knows.
"""

from __future__ import annotations

import collections
import subprocess
import sys
from pathlib import Path

import penstock as ps


def ledger_of(script: Path, folder: Path) -> Path:
    return folder / f"{script.stem}-seen.txt"


def lineage(ledger: Path) -> dict[int, list[int]]:
    """By epoch, the ids of all steps that led to the last model."""
    steps = {}
    for line in ledger.read_text().splitlines():
        step, epoch, *ids = map(int, line.split())
        # What came after it was forgotten with the trainer.
        steps = {s: known for s, known in steps.items() if s < step}
        steps[step] = (epoch, ids)
    epochs = collections.defaultdict(list)
    for epoch, ids in steps.values():
        epochs[epoch] += ids
    return dict(epochs)


def run(
    script: Path,
    folder: Path,
    kill_at: int,
    ids_per_epoch: int,
    arguments: list[str],
) -> None:
    """Trains with a kill in between; fails if an id was lost or doubled."""
    with ps.LocalService(workers=2) as service:
        command = [
            sys.executable,
            str(script),
            f"--service={service.address}",
            f"--folder={folder}",
            *arguments,
        ]
        trainer = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert trainer.stdout is not None
        for line in trainer.stdout:
            print(line, end="", flush=True)
            if line.split()[:2] == ["step", str(kill_at)]:
                trainer.kill()
                break
        else:
            raise SystemExit(f"the trainer ended before step {kill_at}")
        trainer.wait()
        trainer.stdout.close()
        print(f"killed after step {kill_at}", flush=True)
        subprocess.run(command, check=True)
    *whole, last = lineage(ledger_of(script, folder)).values()
    for number, ids in enumerate([*whole, last]):
        print(f"epoch {number}: {len(ids)} ids, {len(set(ids))} different")
    is_once = all(len(set(ids)) == len(ids) for ids in [*whole, last])
    if not is_once or any(len(ids) != ids_per_epoch for ids in whole):
        raise SystemExit("an id was lost or came twice")
    print("every id came once an epoch")
