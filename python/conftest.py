"""What the package's doctests find in their namespace."""

import importlib.util
from typing import Any

import numpy as np
import pytest

import penstock as ps


@pytest.fixture(autouse=True)
def _names(doctest_namespace: dict[str, Any]) -> None:
    doctest_namespace["np"] = np
    doctest_namespace["ps"] = ps


# Modules that can be imported only where a package is installed.
_NEEDS = {
    "_jax.py": "jax",
    "_tables.py": "pyarrow",
    "_tensorflow.py": "tensorflow",
    "_torch.py": "torch",
}
collect_ignore = [
    f"penstock/{name}"
    for name, package in _NEEDS.items()
    if importlib.util.find_spec(package) is None
]
