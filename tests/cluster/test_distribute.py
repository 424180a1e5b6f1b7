"""Rows of workers: all of them, once each, resumed where they were."""

import collections
import json
import os
import random
import subprocess

import numpy as np
import pytest
from servers import kill, state_of

import penstock as ps
from penstock._engine import binary_path

Dataset = ps.Dataset


def words(count):
    return [b"w%d" % (i % 17) for i in range(count)]


def make(name, folder):
    """A pipeline, and whether its rows depend on how it is divided."""
    if name == "range":
        return Dataset.range(500)
    if name == "map":
        return Dataset.range(500).map(lambda x: x * 3 + 1)
    if name == "filter":
        return Dataset.range(900).filter(lambda x: x % 7 != 0)
    if name == "slices":
        return Dataset.from_tensor_slices(
            {"x": np.arange(3000.0).reshape(300, 10), "w": words(300)}
        )
    if name == "flat_map":
        return Dataset.range(40).flat_map(lambda n: Dataset.range(n))
    if name == "text":
        for i in range(7):
            lines = "".join(f"{i}:{j}\n" for j in range(50 * i))
            (folder / f"{i}.txt").write_text(lines)
        return Dataset.list_files(str(folder / "*.txt")).interleave(
            ps.TextLineDataset, cycle_length=2
        )
    if name == "random":
        return Dataset.range(300).map(
            lambda x: (x, ps.random_uniform([], seed=3))
        )
    if name == "repeat":
        return Dataset.range(120).map(lambda x: x + 1).repeat(3)
    if name == "errors":
        return Dataset.range(100).map(lambda x: 100 // (x % 10))
    raise KeyError(name)


NAMES = (
    "range",
    "map",
    "filter",
    "slices",
    "flat_map",
    "text",
    "random",
    "repeat",
    "errors",
)


def plain(element):
    if isinstance(element, dict):
        return tuple((k, plain(v)) for k, v in element.items())
    if isinstance(element, tuple):
        return tuple(plain(v) for v in element)
    if isinstance(element, type):
        return element
    return np.asarray(element).tolist()


def outcomes(iterator, most=None):
    found = []
    while most is None or len(found) < most:
        try:
            found.append(plain(next(iterator)))
        except StopIteration:
            break
        except ps.PenstockError as error:
            found.append(type(error).__name__)
    return found


def counted(rows):
    return collections.Counter(repr(row) for row in rows)


@pytest.mark.parametrize("name", NAMES)
def test_every_row_comes_once(service, tmp_path, name):
    ds = make(name, tmp_path)
    want = counted(outcomes(iter(ds)))
    got = outcomes(iter(ds.distribute(service.address)))
    assert counted(got) == want


@pytest.mark.parametrize("name", ["map", "filter", "text", "flat_map"])
@pytest.mark.parametrize("size", [7, 64])
def test_batches_are_full_but_for_the_last(service, tmp_path, name, size):
    ds = make(name, tmp_path)
    rows = outcomes(iter(ds))
    batches = outcomes(iter(ds.batch(size).distribute(service.address)))
    assert counted(x for batch in batches for x in batch) == counted(rows)
    lengths = sorted(len(batch) for batch in batches)
    assert lengths[1:] == [size] * (len(lengths) - 1)
    dropped = ds.batch(size, drop_remainder=True).map(lambda x: x)
    batches = outcomes(iter(dropped.distribute(service.address)))
    assert [len(batch) for batch in batches] == [size] * (len(rows) // size)


def test_batches_of_each_pass(service):
    ds = Dataset.range(100).map(lambda x: x).batch(16).repeat(3)
    batches = outcomes(iter(ds.distribute(service.address)))
    assert sorted(len(batch) for batch in batches) == [4] * 3 + [16] * 18
    rows = collections.Counter(x for batch in batches for x in batch)
    assert rows == collections.Counter(dict.fromkeys(range(100), 3))


@pytest.mark.parametrize("name", ["map", "filter", "text", "random"])
def test_in_order_it_is_as_if_here(service, tmp_path, name):
    ds = make(name, tmp_path)
    if name == "text":
        ds = Dataset.list_files(
            str(tmp_path / "*.txt"), shuffle=False
        ).flat_map(ps.TextLineDataset)
    want = outcomes(iter(ds))
    got = ds.distribute(service.address, order="deterministic")
    assert outcomes(iter(got)) == want


def test_what_counts_rows_is_done_here(service):
    ds = Dataset.range(1000).filter(lambda x: x % 2 == 0).take(7)
    assert outcomes(iter(ds.distribute(service.address))) == [
        0, 2, 4, 6, 8, 10, 12
    ]  # fmt: skip


def test_what_follows_is_done_here(service):
    ds = Dataset.range(100).map(lambda x: x).distribute(service.address)
    seen = []

    def note(x):
        seen.append(os.getpid())
        return x

    assert sum(len(b) for b in ds.batch(8)) == 100
    assert len(outcomes(iter(ds.repeat(2)))) == 200
    assert sorted(outcomes(iter(ds.shuffle(50)))) == list(range(100))


def test_what_follows_may_be_random(service):
    ds = Dataset.range(200).map(lambda x: x)
    ds = ds.distribute(service.address, order="deterministic")
    ds = ds.map(lambda x: (x, ps.random_uniform([], seed=1)))
    first, second = outcomes(iter(ds)), outcomes(iter(ds))
    assert len({value for _, value in first}) == 200
    assert [x for x, _ in first] == [x for x, _ in second] == list(range(200))


def test_epochs(service):
    ds = Dataset.range(64).shuffle(64).map(lambda x: x)
    ds = ds.distribute(service.address, order="deterministic")
    first, second = outcomes(iter(ds)), outcomes(iter(ds))
    assert sorted(first) == sorted(second) == list(range(64))
    assert first != second


@pytest.mark.parametrize("name", ["map", "slices", "errors", "text"])
def test_a_state_goes_on_where_it_was(service, tmp_path, name):
    ds = make(name, tmp_path)
    want = counted(outcomes(iter(ds)))
    ds = ds.distribute(service.address, job=f"state-{name}")
    iterator = iter(ds)
    had = []
    for taken in (0, 1, 5, 90, 1, 40, 100):
        had += outcomes(iterator, taken)
        state = json.loads(json.dumps(iterator.state_dict()))
        assert len(json.dumps(state)) < 8192
        outcomes(iterator, 17)  # lost, but for the state
        iterator = iter(ds)
        iterator.load_state_dict(state)
    had += outcomes(iterator)
    assert counted(had) == want


@pytest.mark.parametrize("after", ["batch", "shuffle", "take", "stitched"])
def test_a_state_of_what_follows(service, after):
    ds = Dataset.range(400).map(lambda x: x * 2)
    if after == "stitched":
        ds = ds.batch(9)
    ds = ds.distribute(service.address, job=f"after-{after}")
    if after == "batch":
        ds = ds.batch(7)
    elif after == "shuffle":
        ds = ds.shuffle(30, seed=1)
    elif after == "take":
        ds = ds.take(399)
    iterator = iter(ds)
    had = []
    for taken in (3, 1, 0, 8, 20):
        had += outcomes(iterator, taken)
        state = iterator.state_dict()
        outcomes(iterator, 5)
        iterator = iter(ds)
        iterator.load_state_dict(state)
    had += outcomes(iterator)
    rows = [x for row in had for x in (row if isinstance(row, list) else [row])]
    assert len(rows) == len(set(rows)) == (399 if after == "take" else 400)


def test_an_engine_that_dies(service):
    ds = Dataset.range(3000).map(lambda x: x + 5)
    ds = ds.distribute(service.address, job="engine-dies")
    had = []
    iterator = iter(ds)
    for i, x in enumerate(iterator):
        had.append(int(x))
        if i % 500 == 250:
            kill(ps._engine._engine.pid)
    assert sorted(had) == list(range(5, 3005))


def test_workers_that_die():
    with ps.LocalService(workers=3, cpu=1) as service:
        ds = Dataset.range(20_000).map(lambda x: x * 2).batch(10)
        ds = ds.distribute(service.address, job="workers-die")
        had = []
        for i, batch in enumerate(ds):
            had += batch.tolist()
            if i % 400 == 100:
                kill(random.choice(service.worker_pids[-3:]))
        assert sorted(had) == list(range(0, 40_000, 2))


def test_a_dispatcher_that_dies():
    with ps.LocalService(workers=2, cpu=1) as service:
        ds = Dataset.range(20_000).map(lambda x: x * 2).batch(10)
        ds = ds.distribute(service.address, job="dispatcher-dies")
        had = []
        for i, batch in enumerate(ds):
            had += batch.tolist()
            if i in (100, 900):
                kill(service.dispatcher_pid)
        assert sorted(had) == list(range(0, 40_000, 2))


def test_two_readers_share_the_rows(service):
    ds = Dataset.range(1000).map(lambda x: x)
    readers = [
        iter(ds.distribute(service.address, job="two", reader=i, num_readers=2))
        for i in range(2)
    ]
    had = [[], []]
    open_readers = {0, 1}
    while open_readers:
        for i in list(open_readers):
            try:
                had[i].append(int(next(readers[i])))
            except StopIteration:
                open_readers.remove(i)
    assert sorted(had[0] + had[1]) == list(range(1000))


def await_departure(service, job):
    """Returns when the dispatcher knows that a reader of `job` has left."""
    command = [binary_path(), "state", service.address, "--json"]
    for _ in range(1000):
        said = subprocess.run(command, check=True, capture_output=True)
        (found,) = (
            each
            for each in json.loads(said.stdout)["jobs"]
            if each["job"] == job
        )
        if any(
            consumer.get("has_left")
            for epoch in found["epochs"]
            for consumer in epoch["consumers"]
        ):
            return
    raise AssertionError("nobody has left")


def test_who_leaves_gives_the_rest_to_others(service):
    count = 300_000
    ds = Dataset.range(count).map(lambda x: x).batch(10)
    one, two = (
        iter(
            ds.distribute(service.address, job="leave", reader=i, num_readers=2)
        )
        for i in range(2)
    )
    had = [next(reader) for reader in (one, two)]
    had += [next(one) for _ in range(33)]
    one.close()
    await_departure(service, "leave")
    had += two
    assert sorted(np.concatenate(had).tolist()) == list(range(count))


def test_explain_names_the_workers_that_are_waited_for(service):
    def slow(x):
        many = ps.cast(x, ps.float32) * np.ones(200_000, np.float32)
        return ps.sum(ps.sin(many))

    ds = Dataset.range(10**6).map(slow).distribute(service.address).batch(4)
    found = ds.explain(seconds=2.0)
    assert found.wall.kind == "workers", str(found)
    assert "waits for the workers of its service" in found.verdict
    assert "distribute_2" in found.verdict
    assert any("workers" in fix.title for fix in found.fixes), str(found)


class TestRefusals:
    def test_nobody_there(self):
        ds = Dataset.range(3)
        with pytest.raises(ps.InvalidArgumentError, match="localhost:5050"):
            ds.distribute("localhost")
        with pytest.raises(ps.InvalidArgumentError, match="visitation"):
            ds.distribute("localhost:1", visitation="twice")
        with pytest.raises(ps.InvalidArgumentError, match="order"):
            ds.distribute("localhost:1", order="random")

    def test_generators_and_python(self, service):
        ds = Dataset.from_generator(
            lambda: iter(range(3)), output_signature=ps.TensorSpec((), ps.int64)
        )
        with pytest.raises(ps.InvalidArgumentError, match="this process"):
            ds.distribute(service.address)
        ds = Dataset.range(3).map(lambda x: np.int64(os.getpid()) + x)
        with pytest.raises(ps.InvalidArgumentError, match="runs as Python"):
            ds.distribute(service.address)

    def test_the_same_reader_twice(self, service):
        ds = Dataset.range(10_000).map(lambda x: x)
        ds = ds.distribute(service.address, job="same")
        first = iter(ds)
        next(first)
        with pytest.raises(ps.AlreadyExistsError, match=r'attach.*"fresh"'):
            next(
                iter(
                    Dataset.range(10_000)
                    .map(lambda x: x)
                    .distribute(service.address, job="same")
                )
            )

    def test_another_pipeline_of_that_name(self, service):
        first = iter(
            Dataset.range(10_000).distribute(service.address, job="other")
        )
        next(first)
        with pytest.raises(ps.InvalidArgumentError, match="another pipeline"):
            next(
                iter(Dataset.range(9).distribute(service.address, job="other"))
            )

    def test_a_state_of_another_job(self, service):
        ds = Dataset.range(1000)
        iterator = iter(ds.distribute(service.address, job="mine"))
        next(iterator)
        other = iter(ds.distribute(service.address, job="yours"))
        with pytest.raises(ps.InvalidArgumentError, match="job"):
            other.load_state_dict(iterator.state_dict())
            next(other)


@pytest.mark.parametrize("readers", [(2, 3), (3, 1), (1, 2), (2, 2)])
def test_a_checkpoint_of_n_readers_goes_on_with_m(service, readers):
    before, after = readers
    ds = Dataset.range(3000).map(lambda x: x + 1).batch(3).prefetch()
    job = f"n-{before}-{after}"

    def reader(i, n):
        return iter(
            ds.distribute(service.address, job=job, reader=i, num_readers=n)
        )

    first = [reader(i, before) for i in range(before)]
    had = []
    for i, iterator in enumerate(first):
        had += [outcomes(iterator, 40 + 7 * i)]
    states = [iterator.state_dict() for iterator in first]
    for iterator in first:
        outcomes(iterator, 11)  # lost, but for the states
    second = [reader(i, after) for i in range(after)]
    for i, iterator in enumerate(second):
        iterator.load_state_dict(states if before != after else states[i])
    waiting = set(range(after))
    while waiting:
        for i in list(waiting):
            got = outcomes(second[i], 10)
            had.append(got)
            if len(got) < 10:
                waiting.remove(i)
    rows = [x for part in had for batch in part for x in batch]
    assert sorted(rows) == list(range(1, 3001))


def test_rows_are_said_of_who_shares_alone(service):
    def consumer(job):
        (found,) = [
            each
            for each in state_of(service.address)["jobs"]
            if each["job"] == job
        ]
        return found["epochs"][0]["consumers"][0]

    ds = Dataset.range(10_000).map(lambda x: x).batch(10)
    alone = iter(ds.distribute(service.address, job="rows-alone"))
    shares = iter(
        ds.distribute(
            service.address,
            job="rows-share",
            share="rows",
            visitation="exactly_once",
        )
    )
    next(alone)
    next(shares)
    assert "row" not in consumer("rows-alone")
    assert "row" in consumer("rows-share")
