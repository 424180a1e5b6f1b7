"""`penstock run FILE:NAME`: drains a pipeline and shows its rate."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import os
import sys
import time
from typing import Any

from penstock._command_line import (
    Progress,
    UsageError,
    command_parser,
    elements_text,
    load,
    more_than_zero,
    show_failure,
)
from penstock._command_line import seconds as seconds_argument
from penstock._dataset import Dataset
from penstock._errors import PenstockError
from penstock._iterator import Iterator
from penstock._stats import IteratorStats, NodeStats
from penstock._units import bar as _bar
from penstock._units import has_colour as _has_colour
from penstock._units import short_place as _short
from penstock._units import si as _si
from penstock._units import si_bytes as _si_bytes
from penstock._units import time_text as _time

_HELP = """\
Runs the pipeline as fast as it goes, throws its elements away and shows how
fast that was and which transformations took the time.

NAME is a Dataset in FILE, or a function without arguments that makes one.

examples:
  penstock run train.py:dataset --seconds 10
  penstock run train.py:make_dataset --epochs 3 --json
  penstock run train.py:dataset --trace t.bin && penstock explain t.bin

exit codes:
  0    the pipeline was run (to its end, or for as long as was asked)
  1    FILE or the pipeline failed; the error is shown
  2    the arguments are wrong, or FILE has no such dataset
  130  interrupted by Ctrl-C; what was measured so far is shown
