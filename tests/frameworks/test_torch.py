"""to_torch: tensors, shards, epochs and state."""

import dataclasses
import gc
import json
import os
import pickle
import signal
import warnings
from itertools import chain
from typing import NamedTuple

import numpy as np
import pytest
import torch
from complaints import refuses
from shuffled import items, numbers
from torch.utils.data import DataLoader
from torchdata.stateful_dataloader import StatefulDataLoader

import penstock as ps

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create")


class Point(NamedTuple):
    x: object
    y: object


@dataclasses.dataclass
class Sample:
    image: object
    label: object


# ---- Elements.

DTYPES = {
    ps.bool: torch.bool,
    ps.int8: torch.int8,
    ps.int16: torch.int16,
    ps.int32: torch.int32,
    ps.int64: torch.int64,
    ps.uint8: torch.uint8,
    ps.uint16: torch.uint16,
    ps.uint32: torch.uint32,
    ps.uint64: torch.uint64,
    ps.float16: torch.float16,
    ps.bfloat16: torch.bfloat16,
    ps.float32: torch.float32,
    ps.float64: torch.float64,
    ps.complex64: torch.complex64,
    ps.complex128: torch.complex128,
}


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("is_batched", [True, False])
def test_dtypes(dtype, is_batched):
    ds = ps.Dataset.range(4).map(lambda x: ps.cast(x % 2, dtype))
    ds = ds.batch(4) if is_batched else ds
    found = list(ds.to_torch())
    assert all(tensor.dtype == DTYPES[dtype] for tensor in found)
    flat = torch.cat([tensor.reshape(-1) for tensor in found])
    assert flat.to(torch.complex128).real.tolist() == [0, 1, 0, 1]


def test_structures_keep_their_types():
    def make(x):
        point = Point(x, {"a": x * 2})
        return Sample(point, (x, None))

    sample = next(iter(ps.Dataset.range(3).map(make).batch(3).to_torch()))
    assert type(sample) is Sample and type(sample.image) is Point
    assert sample.image.y["a"].tolist() == [0, 2, 4]
    assert sample.label[0].tolist() == [0, 1, 2] and sample.label[1] is None


def test_strings_stay_bytes():
    ds = ps.Dataset.from_tensor_slices(["a", "bc"])
    assert list(ds.to_torch()) == [b"a", b"bc"]
    assert list(ds.batch(2).to_torch()) == [[b"a", b"bc"]]
    assert list(ds.batch(1).batch(2).to_torch()) == [[[b"a"], [b"bc"]]]


def test_ragged_becomes_nested():
    rows = [[1], [2, 3], []]
    ds = ps.Dataset.from_list([np.array(r, np.int32) for r in rows])
    (found,) = ds.ragged_batch(3).to_torch()
    assert found.is_nested and found.layout == torch.jagged
    assert [row.tolist() for row in found.unbind()] == rows


def test_ragged_strings_stay_ragged():
    ds = ps.Dataset.from_list([["a"], ["b", "c"]]).ragged_batch(2)
    (found,) = ds.to_torch()
    assert type(found) is ps.Ragged
    assert found.values == [b"a", b"b", b"c"]
    assert found.row_splits.tolist() == [0, 1, 3]


def test_sparse_becomes_coo():
    ds = ps.Dataset.from_list([[1, 0, 2], [0, 0]]).sparse_batch(2, (4,))
    (found,) = ds.to_torch()
    assert found.layout == torch.sparse_coo and found.shape == (2, 4)
    assert found.to_dense()[0].tolist() == [1, 0, 2, 0]


def test_stats():
    ds = ps.Dataset.range(10).map(lambda i: ps.take([6], i % 2))
    it = iter(ds.ignore_errors().to_torch())
    assert next(it) == 6
    assert it.stats().nodes[-1].rows >= 1
    assert len(list(it)) == 4
    nodes = it.stats().nodes
    assert [(node.rows, node.errors) for node in nodes] == [
        (10, 0),
        (10, 5),
        (5, 0),
    ]


def test_explain():
    it = iter(ps.Dataset.range(10**7).batch(10_000).to_torch())
    for _ in range(100):
        next(it)
    explained = it.explain()
    assert explained.rate > 0
    assert explained.consumer.wait_share is not None


