"""Which replica this is, of those that train in step."""

from __future__ import annotations

import os
import sys

from penstock._errors import FailedPreconditionError
from penstock._location import refused


def find() -> tuple[int, int]:
    """Rank and number, as whoever started the replicas says.

    What is asked: `torch.distributed`, if it is imported and set up; JAX, if it
    is imported and has several processes; `RANK` and `WORLD_SIZE`, as torchrun
    sets them. Nothing is imported for it.
    """
    torch = sys.modules.get("torch.distributed")
    if torch is not None and torch.is_available() and torch.is_initialized():
        return int(torch.get_rank()), int(torch.get_world_size())
    jax = sys.modules.get("jax")
    if jax is not None and jax.process_count() > 1:
        return int(jax.process_index()), int(jax.process_count())
    rank, size = os.environ.get("RANK"), os.environ.get("WORLD_SIZE")
    if rank and size and rank.isdecimal() and size.isdecimal():
        return int(rank), int(size)
    if jax is not None:
        return 0, 1
    raise refused(
        FailedPreconditionError,
        'consumer="auto" needs torch.distributed that is set up, JAX, or RANK '
        f"and WORLD_SIZE; got RANK={rank!r} and WORLD_SIZE={size!r}\n"
        "  Call torch.distributed.init_process_group() or "
        "jax.distributed.initialize() first, or give consumer and "
        "num_consumers.",
    )
