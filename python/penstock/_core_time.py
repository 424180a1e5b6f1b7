"""Time that passes for a thread, without what it waits for a core."""

from __future__ import annotations

import os
import time


class CoreClock:
    """A clock of the thread that first asks it, and of that one alone.

    It stands still while the thread could run and others have the cores, and
    goes on while it sleeps: so it tells how long a function takes, whoever else
    is at work on the machine. Where the kernel does not say, it is a plain
    clock.
    """

    def __init__(self) -> None:
        self._file: int | None = None  # -1: there is none

    def now(self) -> int:
        """Nanoseconds, from some moment on."""
        return time.perf_counter_ns() - self._waited()

    def _waited(self) -> int:
        if self._file is None:
            self._file = _open()
        if self._file < 0:
            return 0
        try:
            # On a core, waiting for one, times on one.
            return int(os.pread(self._file, 80, 0).split()[1])
        except (OSError, ValueError, IndexError):
            return 0


def _open() -> int:
    try:
        return os.open(
            "/proc/thread-self/schedstat", os.O_RDONLY | os.O_CLOEXEC
        )
    except OSError:
        return -1
