"""Jobs that read other jobs: two levels of workers, one inside the other."""

import collections
import contextlib
import json
import random

import numpy as np
import pytest
import servers
from shipped import prep

import penstock as ps
from penstock._engine import binary_path

Dataset = ps.Dataset


@pytest.fixture(scope="module")
def inner():
    """A service whose jobs those of another read."""
    with ps.LocalService(workers=2, cpu=1) as service:
        yield service


@pytest.fixture(scope="module")
def outer(inner):
    with ps.LocalService(
        workers=2, cpu=1, allow_services=[inner.address]
    ) as service:
        yield service


@pytest.fixture(params=["one service", "two services"])
def levels(request, service):
    """Where the first level is, and the second."""
    if request.param == "one service":
        return service, service
    return request.getfixturevalue("inner"), request.getfixturevalue("outer")


def plain(element):
    if isinstance(element, tuple):
        return tuple(plain(x) for x in element)
    return np.asarray(element).tolist()


def rows(ds):
    return [plain(x) for x in ds]


def write_texts(folder, files=9):
    for i in range(files):
        lines = "".join(f"{i}:{j}\n" for j in range(7 * i + 1))
        (folder / f"{i}.txt").write_text(lines)
    return str(folder / "*.txt")


def make(name, folder):
    if name == "map":
        return Dataset.range(500).map(lambda x: x * 3 + 1)
    if name == "text":
        return Dataset.list_files(write_texts(folder), shuffle=False).flat_map(
            ps.TextLineDataset
        )
    if name == "slices":
        return Dataset.from_tensor_slices(np.arange(900).reshape(300, 3))
    if name == "random":
        return Dataset.range(300).map(lambda x: (x, ps.random_uniform([])))
    if name == "repeat":
        return Dataset.range(90).map(lambda x: x + 1).repeat(3)
    raise KeyError(name)


@pytest.mark.parametrize("name", ["map", "text", "slices", "repeat"])
def test_every_row_comes_once_and_in_order_as_here(levels, tmp_path, name):
    first, second = levels
    ds = make(name, tmp_path)

    def after(ds):
        return ds.map(lambda x: (x, x))

    want = rows(after(ds))
    ds = after(ds.distribute(first.address, job="read"))
    any_order = rows(ds.distribute(second.address, job=f"any-{name}"))
    assert sorted(any_order) == sorted(want)
    in_order = ds.distribute(second.address, order="deterministic")
    assert rows(in_order) == want


def test_random_functions_of_both_levels(levels):
    first, second = levels
    ds = Dataset.range(300).map(lambda x: (x, ps.random_uniform([], seed=3)))

    def after(ds):
        return ds.map(lambda x, y: (x, y, ps.random_uniform([], seed=4)))

    # As if the second level were done here.
    ds = after(ds.distribute(first.address, order="deterministic"))
    want = rows(ds)
    assert len({row[2] for row in want}) == 300
    got = rows(ds.distribute(second.address, order="deterministic"))
    assert got == want


