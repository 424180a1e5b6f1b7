"""S4: the same batches, which the reader looks at in the worker's memory."""

import os

import pictures
import serving
from workload import AbsentError, Compared

ROW = Compared(
    number="S4",
    title="service, 9.6 MB batches in shared memory",
    elements_per_batch=pictures.BYTES,  # bytes: rates can be read as B/s
    must_reach=8,
    moonshot=None,
)


def ours():
    return {"plain": pictures.ours().distribute(serving.ours().address)}


def peer():
    return serving.peer_forms(pictures.peer())


def check(batches):
    """Into the second pass, whose readings begin in memory."""
    is_smoke = "BENCH_SMOKE" in os.environ
    pictures.check(batches, 4 if is_smoke else pictures.ROWS + 44)
    if not is_smoke and not serving.worker_mappings():
        raise AbsentError("the engine did not look into a worker's memory")
