"""P2b: decoding and resizing by Pillow, in two processes.

The function takes nearly all of the time on either side: what Pillow does
alone, in two processes that hand nothing over, is all that there is to win.
"""

import subprocess
import time

from pillow_photos import BATCH, decode, photo_files
from pillow_photos import peer as peer
from workload import BENCH, PEER_PYTHON, Compared

ROW = Compared(
    number="P2b",
    title="the same, as Python in 2 processes",
    elements_per_batch=BATCH,
    must_reach=1.1,
    moonshot=None,
    is_ours_in_peers=True,
    share_of_bare=0.95,
    is_even=True,
)


def ours():
    import penstock as ps

    function = ps.python_function(
        decode, output_signature=ps.TensorSpec((224, 224, 3), ps.uint8)
    )
    files = ps.Dataset.from_tensor_slices(photo_files()).repeat()
    return {"plain": files.map(function, num_parallel_calls=2).batch(BATCH)}


def check(batches):
    batch = next(batches)
    assert batch.shape == (BATCH, 224, 224, 3)
    assert 90 < batch.mean() < 170


_ALONE = f"""
import sys
sys.path[:0] = [{str(BENCH)!r}, {str(BENCH / "python")!r}]
import pillow_processes
print(pillow_processes.alone())
"""


def alone(seconds=1.0):
    """Images a second of this process."""
    files = photo_files()
    for file in files[:16]:
        decode(file)
    count = 0
    start = time.perf_counter()
    while time.perf_counter() - start < seconds:
        decode(files[count % len(files)])
        count += 1
    return count / (time.perf_counter() - start)


def bare():
    """Images a second of two processes that do nothing else."""
    processes = [
        subprocess.Popen([PEER_PYTHON, "-c", _ALONE], stdout=subprocess.PIPE)
        for _ in range(2)
    ]
    return [sum(float(each.communicate()[0]) for each in processes)]
