"""Packages that are needed only by what is asked for."""

from __future__ import annotations

import importlib
from typing import Any

from penstock._errors import MissingPackageError
from penstock._location import refused


def need(module: str, function: str, package: str) -> Any:
    """The module; an error that says what to install if it is not there."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if (
            error.name is None
            or error.name.partition(".")[0] != (module.partition(".")[0])
        ):
            raise  # Something that the package itself lacks.
        raise refused(
            MissingPackageError,
            f"{function} needs the package {package}, which is not installed "
            f"here.\n  Run: pip install {package}",
        ) from None
