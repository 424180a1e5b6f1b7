"""`tf.data.experimental.service`, as programs for it are written."""

import collections

import pytest

import penstock as ps
import penstock.compat.tf as tf

service = tf.data.experimental.service
Policy = service.ShardingPolicy


@pytest.fixture(scope="module")
def target():
    dispatcher = service.DispatchServer(
        service.DispatcherConfig(worker_addresses=["localhost", "localhost"])
    )
    address = dispatcher.target.split("://")[1]
    workers = [
        service.WorkerServer(service.WorkerConfig(dispatcher_address=address))
        for _ in range(2)
    ]
    yield dispatcher.target
    for server in (*workers, dispatcher):
        server._stop()


def read(target, mode, dataset=None):
    dataset = dataset or tf.data.Dataset.range(10)
    dataset = dataset.apply(
        service.distribute(processing_mode=mode, service=target)
    )
    return sorted(int(x) for x in dataset.as_numpy_iterator())


@pytest.mark.parametrize(
    "mode", [Policy.DYNAMIC, Policy.DATA, Policy.FILE_OR_DATA]
)
def test_workers_share_it(target, mode):
    assert read(target, mode) == list(range(10))


@pytest.mark.parametrize("mode", [Policy.OFF, "parallel_epochs"])
def test_each_worker_runs_all_of_it(target, mode):
    got = collections.Counter(read(target, mode))
    assert got == dict.fromkeys(range(10), 2)


def test_a_hint(target):
    hint = tf.data.experimental.SHARD_HINT
    dataset = tf.data.Dataset.range(10).shard(num_shards=hint, index=hint)
    assert read(target, Policy.HINT, dataset) == list(range(10))


def test_refusals(target):
    with pytest.raises(ps.InvalidArgumentError, match="ShardingPolicy"):
        service.distribute("twice", target)
    with pytest.raises(ps.UnimplementedError, match="consumer_index"):
        service.distribute(Policy.OFF, target, consumer_index=0)
    with pytest.raises(ps.InvalidArgumentError, match="work_dir"):
        service.DispatchServer(
            service.DispatcherConfig(fault_tolerant_mode=True)
        )
    with pytest.raises(ps.NotFoundError, match="begins with files"):
        read(target, Policy.FILE)