@pytest.mark.parametrize("size", [7, 64])
def test_batches_of_the_first_level_are_full(levels, tmp_path, size):
    first, second = levels
    ds = make("text", tmp_path)
    want = collections.Counter(rows(ds))

    def twice(ds):
        ds = ds.distribute(first.address).map(lambda x: x)
        return ds.distribute(second.address)

    batches = rows(twice(ds.batch(size).map(lambda x: x)))
    assert collections.Counter(x for b in batches for x in b) == want
    lengths = sorted(len(batch) for batch in batches)
    assert lengths[1:] == [size] * (len(lengths) - 1)
    dropped = rows(twice(ds.batch(size, drop_remainder=True)))
    assert [len(b) for b in dropped] == [size] * (want.total() // size)


def test_batches_of_the_second_level_are_full(levels, tmp_path):
    first, second = levels
    ds = make("text", tmp_path)
    want = collections.Counter(rows(ds))
    ds = ds.distribute(first.address).batch(16).distribute(second.address)
    batches = rows(ds)
    assert collections.Counter(x for b in batches for x in b) == want
    assert sorted(len(b) for b in batches)[1:] == [16] * (len(batches) - 1)


def test_epochs_and_passes(service):
    ds = Dataset.range(64).map(lambda x: x).shuffle(64)
    ds = ds.distribute(service.address).map(lambda x: x + 1)
    ds = ds.repeat(2).distribute(service.address, order="deterministic")
    first, second = rows(ds), rows(ds)
    passes = [first[:64], first[64:], second[:64], second[64:]]
    assert all(sorted(each) == list(range(1, 65)) for each in passes)
    assert len({tuple(each) for each in passes}) == 4


def test_nothing_to_read(service):
    ds = Dataset.range(50).take(0).map(lambda x: x + 1)
    ds = ds.distribute(service.address).map(lambda x: x)
    assert rows(ds.distribute(service.address)) == []


def test_a_registered_pipeline(levels):
    first, second = levels
    tens = Dataset.range(1000).filter(lambda x: x % 10 == 0).batch(8)
    ps.register(first.address, tens, "tens")
    ds = ps.from_registered(first.address, "tens", job="read")
    ds = ds.unbatch().map(lambda x: x + 1)
    got = rows(ds.distribute(second.address))
    assert sorted(got) == list(range(1, 1001, 10))
    ps.unregister(first.address, "tens")


def test_what_counts_rows_is_done_here(service):
    ds = Dataset.range(100).map(lambda x: x * 2).take(60)
    ds = ds.distribute(service.address).skip(5).map(lambda x: x + 1)
    ds = ds.distribute(service.address, order="deterministic")
    assert rows(ds) == list(range(11, 121, 2))


def test_three_levels(service):
    ds = Dataset.range(200)
    for _ in range(3):
        ds = ds.map(lambda x: x + 1).distribute(service.address)
    assert sorted(rows(ds)) == list(range(3, 203))


@pytest.mark.parametrize("order", [None, "deterministic"])
def test_a_state_goes_on_where_it_was(service, tmp_path, order):
    ds = make("text", tmp_path).distribute(service.address, job="read")
    ds = ds.map(lambda x: (x, x))
    want = rows(ds)
    ds = ds.distribute(service.address, job=f"state-{order}", order=order)
    iterator = iter(ds)
    had = []
    for taken in (0, 1, 5, 90, 1, 40):
        had += [plain(next(iterator)) for _ in range(taken)]
        state = json.loads(json.dumps(iterator.state_dict()))
        for _ in range(17):
            next(iterator)  # lost, but for the state
        iterator = iter(ds)
        iterator.load_state_dict(state)
    had += [plain(x) for x in iterator]
    assert sorted(had) == sorted(want)
    if order is not None:
        assert had == [(x, x) for x in rows(make("text", tmp_path))]


@pytest.mark.parametrize("who", ["first", "second", "both"])
@pytest.mark.parametrize("order", [None, "deterministic"])
def test_workers_that_die(who, order):
    with (
        ps.LocalService(workers=3, cpu=1) as first,
        ps.LocalService(
            workers=3, cpu=1, allow_services=[first.address]
        ) as second,
    ):
        victims = [first, second] if who == "both" else [locals()[who]]
        ds = Dataset.range(20_000).map(lambda x: x * 2)
        ds = ds.distribute(first.address, job="read").map(lambda x: x + 1)
        ds = ds.distribute(second.address, job="train", order=order)
        had = []
        for i, x in enumerate(ds):
            had.append(int(x))
            if i % 7000 == 1000:
                for service in victims:
                    servers.kill(random.choice(service.worker_pids[-3:]))
        assert sorted(had) == list(range(1, 40_001, 2))
        if order is not None:
            assert had == sorted(had)


def test_dispatchers_that_die():
    with (
        ps.LocalService(workers=2, cpu=1) as first,
        ps.LocalService(
            workers=2, cpu=1, allow_services=[first.address]
        ) as second,
    ):
        ds = Dataset.range(20_000).map(lambda x: x * 2)
        ds = ds.distribute(first.address, job="read").map(lambda x: x + 1)
        ds = ds.batch(10).distribute(second.address, job="train")
        had = []
        for i, batch in enumerate(ds):
            had += batch.tolist()
            if i == 100:
                servers.kill(first.dispatcher_pid)
            if i == 900:
                servers.kill(second.dispatcher_pid)
        assert sorted(had) == list(range(1, 40_001, 2))


def test_a_dispatcher_that_forgets():
    with servers.dispatcher() as first:
        address = first.address
        with (
            servers.worker(address),
            ps.LocalService(
                workers=1, cpu=1, allow_services=[address]
            ) as second,
        ):
            ds = Dataset.range(20_000).map(lambda x: x * 2)
            ds = ds.distribute(address, job="read").map(lambda x: x + 1)
            ds = ds.distribute(second.address, order="deterministic")
            iterator = iter(ds)
            had = [int(next(iterator)) for _ in range(500)]
            first.close()
            again = [binary_path(), "dispatcher", "--listen", address]
            with contextlib.closing(servers.Server(again)):
                had += [int(x) for x in iterator]
            assert had == list(range(1, 40_001, 2))


def test_runs_of_the_first_level_end_with_their_readers(service):
    ds = Dataset.range(4000).map(lambda x: x)
    ds = ds.distribute(service.address, job="brief").map(lambda x: x)
    iterator = iter(ds.distribute(service.address, job="left"))

    def inner_jobs():
        jobs = servers.state_of(service.address.removeprefix("penstock://"))
        return [
            job["job"]
            for job in jobs.get("jobs", [])
            if job["job"].startswith("brief/")
        ]

    next(iterator)
    assert sum(1 for _ in iterator) == 3999
    servers.wait_until(lambda: not inner_jobs())


class TestInside:
    """A distributed dataset among others of a distributed one."""

    def test_flat_map(self, levels):
        first, second = levels
        inside = Dataset.range(30).map(lambda x: x * x)
        inside = inside.distribute(first.address, order="deterministic")

        def each(n):
            return inside.map(lambda x: x + n)

        ds = Dataset.range(6).map(lambda x: x * 1000).flat_map(each)
        want = [x * x + 1000 * n for n in range(6) for x in range(30)]
        assert rows(ds) == want
        got = rows(ds.distribute(second.address, order="deterministic"))
        assert got == want

    def test_interleave(self, service):
        inside = Dataset.range(20).map(lambda x: x + 1)
        inside = inside.distribute(service.address)
        ds = Dataset.range(5).interleave(
            lambda n: inside.map(lambda x: (n, x)), cycle_length=3
        )
        got = rows(ds.distribute(service.address))
        assert sorted(got) == [(n, x) for n in range(5) for x in range(1, 21)]

    @pytest.mark.parametrize("join", ["zip", "concatenate"])
    def test_joined(self, levels, join):
        first, second = levels
        left = Dataset.range(100).map(lambda x: x * 2)
        right = Dataset.range(100).map(lambda x: x * 3)

        def joined(left, right):
            if join == "zip":
                ds = Dataset.zip(left, right)
                return ds.map(lambda x, y: x + y)
            return left.concatenate(right).map(lambda x: x + 1)

        want = rows(joined(left, right))
        ds = joined(
            left.distribute(first.address), right.distribute(first.address)
        )
        got = rows(ds.distribute(second.address, order="deterministic"))
        assert got == want

    def test_static_shards(self, service):
        ds = Dataset.range(50).distribute(service.address).map(lambda x: x + 1)
        ds = ds.distribute(
            service.address, visitation="static", sharding="data"
        )
        assert sorted(rows(ds)) == list(range(1, 51))

    def test_each_worker(self, service):
        ds = Dataset.range(50).distribute(service.address).map(lambda x: x + 1)
        ds = ds.distribute(service.address, visitation="each_worker")
        got = collections.Counter(rows(ds))
        assert set(got) == set(range(1, 51))
        assert len(set(got.values())) == 1


def test_python_of_both_levels():
    with ps.LocalService(workers=2, cpu=1) as service:
        ds = Dataset.range(100).map(prep.label)
        want = sorted(rows(ds.map(prep.unlabel)))
        ds = ds.distribute(service.address, code=["shipped"]).map(prep.unlabel)
        ds = ds.distribute(service.address, code=["shipped"])
        assert sorted(rows(ds)) == want


class TestRefusals:
    def test_what_cannot_be_read_again(self):
        base = Dataset.range(9).map(lambda x: x)
        for settings, want in [
            ({"visitation": "at_most_once"}, "some may be lost"),
            ({"visitation": "each_worker"}, "as many passes as workers"),
            ({"num_readers": 2}, "num_readers"),
            ({"num_consumers": 2, "job": "x"}, "num_consumers"),
        ]:
            ds = base.distribute("localhost:1", **settings).map(lambda x: x)
            with pytest.raises(ps.InvalidArgumentError, match=want) as refused:
                ds.distribute("localhost:1")
            assert "the last one" in str(refused.value)

    def test_no_end(self):
        ds = Dataset.range(9).map(lambda x: x).repeat()
        ds = ds.distribute("localhost:1").map(lambda x: x)
        with pytest.raises(ps.InvalidArgumentError, match="behind the last"):
            ds.distribute("localhost:1")

    def test_too_many_levels(self):
        ds = Dataset.range(9)
        with pytest.raises(ps.InvalidArgumentError, match="at most 4 times"):
            for _ in range(5):
                ds = ds.map(lambda x: x).distribute("localhost:1")

    def test_a_service_that_workers_may_not_read(self, inner, service):
        ds = Dataset.range(9).distribute(inner.address, job="read")
        ds = ds.map(lambda x: x).distribute(service.address)
        address = inner.address.removeprefix("penstock://")
        with pytest.raises(ps.PermissionDeniedError) as refused:
            next(iter(ds))
        assert f"--allow-services {address}" in str(refused.value)

    def test_an_inner_pipeline_that_fails(self, levels):
        first, second = levels
        ds = Dataset.list_files("/nowhere/*.txt").flat_map(ps.TextLineDataset)
        ds = ds.distribute(first.address, job="read").map(lambda x: x)
        with pytest.raises(ps.PenstockError) as refused:
            next(iter(ds.distribute(second.address)))
        assert "reading job 'read'" in str(refused.value)
        assert first.address.removeprefix("penstock://") in str(refused.value)

    def test_errors_stay_in_their_place(self, levels):
        first, second = levels

        def fail_at_tens(x):
            text = ps.where(x % 10 == 0, b"123", b"12345678")
            return x + ps.io.decode_raw(text, ps.int64)[0] * 0

        ds = Dataset.range(40).map(fail_at_tens)
        ds = ds.distribute(first.address).map(lambda x: x + 1)
        iterator = iter(ds.distribute(second.address, order="deterministic"))
        errors, values = 0, []
        while True:
            try:
                values.append(int(next(iterator)))
            except StopIteration:
                break
            except ps.PenstockError:
                errors += 1
        assert errors == 4
        assert values == [x + 1 for x in range(40) if x % 10]


def test_workers_show_their_own_credentials(tmp_path):
    secrets = servers.Secrets(tmp_path)
    flags = secrets.server_flags
    me = ps.Credentials(
        ca=secrets["ca.pem"],
        cert=secrets["client.pem"],
        key=secrets["client.key"],
        token_file=secrets.write("mine", "consumer:red\n"),
    )
    with (
        servers.dispatcher(*flags) as head,
        servers.worker(head.address, "--cpu", "1", *flags),
    ):
        ds = Dataset.range(100).distribute(head.address, credentials=me)
        ds = ds.map(lambda x: x + 1)
        ds = ds.distribute(head.address, credentials=me)
        assert sorted(rows(ds)) == list(range(1, 101))
