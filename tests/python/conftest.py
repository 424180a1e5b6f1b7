"""Fixtures of the package's tests."""

import sys
from pathlib import Path

import pytest

# pipelines.py, which tests import by its own name.
sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def pipelines(tmp_path):
    from pipelines import make_pipelines

    return make_pipelines(tmp_path)