"""

_SHARE_WIDTH = 12
_TRACE_MS = 200
_SHORT_SECONDS = 1.0
# The part of the wall time from which on a thread is what others wait for.
_MUCH = 0.5
# The part of the wall time from which on a wait is worth a word.
_SOME = 0.1


@dataclasses.dataclass
class Result:
    """What a run came to; all of it is of all epochs together."""

    elements: int = 0
    seconds: float = 0.0
    first_seconds: float | None = None
    # Of the processor, in the thread that takes the elements.
    reader_seconds: float = 0.0
    epochs: int = 0
    stats: IteratorStats | None = None
    is_interrupted: bool = False


def main(arguments: list[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    options = _parser().parse_args(arguments)
    try:
        dataset = load(options.pipeline)
    except UsageError as error:
        print(f"penstock run: {error}", file=sys.stderr)
        return 2
    except Exception as error:
        show_failure("run", options.pipeline, error)
        return 1
    seconds, epochs = options.seconds, options.epochs
    total = dataset.cardinality()
    progress = Progress(
        sys.stderr, total * epochs if total >= 0 else None, seconds
    )
    result = Result()
    try:
        _drain(dataset, seconds, epochs, progress, result, options.trace)
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
    parser = command_parser(
        "run",
        _HELP,
        "FILE:NAME",
        "a Python file, and a dataset in it",
    )
    parser.add_argument(
        "--seconds",
        metavar="N",
        type=seconds_argument,
        default=float("inf"),
        help="stop after this long (default: at the end)",
    )
    parser.add_argument(
        "--epochs",
        metavar="N",
        type=_epochs,
        default=1,
        help="iterate this often, and show all of it together (default: 1)",
    )
    parser.add_argument(
        "--trace",
        metavar="FILE",
        help="write what is measured to FILE, for `penstock explain FILE`; of "
        "the last epoch",
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help="print one JSON object instead of the table",
    )
    return parser


def _epochs(text: str) -> int:
    return int(more_than_zero(int, "a whole number", text))


def _drain(
    dataset: Dataset,
    seconds: float,
    epochs: int,
    progress: Progress,
    result: Result,
    trace: str | None = None,
) -> None:
    start, reader_start = time.monotonic(), time.thread_time()
    try:
        while result.epochs < epochs:
            if not _drain_epoch(
                dataset, start, seconds, progress, result, trace
            ):
                return
            result.epochs += 1
    except KeyboardInterrupt:
        result.is_interrupted = True
    finally:
        result.seconds = time.monotonic() - start
        result.reader_seconds = time.thread_time() - reader_start


def _drain_epoch(
    dataset: Dataset,
    start: float,
    seconds: float,
    progress: Progress,
    result: Result,
    trace: str | None,
) -> bool:
    """Adds one pass to `result`; whether it came to its end in time."""
    iterator = iter(dataset)
    begin = time.monotonic()
    try:
        if trace is not None:
            _begin_trace(iterator, trace)
        for _element in iterator:
            result.elements += 1
            elapsed = time.monotonic() - start
            if result.first_seconds is None:
                result.first_seconds = elapsed
            progress.show(result.elements, elapsed)
            if elapsed > seconds:
                return False
        return True
    finally:
        result.stats = _sum(result.stats, iterator.stats())
        if trace is not None and time.monotonic() < begin + _SHORT_SECONDS:
            _end_trace(iterator, trace)
        iterator.close()


def _begin_trace(iterator: Iterator, path: str) -> None:
    connection = iterator._connection
    assert connection is not None
    connection.trace(_TRACE_MS, os.path.abspath(path))


def _end_trace(iterator: Iterator, path: str) -> None:
    """Writes the end as well, of what was over before it was looked at."""
    with contextlib.suppress(PenstockError):
        iterator._save_trace(os.path.abspath(path))


def _sum(a: IteratorStats | None, b: IteratorStats) -> IteratorStats:
    """What two iterators of one pipeline did together."""
    if a is None:
        return b
    pairs = zip(a.nodes, b.nodes, strict=True)
    return IteratorStats(
        nodes=tuple(_sum_of_nodes(*pair) for pair in pairs),
        wall_ns=a.wall_ns + b.wall_ns,
        cpu_ns=a.cpu_ns + b.cpu_ns,
        rows=a.rows + b.rows,
        bytes=a.bytes + b.bytes,
        io_bytes=a.io_bytes + b.io_bytes,
        python_start_ns=a.python_start_ns + b.python_start_ns,
        python_ns=a.python_ns + b.python_ns,
    )


def _sum_of_nodes(a: NodeStats, b: NodeStats) -> NodeStats:
    return dataclasses.replace(
        a,
        rows=a.rows + b.rows,
        chunks=a.chunks + b.chunks,
        bytes=a.bytes + b.bytes,
        errors=a.errors + b.errors,
        self_ns=a.self_ns + b.self_ns,
        blocked=a.blocked + b.blocked,
    )


def report(result: Result, has_colour: bool = False) -> str:
    """What is shown at the end: rates, the table, and what it means."""
    rate = result.elements / result.seconds if result.seconds else 0.0
    epochs = f" of {result.epochs} epochs" if result.epochs > 1 else ""
    lines = [
        f"{elements_text(result.elements)}{epochs} in {_time(result.seconds)}: "
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
        lines.append(f"first element after {_time(result.first_seconds)}")
    lines += _table(stats, wall, has_colour)
    lines += _errors(stats)
    lines.append(
        "self: time inside a transformation, without its inputs and its "
        "waits;\n%: its part of the self time of all"
    )
    return "\n".join([*lines, *_waiting(stats, wall, result.reader_seconds)])


def _table(stats: IteratorStats, wall: float, has_colour: bool) -> list[str]:
    busy = _self_seconds(stats) or 1.0
    table = [
        ("transformation", "made at", "rows", "rows/s", "bytes", "self", "")
    ]
    for node in reversed(stats.nodes):
        own = node.self_ns / 1e9
        table.append(
            (
                node.name,
                _short(node.made_at),
                f"{node.rows:,}",
                _si(node.rows / wall),
                _si_bytes(node.bytes),
                _time(own),
                f"{_bar(own / busy, _SHARE_WIDTH)} {100 * own / busy:3.0f} %",
            )
        )
    widths = [max(len(row[i]) for row in table) for i in range(7)]
    lines = []
    for number, row in enumerate(table):
        cells = [
            cell.ljust(width) if i in (0, 1, 6) else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        line = "  ".join(cells).rstrip()
        if has_colour and number == 0:
            line = f"\x1b[1m{line}\x1b[0m"
        lines.append(line)
    return lines


def _errors(stats: IteratorStats) -> list[str]:
    """Where elements became errors: more came out than went in."""
    by_number = {node.node: node for node in stats.nodes}
    found = []
    for node in stats.nodes:
        inputs = [by_number[i].errors for i in node.inputs if i in by_number]
        own = node.errors - sum(inputs)
        if own > 0:
            found.append(f"{node.name} {own:,}")
    return [f"errors: {', '.join(found)}"] if found else []


def _self_seconds(stats: IteratorStats) -> float:
    return sum(node.self_ns for node in stats.nodes) / 1e9


def _waiting(stats: IteratorStats, wall: float, reader: float) -> list[str]:
    """What the engine waited for, if that was much of the time."""
    busy = _self_seconds(stats)
    if busy >= _MUCH * wall:
        return []
    start, python = stats.python_start_ns / 1e9, stats.python_ns / 1e9
    sources = []
    if start >= _SOME * wall:
        sources.append(f"Python processes to start ({_time(start)})")
    if python >= _SOME * wall:
        sources.append(f"Python functions ({_time(python)})")
    if start + python < _MUCH * (wall - busy):
        if any("from_generator" in node.name for node in stats.nodes):
            sources.append("Python generators")
        if stats.io_bytes:
            sources.append("files")
    if not sources or reader >= _MUCH * wall:
        sources = ["the reader, which takes elements one by one in Python"]
    return [
        f"the engine computed for {_time(busy)} of {_time(wall)} "
        f"({100 * busy / wall:.0f} %);\nthe rest of the time it waited for "
        + " and ".join(sources)
    ]


def _to_json(result: Result) -> dict[str, Any]:
    fields = dataclasses.asdict(result)
    fields["elements_per_second"] = (
        result.elements / result.seconds if result.seconds else 0.0
    )
    return fields


if __name__ == "__main__":
    sys.exit(main())
