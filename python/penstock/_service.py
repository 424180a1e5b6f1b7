"""What the engine wants of this process: log lines and generators' rows.

One daemon thread reads the service socket; each open generator runs in a
thread of its own, so that one that waits holds up no other.
"""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from penstock import _captures, _chunk, _errors, _spec
from penstock._user_rows import Rows, converter, describe, summary

_MESSAGE = struct.Struct("<IIQ")
_LOG = 1
_GENERATOR_OPEN = 2
_GENERATOR_NEXT = 3
_GENERATOR_CLOSE = 4
_GENERATOR_ROWS = 5
_GENERATOR_END = 6

# After its first row an answer waits no longer than this for more of them.
_GATHER_SECONDS = 0.001
# Nor does it grow past this.
_GATHER_BYTES = 1 << 20

_log = logging.getLogger("penstock")


class Service:
    """The near end of the service socket."""

    def __init__(self, near: socket.socket) -> None:
        self._owner = os.getpid()
        self._socket = near
        self._send_lock = threading.Lock()
        self._generators: dict[int, _Generator] = {}
        self._thread = threading.Thread(
            target=self._run, name="penstock-service", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Ends the threads as soon as user code lets them.

        A forked child only lets go of its copy of the socket.
        """
        if self._owner == os.getpid():
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _run(self) -> None:
        try:
            while True:
                head = self._read(_MESSAGE.size)
                kind, size, id = _MESSAGE.unpack(head)
                self._handle(kind, id, self._read(size))
        except (OSError, EOFError):
            pass  # The socket was closed: the engine is gone or given up.
        finally:
            for generator in list(self._generators.values()):
                generator.close()

    def _read(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            more = self._socket.recv(size - len(data))
            if not more:
                raise EOFError
            data += more
        return bytes(data)

    def _handle(self, kind: int, id: int, payload: bytes) -> None:
        if kind == _LOG:
            text = payload[1:].decode(errors="replace")
            _log.log(payload[0] * 10, "%s", text)
        elif kind == _GENERATOR_OPEN:
            self._generators[id] = _Generator(
                payload, lambda kind, data: self._send(kind, id, data)
            )
        elif kind == _GENERATOR_NEXT:
            self._generators[id].ask(struct.unpack("<Q", payload)[0])
        elif kind == _GENERATOR_CLOSE:
            generator = self._generators.pop(id, None)
            if generator is not None:
                generator.close()

    def _send(self, kind: int, id: int, data: bytes) -> None:
        with self._send_lock, contextlib.suppress(OSError):
            self._socket.sendall(_MESSAGE.pack(kind, len(data), id) + data)


class _Generator:
    """One open generator and the thread that runs it."""

    def __init__(
        self, payload: bytes, send: Callable[[int, bytes], None]
    ) -> None:
        size = struct.unpack_from("<I", payload)[0]
        self._id = payload[4 : 4 + size].decode()
        self._arguments = payload[4 + size :]
        self._send = send
        self._wanted: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._is_closed = False
        self._has_ended = False
        # A row of another rank than those before it: it begins a chunk.
        self._held: list[_chunk.Array] | None = None
        self._thread = threading.Thread(
            target=self._run, name="penstock-generator", daemon=True
        )
        self._thread.start()

    def ask(self, rows: int) -> None:
        self._wanted.put(rows)

    def close(self) -> None:
        self._is_closed = True
        self._wanted.put(0)

    def _run(self) -> None:
        capture = _captures.find_generator(self._id)
        source: Iterator[Any] | None = None
        while (wanted := self._wanted.get()) and not self._is_closed:
            rows = Rows()
            if capture is None:
                message = f"generator {self._id} is not in this process"
                rows.add_error(_errors.FailedPreconditionError.code, message)
                self._has_ended = True
                capture_specs: list[_spec.TensorSpec] = []
            else:
                capture_specs = _spec.flatten(capture.structure)
                if source is None and not self._has_ended:
                    source = self._open(capture, rows)
                if self._held is not None:
                    rows.add(self._held)
                    self._held = None
                if source is not None and not self._has_ended:
                    self._gather(source, capture.structure, wanted, rows)
            if rows.count:
                self._send(_GENERATOR_ROWS, rows.encode(capture_specs))
            else:
                self._send(_GENERATOR_END, b"")
            # An idle generator holds nothing but itself.
            del rows
        if source is not None and hasattr(source, "close"):
            try:
                source.close()
            except BaseException:
                _log.exception("closing generator %s", self._id)

    def _open(
        self, capture: _captures.GeneratorCapture, rows: Rows
    ) -> Iterator[Any] | None:
        try:
            arguments: list[Any] = []
            if self._arguments:
                columns, _, _ = _chunk.decode(self._arguments)
                arguments = [column[0] for column in columns]
            source: Iterator[Any] = iter(capture.function(*arguments))
            return source
        except BaseException as error:
            rows.add_error(_errors.code_of(error), describe(error))
            self._has_ended = True
            return None

    def _gather(
        self, source: Iterator[Any], structure: Any, wanted: int, rows: Rows
    ) -> None:
        deadline = 0.0
        to_arrays = converter(structure)
        while rows.count < wanted and not self._is_closed:
            try:
                value = next(source)
            except StopIteration:
                self._has_ended = True
                return
            except BaseException as error:
                # All of them, or the trainer would wait for ever.
                rows.add_error(_errors.code_of(error), describe(error))
                self._has_ended = True
                return
            try:
                values = to_arrays(value)
                if not rows.fits(values):
                    self._held = values
                    return
                rows.add(values)
            except Exception as error:
                rows.add_error(3, f"from_generator: {summary(error)}")
            now = time.monotonic()
            if not deadline:
                deadline = now + _GATHER_SECONDS
            if now > deadline or rows.size > _GATHER_BYTES:
                return
