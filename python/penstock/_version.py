"""The package's version, of which the one source is the project's build."""

from __future__ import annotations

import os
import re
from functools import lru_cache


@lru_cache(maxsize=1)
def version() -> str:
    """The installed version or, in a source tree, the one being built."""
    from importlib import metadata

    try:
        return metadata.version("penstock")
    except metadata.PackageNotFoundError:
        pass
    package = os.path.dirname(os.path.realpath(__file__))
    build = os.path.join(package, "..", "..", "CMakeLists.txt")
    with open(build) as file:
        found = re.search(r"project\(penstock VERSION ([\d.]+)", file.read())
    assert found is not None
    return found[1]
