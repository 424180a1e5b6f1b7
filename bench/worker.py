"""One side of one row, in a process of its own: worker.py NAME ours|peer.

Requests and answers are JSON, one a line. A request that fails is answered by
{"error": ...}, or {"absent": ...} if this side cannot run here at all.

  {"do": "prepare"}                                    the variants' names
  {"do": "check"}                                      refuses wrong results
  {"do": "run", "variant": "plain", "seconds": 2}      elements and seconds
  {"do": "measure", "seconds": 2}                      one figure, of a Cost row
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import sys
import time
import traceback
from typing import Any

from workload import AbsentError, Compared, Noted, load

Json = dict[str, Any]


class Side:
    def __init__(self, name: str, side: str) -> None:
        self._module = load(name)
        self._side = side
        self._datasets: dict[str, Any] = {}

    def prepare(self) -> Json:
        if isinstance(self._module.ROW, Compared):
            try:
                self._datasets = getattr(self._module, self._side)()
            except ImportError as error:
                raise AbsentError(str(error)) from error
        return {"variants": list(self._datasets), "versions": versions()}

    def check(self) -> Json:
        for dataset in self._datasets.values():
            self._module.check(iter(dataset))
        return {}

    def run(self, variant: str, seconds: float) -> Json:
        """Counts for `seconds`, after a quarter of them to get going."""
        batches = iter(self._datasets[variant])
        now = time.perf_counter
        end = now() + seconds / 4
        while now() < end:
            next(batches)
        count = 0
        start = now()
        end = start + seconds
        while now() < end:
            next(batches)
            count += 1
        elapsed = now() - start
        elements = count * self._module.ROW.elements_per_batch
        return {"elements": elements, "seconds": elapsed}

    def measure(self, seconds: float) -> Json:
        is_ours = self._side == "ours"
        measured = (
            self._module.measure if is_ours else self._module.peer_measure
        )
        try:
            value = measured(seconds)
            note = value.note if isinstance(value, Noted) else ""
            return {"value": value, "note": note}
        except ImportError as error:
            raise AbsentError(str(error)) from error


def versions() -> dict[str, str]:
    found = {"python": sys.version.split()[0]}
    for package in ("penstock", "tensorflow-cpu", "numpy"):
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            pass
    return found


def main() -> None:
    # What libraries print must not mix with answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    side = Side(sys.argv[1], sys.argv[2])
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = getattr(side, request.pop("do"))(**request)
        except AbsentError as error:
            answer = {"absent": str(error)}
        except Exception:
            answer = {"error": traceback.format_exc()}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
