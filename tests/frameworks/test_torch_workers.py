"""to_torch under a DataLoader with workers: elements, epochs and state."""

import pickle

import numpy as np
import pytest
import torch
from complaints import refuses
from shuffled import items, numbers
from torch.utils.data import DataLoader, IterableDataset
from torchdata.stateful_dataloader import StatefulDataLoader

import penstock as ps

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create")


@pytest.mark.parametrize("context", ["fork", "spawn"])
@pytest.mark.parametrize("workers", [1, 3])
def test_workers_share_the_elements(context, workers):
    feed = numbers().to_torch()
    assert isinstance(feed, IterableDataset)
    loader = DataLoader(
        feed,
        batch_size=None,
        num_workers=workers,
        multiprocessing_context=context,
    )
    assert len(loader) == 14
    orders = [items(loader), items(loader)]
    assert [sorted(order) for order in orders] == [list(range(40))] * 2
    assert orders[0] != orders[1]


def test_workers_give_the_order_of_no_workers():
    feed = numbers().to_torch()
    feed.set_epoch(5)
    alone = items(feed)
    feed.set_epoch(5)
    assert items(DataLoader(feed, batch_size=None, num_workers=2)) == alone
    feed.set_epoch(6)
    other = items(DataLoader(feed, batch_size=None, num_workers=2))
    assert other != alone and sorted(other) == sorted(alone)


@pytest.mark.parametrize("rank", [None, 1])
def test_epochs_of_workers_follow_each_other(rank):
    world_size = None if rank is None else 2

    def make():
        ds = ps.Dataset.range(40).shuffle(40, seed=3).batch(3)
        return ds.to_torch(rank=rank, world_size=world_size)

    feed = make()
    epochs = [items(feed) for _ in range(5)]
    assert len({tuple(epoch) for epoch in epochs}) == 5
    feed = make()
    loader = DataLoader(feed, batch_size=None, num_workers=2)
    assert items(loader) == epochs[0]
    assert items(loader) == epochs[1]
    assert items(feed) == epochs[2]
    copy = pickle.loads(pickle.dumps(feed))
    assert items(loader) == epochs[3]
    assert items(copy) == epochs[3]
    feed.set_epoch(1)
    assert items(loader) == epochs[1]
    assert items(loader) == epochs[2]
    other = DataLoader(copy, batch_size=None, num_workers=1)
    assert items(other) == epochs[4]


@pytest.mark.parametrize("context", ["spawn", "forkserver"])
def test_epochs_of_workers_that_get_a_copy(context):
    feed = ps.Dataset.range(40).shuffle(40, seed=3).batch(3).to_torch()
    epochs = [items(feed) for _ in range(4)]
    feed.set_epoch(1)
    loader = DataLoader(
        feed, batch_size=None, num_workers=1, multiprocessing_context=context
    )
    assert [items(loader), items(loader)] == epochs[1:3]
    with refuses(ps.FailedPreconditionError, "StatefulDataLoader"):
        feed.state_dict()
    assert items(feed) == epochs[3]


def test_the_position_of_workers_is_not_the_trainers():
    feed = numbers().to_torch()
    assert feed.state_dict()["input"] is None
    loader = DataLoader(feed, batch_size=None, num_workers=2)
    for _ in range(2):
        next(iter(loader))
        with refuses(ps.FailedPreconditionError, "StatefulDataLoader"):
            feed.state_dict()
        next(iter(feed))
        assert feed.state_dict()["input"] is not None
    next(iter(loader))
    feed.set_epoch(7)
    state = feed.state_dict()
    assert state["epoch"] == 7
    next(iter(loader))
    feed.load_state_dict(state)
    assert feed.state_dict() == state


def test_epochs_after_that_of_a_state_in_workers():
    def make():
        feed = ps.Dataset.range(40).shuffle(40, seed=3).batch(3).to_torch()
        return feed, StatefulDataLoader(feed, batch_size=None, num_workers=2)

    feed, _ = make()
    epochs = [items(feed) for _ in range(4)]
    feed, loader = make()
    assert [items(loader) for _ in range(2)] == epochs[:2]
    it = iter(loader)
    seen = items(next(it) for _ in range(5))
    state = loader.state_dict()
    feed, loader = make()
    loader.load_state_dict(state)
    assert seen + items(loader) == epochs[2]
    assert items(loader) == epochs[3]


def test_persistent_workers_count_on():
    feed = numbers().to_torch()
    feed.set_epoch(1)
    loader = DataLoader(
        feed, batch_size=None, num_workers=2, persistent_workers=True
    )
    orders = [items(loader) for _ in range(3)]
    for epoch, order in enumerate(orders, start=1):
        feed.set_epoch(epoch)
        assert items(feed) == order
    assert len({tuple(order) for order in orders}) == 3


def test_a_loader_may_batch():
    feed = ps.Dataset.range(10).map(lambda x: {"x": x, "s": "a"}).to_torch()
    batches = list(DataLoader(feed, batch_size=4, num_workers=1))
    assert [b["x"].tolist() for b in batches] == [
        [0, 1, 2, 3],
        [4, 5, 6, 7],
        [8, 9],
    ]


def test_workers_start_in_the_middle_of_an_iteration():
    feed = numbers().to_torch()
    it = iter(feed)
    first = next(it)
    kept = first.clone()
    found = items(DataLoader(feed, batch_size=None, num_workers=2))
    assert sorted(found) == list(range(40))
    assert torch.equal(first, kept)
    assert sorted(items([first]) + items(it)) == list(range(40))


def test_composites_cross_from_workers():
    ragged = ps.Dataset.from_list([[1], [2, 3], [4]]).ragged_batch(2)
    loader = DataLoader(ragged.to_torch(), batch_size=None, num_workers=2)
    rows = [row.tolist() for batch in loader for row in batch.unbind()]
    assert rows == [[1], [2, 3], [4]]
    sparse = ps.Dataset.from_list([[1, 0], [0, 3]]).sparse_batch(1, (2,))
    loader = DataLoader(sparse.to_torch(), batch_size=None, num_workers=2)
    assert [b.to_dense().tolist() for b in loader] == [[[1, 0]], [[0, 3]]]


def test_errors_cross_from_workers():
    table = np.array([10])
    ds = ps.Dataset.range(2).map(lambda i: ps.take(table, i))
    with pytest.raises(ps.PenstockError):
        list(DataLoader(ds.to_torch(), batch_size=None, num_workers=1))


def test_workers_do_not_copy_to_devices():
    loader = DataLoader(
        numbers().to_torch("meta"), batch_size=None, num_workers=1
    )
    with pytest.raises(ps.FailedPreconditionError, match="num_workers=0"):
        next(iter(loader))
