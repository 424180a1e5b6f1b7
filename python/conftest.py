"""What the package's doctests find in their namespace."""

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
