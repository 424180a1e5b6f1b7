"""Functions on their way to the processes that run them."""

from __future__ import annotations

import contextlib
import functools
import importlib
import mmap
import os
import pickle
import struct
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from penstock import _inside, _pool_code
from penstock._adapted import users_own
from penstock._location import user_frame

_ALIGNMENT = 64
_HEAD = struct.Struct("<QQ")
# How a pickle for other machines begins.
PICKLED = b"PSPICKL1"

# How a function is used: what it returns is
VALUES = "values"  # the row,
ROWS = "rows"  # any number of rows,
SCAN = "scan"  # a new state and the row,
REDUCE = "reduce"  # a new state.


@dataclass(frozen=True)
class Packed:
    """A function, and how it is used."""

    function: Callable[..., Any]
    name: str
    inputs: Any  # the structure of its elements
    outputs: Any  # of what it returns; ROWS: of each of the rows
    use: str
    has_rng: bool = False
    # Instead of the row, a string: what it would be like, pickled. The state
    # of all calls is this one.
    is_asked: bool = False
    state: Any = None


def pack(packed: Packed) -> list[Any]:
    """The parts of the file that `load` reads, to be joined."""
    cloudpickle = importlib.import_module("cloudpickle")
    large: list[pickle.PickleBuffer] = []

    def is_small(buffer: pickle.PickleBuffer) -> bool:
        if memoryview(buffer).nbytes < 1 << 20:
            return True
        large.append(buffer)
        return False

    with _by_value(_sent_modules(packed.function)):
        data = cloudpickle.dumps(packed, protocol=5, buffer_callback=is_small)
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


def _sent_modules(function: Any) -> list[ModuleType]:
    """Those that a new process should not import, or cannot."""
    _inside.note_builders(user_frame())
    names = set(_inside.builders)
    module = sys.modules.get(_module_of(function))
    if module is not None and (
        module is _inside.program or not _can_import(module.__name__)
    ):
        names.add(module.__name__)
    return [sys.modules[name] for name in names if name in sys.modules]


@contextlib.contextmanager
def _by_value(modules: list[ModuleType]) -> Iterator[None]:
    """What these define is pickled as it is, not by its name."""
    cloudpickle = importlib.import_module("cloudpickle")
    users = cloudpickle.list_registry_pickle_by_value()
    added = [module for module in modules if module.__name__ not in users]
    for module in added:
        cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        for module in added:
            cloudpickle.unregister_pickle_by_value(module)


def _module_of(function: Any) -> str:
    function = users_own(function)
    while isinstance(function, functools.partial):
        function = users_own(function.func)
    name = getattr(function, "__module__", None)
    return name if isinstance(name, str) else ""


def _can_import(name: str) -> bool:
    """Whether a new process finds the module by itself.

    It does not if a program has loaded it from a file under a name of its own.
    """
    if name == "__main__":  # pickled by value anyway
        return True
    top = name.partition(".")[0]
    for finder in sys.meta_path:
        try:
            if finder.find_spec(top, None) is not None:
                return True
        except (ImportError, AttributeError, ValueError):
            continue
    return False


def pickled(data: bytes) -> bytes:
    """What `pack` packed, for other machines: with the Python it is for."""
    head = struct.pack("<8sHH", PICKLED, *sys.version_info[:2])
    return head.ljust(_ALIGNMENT, b"\0") + data


def _unpack_pickled(fd: int, size: int) -> Packed:
    magic, *version = struct.unpack_from("<8sHH", os.pread(fd, _ALIGNMENT, 0))
    if magic != PICKLED or tuple(version) != sys.version_info[:2]:
        raise ValueError(
            "a pickled function must be of the Python that loads it, "
            f"{sys.version_info[0]}.{sys.version_info[1]}; got one of "
            f"{'.'.join(map(str, version))}\n  Start workers with --python "
            "and that version, or send the function by name: "
            "distribute(code=[...])"
        )
    return unpack(fd, size, _ALIGNMENT)


def unpack(fd: int, size: int, begin: int = 0) -> Packed:
    """What `pack` packed; its large arrays lie on the file."""
    with mmap.mmap(fd, size, mmap.MAP_PRIVATE) as memory:
        data_size, count = _HEAD.unpack_from(memory, begin)
        sizes = struct.unpack_from(f"<{count}Q", memory, begin + _HEAD.size)
        at = begin + _HEAD.size + 8 * count
        data = memory[at : at + data_size]
    at += data_size
    buffers = []
    if count:
        shared = memoryview(mmap.mmap(fd, size, mmap.MAP_PRIVATE))
        for each in sizes:
            at += -at % _ALIGNMENT
            buffers.append(shared[at : at + each])
            at += each
    packed = pickle.loads(data, buffers=buffers)
    assert isinstance(packed, Packed)
    return packed


def read(fd: int, size: int) -> Packed:
    """What is in the file of a function, here or on a worker."""
    from penstock import _named

    with mmap.mmap(fd, size, mmap.MAP_PRIVATE) as memory:
        if memory[: len(_named.MAGIC)] == _named.MAGIC:
            return _named.read(memory[:], _pool_code.is_own)
    if not _pool_code.is_confined():
        return unpack(fd, size)
    if not _pool_code.accepts_pickles():
        raise PermissionError("this process loads no pickles")
    return _unpack_pickled(fd, size)
