"""Pipelines that each worker runs as a whole, or has a fixed share of."""

import collections
import itertools
import subprocess

import numpy as np
import pytest
from servers import dispatcher, kill, state_of, wait_until, worker

import penstock as ps
from penstock._engine import binary_path

Dataset = ps.Dataset


def each(ds, service, **more):
    return ds.distribute(service.address, visitation="each_worker", **more)


def static(ds, service, sharding, **more):
    return ds.distribute(
        service.address, visitation="static", sharding=sharding, **more
    )


def numbers(ds):
    return [int(x) for x in ds]


def lines(folder, files, count=4):
    for i in range(files):
        text = "".join(f"{i}:{j}\n" for j in range(count))
        (folder / f"{i}.txt").write_text(text)
    return [f"{i}:{j}" for i in range(files) for j in range(count)]


class TestEachWorker:
    def test_every_worker_runs_all_of_it(self, service):
        ds = Dataset.range(500).map(lambda x: x * 3)
        got = collections.Counter(numbers(each(ds, service)))
        assert got == dict.fromkeys(range(0, 1500, 3), 2)

    def test_what_counts_or_joins_is_run_by_each(self, service):
        ds = Dataset.zip((Dataset.range(9).batch(2), Dataset.counter()))
        ds = ds.take(3).cache().repeat(2)
        got = [(x.tolist(), int(n)) for x, n in each(ds, service)]
        want = [([0, 1], 0), ([2, 3], 1), ([4, 5], 2)] * 4
        assert sorted(got) == sorted(want)

    def test_caches_of_two_pipelines_are_two(self, service):
        for start in (0, 100):
            ds = Dataset.range(start, start + 5).cache().repeat(2)
            got = collections.Counter(numbers(each(ds, service)))
            assert got == dict.fromkeys(range(start, start + 5), 4)

    def test_each_has_an_order_of_its_own_unless_seeded(self, service):
        def passes(ds):
            return [x.tolist() for x in each(ds.batch(100), service)]

        ds = Dataset.range(100)
        first, second = passes(ds.shuffle(100))
        assert sorted(first) == sorted(second) == list(range(100))
        assert first != second
        first, second = passes(ds.shuffle(100, seed=3))
        assert first == second

    def test_without_end(self, service):
        ds = each(Dataset.range(50).repeat(), service)
        assert ds.cardinality() == ps.INFINITE_CARDINALITY
        got = collections.Counter(int(x) for x in itertools.islice(ds, 100_000))
        assert set(got) == set(range(50))

    def test_one_without_end_leaves_room_for_others(self, service):
        endless = [
            iter(each(Dataset.range(50).repeat(), service)) for _ in range(3)
        ]
        for reader in endless:
            next(reader)
        ds = Dataset.range(1000).map(lambda x: x + 1)
        got = ds.distribute(service.address)
        assert sorted(numbers(got)) == list(range(1, 1001))
        for reader in endless:
            next(reader)

    def test_two_readers_have_a_worker_each(self, service):
        ds = Dataset.range(400).map(lambda x: x)
        readers = [
            iter(each(ds, service, job="each-two", reader=i, num_readers=2))
            for i in range(2)
        ]
        firsts = [int(next(reader)) for reader in readers]
        for first, reader in zip(firsts, readers, strict=True):
            assert sorted([first, *numbers(reader)]) == list(range(400))

    def test_a_state_is_refused(self, service):
        ds = each(Dataset.range(300).shuffle(300), service, job="each-state")
        iterator = iter(ds)
        numbers(itertools.islice(iterator, 90))
        state = iterator.state_dict()
        iterator = iter(ds)
        with pytest.raises(ps.FailedPreconditionError, match="to begin anew"):
            iterator.load_state_dict(state)
            next(iterator)

    def test_an_engine_that_dies(self, service):
        ds = each(Dataset.range(2000), service, job="each-engine")
        had = []
        for i, x in enumerate(ds):
            had.append(int(x))
            if i in (500, 2500):
                kill(ps._engine._engine.pid)
        assert collections.Counter(had) == dict.fromkeys(range(2000), 2)

    def test_a_dispatcher_that_dies(self):
        with ps.LocalService(workers=2, cpu=1) as service:
            had = []
            ds = Dataset.range(200_000).batch(10)
            for i, batch in enumerate(each(ds, service)):
                had += batch.tolist()
                if i in (100, 9_000):
                    kill(service.dispatcher_pid)
            assert collections.Counter(had) == dict.fromkeys(range(200_000), 2)

    def test_a_worker_that_dies_and_one_that_joins(self):
        with dispatcher("--lease-ms", "500") as head:
            address = head.address
            with worker(address, "--cpu", "1") as first:
                # More than the first could send before it is read.
                ds = Dataset.range(60_000_000).batch(1000).enumerate()
                ds = ds.distribute(address, visitation="each_worker")
                iterator = iter(ds)
                had = [int(next(iterator)[0]) for _ in range(5)]
                assert had == list(range(5))
                with worker(address, "--cpu", "1"):
                    wait_until(lambda: len(state_of(address)["workers"]) == 2)
                    first.process.kill()
                    had = collections.Counter(int(i) for i, _ in iterator)
        # The second has all of its pass; of the first there is a beginning.
        assert set(had) == set(range(60_000))
        twice = [i for i, times in had.items() if times == 2]
        assert sorted(had.values())[-1] <= 2
        assert sorted(twice) == list(range(5, 5 + len(twice)))
        assert len(twice) < 60_000 - 5

    def test_refusals(self, service):
        with pytest.raises(ps.InvalidArgumentError, match="order"):
            each(Dataset.range(3), service, order="deterministic")
        rows = Dataset.from_generator(
            lambda: iter(range(3)), output_signature=ps.TensorSpec((), ps.int64)
        )
        with pytest.raises(ps.InvalidArgumentError, match="this process"):
            each(rows, service)
        with pytest.raises(ps.InvalidArgumentError, match="write no files"):
            each(Dataset.range(3).cache("/tmp/none"), service)


