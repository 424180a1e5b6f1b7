"""What plans name and do not carry: large arrays and Python generators."""

from __future__ import annotations

import functools
import importlib
import itertools
import mmap
import os
import threading
import weakref
from collections import defaultdict
from collections.abc import Callable
from typing import Any, Protocol

from penstock import _engine
from penstock._errors import InvalidArgumentError

# Up to this, rows are carried by the plan itself.
INLINE_BYTES = 4096


class Writable(Protocol):
    """What has a size and can be written to memory of that size."""

    size: int

    def write(self, out: Any) -> None: ...


class RowsCapture:
    """An encoded chunk in a sealed memfd, named by its contents.

    Naming by contents gives the same plan in every process, and so a saved
    state that any of them can load.
    """

    def __init__(self, fd: int, size: int, id: str) -> None:
        self.id = id
        self._fd = fd
        self._size = size
        hold(self, fd)

    @staticmethod
    def make(encoded: Writable) -> RowsCapture:
        import hashlib

        fd = memory_file(encoded.size)
        with mmap.mmap(fd, encoded.size) as memory:
            encoded.write(memory)
            digest = hashlib.blake2b(memory, digest_size=16).hexdigest()
        seal(fd)
        return RowsCapture(fd, encoded.size, f"rows-{digest}")

    @staticmethod
    def of_bytes(data: bytes) -> RowsCapture:
        """The same of a document that is no chunk."""
        import hashlib

        digest = hashlib.blake2b(data, digest_size=16).hexdigest()
        return rows_from_bytes(data, f"bytes-{digest}")

    def send(self, engine: _engine.Engine) -> None:
        body = {"id": self.id, "bytes": self._size}
        engine.call("add_capture", body, [self._fd])

    def __reduce__(self) -> tuple[Any, ...]:
        data = os.pread(self._fd, self._size, 0)
        while len(data) < self._size:
            data += os.pread(self._fd, self._size - len(data), len(data))
        return (rows_from_bytes, (data, self.id))


def rows_from_bytes(data: bytes, id: str) -> RowsCapture:
    fd = memory_file(len(data))
    with mmap.mmap(fd, len(data)) as memory:
        memory[:] = data
    seal(fd)
    return RowsCapture(fd, len(data), id)


# Captures of one id have the same contents: the engine forgets them when the
# last one goes. By a number each, since finalizers run anywhere.
_holders: dict[str, set[int]] = {}
_holder_numbers = itertools.count()


def hold(capture: _engine.Capture, fd: int) -> None:
    """Closes `fd`, and lets the engine forget, when `capture` goes."""
    number = next(_holder_numbers)
    _holders.setdefault(capture.id, set()).add(number)
    weakref.finalize(capture, _let_go, fd, capture.id, number, os.getpid())


def _let_go(fd: int, id: str, number: int, owner: int) -> None:
    os.close(fd)
    holders = _holders.get(id, set())
    holders.discard(number)
    if not holders:
        _holders.pop(id, None)
        if owner == os.getpid():
            _engine.drop_capture(id)


def memory_file(size: int) -> int:
    """A file in memory or, where that is not allowed, an unlinked one."""
    try:
        fd = os.memfd_create(
            "penstock-rows", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING
        )
    except OSError:
        import tempfile

        with tempfile.TemporaryFile() as file:
            fd = os.dup(file.fileno())
    os.ftruncate(fd, size)
    return fd


def seal(fd: int) -> None:
    """Forbids that the file changes ever again."""
    import fcntl

    seals = (
        fcntl.F_SEAL_SHRINK
        | fcntl.F_SEAL_GROW
        | fcntl.F_SEAL_WRITE
        | fcntl.F_SEAL_SEAL
    )
    try:
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals)
    except OSError:
        pass  # A plain file: where no memfd is allowed there are no seals.


class GeneratorCapture:
    """A function that gives generators, called by the service's thread.

    The engine only knows its id, one of this process, and its name, which is
    the same in every run of a program: that of the function, and a digest of
    its code and the plain values that it captures.
    """

    def __init__(
        self, function: Callable[..., Any], structure: Any, id: str, name: str
    ) -> None:
        self.id = id
        self.name = name
        self.function = function
        self.structure = structure
        with _lock:
            known = _generators.get(id)
            if known is not None and not _is_same(known, self):
                raise InvalidArgumentError(
                    f"generators must have names of their own; {id} of another "
                    "process is not the one that this process knows by it"
                )
            _generators[id] = self

    @staticmethod
    def make(function: Callable[..., Any], structure: Any) -> GeneratorCapture:
        base = identity_of(function)
        with _lock:
            number = next(_numbers[base])
        return GeneratorCapture(
            function, structure, f"generator-{base}-{number}", base
        )

    def send(self, engine: _engine.Engine) -> None:
        """Nothing to send: the engine asks for rows by name."""

    def __reduce__(self) -> tuple[Any, ...]:
        cloudpickle = importlib.import_module("cloudpickle")
        data = cloudpickle.dumps((self.function, self.structure))
        return (_generator_from_bytes, (data, self.id, self.name))


def identity_of(function: Callable[..., Any]) -> str:
    """A name that a function has in every run of a program.

    With a digest of its code, of the plain values that it captures, and of the
    same of the functions that it captures.
    """
    import hashlib

    name = getattr(function, "__qualname__", type(function).__qualname__)
    digest = hashlib.blake2b(_essence(function), digest_size=4).hexdigest()
    return f"{name}-{digest}"


def _essence(
    function: Callable[..., Any], seen: frozenset[int] = frozenset()
) -> bytes:
    import inspect

    bound: tuple[Any, ...] = ()
    while isinstance(function, functools.partial):
        bound += (*function.args, *function.keywords.values())
        function = function.func
    code = getattr(function, "__code__", None)
    if code is None or id(function) in seen:
        return b""
    captured = (*inspect.getclosurevars(function).nonlocals.values(), *bound)
    defaults = getattr(function, "__defaults__", None) or ()
    plain = [
        value
        for value in (*code.co_consts, *captured, *defaults)
        if isinstance(value, (bool, int, float, str, bytes))
    ]
    inner = [
        _essence(value, seen | {id(function)})
        for value in captured
        if inspect.isfunction(value)
    ]
    return bytes(code.co_code) + repr(plain).encode() + b"".join(inner)


def _generator_from_bytes(data: bytes, id: str, name: str) -> GeneratorCapture:
    cloudpickle = importlib.import_module("cloudpickle")
    with _lock:
        known = _generators.get(id)
        if known is not None and known.__reduce__()[1][0] == data:
            return known
    function, structure = cloudpickle.loads(data)
    return GeneratorCapture(function, structure, id, name)


def _is_same(a: GeneratorCapture, b: GeneratorCapture) -> bool:
    return a.function is b.function


def find_generator(id: str) -> GeneratorCapture | None:
    """The generator that a plan of this process calls `id`."""
    return _generators.get(id)


def _after_fork_in_child() -> None:
    global _lock
    _lock = threading.RLock()  # Another thread may have held it.


os.register_at_fork(after_in_child=_after_fork_in_child)

_lock = threading.RLock()
_numbers: defaultdict[str, itertools.count[int]] = defaultdict(itertools.count)
_generators: weakref.WeakValueDictionary[str, GeneratorCapture] = (
    weakref.WeakValueDictionary()
)
