#!/usr/bin/env python3
"""Plants one bug at a time into the service, and has the simulator find it.

    tests/sim/mutants.py                 all of them
    tests/sim/mutants.py --only binding  those whose names have this

A bug that no seed finds means that the simulator does not look there. Needs a
built tree (tools/build release sim).
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from planted import Mutant, mutants

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build/release"


def _command(file: Path) -> list[str]:
    entries = json.loads((BUILD / "compile_commands.json").read_text())
    for entry in entries:
        if Path(entry["file"]).resolve() == file.resolve():
            return shlex.split(entry["command"])
    raise SystemExit(f"mutants: no command compiles {file}")


def _link(mutated: Path, out: Path) -> None:
    """The simulator, with one object in place of the library's."""
    text = subprocess.run(
        ["ninja", "-C", str(BUILD), "-t", "commands", "sim"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    last = text.splitlines()[-1]
    words = shlex.split(last.removeprefix(": && ").removesuffix(" && :"))
    place = words.index("-o")
    words[place + 1] = str(out)
    words.insert(place, str(mutated))
    subprocess.run(words, cwd=BUILD, check=True)


def _found(mutant: Mutant, seeds: int, folder: Path) -> str | None:
    """The first seed that goes wrong, as the simulator tells it."""
    source = ROOT / mutant.file
    text = source.read_text()
    if text.count(mutant.before) < 1:
        raise SystemExit(
            f"mutants: '{mutant.name}' no longer fits {mutant.file}"
        )
    name = "".join(c if c.isalnum() else "_" for c in mutant.name)
    place = folder / name
    place.mkdir()
    mutated = place / source.name
    mutated.write_text(text.replace(mutant.before, mutant.after, 1))
    command = _command(source)
    command[command.index("-o") + 1] = str(place / "mutant.o")
    command[command.index("-c") + 1] = str(mutated)
    command.append("-w")
    subprocess.run(command, cwd=BUILD, check=True)
    _link(place / "mutant.o", place / "sim")
    made = subprocess.run(
        [str(place / "sim"), "--first", "1", str(seeds)],
        capture_output=True,
        text=True,
        timeout=900,
    )
    if made.returncode == 0:
        return None
    lines = made.stdout.strip().splitlines()
    return lines[-1].strip() if lines else f"ended by {made.returncode}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="a part of the name")
    parser.add_argument("--seeds", type=int, default=10_000)
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    chosen = [m for m in mutants() if arguments.only in m.name]
    missed = 0
    with (
        tempfile.TemporaryDirectory() as folder,
        ThreadPoolExecutor(arguments.jobs) as pool,
    ):
        found = pool.map(
            lambda m: _found(m, arguments.seeds, Path(folder)), chosen
        )
        pairs = zip(chosen, found, strict=True)
        for number, (mutant, how) in enumerate(pairs, 1):
            missed += how is None
            print(
                f"[{number}/{len(chosen)}] {mutant.name}: {how or 'NOT FOUND'}",
                flush=True,
            )
    print(f"mutants: {len(chosen) - missed} of {len(chosen)} found")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