def test_datasets_inside_are_refused():
    with refuses(ps.InvalidTypeError, "flat_map"):
        ps.Dataset.range(4).window(2).to_torch()


def test_tensors_lie_on_the_frame():
    ds = ps.Dataset.range(200_000).batch(50_000)
    batch = next(iter(ds.to_torch()))
    # Without a copy its memory is one that the engine has, too.
    address = batch.data_ptr()
    with open("/proc/self/maps") as maps:
        names = [
            line
            for line in maps
            for begin, end in [line.split()[0].split("-")]
            if int(begin, 16) <= address < int(end, 16)
        ]
    assert len(names) == 1 and "memfd" in names[0]


def test_writing_into_a_tensor_changes_no_other():
    ds = ps.Dataset.range(64 * 4096).batch(4096)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # such as of arrays to be read only
        seen = []
        for batch in ds.to_torch():
            seen.append(batch.clone())
            batch.fill_(-1)
    assert torch.equal(torch.cat(seen), torch.arange(64 * 4096))


SHARED = {
    "one column twice": lambda: (
        ps.Dataset.range(64).batch(8).map(lambda x: (x, x))
    ),
    "cached": lambda: ps.Dataset.range(64).batch(8).cache().repeat(3),
    "one value again and again": lambda: ps.Dataset.from_tensors(
        np.arange(1000)
    ).repeat(20),
    "zipped with itself": lambda: ps.Dataset.zip(
        *[ps.Dataset.range(64).batch(8).cache()] * 2
    ),
    "windows that overlap": lambda: (
        ps.Dataset.range(64)
        .window(8, shift=4, drop_remainder=True)
        .flat_map(lambda window: window.batch(8))
    ),
}


@pytest.mark.parametrize("name", SHARED)
def test_writing_changes_nothing_that_comes_from_the_same(name):
    ds = SHARED[name]()
    for _ in range(2):
        expected = [np.array(element) for element in ds]
        for i, element in enumerate(ds.to_torch()):
            parts = element if isinstance(element, tuple) else (element,)
            for j, part in enumerate(parts):
                want = expected[i] if len(parts) == 1 else expected[i][j]
                assert np.array_equal(part.numpy(), want)
                part.fill_(-1)


def test_a_killed_engine_is_replaced():
    from penstock import _engine

    feed = numbers(4000, 10).to_torch()
    seen = []
    for step, batch in enumerate(feed):
        seen += batch.tolist()
        if step in (3, 200):
            os.kill(_engine.current().pid, signal.SIGKILL)
    assert sorted(seen) == list(range(4000))


def test_an_interrupt_loses_nothing():
    it = iter(ps.Dataset.range(5).to_torch())
    convert = it._convert

    def interrupted(element):
        it._convert = convert
        raise KeyboardInterrupt

    first = int(next(it))
    it._convert = interrupted
    with pytest.raises(KeyboardInterrupt):
        next(it)
    state = it.state_dict()
    rest = [int(x) for x in it]
    assert [first, *rest] == [0, 1, 2, 3, 4]
    it.load_state_dict(state)
    assert [int(x) for x in it] == rest


def test_kept_tensors_keep_their_values():
    # More than the engine's memory for this iterator: some are copies.
    rows, size = 400, 100_000
    ds = ps.Dataset.range(rows).map(
        lambda i: ps.fill((size,), ps.cast(i, ps.float64))
    )
    kept = list(ds.batch(1).to_torch())
    gc.collect()
    for i, tensor in enumerate(kept):
        assert tensor.shape == (1, size)
        assert tensor[0, 0] == i and tensor[0, -1] == i


def test_errors_raise_at_their_places():
    table = np.array([10, 20, 30])
    ds = ps.Dataset.from_tensor_slices([0, 7, 2])
    it = iter(ds.map(lambda i: ps.take(table, i)).to_torch())
    assert next(it) == 10
    with pytest.raises(ps.PenstockError):
        next(it)
    state = it.state_dict()
    assert next(it) == 30
    it.load_state_dict(state)
    assert [int(x) for x in it] == [30]


def test_length():
    ds = ps.Dataset.range(10)
    assert len(ds.to_torch()) == 10
    assert [len(ds.to_torch(rank=r, world_size=4)) for r in range(4)] == [
        3,
        3,
        2,
        2,
    ]
    assert len(ds.to_torch(rank=0, world_size=4, drop_uneven=True)) == 2
    with pytest.raises(TypeError):
        len(ds.filter(lambda x: x > 3).to_torch())
    assert items([ds.filter(lambda x: x > 6).to_torch()]) == [7, 8, 9]


