"""`penstock code`: modules as workers get them, and what to accept them by."""

from __future__ import annotations

import argparse
import hashlib
import sys
from pathlib import Path

from penstock import _code
from penstock._errors import PenstockError

_HELP = """\
Makes the zip that distribute(code=[...]) sends, and says the hash by which
workers can be told to accept it. The same files give the same zip everywhere.

examples:
  penstock code zip my_package -o accepted/my_package.zip
  penstock code hash accepted/my_package.zip
  penstock worker --code-allow accepted ...

exit codes:
  0    done
  1    a module cannot be packed, or a file not read
  2    the arguments are wrong
"""


def main(arguments: list[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    options = _parser().parse_args(arguments)
    try:
        if options.command == "hash":
            for path in options.files:
                digest = hashlib.sha256(Path(path).read_bytes()).hexdigest()
                print(f"sha256:{digest}  {path}")
            return 0
        # As for a program that was started here.
        sys.path.insert(0, "")
        code = _code.make(options.names)
        Path(options.output).write_bytes(code.archive)
    except (OSError, PenstockError) as error:
        print(f"penstock code: {error}", file=sys.stderr)
        return 1
    print(f"sha256:{code.sha256}  {options.output}")
    for line in code.contents:
        print(f"  {line}")
    return 0


def _parser() -> argparse.ArgumentParser:
    about, _, more = _HELP.partition("\n\n")
    parser = argparse.ArgumentParser(
        prog="penstock code",
        description=about,
        epilog=more,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    made = commands.add_parser("zip", help="modules and packages, as a zip")
    made.add_argument("names", nargs="+", metavar="NAME", help="or a path")
    made.add_argument(
        "-o", "--output", required=True, metavar="FILE", help="what is written"
    )
    hashed = commands.add_parser("hash", help="what zips are accepted by")
    hashed.add_argument("files", nargs="+", metavar="FILE")
    return parser


if __name__ == "__main__":
    sys.exit(main())
