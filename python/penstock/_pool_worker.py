"""A process that runs functions of the user's for the engine.

Started by the engine with its socket as descriptor 3 and a page of shared
memory, where it says what it is at, as descriptor 4; by a worker also with the
code of a job as descriptor 5. Messages are structs; rows are encoded chunks in
memory that the engine and this process share.
"""

from __future__ import annotations

import gc
import mmap
import os
import signal
import socket
import struct
import sys
import time
from typing import Any

from penstock import _inside, _pool_code
from penstock._pool_calls import Function, load
from penstock._user_rows import describe

# Kind, segment, function, call, offset and bytes of the input, segment, zero,
# offset and room of the output, bytes that one element's rows may take.
_TO_WORKER = struct.Struct("<IIQQQQIIQQQ")
_SEGMENT = 1
_FUNCTION = 2
_FORGET = 3
_CALL = 4
# Kind, zero, call, bytes, nanoseconds in the function, bytes of this process,
# its CPU time.
_FROM_WORKER = struct.Struct("<IIQQQQQ16x")
_READY = 1
_DONE = 2
_DONE_OWN = 3
_FAILED = 4

_SOCKET_FD = 3
_PROGRESS_FD = 4
_PAGE = 4096
_MEMORY_EVERY_S = 0.1


class Worker:
    """The loop that reads messages."""

    def __init__(self, near: socket.socket, progress: Any) -> None:
        self._socket = near
        self._progress = progress
        self._segments: dict[int, mmap.mmap] = {}
        self._functions: dict[int, Function | str] = {}
        self._fds: list[int] = []
        self._memory = 0
        self._memory_at = 0.0

    def serve(self) -> None:
        self._send(_READY, 0, 0, 0)
        while True:
            message = self._receive()
            if message is None:
                return
            (
                kind,
                segment,
                function,
                call,
                offset,
                size,
                out_segment,
                _,
                out_offset,
                room,
                max_bytes,
            ) = _TO_WORKER.unpack(message)
            if kind == _SEGMENT:
                fd = self._fds.pop(0)
                self._segments[segment] = mmap.mmap(fd, size)
                os.close(fd)
            elif kind == _FUNCTION:
                self._load(function, size)
            elif kind == _FORGET:
                self._functions.pop(function, None)
            elif kind == _CALL:
                memory = self._segments[segment]
                data = memoryview(memory)[offset : offset + size]
                out = None
                if room:
                    out = memoryview(self._segments[out_segment])
                    out = out[out_offset : out_offset + room]
                self._run(function, call, data, out, max_bytes)

    def _load(self, number: int, size: int) -> None:
        fd = self._fds.pop(0)
        try:
            _inside.is_loading = True
            _pool_code.enter()
            self._functions[number] = load(fd, size)
        except BaseException as error:
            self._functions[number] = (
                "the function cannot be loaded in a process of its own: "
                + describe(error)
            )
        finally:
            _inside.is_loading = False
            os.close(fd)

    def _run(
        self,
        number: int,
        call: int,
        data: memoryview,
        out: memoryview | None,
        max_bytes: int,
    ) -> None:
        function = self._functions[number]
        if isinstance(function, str):
            return self._fail(call, function)
        self._progress[1] = (1 << 64) - 1  # no row yet
        self._progress[0] = call
        try:
            encoded, nanos = function.run(data, self._progress, max_bytes, out)
        except Exception as error:  # Of ours, not of the function.
            return self._fail(call, describe(error))
        self._progress[0] = 0
        if out is not None and encoded.size <= len(out):
            encoded.write(out[: encoded.size])
            self._send(_DONE, call, encoded.size, nanos)
            return None
        fd = os.memfd_create("penstock-result", os.MFD_CLOEXEC)
        try:
            os.ftruncate(fd, encoded.size)
            with mmap.mmap(fd, encoded.size) as memory:
                encoded.write(memory)
            message = self._message(_DONE_OWN, call, encoded.size, nanos)
            socket.send_fds(self._socket, [message], [fd])
        finally:
            os.close(fd)

    def _fail(self, call: int, message: str) -> None:
        text = message.encode(errors="replace")[: 1 << 19]
        self._send(_FAILED, call, len(text), 0)
        self._socket.sendall(text)

    def _receive(self) -> bytes | None:
        data = bytearray()
        while len(data) < _TO_WORKER.size:
            wanted = _TO_WORKER.size - len(data)
            more, fds, _, _ = socket.recv_fds(self._socket, wanted, 4)
            self._fds += fds
            if not more:
                return None
            data += more
        return bytes(data)

    def _send(self, kind: int, call: int, size: int, nanos: int) -> None:
        self._socket.sendall(self._message(kind, call, size, nanos))

    def _message(self, kind: int, call: int, size: int, nanos: int) -> bytes:
        now = time.monotonic()
        if now > self._memory_at + _MEMORY_EVERY_S:
            self._memory_at = now
            with open("/proc/self/statm") as file:
                pages = int(file.read().split()[1])
            self._memory = pages * mmap.PAGESIZE
        cpu = time.process_time_ns()
        return _FROM_WORKER.pack(kind, 0, call, size, nanos, self._memory, cpu)


def main() -> None:
    _inside.enter()
    # The trainer alone is told of Ctrl-C.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # `-m` puts the working directory first; the trainer's own path counts.
    path = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if sys.path and sys.path[0] not in path:
        sys.path.pop(0)
    near = socket.socket(fileno=_SOCKET_FD)
    # Nor do the functions' own children get them.
    os.set_inheritable(_SOCKET_FD, False)
    os.set_inheritable(_PROGRESS_FD, False)
    os.set_inheritable(_pool_code.ARCHIVE_FD, False)
    page = mmap.mmap(_PROGRESS_FD, _PAGE)
    progress = memoryview(page).cast("Q")
    gc.freeze()
    try:
        Worker(near, progress).serve()
    except (BrokenPipeError, ConnectionResetError):
        pass  # The engine is gone.
    sys.stdout.flush()


if __name__ == "__main__":
    main()
