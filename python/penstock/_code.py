"""Modules that go to workers: a zip that is the same wherever it is made."""

from __future__ import annotations

import hashlib
import importlib.util
import io
import os
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from penstock._errors import InvalidArgumentError, InvalidTypeError
from penstock._location import refused

# Of all files together.
MAX_BYTES = 16 << 20
_TIME = (1980, 1, 1, 0, 0, 0)  # The first that a zip can say.
_COMPILED = (".so", ".pyd", ".dylib")
_SHOWN = 3


@dataclass(frozen=True)
class Code:
    """A zip of modules and packages, and what it is known by.

    Attributes:
        archive: The zip. Equal files give equal bytes: they are sorted, stored
            as they are, and of one time.
        sha256: Of the archive, in hex.
        modules: The top-level modules and packages in it.
        contents: The same with their sizes, for people.
    """

    archive: bytes
    sha256: str
    modules: tuple[str, ...]
    contents: tuple[str, ...]

    def has(self, module: str) -> bool:
        """Whether `module`, a full name, is in it."""
        return module.partition(".")[0] in self.modules


def make(names: Iterable[str | os.PathLike[str]]) -> Code:
    """The code of modules and packages, by their names or paths.

    Example:
        >>> from penstock import _code
        >>> _code.make(["json"]).modules
        ('json',)
    """
    if isinstance(names, (str, bytes, os.PathLike)):
        raise refused(
            InvalidTypeError,
            f"code must be a list of modules, as [{names!r}]; got {names!r}",
        )
    files: dict[str, bytes] = {}
    modules: dict[str, str] = {}
    for name in names:
        module, path = _find(name)
        found = {
            inside: file.read_bytes() for inside, file in _files(module, path)
        }
        size = sum(map(len, found.values()))
        count = f"{len(found)} file{'s' if len(found) > 1 else ''}"
        modules[module] = f"{module}: {count}, {size} bytes"
        files.update(found)
    _check_size(files)
    archive = _zip(files)
    return Code(
        archive,
        hashlib.sha256(archive).hexdigest(),
        tuple(sorted(modules)),
        tuple(modules[module] for module in sorted(modules)),
    )


def _find(name: str | os.PathLike[str]) -> tuple[str, Path]:
    """The top-level module that is meant, and its file or folder."""
    if not isinstance(name, (str, os.PathLike)):
        raise refused(
            InvalidTypeError,
            f"code must be names of modules, or paths; got {name!r}",
        )
    path = Path(name)
    if isinstance(name, os.PathLike) or os.sep in name or path.suffix == ".py":
        path = path.absolute()
        if path.is_dir() or (path.suffix == ".py" and path.is_file()):
            return path.stem if path.is_file() else path.name, path
        raise refused(
            InvalidArgumentError,
            f"code: expected a .py file or a package's folder; got {path}",
        )
    if "." in name:
        raise refused(
            InvalidArgumentError,
            f"code: expected a module or package as a whole; got {name!r}, "
            f"which is inside of {name.partition('.')[0]!r}",
        )
    return name, _place_of(name)


def _place_of(name: str) -> Path:
    if name == "__main__":
        raise refused(
            InvalidArgumentError,
            "code: the program itself cannot be imported elsewhere; put what "
            "workers need into a module of its own",
        )
    try:
        spec = importlib.util.find_spec(name)
    except ValueError:  # It was put into sys.modules by hand.
        spec = None
    if spec is not None and spec.submodule_search_locations is not None:
        places = [Path(each) for each in spec.submodule_search_locations]
        if len(places) == 1 and places[0].is_dir():
            return places[0]
    elif spec is not None and spec.origin and spec.origin.endswith(".py"):
        return Path(spec.origin)
    raise refused(
        InvalidArgumentError,
        f"code: expected a module that can be imported from .py files; got "
        f"{name!r}, which {'is not' if spec else 'cannot be found'}",
    )


def _files(module: str, path: Path) -> Iterator[tuple[str, Path]]:
    """What a module consists of: names inside the zip, and files."""
    if path.is_file():
        yield f"{module}.py", path
        return
    for folder, folders, names in os.walk(path):
        folders[:] = [each for each in folders if not _is_left_out(each)]
        for name in names:
            file = Path(folder, name)
            if _is_left_out(name) or not file.is_file():
                continue
            if name.endswith(_COMPILED):
                raise refused(
                    InvalidArgumentError,
                    f"code: expected Python and data; got {file}, which was "
                    "compiled for this machine\n  Install the package where "
                    "workers run, or move what they need into another.",
                )
            yield f"{module}/{file.relative_to(path).as_posix()}", file


def _is_left_out(name: str) -> bool:
    return name.startswith(".") or name == "__pycache__" or name[-4:] == ".pyc"


def _check_size(files: dict[str, bytes]) -> None:
    size = sum(map(len, files.values()))
    if size <= MAX_BYTES:
        return
    largest = sorted(files, key=lambda name: -len(files[name]))[:_SHOWN]
    shown = ", ".join(f"{name} ({len(files[name])})" for name in largest)
    raise refused(
        InvalidArgumentError,
        f"code must have at most {MAX_BYTES} bytes; got {size}, the largest "
        f"files being {shown}\n  Put large data where workers can read it.",
    )


def _zip(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(files):
            info = zipfile.ZipInfo(name, _TIME)
            info.create_system = 3  # Unix, wherever it is made
            info.external_attr = 0o100644 << 16
            archive.writestr(info, files[name])
    return out.getvalue()


def unpack(archive: io.BytesIO, folder: str) -> None:
    """Writes what `make` packed into `folder`; trusts nothing in it."""
    left = MAX_BYTES
    with zipfile.ZipFile(archive) as found:
        for info in found.infolist():
            parts = info.filename.split("/")
            if any(part in ("", ".", "..") or "\\" in part for part in parts):
                raise InvalidArgumentError(
                    f"code must have plain names; got {info.filename!r}"
                )
            left -= info.file_size
            if left < 0:
                raise InvalidArgumentError(
                    f"code must have at most {MAX_BYTES} bytes; got more"
                )
            path = os.path.join(folder, *parts)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "xb") as out:
                out.write(found.read(info))
