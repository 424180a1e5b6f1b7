"""`python -m penstock.run FILE:NAME`: drains a pipeline and shows its rate."""

from __future__ import annotations

import argparse
import dataclasses
import importlib.util
import json
import os
import sys
import time
from pathlib import Path
from typing import Any, TextIO

from penstock._dataset import Dataset
from penstock._errors import PenstockError
from penstock._iterator import Iterator, IteratorStats

_HELP = """\
Runs the pipeline as fast as it goes, throws its elements away and shows how
fast that was and which transformations took the time.

NAME is a Dataset in FILE, or a function without arguments that makes one.

example:
  python -m penstock.run train.py:dataset --seconds 10

exit codes:
  0    the pipeline was run (to its end, or for as long as was asked)
  1    the pipeline failed; the error is shown
  2    the arguments are wrong, or FILE has no such dataset
  130  interrupted by Ctrl-C; what was measured so far is shown
"""

_BAR_SECONDS = 0.1
_LINE_SECONDS = 1.0
_BAR_WIDTH = 24
_SHARE_WIDTH = 12


class _UsageError(Exception):
    """What the user typed cannot be run."""


@dataclasses.dataclass
class Result:
    """What a run came to."""

    elements: int = 0
    seconds: float = 0.0
    first_seconds: float | None = None
    epochs: int = 0
    stats: IteratorStats | None = None
    is_interrupted: bool = False


class _Progress:
    """A line that is drawn over on a terminal; plain lines in a pipe."""

    def __init__(self, out: TextIO, total: int | None, seconds: float) -> None:
        self._out = out
        self._total = total
        self._seconds = seconds
        self._is_terminal = out.isatty()
        self._next = 0.0

    def show(self, elements: int, elapsed: float) -> None:
        if elapsed < self._next:
            return
        step = _BAR_SECONDS if self._is_terminal else _LINE_SECONDS
        self._next = elapsed + step
        rate = elements / elapsed if elapsed else 0.0
        text = f"{elements:,} elements  {elapsed:.1f} s  {_si(rate)}/s"
        if not self._is_terminal:
            if elapsed:
                print(text, file=self._out, flush=True)
            return
        done = self._share(elements, elapsed)
        if done is not None:
            text = f"{_bar(done, _BAR_WIDTH)} {100 * done:3.0f} %  {text}"
        print(f"\r\x1b[K{text}", end="", file=self._out, flush=True)

    def end(self) -> None:
        if self._is_terminal:
            print("\r\x1b[K", end="", file=self._out, flush=True)

    def _share(self, elements: int, elapsed: float) -> float | None:
        shares = []
        if self._total:
            shares.append(elements / self._total)
        if self._seconds != float("inf"):
            shares.append(elapsed / self._seconds)
        return min(1.0, max(shares)) if shares else None


