"""Workers that come back at the address that they had."""

import contextlib
import subprocess

import pytest

import penstock as ps
from penstock._engine import binary_path

Dataset = ps.Dataset


def start(*words):
    """A part of the service, and the address that it says when it is ready."""
    process = subprocess.Popen(
        [binary_path(), *words], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    return process, process.stdout.readline().split()[-1]


def end(process):
    process.kill()
    process.wait()
    process.stdout.close()


@pytest.fixture
def dispatcher():
    process, address = start("dispatcher", "--listen", "127.0.0.1:0")
    yield address
    end(process)


def test_a_worker_that_is_back(dispatcher):
    worker, address = start("worker", "--dispatcher", dispatcher, "--cpu", "1")
    with contextlib.ExitStack() as stack:
        stack.callback(lambda: end(worker))
        ds = Dataset.range(300_000).map(lambda x: x * 2).batch(10)
        had = []
        for i, batch in enumerate(ds.distribute(dispatcher)):
            had += batch.tolist()
            if i in (100, 3000):
                end(worker)
                worker, _ = start(
                    *("worker", "--dispatcher", dispatcher),
                    *("--listen", address, "--cpu", "1"),
                )
        assert sorted(had) == list(range(0, 600_000, 2))
