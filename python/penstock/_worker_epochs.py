"""Which epochs the workers of a DataLoader have read, known to its trainer.

A loader makes its workers anew for each epoch, out of a feed that stays as it
was: the trainer's feed hears nothing of what its copies read. So they share a
small file without a name, in which a worker notes the epoch that it begins.
"""

from __future__ import annotations

import fcntl
import multiprocessing
import os
import secrets
import struct
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

_TOKEN_BYTES = 16
# The seed that the workers of one iteration have in common, and the epoch.
_ENTRY = struct.Struct("<QQ")


class Origin(NamedTuple):
    """Where a process finds the entries of the one that pickled a feed."""

    pid: int
    fd: int
    token: bytes


class WorkerEpochs:
    """The entries of one feed and of its copies in workers.

    Each process may read and write at any time. `count` never falls.
    """

    def __init__(self) -> None:
        self._fd = os.memfd_create("penstock-epochs")
        self._token = secrets.token_bytes(_TOKEN_BYTES)
        os.pwrite(self._fd, self._token, 0)
        weakref.finalize(self, os.close, self._fd)

    @classmethod
    def of_parent(cls, origin: Origin | None) -> WorkerEpochs | None:
        """Those that `origin` names, if it is this process's parent.

        Raises:
            OSError: It is, and they cannot be read.
        """
        parent = multiprocessing.parent_process()
        if origin is None or parent is None or parent.pid != origin.pid:
            return None
        fd = os.open(f"/proc/{origin.pid}/fd/{origin.fd}", os.O_RDWR)
        if os.pread(fd, _TOKEN_BYTES, 0) != origin.token:
            os.close(fd)
            raise FileNotFoundError("the parent's file is another one")
        made = cls.__new__(cls)
        made._fd, made._token = fd, origin.token
        weakref.finalize(made, os.close, fd)
        return made

    @property
    def origin(self) -> Origin:
        return Origin(os.getpid(), self._fd, self._token)

    @property
    def count(self) -> int:
        size = os.fstat(self._fd).st_size - _TOKEN_BYTES
        return size // _ENTRY.size

    def last_after(self, mark: int) -> int | None:
        """The epoch noted last, if any was since `count` was `mark`."""
        count = self.count
        return self._entry(count - 1)[1] if count > mark else None

    def begin(self, seed: int, otherwise: Callable[[], int]) -> int:
        """The epoch that workers of `seed` read; the first says which."""
        with self._lock():
            for i in reversed(range(self.count)):
                found, epoch = self._entry(i)
                if found == seed:
                    return epoch
            epoch = otherwise()
            self._append(seed, epoch)
            return epoch

    def note(self, seed: int, epoch: int) -> None:
        """Says that the workers of `seed` go on in `epoch`."""
        with self._lock():
            self._append(seed, epoch)

    def _entry(self, i: int) -> tuple[int, int]:
        at = _TOKEN_BYTES + i * _ENTRY.size
        seed, epoch = _ENTRY.unpack(os.pread(self._fd, _ENTRY.size, at))
        return seed, epoch

    def _append(self, seed: int, epoch: int) -> None:
        at = _TOKEN_BYTES + self.count * _ENTRY.size
        os.pwrite(self._fd, _ENTRY.pack(seed, epoch), at)

    @contextmanager
    def _lock(self) -> Iterator[None]:
        # Of the process, not of the descriptor, which forked workers share.
        fcntl.lockf(self._fd, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.lockf(self._fd, fcntl.LOCK_UN)
