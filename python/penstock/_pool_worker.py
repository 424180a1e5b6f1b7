"""A process that runs functions of the user's for the engine.

Started by the engine with its socket as descriptor 3 and a page of shared
memory, where it says what it is at, as descriptor 4. Messages are structs of 64
bytes; rows are encoded chunks in memory that the engine and this process share.
"""

from __future__ import annotations

import gc
import importlib
import mmap
import os
import pickle
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from penstock import _chunk, _dtypes, _errors, _spec
from penstock._user_rows import Rows, convert, describe

# Kind, segment, function, call, offset and bytes of the input, segment, zero,
# offset and room of the output.
_TO_WORKER = struct.Struct("<IIQQQQIIQQ")
_SEGMENT = 1
_FUNCTION = 2
_FORGET = 3
_CALL = 4
# Kind, zero, call, bytes, nanoseconds in the function, bytes of this process.
_FROM_WORKER = struct.Struct("<IIQQQQ24x")
_READY = 1
_DONE = 2
_DONE_OWN = 3
_FAILED = 4

_SOCKET_FD = 3
_PROGRESS_FD = 4
_PAGE = 4096
_ALIGNMENT = 64
_HEAD = struct.Struct("<QQ")
_MEMORY_EVERY_S = 0.1

# How a function is used.
VALUES = "values"  # what it returns is the row
SPEC = "spec"  # the row says what it would return, pickled


def pack_function(
    function: Callable[..., Any], inputs: Any, outputs: Any, use: str, rng: bool
) -> list[Any]:
    """The parts of the file that `load_function` reads, to be joined."""
    cloudpickle = importlib.import_module("cloudpickle")
    large: list[pickle.PickleBuffer] = []

    def is_small(buffer: pickle.PickleBuffer) -> bool:
        if memoryview(buffer).nbytes < 1 << 20:
            return True
        large.append(buffer)
        return False

    data = cloudpickle.dumps(
        (function, inputs, outputs, use, rng),
        protocol=5,
        buffer_callback=is_small,
    )
    views = [buffer.raw() for buffer in large]
    parts: list[Any] = [_HEAD.pack(len(data), len(views))]
    parts += [struct.pack("<Q", view.nbytes) for view in views]
    parts.append(data)
    size = sum(len(part) for part in parts)
    for view in views:
        parts.append(bytes(-size % _ALIGNMENT))
        parts.append(view)
        size += -size % _ALIGNMENT + view.nbytes
    return parts


def load_function(fd: int, size: int) -> Any:
    """What `pack_function` packed; its large arrays lie on the file."""
    with mmap.mmap(fd, size, mmap.MAP_PRIVATE) as memory:
        data_size, count = _HEAD.unpack_from(memory)
        sizes = struct.unpack_from(f"<{count}Q", memory, _HEAD.size)
        at = _HEAD.size + 8 * count
        data = memory[at : at + data_size]
    at += data_size
    buffers = []
    if count:
        shared = memoryview(mmap.mmap(fd, size, mmap.MAP_PRIVATE))
        for each in sizes:
            at += -at % _ALIGNMENT
            buffers.append(shared[at : at + each])
            at += each
    return pickle.loads(data, buffers=buffers)


