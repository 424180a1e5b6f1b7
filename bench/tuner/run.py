#!/usr/bin/env python3
"""The bench of pathologies: what tuners make of pipelines set up badly.

Every case is run as it stands, with the settings that four other ways of tuning
find, with those of an exhaustive grid, and as ours tunes it; in turns. Where
tf.data can express it, its AUTOTUNE runs it, too. See bench/README.md.
"""

from __future__ import annotations

import argparse
import datetime
import functools
import json
import os
import platform
import subprocess
import sys
import time
import traceback
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import chart
import smoke
import tuning_cost
import verdict
from all_cases import CASES
from case import Case
from workload import PEER_PYTHON, ROOT

Json = dict[str, Any]

HERE = Path(__file__).resolve().parent
RESULTS = HERE.parent / "results"
_MOST_SECONDS = 600


def asked(case: Case, side: str, seconds: float, turns: int) -> Json:
    python = PEER_PYTHON if side == "peer" else Path(sys.executable)
    if not python.exists():
        return {"absent": "no .venv-frameworks: `make bench` makes it"}
    variables = {"TF_CPP_MIN_LOG_LEVEL": "2"}
    made = subprocess.run(
        [
            *(python, HERE / "one.py", str(case.number), side),
            *("--seconds", str(seconds), "--turns", str(turns)),
        ],
        capture_output=True,
        text=True,
        env={**os.environ, **variables},
        timeout=_MOST_SECONDS,
    )
    if made.returncode != 0:
        return {"failed": made.stderr.strip()}
    answer: Json = json.loads(made.stdout.splitlines()[-1])
    return answer


def measured(case: Case, arguments: argparse.Namespace) -> Json:
    try:
        found = asked(case, "ours", arguments.seconds, arguments.turns)
        if case.has_peer and not arguments.no_peer and "rates" in found:
            found["peer"] = asked(
                case, "peer", arguments.seconds, arguments.turns
            )
    except subprocess.TimeoutExpired as error:
        found = {"failed": f"{error.timeout:.0f} s were not enough"}
    return {**found, "name": case.name, "pathology": case.pathology}


def smoked(cases: list[Case]) -> int:
    start = time.monotonic()
    failed = 0
    checks = [
        (f"{case.number} {case.name}", functools.partial(smoke.checked, case))
        for case in cases
    ]
    checks.append(("tuning_cost", tuning_cost.checked))
    for name, check in checks:
        try:
            said = check()
        except Exception:
            failed += 1
            said = f"failed: {traceback.format_exc()}"
        print(f"tuner/{name}: {said}", flush=True)
    seconds = time.monotonic() - start
    print(f"bench: {len(checks)} cases, {failed} failed ({seconds:.1f} s)")
    return int(bool(failed))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0],
        epilog="Example: python bench/tuner/run.py --only 1 --only 13",
    )
    parser.add_argument(
        "--only", action="append", type=int, metavar="NUMBER", help="a case"
    )
    parser.add_argument("--list", action="store_true", help="names the cases")
    parser.add_argument(
        "--seconds", type=float, default=1.0, help="of each run (default 1)"
    )
    parser.add_argument(
        "--turns", type=int, default=5, help="runs of each (default 5)"
    )
    parser.add_argument(
        "--no-peer", action="store_true", help="without tf.data"
    )
    parser.add_argument(
        "--smoke",
        action="store_true",
        help="some cases of ours, briefly: checks batches, never a time",
    )
    parser.add_argument(
        "--again",
        type=Path,
        metavar="FILE",
        help="measures nothing: shows results that were written",
    )
    arguments = parser.parse_args()
    known = {case.number for case in CASES}
    wrong = sorted(set(arguments.only or ()) - known)
    if wrong:
        parser.error(f"no case {wrong[0]}; --list shows them")
    return arguments


def write(rows: list[Json], began: datetime.datetime) -> list[Path]:
    """What was measured so far; of one run always to the same files."""
    RESULTS.mkdir(exist_ok=True)
    host = platform.node() or "host"
    stem = RESULTS / f"{began:%Y-%m-%dT%H%M%S}-{host}-tuner"
    document = {
        "date": began.isoformat(timespec="seconds"),
        "host": host,
        "cpus": os.cpu_count(),
        "rows": rows,
    }
    data, picture = stem.with_suffix(".json"), stem.with_suffix(".svg")
    data.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    picture.write_text(chart.svg(verdict.all_of(rows)))
    return [data, picture]


def main() -> int:
    arguments = parse()
    wanted = [
        case
        for case in CASES
        if not arguments.only or case.number in arguments.only
    ]
    if arguments.list:
        for case in wanted:
            print(f"{case.number:>3}  {case.name:<20}{case.pathology}")
        return 0
    if arguments.smoke:
        return smoked([c for c in wanted if c.number in smoke.NUMBERS])
    written: list[Path] = []
    if arguments.again:
        rows = json.loads(arguments.again.read_text())["rows"]
    else:
        if os.getloadavg()[0] > (os.cpu_count() or 1) / 2:
            print("bench: the machine is busy; trust ratios, not rates")
        rows = []
        start = time.monotonic()
        began = datetime.datetime.now().astimezone()
        for i, case in enumerate(wanted):
            at = f"[{i + 1}/{len(wanted)}] {case.number} {case.name}"
            print(f"{at} ...", end="", flush=True)
            rows.append(measured(case, arguments))
            written = write(rows, began)
            print(f"\r{at}: {verdict.line(rows[-1])}", flush=True)
        print(f"bench: {time.monotonic() - start:.0f} s")
    print("\n" + verdict.table(verdict.all_of(rows)) + "\n")
    for path in written:
        print(f"bench: wrote {path.relative_to(ROOT)}")
    return int(any("failed" in row for row in rows))


if __name__ == "__main__":
    sys.exit(main())
