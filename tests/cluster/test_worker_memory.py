"""Batches that the trainer looks at where a worker on its host made them."""

import gc
import json
import os
import signal
import urllib.request

import numpy as np
import pytest
from servers import dispatcher, wait_until, worker

import penstock as ps
from penstock import _frames

_ROW = 1 << 20


def rows(count):
    """Rows of 1 MiB, each full of its own number."""
    return ps.Dataset.range(count).map(
        lambda i: ps.fill([_ROW], ps.cast(i % 251, ps.uint8))
    )


def is_whole(batch):
    return (batch == batch[0]).all()


def lies_in_a_worker(iterator):
    segments = iterator._connection.reader._segments
    return any(number >= _frames._FIRST_LENT for number in segments)


def read_until_lent(iterator):
    """Readings may begin before the memory is known."""
    seen = []
    while not lies_in_a_worker(iterator):
        seen.append(int(next(iterator)[0]))
    return seen


@pytest.fixture
def one_worker():
    with dispatcher() as first, worker(first.address, "--http", "0") as second:
        yield first, second


def output_bytes(server):
    with urllib.request.urlopen(f"{server.pages}/state", timeout=10) as page:
        return int(json.load(page).get("output_bytes", 0))


def test_nothing_is_copied(one_worker):
    first, _ = one_worker
    ds = rows(400).distribute(f"penstock://{first.address}")
    iterator = iter(ds)
    seen = read_until_lent(iterator)
    for batch in iterator:
        assert is_whole(batch)
        seen.append(int(batch[0]))
    assert sorted(seen) == sorted(i % 251 for i in range(400))


def test_the_first_rows_are_not_sent(one_worker):
    """The dispatcher says where a worker's memory is, before it is read."""
    first, second = one_worker
    ds = rows(4).distribute(f"penstock://{first.address}")
    assert len(list(ds)) == 4
    with urllib.request.urlopen(f"{second.pages}/state", timeout=10) as page:
        (link,) = json.load(page)["links"]
    assert int(link["bytes"]) >= 4 * _ROW
    assert int(link.get("sent_bytes", 0)) == 0


def test_rows_that_are_kept_stay_as_they_are(one_worker):
    first, _ = one_worker
    ds = rows(300).repeat().distribute(f"penstock://{first.address}")
    iterator = iter(ds)
    read_until_lent(iterator)
    kept = []
    for _ in range(900):
        batch = next(iterator)
        if len(kept) < 100 and is_whole(batch):
            kept.append((batch, int(batch[0])))
    assert all((batch == value).all() for batch, value in kept)


@pytest.mark.parametrize("end", ["close", "kill"])
def test_rows_outlive_their_iterator_and_their_engine(one_worker, end):
    first, second = one_worker
    ds = rows(300).repeat().distribute(f"penstock://{first.address}", job="a")
    iterator = iter(ds)
    read_until_lent(iterator)
    kept = [next(iterator) for _ in range(8)]
    values = [int(batch[0]) for batch in kept]
    if end == "kill":
        os.kill(ps._engine._engine.pid, signal.SIGKILL)
        engine = iterator._connection.engine
        while iterator._connection.engine is engine:
            next(iterator)
    del iterator
    gc.collect()
    # The worker would write over what it believes to be free.
    for batch in rows(200).distribute(f"penstock://{first.address}", job="b"):
        assert is_whole(batch)
    for batch, value in zip(kept, values, strict=True):
        assert (batch == value).all()
    assert output_bytes(second) > 0
    del kept, batch
    gc.collect()
    wait_until(lambda: output_bytes(second) == 0)


def test_rows_may_be_changed(one_worker):
    first, _ = one_worker
    ds = rows(300).repeat().distribute(f"penstock://{first.address}")
    iterator = iter(ds)
    read_until_lent(iterator)
    for _ in range(300):
        batch = next(iterator)
        assert is_whole(batch)
        batch += np.uint8(1)
        assert is_whole(batch)


def test_what_follows_in_the_engine_has_its_own_memory(one_worker):
    first, _ = one_worker
    ds = rows(200).distribute(f"penstock://{first.address}")
    got = [
        int(batch[0]) for batch in ds.map(lambda x: x + ps.cast(1, ps.uint8))
    ]
    assert sorted(got) == sorted(i % 251 + 1 for i in range(200))
