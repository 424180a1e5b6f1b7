#!/usr/bin/env python3
"""Holds the source tree to its shape.

  rooms     a room (folder of src/penstock) includes only what ROOMS allows
  listed    every source belongs to a CMakeLists.txt of its folder or above
  names     nothing is called utils, common, core, helpers or misc
  sizes     a file over 800 lines is an error, over 600 a warning
  headers   every header says #pragma once

Each finding is one line: `file:line: expected …; found …`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

# What each room may include besides itself. No arrow points back.
ROOMS: dict[str, tuple[str, ...]] = {
    "base": (),
    "data": ("base",),
    "io": ("base",),
    "functions": ("base", "data"),
    "plan": ("base", "data", "functions"),
    "tuner": ("base", "plan"),
    "engine": ("base", "data", "io", "functions", "plan"),
    "pool": ("base", "data", "engine"),
    "service/store": ("base",),
    "service/protocol": ("base",),
    "service/rpc": ("base",),
    "service/windows": ("base",),
    "service/dispatcher": (
        "base",
        "plan",
        "tuner",
        "service/protocol",
        "service/rpc",
        "service/store",
    ),
    "service/worker": (
        "base",
        "data",
        "io",
        "plan",
        "engine",
        "pool",
        "tuner",
        "service/client",  # what bundles read of other jobs
        "service/protocol",
        "service/rpc",
    ),
    "service/client": (
        "base",
        "data",
        "io",  # crc32c
        "plan",
        "engine",
        "service/protocol",
        "service/rpc",
    ),
    "session": (
        "base",
        "data",
        "io",
        "functions",
        "plan",
        "tuner",
        "engine",
        "pool",
        "service/client",
        "service/protocol",
        "service/rpc",
    ),
    "main": (
        "base",
        "data",
        "io",
        "functions",
        "plan",
        "tuner",
        "engine",
        "pool",
        "service/client",
        "service/dispatcher",
        "service/protocol",
        "service/rpc",
        "service/store",
        "service/windows",
        "service/worker",
        "session",
    ),
}

# Folders whose folders are rooms.
WINGS = ("service",)

# Rooms that know the protos. Below them, data has no schema language.
PROTO_ROOMS = (
    "plan",
    "tuner",
    "engine",
    "service/protocol",
    "service/dispatcher",
    "service/worker",
    "service/client",
    "service/windows",
    "session",
    "main",
)

BANNED_WORDS = ("util", "utils", "common", "core", "helper", "helpers", "misc")
CODE_FOLDERS = ("src", "proto", "python", "tests", "tools", "bench", "examples")
CODE_SUFFIXES = (".cc", ".h", ".proto", ".py")
SOURCE_SUFFIXES = (".cc", ".h")
MAX_LINES = 800
WARN_LINES = 600
WRITTEN_BY_PROGRAMS = (
    "python/penstock/_functions.py",
    "python/penstock/_image_functions.py",
    "python/penstock/_io_functions.py",
    "python/penstock/_strings_functions.py",
)

INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')


@dataclass(frozen=True)
class Finding:
    file: str
    line: int
    text: str
    is_error: bool = True

    def __str__(self) -> str:
        kind = "" if self.is_error else "warning: "
        return f"{self.file}:{self.line}: {kind}{self.text}"


@dataclass(frozen=True)
class Include:
    line: int
    path: str
    is_quoted: bool


def includes_of(text: str) -> list[Include]:
    """The #include lines of a source, in order."""
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        match = INCLUDE.match(line)
        if match:
            found.append(Include(number, match[2], match[1] == '"'))
    return found


def code_files(root: Path) -> list[Path]:
    return sorted(
        path
        for folder in CODE_FOLDERS
        for path in (root / folder).rglob("*")
        if path.suffix in CODE_SUFFIXES and path.is_file()
    )


