"""Interrupts between any two steps: no row is lost, and none comes twice."""

import sys

import numpy as np
import pytest

import penstock as ps
from penstock import _connection, _frames, _iterator

Dataset = ps.Dataset

_FILES = {module.__file__ for module in (_connection, _frames, _iterator)}
# Of the steps of a run (some 3,000), those interrupted; a prime, so that they
# are others in each frame.
_STRIDE = 17
_ERROR = -1


def is_finalizing(frame):
    while frame is not None:
        if frame.f_code.co_name == "__del__":
            return True
        frame = frame.f_back
    return False


class Interrupting:
    """Raises at one step of Python's, counted in the files of iterators."""

    def __init__(self, at):
        self.left = at

    def call(self, frame, event, arg):
        # What a finalizer raises, or what it calls, is not raised.
        if frame.f_code.co_filename not in _FILES or is_finalizing(frame):
            return None
        frame.f_trace_opcodes = True
        return self.step

    def step(self, frame, event, arg):
        if event == "opcode":
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt
        return self.step


def read(ds, at):
    """All elements, with one interrupt; whether it came."""
    iterator = iter(ds)
    tracer = Interrupting(at)
    got = []
    was_interrupted = False
    before = sys.gettrace()
    while True:
        try:
            sys.settrace(None if was_interrupted else tracer.call)
            try:
                got.append(int(np.ravel(next(iterator))[0]))
            finally:
                sys.settrace(before)
        except KeyboardInterrupt:
            was_interrupted = True
        except ps.PenstockError:
            got.append(_ERROR)
        except StopIteration:
            return got, was_interrupted


def is_without_one(got, whole):
    """Whether it is all of it, or all but one."""
    return got == whole or any(
        got == whole[:i] + whole[i + 1 :] for i in range(len(whole))
    )


@pytest.mark.parametrize(
    "ds",
    [
        Dataset.range(120).batch(10).with_options(ps.Options(run_ahead=2)),
        Dataset.range(30).map(lambda x: np.arange(7)[x % 9]),
        Dataset.range(6).with_options(ps.Options(run_ahead=0)),
    ],
    ids=["frames", "errors", "row by row"],
)
def test_an_interrupt_at_any_step(ds):
    whole, was_interrupted = read(ds, -1)
    assert not was_interrupted
    at, count = 1, 0
    while True:
        got, was_interrupted = read(ds, at)
        if not was_interrupted:
            break
        # What was on its way to the caller may be gone.
        assert is_without_one(got, whole), (at, got)
        at += _STRIDE
        count += 1
    assert count > 20


def test_statistics_after_an_interrupt():
    """It is not closed: it goes on with the next element, and says so."""
    it = iter(Dataset.range(1_000).batch(2))
    next(it)
    it._disconnect()  # As an interrupt in the middle of a frame leaves it.
    with pytest.raises(ps.FailedPreconditionError, match="was interrupted"):
        it.stats()
    assert next(it).tolist() == [2, 3]
    assert it.stats().rows > 0
    it.close()
    with pytest.raises(ps.FailedPreconditionError, match="that is closed"):
        it.stats()
