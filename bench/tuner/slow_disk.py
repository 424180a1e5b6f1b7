"""Files of a directory, as a disk that is slow in a known way has them.

    with slow_disk("/data", read_ms=5) as files:
        list(ps.TFRecordDataset(str(files / "train-0")))

Needs /dev/fuse and what `tools/setup bench` installs.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
SOURCE = Path(__file__).resolve().with_name("slow_disk.cc")
PROGRAM = ROOT / "build/slow_disk"
SECONDS_TO_MOUNT = 10


class AbsentError(Exception):
    """This machine lacks what a FUSE file system needs."""


def build() -> Path:
    """The program, built if it is older than its source."""
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        raise AbsentError("no /dev/fuse that this user may open")
    needed = ("c++", "pkg-config", "fusermount3")
    missing = [name for name in needed if shutil.which(name) is None]
    if missing:
        raise AbsentError(f"no {', '.join(missing)}: run tools/setup bench")
    flags = subprocess.run(
        ["pkg-config", "--cflags", "--libs", "fuse3"],
        capture_output=True,
        text=True,
    )
    if flags.returncode != 0:
        raise AbsentError("no libfuse3: run tools/setup bench")
    if PROGRAM.exists() and PROGRAM.stat().st_mtime > SOURCE.stat().st_mtime:
        return PROGRAM
    PROGRAM.parent.mkdir(exist_ok=True)
    made = PROGRAM.with_name(f"slow_disk.{os.getpid()}")
    command = ["c++", "-std=c++20", "-O2", "-Wall", "-Wextra", "-pthread"]
    command += ["-o", str(made), str(SOURCE), *flags.stdout.split()]
    subprocess.run(command, check=True)
    made.rename(PROGRAM)
    return PROGRAM


@contextlib.contextmanager
def slow_disk(source: str | Path, **options: float) -> Iterator[Path]:
    """Shows the files of `source` under the path that it gives.

    Args:
        source: A directory.
        options: `open_ms`, `read_ms`, `mb_per_second`, `seek_ms`, `writable`
            as slow_disk.cc says; 0 if left out.
    """
    program = build()
    with tempfile.TemporaryDirectory(prefix="slow_disk.") as folder:
        mountpoint = Path(folder) / "mounted"
        mountpoint.mkdir()
        arguments = [
            f"--{name.replace('_', '-')}={value}"
            for name, value in options.items()
        ]
        # It ends when its stdin does, so also when this process is killed.
        process = subprocess.Popen(
            [program, source, mountpoint, *arguments],
            stdin=subprocess.PIPE,
        )
        assert process.stdin is not None
        try:
            _wait_until_mounted(process, mountpoint)
            yield mountpoint
        finally:
            process.stdin.close()
            try:
                process.wait(timeout=SECONDS_TO_MOUNT)
            except subprocess.TimeoutExpired:
                # Somebody holds a file: let go of the name at least.
                subprocess.run(["fusermount3", "-uz", mountpoint])
                process.kill()
                process.wait()
            if mountpoint.is_mount():
                subprocess.run(["fusermount3", "-uz", mountpoint])


def _wait_until_mounted(
    process: subprocess.Popen[bytes], mountpoint: Path
) -> None:
    end = time.monotonic() + SECONDS_TO_MOUNT
    while not mountpoint.is_mount():
        if process.poll() is not None:
            raise AbsentError(f"slow_disk ended with {process.returncode}")
        if time.monotonic() > end:
            raise AbsentError("slow_disk did not mount in time")
        time.sleep(0.01)
