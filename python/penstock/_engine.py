"""The engine's process: its start, its calls, its end.

One engine per process, started by the first call that needs it and started
again if it dies. A forked child has none until it calls, and never touches its
parent's. All functions here may be called from any thread.
"""

from __future__ import annotations

import atexit
import base64
import contextlib
import json
import os
import signal
import socket
import struct
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from penstock import _errors, _inside
from penstock._errors import (
    EngineDiedError,
    FailedPreconditionError,
    NotFoundError,
    PenstockError,
    PermissionDeniedError,
    ResourceExhaustedError,
)
from penstock._location import refused
from penstock._version import version

Json = dict[str, Any]

_LENGTH = struct.Struct("<I")
_LAST_WORDS_BYTES = 4096
# Of a program that was started and says nothing.
_GREET_SECONDS = 60.0
# A request of a pipeline with far too much in it ends here, not in the engine.
_MAX_REQUEST_BYTES = 200 << 20
# Of an engine whose sockets are closed: it ends by itself well within this.
_EXIT_SECONDS = 2.0


class EngineGoneError(Exception):
    """The engine ended, or was given up, during a call."""


class Capture(Protocol):
    """What a plan names and the session holds."""

    id: str

    def send(self, engine: Engine) -> None:
        """Makes it known to `engine`."""


def to_base64(data: bytes | memoryview) -> str:
    return base64.b64encode(data).decode("ascii")


def from_base64(text: str) -> bytes:
    return base64.b64decode(text)


def binary_path() -> str:
    """The `penstock` binary: named, installed with the package, or built."""
    named = os.environ.get("PENSTOCK_BINARY")
    if named:
        return named
    package = os.path.dirname(os.path.realpath(__file__))
    installed = os.path.join(package, "bin", "penstock")
    tree = os.path.dirname(os.path.dirname(package))
    built = os.path.join(tree, "build/release/src/penstock/main/penstock")
    for candidate in (installed, built):
        if os.path.exists(candidate):
            return candidate
    raise NotFoundError(
        "the penstock binary must lie beside the package; found neither "
        f"{installed} nor {built}. Install the wheel, run "
        "`make setup` in the source tree, or set PENSTOCK_BINARY."
    )