def test_device_and_pinning_without_a_gpu():
    ds = numbers()
    assert next(iter(ds.to_torch("cpu"))).device.type == "cpu"
    # A device that is always there: shapes without memory.
    assert next(iter(ds.to_torch("meta"))).device.type == "meta"
    if not torch.cuda.is_available():
        with pytest.warns(UserWarning, match="no accelerator"):
            feed = ds.to_torch(pin_memory=True)
        assert sorted(items(feed)) == list(range(40))
    with pytest.raises(RuntimeError):
        ds.to_torch("nowhere")


# ---- Ranks.


@pytest.mark.parametrize("workers", [0, 2])
def test_ranks_share_the_elements(workers):
    def of(rank):
        # Each makes a pipeline of its own, as processes do.
        feed = numbers(50).to_torch(rank=rank, world_size=3)
        feed.set_epoch(2)
        return list(DataLoader(feed, batch_size=None, num_workers=workers))

    ranks = [of(rank) for rank in range(3)]
    assert sorted(items(chain(*ranks))) == list(range(50))
    assert [len(batches) for batches in ranks] == [6, 6, 5]


def test_a_rank_reads_every_nth_element():
    ds = ps.Dataset.range(20).shuffle(20, seed=3).batch(2)
    ds.set_epoch(0)
    whole = [batch.tolist() for batch in ds]
    for rank in range(3):
        feed = ds.to_torch(rank=rank, world_size=3)
        assert [batch.tolist() for batch in feed] == whole[rank::3]


@pytest.mark.parametrize("is_known", [True, False])
@pytest.mark.parametrize("workers", [0, 2])
def test_uneven_elements_are_dropped_when_asked(is_known, workers):
    ds = numbers(50)
    if not is_known:
        ds = ds.filter(lambda batch: True)
    ranks = [
        list(
            DataLoader(
                ds.to_torch(rank=rank, world_size=3, drop_uneven=True),
                batch_size=None,
                num_workers=workers,
            )
        )
        for rank in range(3)
    ]
    assert [len(batches) for batches in ranks] == [5, 5, 5]
    found = items(chain(*ranks))
    assert len(set(found)) == len(found) == 45


def test_uneven_structures_are_dropped():
    ds = ps.Dataset.range(7).filter(lambda x: x >= 0)
    made = ds.map(lambda x: {"a": (x, "s"), "b": x * 2})
    feed = made.to_torch(rank=1, world_size=2, drop_uneven=True)
    assert [int(x["b"]) for x in feed] == [2, 6, 10]
    single = ds.map(lambda x: {"a": x})
    feed = single.to_torch(rank=1, world_size=2, drop_uneven=True)
    assert [int(x["a"]) for x in feed] == [1, 3, 5]


def test_without_a_seed_each_feed_has_another_order():
    a, b = (items(numbers().to_torch()) for _ in range(2))
    assert a != b
    c, d = (items(numbers().to_torch(seed=4)) for _ in range(2))
    assert c == d


def test_a_feed_leaves_the_epochs_of_the_dataset_alone():
    ds = ps.Dataset.range(30).shuffle(30, seed=1).batch(30)
    other = ps.Dataset.range(30).shuffle(30, seed=1).batch(30)
    list(ds.to_torch())
    list(ds.to_torch())
    assert items(ds) == items(other)
    assert items(ds.to_torch()) == items(other.to_torch())


def test_environment_names_the_rank(monkeypatch):
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    ds = ps.Dataset.range(5)
    assert [int(x) for x in ds.to_torch()] == [1, 3]
    assert [int(x) for x in ds.to_torch(rank=0, world_size=1)] == [*range(5)]
    monkeypatch.setenv("RANK", "2")
    with refuses(ps.InvalidArgumentError, "RANK"):
        ds.to_torch()


