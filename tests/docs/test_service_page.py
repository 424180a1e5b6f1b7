"""docs/service.md: its tables of settings are those of `--help`."""

import re
import subprocess
from pathlib import Path

import pytest

from penstock._engine import binary_path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "service.md"
OPTION = re.compile(r"^  --([\w-]+)(?: (\S+))?  +(.*?)(?: \(([^()]*)\))?$")


def table(command):
    """The table that the page should have, made of `--help`."""
    shown = subprocess.run(
        [binary_path(), command, "--help"],
        capture_output=True,
        text=True,
        check=True,
    )
    rows = ["| Flag | Is | Default |", "|---|---|---|"]
    for line in shown.stdout.splitlines():
        if found := OPTION.match(line):
            name, value, doc, default = found.groups()
            flag = f"--{name} {value}" if value else f"--{name}"
            shown_default = f"`{default}`" if default else ""
            rows.append(f"| `{flag}` | {doc} | {shown_default} |")
    return "\n".join(rows)


@pytest.mark.parametrize("command", ["dispatcher", "worker", "up"])
def test_settings(command):
    text = PAGE.read_text().split(f"<!-- settings: {command} -->\n", 1)[1]
    found = text.strip().split("\n\n", 1)[0]
    assert found == table(command)