class Engine:
    """One engine process and the sockets to it."""

    def __init__(self) -> None:
        from penstock._service import Service

        self.owner = os.getpid()
        self._lock = threading.Lock()
        self._is_gone = False
        # Ended by ourselves, in the middle of a call: no fault of its own.
        self.was_interrupted = False
        self._captures: set[str] = set()
        binary = binary_path()
        self._stderr = _scratch_file()
        control, control_far = socket.socketpair()
        service, service_far = socket.socketpair()
        try:
            with control_far, service_far:
                self._process = _start(
                    binary,
                    control_far.fileno(),
                    service_far.fileno(),
                    self._stderr,
                )
        except BaseException:
            control.close()
            service.close()
            os.close(self._stderr)
            raise
        self._control = control
        self._service = Service(service)
        try:
            self._greet()
        except BaseException:
            self.close()
            raise

    def _greet(self) -> None:
        self._control.settimeout(_GREET_SECONDS)
        try:
            reply = self.call("hello", {"version": version()})[0]
        except EngineGoneError:
            try:
                # One that closed its end is about to be gone.
                self._process.wait(_EXIT_SECONDS / 4)
            except subprocess.TimeoutExpired:
                self._process.kill()
                raise FailedPreconditionError(
                    _wrong_program(f"it gave no answer. {self.last_words()}")
                ) from None
            death = self.death()
            raise EngineDiedError(_wrong_program(str(death))) from None
        except ValueError:  # No JSON, or none of ours.
            raise FailedPreconditionError(
                _wrong_program("its answer cannot be read")
            ) from None
        except FailedPreconditionError as error:
            raise FailedPreconditionError(_wrong_program(str(error))) from None
        self._control.settimeout(None)
        theirs = reply.get("version", "")
        if theirs != version():
            raise FailedPreconditionError(
                _wrong_program(f"it is of version {theirs or 'unknown'}")
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        return not self._is_gone and self._process.poll() is None

    def call(
        self, name: str, body: Json, fds: Sequence[int] = ()
    ) -> tuple[Json, list[int]]:
        """One request and its answer; descriptors go and come along.

        Raises:
            EngineGoneError: There is no answer and there will be none.
            PenstockError: The answer is an error.
        """
        payload = json.dumps({name: body}, allow_nan=True).encode()
        if len(payload) > _MAX_REQUEST_BYTES:
            raise refused(
                ResourceExhaustedError,
                f"a pipeline must be described in {_MAX_REQUEST_BYTES >> 20} "
                f"MiB; got {len(payload) >> 20} MiB.\n  Give large arrays as "
                "elements (from_tensor_slices), not as constants of functions.",
            )
        with self._lock:
            if self._is_gone:
                raise EngineGoneError
            try:
                self._send(_LENGTH.pack(len(payload)) + payload, fds)
                data, received = self._receive()
            except (OSError, EOFError):
                self._is_gone = True
                raise EngineGoneError from None
            except BaseException:
                # An interrupt in the middle: half a message may be under way,
                # so that this engine's next answer could not be trusted.
                self.was_interrupted = True
                self._is_gone = True
                self._process.kill()
                raise
        reply: Json = json.loads(data)
        if not isinstance(reply, dict):
            raise ValueError("an answer must be a JSON object")
        error = reply.get("error")
        if error is not None:
            for fd in received:
                os.close(fd)
            raise _errors.from_status(
                error.get("code", 2),
                error.get("message", ""),
                error.get("is_type_error", False),
            )
        result = reply.get(name, {})
        return (result if isinstance(result, dict) else {}), received

    def _send(self, data: bytes, fds: Sequence[int]) -> None:
        if fds:
            sent = socket.send_fds(self._control, [data], list(fds))
            data = data[sent:]
        self._control.sendall(data)

    def _receive(self) -> tuple[bytes, list[int]]:
        data, fds, _, _ = socket.recv_fds(self._control, 1 << 16, 8)
        try:
            received = bytearray(data)
            while len(received) < _LENGTH.size:
                received += self._more(_LENGTH.size)
            end = _LENGTH.size + _LENGTH.unpack_from(received)[0]
            while len(received) < end:
                received += self._more(end - len(received))
            return bytes(received[_LENGTH.size : end]), fds
        except BaseException:
            for fd in fds:
                os.close(fd)
            raise

    def _more(self, size: int) -> bytes:
        data = self._control.recv(size)
        if not data:
            raise EOFError
        return data

    def add_captures(self, captures: Iterable[Capture]) -> None:
        """Makes those known that this engine has not seen."""
        for capture in captures:
            if capture.id not in self._captures:
                capture.send(self)
                self._captures.add(capture.id)

    def forget_captures(self, ids: Iterable[str]) -> None:
        self._captures.difference_update(ids)

    def last_words(self) -> str:
        """The end of what it wrote to its standard error."""
        size = os.fstat(self._stderr).st_size
        begin = max(0, size - _LAST_WORDS_BYTES)
        return os.pread(self._stderr, _LAST_WORDS_BYTES, begin).decode(
            errors="replace"
        )

    def death(self) -> EngineDiedError:
        """What to raise of an engine that is gone."""
        self._is_gone = True
        try:
            code = self._process.wait(_EXIT_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        if code < 0:
            how = f"was killed by {_signal_name(-code)}"
        else:
            how = f"ended with exit code {code}"
        words = self.last_words().strip() or "(it wrote nothing)"
        return EngineDiedError(
            f"the engine (process {self.pid}) {how}; its last words:\n  "
            + words.replace("\n", "\n  ")
        )

    def close(self) -> None:
        """Ends the process and waits for it; in a child, only lets go."""
        self._is_gone = True
        self._service.close()
        self._control.close()
        if self.owner == os.getpid():
            try:
                self._process.wait(_EXIT_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        else:
            # Not ours to wait for: Popen must not try when it is collected.
            self._process.returncode = 0
        with contextlib.suppress(OSError):
            os.close(self._stderr)


def _start(
    binary: str, control: int, service: int, stderr: int
) -> subprocess.Popen[bytes]:
    words = ["--control-fd", str(control), "--service-fd", str(service)]
    try:
        return subprocess.Popen(
            [binary, "engine", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            pass_fds=(control, service),
            start_new_session=True,
        )
    except OSError as error:
        kind: type[PenstockError] = FailedPreconditionError
        if isinstance(error, FileNotFoundError):
            kind = NotFoundError
        elif isinstance(error, PermissionError):
            kind = PermissionDeniedError
        raise kind(
            _wrong_program(f"it cannot be started: {error.strerror}")
        ) from None


def _wrong_program(found: str) -> str:
    named = os.environ.get("PENSTOCK_BINARY")
    advice = (
        "Unset PENSTOCK_BINARY, or let it name the right one."
        if named
        else "Install the package again."
    )
    return (
        f"expected {binary_path()} to be the engine of penstock {version()}; "
        f"found: {found}\n  {advice}"
    )


def _scratch_file() -> int:
    """A file in memory or, where that is not allowed, an unlinked one."""
    try:
        return os.memfd_create("penstock-stderr", os.MFD_CLOEXEC)
    except OSError:
        import tempfile

        with tempfile.TemporaryFile() as file:
            return os.dup(file.fileno())


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


# ---- The process's one engine.

_engine: Engine | None = None
_lock = threading.RLock()
# What finalizers want dropped. They run anywhere, so they only append here;
# the next call takes it along.
_dropped_instances: deque[int] = deque()
_dropped_captures: deque[str] = deque()


def drop_instance(instance: int) -> None:
    """Lets the engine forget a node's cache; safe in a finalizer."""
    _dropped_instances.append(instance)


def drop_capture(id: str) -> None:
    """Lets the engine forget a capture; safe in a finalizer."""
    _dropped_captures.append(id)


def current() -> Engine:
    """This process's engine, started if there is none alive."""
    global _engine
    with _lock:
        if _engine is not None and not _engine.is_alive:
            # Let go of first: it is not to be closed twice.
            gone, _engine = _engine, None
            gone.close()
        if _engine is None:
            refusal = _inside.refuse_engine()
            if refusal is not None:
                raise FailedPreconditionError(refusal)
            _engine = Engine()
        return _engine


def started() -> Engine | None:
    """This process's engine, if it has one."""
    return _engine


def call(name: str, body: Json) -> Json:
    """A call without lasting effect: made again if the engine dies under it."""
    reply: Json = with_engine(lambda engine: engine.call(name, body)[0])
    return reply


def with_engine(ask: Callable[[Engine], Any]) -> Any:
    """`ask` of the engine; asked once more of another if this one dies."""
    for _ in range(2):
        engine = current()
        try:
            _send_drops(engine)
            return ask(engine)
        except EngineGoneError:
            pass
    raise engine.death()


def _send_drops(engine: Engine) -> None:
    if _dropped_instances:
        instances = _take_all(_dropped_instances)
        engine.call("drop_instances", {"instances": instances})
    if _dropped_captures:
        ids = _take_all(_dropped_captures)
        engine.forget_captures(ids)
        engine.call("drop_captures", {"ids": ids})


def _take_all(queue: deque[Any]) -> list[Any]:
    taken = []
    with contextlib.suppress(IndexError):
        while True:
            taken.append(queue.popleft())
    return taken


def close() -> None:
    """Ends this process's engine; the next call that needs one starts it.

    Example:
        >>> ps.close()
        >>> list(ps.Dataset.range(2))
        [np.int64(0), np.int64(1)]
    """
    global _engine
    with _lock:
        engine, _engine = _engine, None
    if engine is not None:
        engine.close()


def _after_fork_in_child() -> None:
    global _engine, _lock
    _lock = threading.RLock()
    engine, _engine = _engine, None
    if engine is not None:
        engine.close()
    _dropped_instances.clear()
    _dropped_captures.clear()


os.register_at_fork(after_in_child=_after_fork_in_child)
atexit.register(close)