class Function:
    """A function, and how rows become its arguments and results rows."""

    def __init__(self, fd: int, size: int) -> None:
        function, inputs, outputs, use, rng = load_function(fd, size)
        self._function = function
        self._has_rng = rng
        self._is_unpacked = _spec.is_plain_tuple(inputs)
        self._assemble = _spec.assembler(inputs)
        self._use = use
        self._outputs = outputs
        self._specs = _spec.flatten(outputs)
        # One number a row: gathered without looking at each.
        self._dtype = None
        is_number = (
            isinstance(outputs, _spec.TensorSpec)
            and outputs.shape == ()
            and outputs.dtype != _dtypes.string
        )
        if is_number and use == VALUES:
            self._dtype = outputs.dtype.dtype

    def run(self, data: bytearray, progress: Any) -> tuple[_chunk.Encoded, int]:
        """The results of all rows, and the nanoseconds they took."""
        root = np.frombuffer(data, np.uint8)
        layout = _chunk.read_layout(bytes(data[: _head_bytes(data)]))
        rows = layout.rows
        columns = [_chunk.column_rows(root, c, rows) for c in layout.columns]
        seeds = columns.pop() if self._has_rng else None
        known = {
            error.row for error in _chunk.read_errors(memoryview(data), layout)
        }
        elements = self._assemble(columns, rows)
        start = time.perf_counter_ns()
        results, errors = self._call(elements, seeds, known, progress)
        nanos = time.perf_counter_ns() - start
        return self._encode(results, errors), nanos

    def _call(
        self,
        elements: list[Any],
        seeds: list[Any] | None,
        known: set[int],
        progress: Any,
    ) -> tuple[list[Any], dict[int, BaseException | None]]:
        function = self._function
        is_unpacked = self._is_unpacked
        results: list[Any] = []
        errors: dict[int, BaseException | None] = dict.fromkeys(known)
        for row, element in enumerate(elements):
            if row in errors:
                results.append(None)
                continue
            progress[1] = row
            try:
                if seeds is not None:
                    rng = np.random.Generator(np.random.PCG64(int(seeds[row])))
                    arguments = element if is_unpacked else (element,)
                    results.append(function(*arguments, rng=rng))
                elif is_unpacked:
                    results.append(function(*element))
                else:
                    results.append(function(element))
            except BaseException as error:
                # All of them: sys.exit() in a function is no end of ours.
                results.append(None)
                errors[row] = error
        return results, errors

    def _encode(
        self, results: list[Any], errors: dict[int, BaseException | None]
    ) -> _chunk.Encoded:
        if self._dtype is not None and not errors:
            try:
                array = np.array(results)
            except ValueError:
                array = np.empty((0, 0))  # of different shapes
            if array.ndim == 1 and array.dtype == self._dtype:
                column = _chunk.Column(self._specs[0].dtype, array)
                return _chunk.Encoded([column], len(results))
        rows = Rows()
        for row, result in enumerate(results):
            if row in errors:
                self._add_error(rows, errors[row])
                continue
            try:
                values = self._values(result)
                if not rows.fits(values):
                    raise ValueError(
                        "expected values of the ranks of the rows before it; "
                        f"got shapes {[value.shape for value in values]}"
                    )
                rows.add(values)
            except Exception as error:
                rows.add_error(3, f"what it returned: {error}")
        return rows.chunk(self._specs)

    def _values(self, result: Any) -> list[_chunk.Array]:
        if isinstance(result, list):
            result = tuple(result)
        if self._use == SPEC:
            cloudpickle = importlib.import_module("cloudpickle")
            result = cloudpickle.dumps(spec_of(result))
        return convert(self._outputs, result)

    @staticmethod
    def _add_error(rows: Rows, error: BaseException | None) -> None:
        if error is None:  # The engine knows it already.
            rows.add_error(2, "")
        else:
            rows.add_error(_errors.code_of(error), describe(error))


def spec_of(value: Any) -> Any:
    """The structure of `value`, with sizes left open: others may differ."""

    def leaf(item: Any) -> _spec.TensorSpec:
        array = _dtypes.to_array(item)
        return _spec.TensorSpec(
            (None,) * array.ndim, _dtypes.from_numpy(array.dtype)
        )

    _spec.flatten(value)  # refuses what is nested too deep
    return _spec.map_structure(leaf, value)


def _head_bytes(data: bytearray) -> int:
    columns: int = _chunk.HEADER.unpack_from(data)[1]
    return _chunk.head_size(columns)


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
                data = bytearray(memory[offset : offset + size])
                out = None
                if room:
                    out = memoryview(self._segments[out_segment])
                    out = out[out_offset : out_offset + room]
                self._run(function, call, data, out)

    def _load(self, number: int, size: int) -> None:
        fd = self._fds.pop(0)
        try:
            self._functions[number] = Function(fd, size)
        except BaseException as error:
            self._functions[number] = (
                "the function cannot be loaded in a process of its own: "
                + describe(error)
            )
        finally:
            os.close(fd)

    def _run(
        self,
        number: int,
        call: int,
        data: bytearray,
        out: memoryview | None,
    ) -> None:
        function = self._functions[number]
        if isinstance(function, str):
            return self._fail(call, function)
        self._progress[1] = (1 << 64) - 1  # no row yet
        self._progress[0] = call
        try:
            encoded, nanos = function.run(data, self._progress)
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
        return _FROM_WORKER.pack(kind, 0, call, size, nanos, self._memory)


def main() -> None:
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