def test_what_was_sharded_is_not_sharded_again(monkeypatch):
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    ds = ps.Dataset.range(8).shard(2, 1).batch(2)
    with refuses(ps.InvalidArgumentError, "shard_1", "world_size=1"):
        ds.to_torch()
    assert items(ds.to_torch(rank=0, world_size=1)) == [1, 3, 5, 7]
    assert items(ds.to_torch(rank=1, world_size=2)) == [5, 7]
    assert items(ps.Dataset.range(8).shard(4, 1).batch(1).to_torch()) == [5]


@pytest.mark.parametrize(
    "given", [{"rank": 1}, {"world_size": 2}, {"rank": 2, "world_size": 2}]
)
def test_wrong_ranks_are_refused(given):
    with refuses(ps.InvalidArgumentError, "rank"):
        ps.Dataset.range(5).to_torch(**given)


# ---- State.


def test_state_of_an_iterator():
    ds = numbers()
    it = iter(ds.to_torch())
    [next(it) for _ in range(4)]
    state = json.loads(json.dumps(it.state_dict()))
    rest = items(it)
    other = iter(numbers().to_torch())
    other.load_state_dict(state)
    assert items(other) == rest


def test_state_of_a_dataset_goes_over_epochs():
    feed = numbers().to_torch()
    list(feed)  # epoch 0
    it = iter(feed)
    [next(it) for _ in range(4)]
    state = json.loads(json.dumps(feed.state_dict()))
    expected = [items(it), items(feed)]

    other = numbers().to_torch()
    other.load_state_dict(state)
    assert other.state_dict() == state
    assert [items(other), items(other)] == expected


def test_state_at_both_ends():
    feed = numbers().to_torch()
    before = feed.state_dict()
    first = items(feed)
    at_end = feed.state_dict()
    second = items(feed)

    other = numbers().to_torch()
    other.load_state_dict(before)
    assert [items(other), items(other)] == [first, second]
    # As in the process that goes on: the epoch after the end.
    other.load_state_dict(at_end)
    assert items(other) == second


def test_a_finished_iterator_goes_back():
    it = iter(numbers().to_torch())
    next(it)
    state = it.state_dict()
    rest = items(it)
    assert items(it) == []  # and holds nothing in the engine
    at_end = it.state_dict()
    it.load_state_dict(state)
    assert items(it) == rest
    it.load_state_dict(at_end)
    assert items(it) == []


def test_pickles():
    feed = numbers().to_torch()
    next(iter(feed))
    copy = pickle.loads(pickle.dumps(feed))
    assert sorted(items(copy)) == list(range(40))


@pytest.mark.parametrize(
    "state",
    [{}, None, {"version": 2}, {"version": 1, "shard": [0, 1], "epoch": "a"}],
    ids=str,
)
def test_wrong_states_are_refused(state):
    feed = numbers().to_torch()
    with refuses(ps.InvalidTypeError, "state"):
        feed.load_state_dict(state)
    with refuses(ps.InvalidTypeError, "state"):
        iter(feed).load_state_dict(state)


def test_a_state_of_another_shard_is_refused():
    it = iter(numbers().to_torch(rank=0, world_size=2))
    state = it.state_dict()
    other = iter(numbers().to_torch(rank=1, world_size=2))
    with refuses(ps.InvalidArgumentError, "1 of 2", "0 of 2"):
        other.load_state_dict(state)


@pytest.mark.parametrize("workers", [0, 1, 2])
@pytest.mark.parametrize("steps", [0, 1, 5, 14])
def test_stateful_data_loader(workers, steps):
    def make(feed):
        return StatefulDataLoader(feed, batch_size=None, num_workers=workers)

    feed = numbers().to_torch()
    loader = make(feed)
    it = iter(loader)
    seen = [next(it) for _ in range(steps)]
    state = pickle.loads(pickle.dumps(loader.state_dict()))
    rest = items(it)
    assert sorted(items(seen) + rest) == list(range(40))

    loader = make(numbers().to_torch())
    loader.load_state_dict(state)
    assert items(loader) == rest
    assert sorted(items(loader)) == list(range(40))


def test_stateful_data_loader_at_the_end_of_an_epoch():
    feed = numbers().to_torch()
    loader = StatefulDataLoader(feed, batch_size=None)
    first = items(loader)
    state = loader.state_dict()
    second = items(loader)
    other = StatefulDataLoader(numbers().to_torch(), batch_size=None)
    other.load_state_dict(state)
    assert items(other) in ([], second)  # torchdata's to choose
    assert first != second
