"""Engines that die between a state's loading and the first row after it."""

import os
import signal

import pytest
from servers import Server, dispatcher, wait_until, worker

import penstock as ps
from penstock import _engine
from penstock._engine import binary_path

ROWS = 20_000


def kill_engine():
    os.kill(_engine.current().pid, signal.SIGKILL)


@pytest.fixture
def first():
    with dispatcher() as made, worker(made.address):
        yield made


def read(service, job, reader=0, readers=1):
    ds = ps.Dataset.range(ROWS).map(lambda x: x * 3)
    ds = ds.distribute(
        f"penstock://{service.address}",
        job=job,
        reader=reader,
        num_readers=readers,
    )
    return iter(ds)


def half_read(service, job, readers=1):
    """What each reader had of it, and their states."""
    iterators = [read(service, job, i, readers) for i in range(readers)]
    had = [[int(next(it)) for _ in range(50)] for it in iterators]
    states = [it.state_dict() for it in iterators]
    for it in iterators:
        it.close()
    return had, states


def is_all(*parts):
    rows = sorted(x for part in parts for x in part)
    return rows == list(range(0, 3 * ROWS, 3))


def test_before_its_restore_was_heard(tmp_path):
    """The dispatcher was away."""
    command = [binary_path(), "dispatcher", "--state-dir", str(tmp_path)]
    before = Server([*command, "--listen", "127.0.0.1:0"])
    after = None
    try:
        with worker(before.address):
            first = read(before, "unheard")
            had = [int(next(first)) for _ in range(50)]
            earlier = first.state_dict()
            had += [int(next(first)) for _ in range(5_000)]
            later = first.state_dict()
            first.close()
            # Somebody has gone on from another checkpoint meanwhile.
            other = read(before, "unheard")
            other.load_state_dict(earlier)
            next(other)
            other.close()
            before.close()
            it = read(before, "unheard")
            it.load_state_dict(later)
            kill_engine()
            after = Server([*command, "--listen", before.address])
            assert is_all(had, (int(x) for x in it))
    finally:
        (after or before).close()


def test_after_its_restore_was_heard(first):
    had, states = half_read(first, "heard")
    it = read(first, "heard")
    it.load_state_dict(states[0])
    wait_until(lambda: "job_restored" in first.log)
    kill_engine()
    assert is_all(had[0], (int(x) for x in it))


def test_with_the_states_of_others(first):
    """Of two readers' checkpoint, on one."""
    had, states = half_read(first, "two", 2)
    os.kill(first.process.pid, signal.SIGSTOP)
    it = read(first, "two")
    it.load_state_dict(states)
    kill_engine()
    os.kill(first.process.pid, signal.SIGCONT)
    assert is_all(had[0], had[1], (int(x) for x in it))


def test_when_another_reader_has_begun(first):
    had, states = half_read(first, "begun", 2)
    its = [read(first, "begun", i, 2) for i in range(2)]
    for it, state in zip(its, states, strict=True):
        it.load_state_dict(state)
    rest = [int(next(its[0]))]
    kill_engine()  # that of both
    for it in its:
        rest += [int(x) for x in it]
    assert is_all(*had, rest)
