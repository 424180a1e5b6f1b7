"""`penstock tune FILE:NAME`: the settings that make a pipeline fastest."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from typing import Any

from penstock import _measuring, _report_text, _rewrites, _tuning
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
Measures the pipeline, rewrites it where nobody can tell, computes the best
settings for that, and measures it again. They are kept if it is faster beyond
doubt.

NAME is a Dataset in FILE, or a function without arguments that makes one. What
--write wrote is used with dataset.load_tuning(FILE).

examples:
  penstock tune train.py:dataset --write tuned.json
  penstock tune train.py:dataset --cpu 8 --memory 16GiB
  penstock tune train.py:dataset --without push_filter
  penstock tune --list-rewrites

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
        _passes(options)
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
        if options.write is not None:  # Before it takes its time.
            _tuning.expect_directory(options.write)
        tuned = _measuring.tuned(
            dataset,
            options.cpu,
            options.memory,
            options.disk,
            options.seconds,
            _passes(options),
            options.may_hide_errors,
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


class _ListRewrites(argparse.Action):
    """Shows them and ends, as --help does."""

    def __init__(self, **more: Any) -> None:
        super().__init__(nargs=0, **more)

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        found = _rewrites.passes()
        width = max(len(name) for name, _ in found)
        for name, description in found:
            print(f"{name:<{width}}  {description}")
        parser.exit()


def _passes(options: argparse.Namespace) -> bool | list[str]:
    """The rewrites that may be done.

    Raises:
        UsageError: There is no such rewrite.
    """
    if options.no_rewrites:
        return False
    if not options.without:
        return True
    known = [name for name, _ in _rewrites.passes()]
    for name in options.without:
        if name not in known:
            raise UsageError(
                f"--without must name one of {', '.join(known)}; got {name!r}"
            )
    return [name for name in known if name not in options.without]


def _text(dataset: Dataset, tuned: Dataset) -> str:
    explanation = tuned.explanation
    lines = [explanation.verdict]
    changes = tuned.diff(dataset)
    if not explanation.tried:
        lines.append("it is best as it is: no setting would make it faster")
    for rewrite in explanation.rewrites:
        if not rewrite.is_applied:
            lines.append(f"not rewritten: {rewrite}")
    for trial in explanation.tried:
        lines.append(f"tried {_report_text.trial_text(trial)}")
    lines += [f"note: {note}" for note in explanation.notes]
    if changes:
        lines += ["changes:", *(f"  {x}" for x in str(changes).splitlines())]
    return "\n".join(lines)


def _as_json(dataset: Dataset, tuned: Dataset) -> str:
    changes = tuned.diff(dataset)
    found = {
        "explanation": tuned.explanation.to_json(),
        "changes": [dataclasses.asdict(s) for s in changes],
        "rewrites": [dataclasses.asdict(r) for r in changes.rewrites],
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
        "--without",
        metavar="REWRITE",
        action="append",
        default=[],
        help="a rewrite that is not to be done; may be given again",
    )
    parser.add_argument(
        "--no-rewrites", action="store_true", help="settings alone"
    )
    parser.add_argument(
        "--may-hide-errors",
        action="store_true",
        help="elements that a filter drops need not be computed first, even if "
        "that would have been an error",
    )
    parser.add_argument(
        "--list-rewrites",
        action=_ListRewrites,
        help="show the rewrites that there are, and end",
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help="print one JSON object instead of text",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
