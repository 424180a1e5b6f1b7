#!/usr/bin/env python3
"""Plants one bug at a time into the service, and has the simulator find it.

    tests/sim/mutants.py                 all of them
    tests/sim/mutants.py --only binding  those whose names have this

A bug that no seed finds means that the simulator does not look there. What it
cannot see is found by a test that the bug names. Needs a built tree
(tools/build release).
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import planted
import planted_groups
from planted import Mutant

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build/release"
_FAILED = ("FAILED ", "[  FAILED  ]")
_PYTEST = [str(ROOT / ".venv/bin/python"), "-m", "pytest"]


# What all of the service's sources include, for compiling many of them.
_PREPARED = "service.h"
_QUICK = ["-w", "-g0", "-O0"]


def _prepare(folder: Path) -> None:
    rooms = ("dispatcher/dispatcher_state.h", "client/client_state.h")
    header = folder / _PREPARED
    header.write_text(
        "".join(f'#include "penstock/service/{each}"\n' for each in rooms)
    )
    command = _command(ROOT / "src/penstock/service/dispatcher/dispatcher.cc")
    command[command.index("-o") + 1] = f"{header}.gch"
    place = command.index("-c")
    command[place : place + 2] = ["-x", "c++-header", "-c", str(header)]
    subprocess.run([*command, *_QUICK], cwd=BUILD, check=True)


def _command(file: Path) -> list[str]:
    entries = json.loads((BUILD / "compile_commands.json").read_text())
    for entry in entries:
        if Path(entry["file"]).resolve() == file.resolve():
            # Not by way of a cache: nothing is compiled twice.
            words = shlex.split(entry["command"])
            return [word for word in words if not word.endswith("ccache")]
    raise SystemExit(f"mutants: no command compiles {file}")


def _link(target: str, mutated: Path, out: Path) -> None:
    """The target, with one object in place of the library's."""
    text = subprocess.run(
        ["ninja", "-C", str(BUILD), "-t", "commands", target],
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
    """The first seed or test that goes wrong, as it is told."""
    source = ROOT / mutant.file
    name = "".join(c if c.isalnum() else "_" for c in mutant.name)
    place = folder / name
    place.mkdir()
    text = source.read_text().replace(mutant.before, mutant.after, 1)
    mutated = place / source.name
    if source.suffix == ".h":
        # In the source of its name, which has all that uses it.
        header = place / source.relative_to(ROOT / "src")
        header.parent.mkdir(parents=True)
        header.write_text(text)
        source = source.with_suffix(".cc")
        mutated = source
    else:
        mutated.write_text(text)
    command = _command(source)
    if mutated == source:
        command.insert(1, f"-I{place}")
    else:
        command += ["-include", str(folder / _PREPARED)]
    command[command.index("-o") + 1] = str(place / "mutant.o")
    command[command.index("-c") + 1] = str(mutated)
    subprocess.run([*command, *_QUICK], cwd=BUILD, check=True)
    target, _, test = mutant.test.partition(":")
    binary = place / (target or "sim")
    _link(binary.name, place / "mutant.o", binary)
    (place / "mutant.o").unlink()
    if target == "penstock":
        command = [*_PYTEST, "-x", "-q", test]
    elif target:
        command = [str(binary), f"--gtest_filter={test}"]
    else:
        command = [str(binary), "--first", "1", str(seeds)]
    made = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "PENSTOCK_BINARY": str(binary)},
        capture_output=True,
        text=True,
        timeout=1800,
    )
    binary.unlink()
    if made.returncode == 0:
        return None
    lines = made.stdout.strip().splitlines()
    failed = [line for line in lines if line.startswith(_FAILED)]
    if failed or lines:
        return (failed or lines[-1:])[0].strip()
    return f"ended by {made.returncode}"


def unfit(mutants: list[Mutant]) -> list[str]:
    """Those whose place in the sources is not there, or not the only one."""
    return [
        f"'{mutant.name}' no longer fits {mutant.file}"
        for mutant in mutants
        if (ROOT / mutant.file).read_text().count(mutant.before) != 1
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="a part of the name")
    parser.add_argument("--seeds", type=int, default=10_000)
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    mutants = [*planted.mutants(), *planted_groups.mutants()]
    chosen = [m for m in mutants if arguments.only in m.name]
    if wrong := unfit(chosen):
        print("mutants: " + "\nmutants: ".join(wrong), file=sys.stderr)
        return 2
    missed = 0
    with (
        tempfile.TemporaryDirectory() as folder,
        ThreadPoolExecutor(arguments.jobs) as pool,
    ):
        _prepare(Path(folder))
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
