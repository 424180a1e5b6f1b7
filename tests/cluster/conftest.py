"""A service for all tests of this folder, and ways to break it."""

import pytest

import penstock as ps


@pytest.fixture(scope="session")
def service():
    with ps.LocalService(workers=2, cpu=1) as service:
        yield service
