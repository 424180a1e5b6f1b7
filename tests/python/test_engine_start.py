"""Programs that are not the engine, and engines that cannot start."""

import os
import sys

import numpy as np
import pytest
from complaints import engines_of, refuses
from pipelines import ints

import penstock as ps
from penstock import _engine

Dataset = ps.Dataset
ANSWERING = """#!{python}
import json, socket, struct, sys
fd = int(sys.argv[sys.argv.index("--control-fd") + 1])
control = socket.socket(fileno=fd)
control.recv(65536)
answer = {answer!r}
control.sendall(struct.pack("<I", len(answer)) + answer)
control.recv(1)
"""


@pytest.fixture(autouse=True)
def _nothing_is_left():
    ps.close()
    before = len(os.listdir("/proc/self/fd"))
    yield
    assert engines_of(os.getpid()) == []
    assert len(os.listdir("/proc/self/fd")) <= before


@pytest.fixture
def program(tmp_path, monkeypatch):
    """Makes a program of `text` the one that is started."""

    def make(text, mode=0o755):
        file = tmp_path / "penstock"
        file.write_text(text)
        file.chmod(mode)
        monkeypatch.setenv("PENSTOCK_BINARY", str(file))
        return str(file)

    yield make
    monkeypatch.undo()
    assert ints(Dataset.range(3)) == [0, 1, 2]
    ps.close()


def answering(answer):
    return ANSWERING.format(python=sys.executable, answer=answer)


def test_nothing_there(program, monkeypatch):
    program("")
    monkeypatch.setenv("PENSTOCK_BINARY", "/no/such/binary")
    with refuses(
        ps.NotFoundError, "/no/such/binary", "PENSTOCK_BINARY", where=False
    ):
        Dataset.range(3)


def test_a_directory(program, tmp_path, monkeypatch):
    program("")
    monkeypatch.setenv("PENSTOCK_BINARY", str(tmp_path))
    with refuses(ps.PermissionDeniedError, str(tmp_path), where=False):
        Dataset.range(3)


def test_not_executable(program):
    file = program("#!/bin/sh\n", 0o644)
    with refuses(ps.PermissionDeniedError, file, "PENSTOCK", where=False):
        Dataset.range(3)


def test_no_program_at_all(program):
    file = program("\x7fnonsense")
    with refuses(ps.FailedPreconditionError, file, "PENSTOCK", where=False):
        Dataset.range(3)


def test_it_ends_at_once(program):
    file = program("#!/bin/sh\nexit 0\n")
    with refuses(
        ps.EngineDiedError, file, "exit code 0", "PENSTOCK", where=False
    ):
        Dataset.range(3)


def test_its_last_words_are_shown(program):
    program("#!/bin/sh\necho I am not the one >&2\nexit 3\n")
    with refuses(
        ps.EngineDiedError, "exit code 3", "I am not the one", where=False
    ):
        Dataset.range(3)


def test_another_program(program, monkeypatch):
    program("")
    monkeypatch.setenv("PENSTOCK_BINARY", "/bin/cat")
    with refuses(ps.EngineDiedError, "/bin/cat", where=False):
        Dataset.range(3)


def test_it_says_nothing(program, monkeypatch):
    program("#!/bin/sh\nexec sleep 1000\n")
    monkeypatch.setattr(_engine, "_GREET_SECONDS", 0.2)
    with refuses(ps.FailedPreconditionError, "no answer", where=False):
        Dataset.range(3)


@pytest.mark.parametrize(
    "answer", [b"not JSON", b"[]", b"3", b'"x"', b"\xff\xfe", b""]
)
def test_its_answer_makes_no_sense(program, answer):
    program(answering(answer))
    with refuses(ps.FailedPreconditionError, "PENSTOCK", where=False):
        Dataset.range(3)


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        (b'{"hello": {"version": "0.0.0"}}', "0.0.0"),
        (b'{"hello": {}}', "unknown"),
        (b"{}", "unknown"),
    ],
)
def test_an_engine_of_another_version(program, answer, found):
    file = program(answering(answer))
    with refuses(
        ps.FailedPreconditionError,
        file,
        f"version {found}",
        "PENSTOCK_BINARY",
        where=False,
    ):
        Dataset.range(3)


def test_a_package_of_another_version(monkeypatch):
    monkeypatch.setattr(_engine, "version", lambda: "0.0.0-other")
    with refuses(
        ps.FailedPreconditionError,
        "got 0.0.0-other",
        _engine.binary_path(),
        "Install",
        where=False,
    ):
        Dataset.range(3)


def test_a_failed_start_leaves_datasets_usable(program, monkeypatch):
    ds = Dataset.from_tensor_slices(np.arange(10_000))
    ps.close()
    program("#!/bin/sh\nexit 1\n")
    with pytest.raises(ps.EngineDiedError):
        list(ds)
    monkeypatch.delenv("PENSTOCK_BINARY")
    assert len(list(ds)) == 10_000
    ps.close()
