"""P2: a function that uses Pillow, as it is; the engine runs it.

`check` compares with what Pillow gives, bit for bit.
"""

import itertools

import numpy as np
from pillow_photos import BATCH, decode, photo_files
from pillow_photos import peer as peer
from workload import Compared

ROW = Compared(
    number="P2",
    title="Pillow decodes and resizes to 224, batch(64)",
    elements_per_batch=BATCH,
    must_reach=1.1,
    moonshot=2.0,
    is_ours_in_peers=True,
)


def ours():
    import penstock as ps

    files = ps.Dataset.from_tensor_slices(photo_files()).repeat()
    return {"plain": files.map(decode, num_parallel_calls=2).batch(BATCH)}


def check(batches):
    files = itertools.cycle(photo_files())
    for batch in itertools.islice(batches, 2):
        wanted = [decode(next(files)) for _ in range(BATCH)]
        np.testing.assert_array_equal(batch, wanted)
