"""A service for all tests of this folder, and ways to break it."""

import sys
from pathlib import Path

import pytest

import penstock as ps

# What tests of this folder share, and trainers.py.
sys.path.insert(0, str(Path(__file__).parents[1] / "python"))
sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def service():
    with ps.LocalService(workers=2, cpu=1) as service:
        yield service
