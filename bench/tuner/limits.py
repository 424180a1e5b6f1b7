"""Control groups for cases that have less than the machine."""

from __future__ import annotations

import atexit
import contextlib
import os
from pathlib import Path

_CPU = Path("/sys/fs/cgroup/cpu")
_UNIFIED = Path("/sys/fs/cgroup")
_PERIOD = 100_000


def enter_group(cores: float) -> str | None:
    """Puts this process, and all that it starts, into a group of its own.

    Returns:
        None, or why that cannot be done here.
    """
    is_first = (_CPU / "cpu.cfs_quota_us").exists()
    root = _CPU if is_first else _UNIFIED
    group = root / f"penstock-bench-{os.getpid()}"
    quota = int(cores * _PERIOD)
    try:
        group.mkdir()
        if is_first:
            (group / "cpu.cfs_period_us").write_text(str(_PERIOD))
            (group / "cpu.cfs_quota_us").write_text(str(quota))
        else:
            (group / "cpu.max").write_text(f"{quota} {_PERIOD}")
        (group / "cgroup.procs").write_text(str(os.getpid()))
    except OSError as error:
        with contextlib.suppress(OSError):
            group.rmdir()
        return f"no control group can be made: {error}"

    def leave() -> None:
        with contextlib.suppress(OSError):
            for process in (group / "cgroup.procs").read_text().split():
                (root / "cgroup.procs").write_text(process)
            group.rmdir()

    atexit.register(leave)
    return None