def main(arguments: list[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    options = _parser().parse_args(arguments)
    try:
        dataset = load(options.pipeline)
    except _UsageError as error:
        print(f"penstock run: {error}", file=sys.stderr)
        return 2
    seconds = options.seconds if options.seconds else float("inf")
    epochs = options.epochs or 1
    total = dataset.cardinality()
    progress = _Progress(
        sys.stderr, total * epochs if total >= 0 else None, seconds
    )
    result = Result()
    try:
        _drain(dataset, seconds, epochs, progress, result)
    except PenstockError as error:
        progress.end()
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    progress.end()
    if options.json:
        print(json.dumps(_to_json(result)))
    else:
        print(report(result, _has_colour(sys.stdout)))
    return 130 if result.is_interrupted else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="penstock run",
        description=_HELP.partition("\n\n")[0],
        epilog=_HELP.partition("\n\n")[2],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("pipeline", metavar="FILE:NAME")
    parser.add_argument(
        "--seconds", type=float, help="stop after this long (default: the end)"
    )
    parser.add_argument(
        "--epochs", type=int, help="iterate this often (default: 1)"
    )
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object"
    )
    return parser


def load(target: str) -> Dataset:
    """The dataset that `FILE:NAME` names; FILE is imported by its own name."""
    file, _, name = target.rpartition(":")
    if not file or not name:
        raise _UsageError(f"expected FILE:NAME; got {target!r}")
    path = Path(file)
    if not path.is_file():
        raise _UsageError(f"there is no file {file!r}")
    # Under its own name, so that what it defines pickles and its `__main__`
    # part does not run.
    sys.path.insert(0, str(path.parent.resolve()))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    found: Any = getattr(module, name, None)
    if callable(found) and not isinstance(found, Dataset):
        found = found()
    if not isinstance(found, Dataset):
        names = [k for k, v in vars(module).items() if isinstance(v, Dataset)]
        known = ", ".join(names) or "none"
        raise _UsageError(
            f"{name!r} in {file} must be a Dataset or a function that makes "
            f"one; got {found!r} (datasets there: {known})"
        )
    return found


def _drain(
    dataset: Dataset,
    seconds: float,
    epochs: int,
    progress: _Progress,
    result: Result,
) -> None:
    start = time.monotonic()
    iterator: Iterator | None = None
    try:
        for _ in range(epochs):
            iterator = iter(dataset)
            for _element in iterator:
                result.elements += 1
                elapsed = time.monotonic() - start
                if result.first_seconds is None:
                    result.first_seconds = elapsed
                progress.show(result.elements, elapsed)
                if elapsed > seconds:
                    return
            result.epochs += 1
    except KeyboardInterrupt:
        result.is_interrupted = True
    finally:
        result.seconds = time.monotonic() - start
        if iterator is not None:
            result.stats = iterator.stats()
            iterator.close()


def report(result: Result, has_colour: bool = False) -> str:
    """The table that is shown at the end."""
    rate = result.elements / result.seconds if result.seconds else 0.0
    lines = [
        f"{result.elements:,} elements in {result.seconds:.2f} s: "
        f"{_si(rate)} elements/s"
    ]
    stats = result.stats
    if stats is None:
        return lines[0]
    wall = stats.wall_ns / 1e9 or result.seconds or 1.0
    lines.append(
        f"{_si_bytes(stats.bytes / wall)}/s out, "
        f"{_si_bytes(stats.io_bytes / wall)}/s read, "
        f"{stats.cpu_ns / 1e9 / wall:.2f} cores busy"
    )
    if result.first_seconds is not None:
        lines.append(f"first element after {1e3 * result.first_seconds:.0f} ms")
    busy = sum(node.self_ns for node in stats.nodes) or 1
    table = [
        ("transformation", "made at", "rows", "rows/s", "bytes", "self", "")
    ]
    for node in reversed(stats.nodes):
        share = node.self_ns / busy
        table.append(
            (
                node.name,
                _short(node.made_at),
                f"{node.rows:,}",
                _si(node.rows / wall),
                _si_bytes(node.bytes),
                f"{node.self_ns / 1e9:.3f} s",
                f"{_bar(share, _SHARE_WIDTH)} {100 * share:3.0f} %",
            )
        )
    widths = [max(len(row[i]) for row in table) for i in range(7)]
    for number, row in enumerate(table):
        cells = [
            cell.ljust(width) if i in (0, 1, 6) else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        line = "  ".join(cells).rstrip()
        if has_colour and number == 0:
            line = f"\x1b[1m{line}\x1b[0m"
        lines.append(line)
    return "\n".join(lines)


def _to_json(result: Result) -> dict[str, Any]:
    fields = dataclasses.asdict(result)
    fields["elements_per_second"] = (
        result.elements / result.seconds if result.seconds else 0.0
    )
    return fields


def _short(made_at: str) -> str:
    file, _, line = made_at.rpartition(":")
    return f"{os.path.basename(file)}:{line}" if file else ""


def _bar(share: float, width: int) -> str:
    full = round(share * width)
    return "█" * full + "·" * (width - full)


def _scaled(number: float) -> tuple[str, str]:
    for unit in ("", "k", "M", "G"):
        if abs(number) < 1000:
            return f"{number:.3g}", unit
        number /= 1000
    return f"{number:.3g}", "T"


def _si(number: float) -> str:
    return " ".join(_scaled(number)).rstrip()


def _si_bytes(number: float) -> str:
    return " ".join(_scaled(number)) + "B"


def _has_colour(out: TextIO) -> bool:
    return out.isatty() and not os.environ.get("NO_COLOR")


if __name__ == "__main__":
    sys.exit(main())
