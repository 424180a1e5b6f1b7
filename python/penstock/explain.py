"""`penstock explain FILE:NAME | TRACE`: what limits a pipeline."""

from __future__ import annotations

import argparse
import json
import os
import sys

from penstock import (
    _budget,
    _explain,
    _measuring,
    _report_html,
    _report_text,
)
from penstock._command_line import (
    Progress,
    UsageError,
    command_parser,
    load,
    seconds,
    show_failure,
)
from penstock._dataset import Dataset
from penstock._errors import InvalidArgumentError, PenstockError
from penstock._explain import Explanation
from penstock._units import has_colour

_HELP = """\
Runs the pipeline as fast as it goes for a while, or reads a trace of a run, and
shows what limits it, why, and what to do about it.

NAME is a Dataset in FILE, or a function without arguments that makes one. A
TRACE is what `penstock run --trace` or `explain --trace` wrote.

examples:
  penstock explain train.py:dataset
  penstock explain train.py:dataset --seconds 10 --cpu 8 --html why.html
  penstock run train.py:dataset --trace t.bin && penstock explain t.bin

exit codes:
  0    it is explained
  1    FILE or the pipeline failed, or the trace cannot be read
  2    the arguments are wrong, or FILE has no such dataset
  130  interrupted by Ctrl-C
"""


def main(arguments: list[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    options = _parser().parse_args(arguments)
    try:
        budget(options)
        named = not is_trace(options.pipeline)
        if named and ":" not in options.pipeline:
            raise UsageError(
                "expected FILE:NAME, or a trace that is there; got "
                f"{options.pipeline!r}"
            )
        dataset = load(options.pipeline) if named else None
    except UsageError as error:
        print(f"penstock explain: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        show_failure("explain", options.pipeline, error)
        return 1
    try:
        explanation = _explained(dataset, options)
        _write(explanation, options)
    except (PenstockError, OSError) as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    if options.json:
        print(json.dumps(explanation.to_json()))
    else:
        print(_report_text.text(explanation, None, has_colour(sys.stdout)))
    return 0


def _explained(
    dataset: Dataset | None, options: argparse.Namespace
) -> Explanation:
    if dataset is None:
        return _explain.explain_trace(
            options.pipeline, options.cpu, options.memory
        )
    progress = Progress(sys.stderr, None, options.seconds)
    try:
        return _measuring.explained(
            dataset,
            options.seconds,
            budget(options),
            options.trace,
            progress.show,
        )
    finally:
        progress.end()


def _write(explanation: Explanation, options: argparse.Namespace) -> None:
    if options.html is not None:
        with open(options.html, "w", encoding="utf-8") as file:
            file.write(_report_html.page(explanation))
    if options.plot is not None:
        explanation.plot(options.plot)


def is_trace(target: str) -> bool:
    """Whether it names a file, and not a dataset in one."""
    file, _, name = target.rpartition(":")
    is_dataset = bool(file) and name.isidentifier() and os.path.isfile(file)
    if is_dataset or target.endswith(".py"):
        return False
    return os.path.exists(target)


def budget(options: argparse.Namespace) -> dict[str, float]:
    """What `--cpu` and the like allow.

    Raises:
        UsageError: They mean nothing.
    """
    disk = getattr(options, "disk", None)
    try:
        return _budget.message(options.cpu, options.memory, disk)
    except (InvalidArgumentError, TypeError) as error:
        raise UsageError(str(error).partition("\n")[0]) from None


def _parser() -> argparse.ArgumentParser:
    parser = command_parser(
        "explain",
        _HELP,
        "FILE:NAME | TRACE",
        "a Python file and a dataset in it, or a trace",
    )
    add_budget(parser)
    parser.add_argument(
        "--trace", metavar="FILE", help="keep what is measured in FILE"
    )
    parser.add_argument(
        "--html", metavar="FILE", help="write a page to FILE, too"
    )
    parser.add_argument(
        "--plot", metavar="FILE", help="write a picture (SVG) to FILE, too"
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help="print one JSON object instead of the report",
    )
    return parser


def add_budget(parser: argparse.ArgumentParser) -> None:
    """The arguments that both commands have."""
    parser.add_argument(
        "--seconds",
        metavar="N",
        type=seconds,
        default=5.0,
        help="measure for this long at most (default: 5)",
    )
    parser.add_argument(
        "--cpu", metavar="N", help="cores that may be used (default: all)"
    )
    parser.add_argument(
        "--memory",
        metavar="SIZE",
        help="memory that may be used, such as 16GiB (default: all)",
    )


if __name__ == "__main__":
    sys.exit(main())