class TestStatic:
    @pytest.mark.parametrize("sharding", ["data", "file", "file_or_data"])
    @pytest.mark.parametrize("files", [2, 5])
    def test_every_row_comes_once(self, service, tmp_path, sharding, files):
        want = lines(tmp_path, files)
        ds = Dataset.list_files(str(tmp_path / "*.txt"))
        ds = ds.interleave(ps.TextLineDataset, cycle_length=2)
        got = [bytes(x).decode() for x in static(ds, service, sharding)]
        assert sorted(got) == want

    def test_listed_files(self, service, tmp_path):
        want = lines(tmp_path, 3)
        ds = ps.TextLineDataset([str(tmp_path / f"{i}.txt") for i in range(3)])
        got = [bytes(x).decode() for x in static(ds, service, "file")]
        assert sorted(got) == want

    def test_where_there_are_not_enough_files(self, service, tmp_path):
        want = lines(tmp_path, 1)
        ds = ps.TextLineDataset(str(tmp_path / "0.txt"))
        got = [bytes(x).decode() for x in static(ds, service, "file_or_data")]
        assert sorted(got) == want
        with pytest.raises(ps.InvalidArgumentError, match="2 workers; found 1"):
            list(static(ds, service, "file"))
        with pytest.raises(ps.NotFoundError, match="begins with files"):
            static(Dataset.range(9), service, "file")

    def test_a_hint(self, service):
        ds = Dataset.range(10).shard(ps.SHARD_HINT, 0).batch(5)
        got = sorted(x.tolist() for x in static(ds, service, "hint"))
        assert got == [[0, 2, 4, 6, 8], [1, 3, 5, 7, 9]]
        with pytest.raises(ps.InvalidArgumentError, match="got none"):
            static(Dataset.range(10), service, "hint")
        with pytest.raises(ps.FailedPreconditionError, match="another policy"):
            static(ds, service, "data")
        with pytest.raises(ps.FailedPreconditionError, match="another policy"):
            ds.distribute(service.address)
        with pytest.raises(ps.FailedPreconditionError, match="for workers"):
            list(ds)

    def test_values_are_those_of_a_run_here(self, service):
        ds = Dataset.range(200).map(
            lambda x: (x, ps.random_uniform([], seed=5))
        )
        want = sorted((int(x), float(y)) for x, y in ds)
        got = sorted((int(x), float(y)) for x, y in static(ds, service, "data"))
        assert got == want

    def test_the_same_order_each_time(self, service):
        ds = static(Dataset.range(100), service, "data", order="deterministic")
        assert numbers(ds) == [*range(0, 100, 2), *range(1, 100, 2)]

    def test_how_many_there_are(self, service):
        assert len(static(Dataset.range(100), service, "data")) == 100

    def test_a_state_goes_on_where_it_was(self, service):
        ds = static(Dataset.range(400), service, "data", job="static-state")
        iterator = iter(ds)
        had = []
        for taken in (0, 5, 90, 120):
            had += [int(next(iterator)) for _ in range(taken)]
            state = iterator.state_dict()
            numbers(itertools.islice(iterator, 17))  # lost, but for the state
            iterator = iter(ds)
            iterator.load_state_dict(state)
        assert sorted(had + numbers(iterator)) == list(range(400))

    def test_two_readers_have_a_worker_each(self, service):
        ds = Dataset.range(400)
        readers = [
            iter(
                static(ds, service, "data", job="st-2", reader=i, num_readers=2)
            )
            for i in range(2)
        ]
        firsts = [int(next(reader)) for reader in readers]
        got = [
            [first, *numbers(reader)]
            for first, reader in zip(firsts, readers, strict=True)
        ]
        assert got == [list(range(0, 400, 2)), list(range(1, 400, 2))]

    def test_workers_that_die_come_back_to_their_shards(self):
        with ps.LocalService(workers=2, cpu=1) as service:
            had = []
            ds = Dataset.range(400_000).batch(10)
            for i, batch in enumerate(static(ds, service, "data")):
                had += batch.tolist()
                if i in (1_000, 20_000):
                    kill(service.worker_pids[i % 3 % 2])
                if i == 30_000:
                    kill(service.dispatcher_pid)
            assert sorted(had) == list(range(400_000))

    def test_workers_that_nobody_told_of(self):
        ds = Dataset.range(9)
        with (
            dispatcher() as head,
            worker(head.address),
            pytest.raises(ps.FailedPreconditionError, match="--workers"),
        ):
            numbers(
                ds.distribute(
                    head.address, visitation="static", sharding="data"
                )
            )
        listed = ("--workers", "127.0.0.1:%port%")
        with dispatcher(*listed) as head, worker(head.address):
            got = ds.distribute(
                head.address, visitation="static", sharding="data"
            )
            assert sorted(numbers(got)) == list(range(9))
            with worker(head.address) as other:
                assert other.process.wait(20) != 0
                assert "127.0.0.1:%port%" in other.log

    def test_a_list_that_is_none(self):
        for wrong in ("host:port", "127.0.0.1:1,127.0.0.1:1"):
            said = subprocess.run(
                [binary_path(), "dispatcher", "--workers", wrong],
                capture_output=True,
                text=True,
                timeout=20,
                check=False,
            )
            assert said.returncode == 2
            assert "--workers: expected" in said.stderr

    def test_refusals(self, service):
        ds = Dataset.range(9)
        with pytest.raises(ps.InvalidArgumentError, match="sharding"):
            ds.distribute(service.address, visitation="static")
        with pytest.raises(ps.InvalidArgumentError, match="sharding"):
            ds.distribute(service.address, sharding="data")
        with pytest.raises(ps.InvalidArgumentError, match='"hint"'):
            static(ds, service, "twice")


