"""Fixtures of the package's tests."""

import gc
import os
import sys
import time
from pathlib import Path

import pytest

# pipelines.py, which tests import by its own name.
sys.path.insert(0, str(Path(__file__).parent))


def pytest_collection_modifyitems(items):
    """JAX's tests come last: once it has threads, nobody should fork."""
    items.sort(key=lambda item: item.path.name == "test_jax.py")


@pytest.fixture
def pipelines(tmp_path):
    from pipelines import make_pipelines

    return make_pipelines(tmp_path)


def _held():
    """Descriptors of this process, and shared memory of its engine."""
    from complaints import shared_memory

    from penstock import _engine

    gc.collect()
    engine = _engine.current()
    _engine.call("drop_captures", {"ids": []})  # and what finalizers dropped
    return len(os.listdir("/proc/self/fd")), shared_memory(engine.pid)


@pytest.fixture(scope="module")
def nothing_left():
    """After a file's tests the same engine holds what it held before."""
    from penstock import _engine

    pid = _engine.current().pid
    before = _held()
    yield
    assert _engine.current().pid == pid
    deadline = time.monotonic() + 30
    after = _held()
    while after[0] > before[0] or after[1] > before[1]:
        assert time.monotonic() < deadline, (before, after)
        after = _held()
