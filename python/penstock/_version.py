"""The package's version, of which the one source is the project's build."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path


@lru_cache(maxsize=1)
def version() -> str:
    """The installed version or, in a source tree, the one being built."""
    from importlib import metadata

    try:
        return metadata.version("penstock")
    except metadata.PackageNotFoundError:
        pass
    build = Path(__file__).resolve().parents[2] / "CMakeLists.txt"
    found = re.search(r"project\(penstock VERSION ([\d.]+)", build.read_text())
    assert found is not None
    return found[1]
