"""What tests of refusals have in common."""

import contextlib
import os
import re
import sys
from pathlib import Path

import pytest

EXPECTED = re.compile(
    r"must|expected|takes|needs|cannot|at most|are there|no file matches"
)
FOUND = re.compile(
    r"\bgot\b|found|No such file|Permission denied|no file matches|raises"
    r"|are left|are there|ended with|was killed|needs"
)


@contextlib.contextmanager
def refuses(kind, *parts, where=True):
    """Holds if the block raises `kind` and the message says enough.

    That is: what was expected, what was found, a line of the test's file, and
    all of `parts`.
    """
    file = Path(sys._getframe(2).f_code.co_filename).name
    with pytest.raises(kind) as caught:
        yield caught
    check_message(str(caught.value), *parts, file=file if where else None)


def check_message(text, *parts, file=None):
    """Whether an error's message says enough."""
    assert EXPECTED.search(text), text
    assert FOUND.search(text), text
    assert "a request cannot be read" not in text, text
    for part in parts:
        assert part in text, text
    if file:
        assert re.search(rf"{re.escape(file)}:\d+", text), text


def outcomes(iterable):
    """The elements, with errors in their places."""
    iterator = iter(iterable)
    found = []
    while len(found) < 1000:
        try:
            found.append(next(iterator))
        except StopIteration:
            return found
        except Exception as error:
            found.append(error)
    raise AssertionError("it does not end")


def engines_of(pid):
    """Processes that are engines started by process `pid`."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = Path(f"/proc/{name}/cmdline").read_bytes().split(b"\0")
            stat = Path(f"/proc/{name}/stat").read_text()
        except OSError:
            continue
        parent = int(stat.rpartition(")")[2].split()[1])
        if words[1:2] == [b"engine"] and parent == pid:
            found.append(int(name))
    return found


def shared_memory(pid):
    """How many descriptors of shared memory a process has."""
    count = 0
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            target = os.readlink(f"/proc/{pid}/fd/{fd}")
        except OSError:
            continue
        count += "memfd:penstock" in target
    return count
