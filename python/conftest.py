"""What the package's doctests find in their namespace."""

import importlib.util
from typing import Any

import numpy as np
import pytest

import penstock as ps
import penstock.compat.tf as tf


@pytest.fixture(autouse=True)
def _names(doctest_namespace: dict[str, Any]) -> None:
    doctest_namespace["np"] = np
    doctest_namespace["ps"] = ps
    doctest_namespace["tf"] = tf


_FRAMEWORKS = ("datasets", "jax", "pandas", "pyarrow", "tensorflow", "torch")
_HAS_FRAMEWORKS = all(map(importlib.util.find_spec, _FRAMEWORKS))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Examples of frameworks run where all are: in `make test-frameworks`.

    JAX alone would not do: it starts threads, and later tests fork.
    """
    mark = pytest.mark.skip(reason="make test-frameworks runs it")
    for item in items:
        if not _HAS_FRAMEWORKS and ".Frameworks." in item.name:
            item.add_marker(mark)


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
