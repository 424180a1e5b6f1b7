"""Whether this process is one of the pool's, and what it is at.

Such a process may import a module of the user's that runs pipelines when it is
imported, and those would start processes that import it again, without end.
"""

from __future__ import annotations

import os
from types import FrameType, ModuleType

_DEPTH = "PENSTOCK_POOL_DEPTH"
_MAX_DEPTH = 2
# Of `penstock run`: what it defines is sent to the pool, which need not import
# and thereby run it.
program: ModuleType | None = None
is_loading = False  # a function, and with it the modules that it needs
# Names of modules that build pipelines while they are imported. What they
# define is sent to the pool as well.
builders: set[str] = set()


def note_builders(frame: FrameType | None) -> None:
    """Notes the modules whose import builds a pipeline in `frame`."""
    while frame is not None:
        if frame.f_code.co_name == "<module>":
            spec = frame.f_globals.get("__spec__")
            if getattr(spec, "_initializing", False):
                builders.add(frame.f_globals["__name__"])
        frame = frame.f_back


def refuse_engine() -> str | None:
    """Why no engine may be started now; None if it may."""
    if not is_loading:
        return None
    return (
        "a module that a Python function needs must not run pipelines when it "
        "is imported, since the processes that run the function import it. Put "
        'what it runs under `if __name__ == "__main__":`, or the function into '
        "a module of its own"
    )


def enter() -> None:
    """Makes this a process of the pool."""
    os.environ[_DEPTH] = str(depth() + 1)


def depth() -> int:
    """How many Python functions this process is inside of."""
    return int(os.environ.get(_DEPTH, "0"))


def refuse_functions() -> str | None:
    """Why no Python function may be used in a pipeline; None if it may."""
    if depth() < _MAX_DEPTH:
        return None
    return (
        "a pipeline inside Python functions must have functions that can be "
        f"recorded where it is inside of {_MAX_DEPTH} already"
    )
