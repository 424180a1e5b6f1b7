"""P1: a Python function of one number, in two processes."""

import numpy as np
from workload import Compared

BATCH = 1000
ENDLESS = 1 << 40

ROW = Compared(
    number="P1",
    title="a Python function per element (x + 1), 2 processes, batch(1000)",
    elements_per_batch=BATCH,
    must_reach=1,
    moonshot=2,
)


def _add(x):
    return x + 1


def ours():
    import penstock as ps

    numbers = ps.Dataset.range(ENDLESS)
    function = ps.python_function(
        _add, output_signature=ps.TensorSpec((), ps.int64)
    )
    mapped = numbers.map(function, num_parallel_calls=2)
    return {"plain": mapped.batch(BATCH)}


class _Numbers:
    def __len__(self):
        return ENDLESS

    def __getitem__(self, i):
        return _add(i)


def peer():
    from torch.utils.data import DataLoader, IterableDataset, SequentialSampler

    class Stream(IterableDataset):
        def __iter__(self):
            i = 0
            while True:
                yield _add(i)
                i += 1

    numbers = _Numbers()
    workers = {"batch_size": BATCH, "num_workers": 2}
    return {
        "DataLoader": DataLoader(
            numbers, sampler=SequentialSampler(numbers), **workers
        ),
        "DataLoader, further ahead": DataLoader(
            numbers,
            sampler=SequentialSampler(numbers),
            prefetch_factor=8,
            **workers,
        ),
        "DataLoader, a stream": DataLoader(Stream(), **workers),
    }


def check(batches):
    for i in range(10):
        want = np.arange(BATCH * i + 1, BATCH * (i + 1) + 1)
        np.testing.assert_array_equal(next(batches), want)
