"""S3: batches of 9.6 MB over TCP, to a reader that is kept from memory."""

import os

import pictures
import serving
from workload import AbsentError, Compared

ROW = Compared(
    number="S3",
    title="service, 9.6 MB batches over TCP",
    elements_per_batch=pictures.BYTES,  # bytes: rates can be read as B/s
    must_reach=2.5,
    moonshot=None,
)


def ours():
    # For the engine, which has not been started yet.
    os.environ["PENSTOCK_NO_LOCAL_MEMORY"] = "1"
    return {"plain": pictures.ours().distribute(serving.ours().address)}


def peer():
    return serving.peer_forms(pictures.peer())


def check(batches):
    """As far as a reading that could have used memory would have."""
    pictures.check(batches, 4 if "BENCH_SMOKE" in os.environ else 300)
    if serving.worker_mappings():
        raise AbsentError("this engine cannot be kept from shared memory")