def room_of(parts: Sequence[str]) -> str:
    """The room that a path of folders from src/penstock leads to."""
    return "/".join(parts[: 2 if parts[0] in WINGS else 1])


def check_room(file: str, room: str, text: str) -> Iterator[Finding]:
    if room not in ROOMS:
        known = ", ".join(ROOMS)
        yield Finding(file, 1, f"expected a room ({known}); found {room}")
        return
    allowed = (room, *ROOMS[room])
    for include in includes_of(text):
        parts = include.path.split("/")
        if include.path.endswith(".pb.h"):
            if room not in PROTO_ROOMS:
                yield Finding(
                    file,
                    include.line,
                    f"expected protos only in {', '.join(PROTO_ROOMS)}; "
                    f"found {include.path} in {room}",
                )
        elif parts[0] == "penstock" and len(parts) > 2:
            if room_of(parts[1:]) not in allowed:
                yield Finding(
                    file,
                    include.line,
                    f"expected {room} to include only {', '.join(allowed)}; "
                    f"found {include.path}",
                )
        elif include.is_quoted and (len(parts) == 1 or room_of(parts) in ROOMS):
            yield Finding(
                file,
                include.line,
                'expected a path from src, "penstock/room/file.h"; '
                f"found {include.path}",
            )
        elif ".." in parts:
            yield Finding(
                file,
                include.line,
                f"expected a path from src; found {include.path}",
            )


def check_listed(path: Path, rooms: Path, file: str) -> Iterator[Finding]:
    folder = path.parent
    while True:
        listing = folder / "CMakeLists.txt"
        name = re.escape(path.relative_to(folder).as_posix())
        if listing.exists() and re.search(
            rf"(?<![\w./]){name}(?![\w./])", listing.read_text()
        ):
            return
        if folder == rooms:
            break
        folder = folder.parent
    yield Finding(
        file,
        1,
        "expected to be listed in a CMakeLists.txt of its room; "
        "found in none, so nothing builds it",
    )


def check_name(path: Path, file: str) -> Iterator[Finding]:
    for part in (*path.parent.parts, path.stem):
        word = part.rsplit("_", 1)[-1].lower()
        if word in BANNED_WORDS:
            yield Finding(
                file,
                1,
                f"expected a name that says what it holds; found {part}",
            )


def check_size(file: str, text: str) -> Iterator[Finding]:
    lines = text.count("\n")
    if lines > WARN_LINES and file not in WRITTEN_BY_PROGRAMS:
        yield Finding(
            file,
            lines,
            f"expected at most {WARN_LINES} lines, and never over {MAX_LINES}; "
            f"found {lines}",
            is_error=lines > MAX_LINES,
        )


def check_header(path: Path, file: str, text: str) -> Iterator[Finding]:
    if path.suffix == ".h" and not re.search(
        r"^#pragma once$", text, re.MULTILINE
    ):
        yield Finding(file, 1, "expected #pragma once; found none")


def check_tree(root: Path) -> Iterator[Finding]:
    """All findings of the tree at `root`, file by file."""
    rooms = root / "src/penstock"
    for path in code_files(root):
        relative = path.relative_to(root)
        file = relative.as_posix()
        text = path.read_text()
        yield from check_name(relative, file)
        yield from check_size(file, text)
        if path.suffix not in SOURCE_SUFFIXES:
            continue
        yield from check_header(path, file, text)
        if path.is_relative_to(rooms):
            inside = path.relative_to(rooms).parts
            if len(inside) == 1:
                yield Finding(
                    file, 1, "expected to be in a room; found outside"
                )
                continue
            yield from check_room(file, room_of(inside[:-1]), text)
            yield from check_listed(path, rooms, file)


def main(arguments: list[str]) -> int:
    root = Path(arguments[0]) if arguments else Path(__file__).parent.parent
    findings = list(check_tree(root.resolve()))
    for finding in findings:
        print(finding)
    return int(any(finding.is_error for finding in findings))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