class TestRecordRanges:
    """One large file of records of one size is work for several workers."""

    COUNT = 300_000

    def share(self, service, ds, job):
        """The rows, and into how many bundles they were divided."""
        iterator = iter(ds.distribute(service.address, job=job))
        first = next(iterator)
        (found,) = (
            each
            for each in state_of(service.address)["jobs"]
            if each["job"] == job
        )
        return [first, *iterator], int(found["epochs"][0]["bundles"])

    def test_records(self, service, tmp_path):
        path = tmp_path / "rows"
        np.arange(self.COUNT, dtype=np.int64).tofile(path)
        for i, ds in enumerate(
            (
                ps.FixedLengthRecordDataset(str(path), 8),
                Dataset.list_files(str(path)).flat_map(
                    lambda name: ps.FixedLengthRecordDataset(name, 8)
                ),
            )
        ):
            rows, bundles = self.share(service, ds, f"records-{i}")
            got = np.frombuffer(b"".join(rows), np.int64)
            assert np.array_equal(np.sort(got), np.arange(self.COUNT))
            assert bundles >= 8

    def test_arrays(self, service, tmp_path):
        path = tmp_path / "a.npy"
        np.save(path, np.arange(self.COUNT))
        ds = ps.NumpyDataset(path).batch(64)
        rows, bundles = self.share(service, ds, "arrays")
        got = np.sort(np.concatenate(rows))
        assert np.array_equal(got, np.arange(self.COUNT))
        assert bundles >= 8

    def test_values_are_those_of_a_run_here(self, service, tmp_path):
        path = tmp_path / "a.npy"
        np.save(path, np.arange(100_000))
        ds = ps.NumpyDataset(path).map(
            lambda x: (x, ps.random_uniform([], seed=5))
        )
        ds = ds.batch(1000)
        want = [tuple(row) for x, y in ds for row in zip(x, y, strict=True)]
        got = [
            tuple(row)
            for x, y in ds.distribute(service.address)
            for row in zip(x, y, strict=True)
        ]
        assert sorted(got) == sorted(want)

    def test_a_state_goes_on_where_it_was(self, service, tmp_path):
        path = tmp_path / "rows"
        np.arange(self.COUNT, dtype=np.int64).tofile(path)
        ds = ps.FixedLengthRecordDataset(str(path), 8).batch(100)
        ds = ds.distribute(service.address, job="records-state")
        iterator = iter(ds)
        had = [next(iterator) for _ in range(700)]
        state = iterator.state_dict()
        list(itertools.islice(iterator, 100))  # lost, but for the state
        iterator = iter(ds)
        iterator.load_state_dict(state)
        had += iterator
        got = np.frombuffer(b"".join(np.concatenate(had)), np.int64)
        assert np.array_equal(np.sort(got), np.arange(self.COUNT))
