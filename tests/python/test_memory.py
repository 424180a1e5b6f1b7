"""Arrays that lie on the engine's memory."""

import fcntl
import gc
import os

import numpy as np
import pytest

import penstock as ps
from penstock import _engine, _frames

Dataset = ps.Dataset


def test_kept_arrays_keep_their_values():
    ds = Dataset.range(10_000).map(lambda x: ps.fill([256], x)).batch(1)
    held = list(ds)
    assert len(held) == 10_000
    for i, batch in enumerate(held):
        assert (batch == i).all(), i


def test_large_kept_arrays_do_not_stop_the_engine():
    # Eight times as much as the memory that frames come from may hold.
    ds = Dataset.range(64).map(lambda x: ps.fill([1 << 17], x)).batch(8)
    held = []
    for _ in range(4):
        held += list(ds)
    for i, batch in enumerate(held):
        assert (batch[:, 0] == np.arange(8) + i % 8 * 8).all()


def test_batches_are_not_copied():
    iterator = iter(Dataset.range(100_000).batch(10_000))
    batch = next(iterator)
    assert not batch.flags.owndata
    base = batch
    while isinstance(base, np.ndarray) and base.base is not None:
        base = base.base
    assert not isinstance(base, np.ndarray)


def test_arrays_outlive_the_iterator():
    iterator = iter(Dataset.range(100_000).batch(10_000))
    batches = [next(iterator) for _ in range(3)]
    iterator.close()
    del iterator
    gc.collect()
    others = list(Dataset.range(100_000).map(lambda x: x * 0).batch(10_000))
    for i, batch in enumerate(batches):
        assert batch[0] == 10_000 * i
        assert batch[-1] == 10_000 * (i + 1) - 1
    del others
    ps.close()
    assert batches[1][5] == 10_005


def test_arrays_are_writable():
    for ds in (
        Dataset.range(100).batch(50),
        Dataset.from_tensor_slices(np.zeros((20, 3))),
        Dataset.from_list([[1], [2, 3]]),
        Dataset.from_tensor_slices(["a", "b"]).batch(2),
    ):
        for array in ds:
            array[...] = array[::-1].copy()
    # The source is not what was written to.
    cached = Dataset.range(4).batch(4).cache()
    for _ in range(2):
        (array,) = cached
        assert array.tolist() == [0, 1, 2, 3]
        array[:] = 9


def test_memory_that_others_read_cannot_be_written_to():
    fd = os.memfd_create("frames", os.MFD_ALLOW_SEALING)
    os.pwrite(fd, b"frame" * 1000, 0)
    fcntl.fcntl(fd, 1033, 0x10)  # F_ADD_SEALS, F_SEAL_FUTURE_WRITE
    memory = _frames._map(fd)
    os.close(fd)
    array = np.frombuffer(memory, np.uint8)
    assert bytes(array[:5]) == b"frame"
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 1


def test_frames_are_used_again():
    ds = Dataset.range(200).map(lambda x: ps.fill([1 << 15], x)).batch(4)
    iterator = iter(ds)
    addresses = set()
    for batch in iterator:
        addresses.add(batch.ctypes.data)
        del batch
    assert len(addresses) < 40


def test_alignment():
    ds = Dataset.zip(
        Dataset.range(10, output_type=np.uint8).batch(3),
        Dataset.range(10, output_type=np.float64).batch(3),
    )
    for i, parts in enumerate(ds):
        for array in parts:
            assert array.flags.aligned
            # Columns begin at multiples of 64; the first frame has one row.
            assert i or array.ctypes.data % 64 == 0


def test_rows_of_small_arrays_own_their_memory():
    rows = list(Dataset.from_tensor_slices(np.arange(3000).reshape(1000, 3)))
    assert rows[17].tolist() == [51, 52, 53]


def test_a_map_holds_no_more_than_its_window():
    # Behind a small prefetch, which asks for a few rows at a time.
    side, window = (64, 64, 3), 1000
    ds = (
        Dataset.range(100_000)
        .map(lambda x: ps.fill(side, ps.cast(x, ps.float32)), 8)
        .prefetch(10)
        .shuffle(window)
        .batch(32)
    )
    iterator = iter(ds)
    before = _resident_bytes()
    for _ in range(100):
        next(iterator)
    # The window, 16 chunks of at most 1 MiB, frames, and as much for what
    # malloc does not give back.
    needed = window * np.zeros(side, np.float32).nbytes + (64 << 20)
    assert _resident_bytes() - before < 2 * needed


def _resident_bytes():
    """Of the engine, but for memory that it shares with this process."""
    pid = _engine.current().pid
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        for line in file:
            if line.startswith("RssAnon:"):
                return int(line.split()[1]) << 10
    raise AssertionError("no RssAnon")
