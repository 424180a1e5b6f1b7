"""Python functions that misbehave, wherever they are taken."""

import os
import signal

import numpy as np
import pytest

import penstock as ps

Dataset = ps.Dataset
INT64 = ps.TensorSpec((), ps.int64)


def outcomes(ds):
    found = []
    iterator = iter(ds)
    while True:
        try:
            found.append(next(iterator))
        except StopIteration:
            return found
        except ps.PenstockError as error:
            found.append(error)


def numbers(ds):
    return [int(x) for x in ds]


def where_errors_are(found):
    return [i for i, x in enumerate(found) if isinstance(x, Exception)]


OPTIONS = ps.Options(python=ps.PythonOptions(deadline=0.4))


def as_map(ds, f):
    return ds.map(ps.python_function(f, output_signature=INT64))


def as_filter(ds, f):
    return ds.filter(ps.python_function(lambda x: f(x) >= 0))


def as_scan(ds, f):
    return ds.scan(
        np.int64(0),
        ps.python_function(
            lambda s, x: (s, f(x)), output_signature=(INT64, INT64)
        ),
    )


def as_flat_map(ds, f):
    return ds.flat_map(
        ps.python_function(lambda x: [f(x)], output_signature=INT64)
    )


def as_key(ds, f):
    return ds.group_by_window(
        ps.python_function(f), lambda k, g: g, window_size=1
    )


USES = [as_map, as_filter, as_scan, as_flat_map, as_key]


def exits():
    os._exit(3)


def is_killed():
    os.kill(os.getpid(), signal.SIGKILL)


def sleeps():
    signal.pause()  # For ever: no signal comes.


def raises():
    raise ValueError("no such thing")


BAD = {
    exits: ps.UnavailableError,
    is_killed: ps.UnavailableError,
    sleeps: ps.DeadlineExceededError,
    raises: ps.InvalidArgumentError,
}


@pytest.mark.parametrize("use", USES, ids=lambda use: use.__name__)
@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad.__name__)
def test_it_is_an_error_of_its_element(use, bad):
    def function(x):
        if x == 3:
            bad()
        return x

    ds = use(Dataset.range(20), function).with_options(OPTIONS)
    found = outcomes(ds)
    assert where_errors_are(found) == [3]
    assert isinstance(found[3], BAD[bad])
    good = [i for i in range(20) if i != 3]
    assert [int(x) for x in found if not isinstance(x, Exception)] == good
    assert numbers(ds.ignore_errors()) == good


@pytest.mark.parametrize("use", USES, ids=lambda use: use.__name__)
def test_a_death_that_is_not_repeated_is_not_seen(use, tmp_path):
    file = tmp_path / "died"

    def dies_once(x):
        if x == 9 and not file.exists():
            file.touch()
            os._exit(7)
        return x

    assert numbers(use(Dataset.range(20), dies_once)) == list(range(20))
    assert file.exists()


@pytest.mark.parametrize("use", USES, ids=lambda use: use.__name__)
def test_functions_may_fork(use):
    def forks(x):
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
        return x

    assert numbers(use(Dataset.range(8), forks)) == list(range(8))


@pytest.mark.parametrize("use", [as_scan, as_flat_map, as_key])
def test_what_leaks_is_recycled(use, tmp_path):
    pids = tmp_path / "pids"
    hoard = []

    def leaks(x):
        hoard.append(np.ones(8 << 20))
        with open(pids, "a") as file:
            file.write(f"{os.getpid()}\n")
        return x

    python = ps.PythonOptions(memory=150 << 20, processes=1)
    ds = use(Dataset.range(16), leaks)
    ds = ds.with_options(ps.Options(python=python))
    assert numbers(ds) == list(range(16))
    assert len(set(pids.read_text().split())) > 1
