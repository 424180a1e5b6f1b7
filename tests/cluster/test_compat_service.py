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
    with pytest.raises(ps.InvalidArgumentError, match="num_consumers"):
        service.distribute(Policy.OFF, target, consumer_index=0)
    with pytest.raises(ps.InvalidArgumentError, match="work_dir"):
        service.DispatchServer(
            service.DispatcherConfig(fault_tolerant_mode=True)
        )
    with pytest.raises(ps.NotFoundError, match="begins with files"):
        read(target, Policy.FILE)


class TestSeveralTrainers:
    def test_rounds(self, target):
        its = [
            iter(
                tf.data.Dataset.range(100)
                .repeat()
                .apply(
                    service.distribute(
                        "parallel_epochs",
                        target,
                        job_name="tf-rounds",
                        consumer_index=i,
                        num_consumers=2,
                    )
                )
            )
            for i in range(2)
        ]
        for step in range(20):
            got = [int(next(it)) for it in its]
            assert got == [2 * step, 2 * step + 1]

    def test_a_cache_for_trainers(self, target):
        cache = service.CrossTrainerCache
        its = [
            iter(
                tf.data.Dataset.range(10**9)
                .repeat()
                .apply(
                    service.distribute(
                        "parallel_epochs",
                        target,
                        job_name="tf-cache",
                        cross_trainer_cache=cache(trainer_id=f"t{i}"),
                    )
                )
            )
            for i in range(2)
        ]
        got = [[int(next(it)) for _ in range(100)] for it in its]
        assert got[0] == list(range(100))
        assert got[1] == got[0]

    def test_a_cache_needs_a_name(self, target):
        with pytest.raises(tf.errors.InvalidArgumentError, match="job_name"):
            service.distribute(
                "parallel_epochs",
                target,
                cross_trainer_cache=(service.CrossTrainerCache("a")),
            )
        with pytest.raises(tf.errors.InvalidArgumentError, match="trainer_id"):
            service.CrossTrainerCache("")
