"""Code that came along, in a process that runs functions of others.

Such a process is told so by its environment. Its descriptor 5 is a zip, which
it unpacks into its own folder: no other process can change it there.
"""

from __future__ import annotations

import importlib
import io
import mmap
import os
import sys

from penstock import _code

_CONFINED = "PENSTOCK_POOL_CONFINED"
ARCHIVE_FD = 5
_FOLDER = "code"

# Where it is; None: nothing came along.
_root: str | None = None


def enter() -> None:
    """Makes what came along importable; the second time, does nothing."""
    global _root
    if not is_confined() or _root is not None:
        return
    size = os.fstat(ARCHIVE_FD).st_size
    if size == 0:
        return
    # Not read(): processes share the place that it reads from.
    with mmap.mmap(ARCHIVE_FD, size, prot=mmap.PROT_READ) as memory:
        archive = io.BytesIO(memory[:])
    root = os.path.join(os.getcwd(), _FOLDER)
    os.makedirs(root, exist_ok=True)
    _code.unpack(archive, root)
    _root = root
    # First: it must not depend on what else is installed where it runs.
    sys.path.insert(0, root)
    importlib.invalidate_caches()


def is_confined() -> bool:
    """Whether the functions of this process are of others."""
    return _CONFINED in os.environ


def accepts_pickles() -> bool:
    """Whether those may come as pickles."""
    return os.environ.get(_CONFINED) == "pickles"


def is_own(module: str) -> bool:
    """Whether a module, a full name, is of what came along."""
    top = module.partition(".")[0]
    if _root is None or not top.isidentifier():
        return False
    place = os.path.join(_root, top)
    return os.path.isdir(place) or os.path.isfile(place + ".py")


def shown(text: str) -> str:
    """`text`, with names of files as they are in the package."""
    return text if _root is None else text.replace(_root + os.sep, "")
