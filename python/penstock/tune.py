"""`penstock tune FILE:NAME`: the settings that make a pipeline fastest."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys

from penstock import _measuring, _report_text
from penstock._command_line import (
    Progress,
    UsageError,
    command_parser,
    load,
    show_failure,
)
from penstock._dataset import Dataset
from penstock._errors import PenstockError
from penstock.explain import add_budget, budget

_HELP = """\
Measures the pipeline, computes the best settings from that, and measures it
again with them. They are kept if it is faster beyond doubt.

NAME is a Dataset in FILE, or a function without arguments that makes one. What
--write wrote is used with dataset.load_tuning(FILE).

examples:
  penstock tune train.py:dataset --write tuned.json
  penstock tune train.py:dataset --cpu 8 --memory 16GiB

exit codes:
  0    it was tuned, or is best as it is
  1    FILE or the pipeline failed; the error is shown
  2    the arguments are wrong, or FILE has no such dataset
  130  interrupted by Ctrl-C
"""


def main(arguments: list[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    options = _parser().parse_args(arguments)
    try:
        budget(options)
        dataset = load(options.pipeline)
    except UsageError as error:
        print(f"penstock tune: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        show_failure("tune", options.pipeline, error)
        return 1
    progress = Progress(sys.stderr, None, options.seconds)
    try:
        tuned = _measuring.tuned(
            dataset,
            options.cpu,
            options.memory,
            options.disk,
            options.seconds,
            progress.show,
        )
        if options.write is not None:
            tuned.save_tuning(options.write)
    except PenstockError as error:
        progress.end()
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        progress.end()
        return 130
    progress.end()
    print(_as_json(dataset, tuned) if options.json else _text(dataset, tuned))
    return 0


def _text(dataset: Dataset, tuned: Dataset) -> str:
    explanation = tuned.explanation
    lines = [explanation.verdict]
    changes = tuned.diff(dataset)
    if not explanation.tried:
        lines.append("it is best as it is: no setting would make it faster")
    for trial in explanation.tried:
        lines.append(f"tried {_report_text.trial_text(trial)}")
    if changes:
        lines += ["changes:", *(f"  {x}" for x in str(changes).splitlines())]
    return "\n".join(lines)


def _as_json(dataset: Dataset, tuned: Dataset) -> str:
    found = {
        "explanation": tuned.explanation.to_json(),
        "changes": [dataclasses.asdict(s) for s in tuned.diff(dataset)],
    }
    return json.dumps(found)


def _parser() -> argparse.ArgumentParser:
    parser = command_parser(
        "tune",
        _HELP,
        "FILE:NAME",
        "a Python file, and a dataset in it",
    )
    add_budget(parser)
    parser.add_argument(
        "--disk",
        metavar="SIZE",
        help="disk that may be used, such as 100GB (default: none)",
    )
    parser.add_argument(
        "--write", metavar="FILE", help="write the settings to FILE (JSON)"
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help="print one JSON object instead of text",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
