"""The `penstock` command: becomes the binary."""

from __future__ import annotations

import os
import sys

from penstock._engine import binary_path


def main() -> None:
    """Runs the binary with this process's arguments."""
    path = binary_path()
    # What runs pipelines is this interpreter, wherever the binary lies.
    os.environ.setdefault("PENSTOCK_PYTHON", sys.executable)
    os.execv(path, [path, *sys.argv[1:]])
