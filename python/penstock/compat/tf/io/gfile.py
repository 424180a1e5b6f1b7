"""`tf.io.gfile`, of local files."""

from __future__ import annotations

import glob as _glob
import os
import shutil
from collections.abc import Iterator
from typing import Any

from penstock._errors import AlreadyExistsError, NotFoundError
from penstock._location import refused

__all__ = [
    "GFile",
    "copy",
    "exists",
    "get_registered_schemes",
    "glob",
    "isdir",
    "join",
    "listdir",
    "makedirs",
    "mkdir",
    "remove",
    "rename",
    "rmtree",
    "stat",
    "walk",
]


def _name(path: Any) -> str:
    if hasattr(path, "numpy"):
        path = path.numpy()
    return os.fsdecode(path)


class GFile:
    """A file opened by its name: `tf.io.gfile.GFile(path, "rb")`."""

    def __init__(self, name: Any, mode: str = "r") -> None:
        self.name = _name(name)
        self.mode = mode
        try:
            self._file: Any = open(self.name, mode)  # noqa: SIM115
        except FileNotFoundError:
            raise refused(
                NotFoundError, f"{self.name}: No such file or directory"
            ) from None

    def size(self) -> int:
        return os.path.getsize(self.name)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._file)

    def __enter__(self) -> GFile:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


def exists(path: Any) -> bool:
    return os.path.exists(_name(path))


def isdir(path: Any) -> bool:
    return os.path.isdir(_name(path))


def glob(pattern: Any) -> list[str]:
    patterns = pattern if isinstance(pattern, (list, tuple)) else [pattern]
    return sorted({n for p in patterns for n in _glob.glob(_name(p))})


def listdir(path: Any) -> list[str]:
    try:
        return sorted(os.listdir(_name(path)))
    except FileNotFoundError:
        raise refused(
            NotFoundError, f"{_name(path)}: no such directory"
        ) from None


def makedirs(path: Any) -> None:
    os.makedirs(_name(path), exist_ok=True)


def mkdir(path: Any) -> None:
    os.mkdir(_name(path))


def join(path: Any, *paths: Any) -> str:
    return os.path.join(_name(path), *map(_name, paths))


def remove(path: Any) -> None:
    try:
        os.remove(_name(path))
    except FileNotFoundError:
        raise refused(NotFoundError, f"{_name(path)}: no such file") from None


def rmtree(path: Any) -> None:
    shutil.rmtree(_name(path))


def rename(src: Any, dst: Any, overwrite: bool = False) -> None:
    if not overwrite and exists(dst):
        raise refused(AlreadyExistsError, f"{_name(dst)} is there already")
    os.replace(_name(src), _name(dst))


def copy(src: Any, dst: Any, overwrite: bool = False) -> None:
    if not overwrite and exists(dst):
        raise refused(AlreadyExistsError, f"{_name(dst)} is there already")
    shutil.copyfile(_name(src), _name(dst))


def walk(top: Any, topdown: bool = True, onerror: Any = None) -> Any:
    return os.walk(_name(top), topdown, onerror)


def get_registered_schemes() -> list[str]:
    """The kinds of file systems that there are: the local one."""
    return [""]


class _Stat:
    """What is known of a file: its length, and when it was changed."""

    def __init__(self, found: os.stat_result, is_directory: bool) -> None:
        self.length = 0 if is_directory else found.st_size
        self.mtime_nsec = found.st_mtime_ns
        self.is_directory = is_directory


def stat(path: Any) -> _Stat:
    try:
        return _Stat(os.stat(_name(path)), os.path.isdir(_name(path)))
    except FileNotFoundError:
        raise refused(
            NotFoundError, f"{_name(path)}: No such file or directory"
        ) from None
