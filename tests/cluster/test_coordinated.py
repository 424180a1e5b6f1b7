"""Replicas that train in step, and have the elements of a round, one each."""

import os
import signal
import threading

import numpy as np
import pytest
from servers import state_of, wait_until

import penstock as ps

Dataset = ps.Dataset


def rounds(ds, service, job, n, **more):
    """One dataset for each of n consumers."""
    return [
        ds.distribute(
            service.address, job=job, consumer=i, num_consumers=n, **more
        )
        for i in range(n)
    ]


def in_step(consumers):
    """Each round, as all of them had it; they must end at the same one."""
    its = [iter(each) for each in consumers]
    while True:
        got = [next(it, None) for it in its]
        if all(x is None for x in got):
            return
        assert all(x is not None for x in got), "some have ended, others not"
        yield got


def lengths_of(rng, count):
    """Like those of sentences: many short ones, some long."""
    return np.minimum(1 + rng.lognormal(3, 0.6, count).astype(np.int64), 200)


class TestRounds:
    def test_a_round_has_consecutive_elements(self, service):
        got = list(in_step(rounds(Dataset.range(1_000), service, "c1", 4)))
        assert all(x[3] - x[0] == 3 for x in got if x[0] % 4 == 0)
        flat = sorted(int(x) for each in got for x in each)
        assert len(flat) == len(set(flat)) == 1_000

    def test_the_rest_is_dropped_for_all(self, service):
        got = list(in_step(rounds(Dataset.range(1_003), service, "c2", 4)))
        assert len(got) == 250
        flat = [int(x) for each in got for x in each]
        assert len(set(flat)) == 1_000

    def test_remainders_of_batches_make_rounds(self, service):
        ds = Dataset.range(10_000).batch(7, drop_remainder=True)
        got = list(in_step(rounds(ds, service, "c3", 3)))
        flat = [int(x) for each in got for batch in each for x in batch]
        assert len(flat) == len(set(flat))
        assert len(flat) > 10_000 - 2 * 3 * 7
        assert {len(batch) for each in got for batch in each} == {7}

    def test_buckets_are_of_like_size(self, service):
        lengths = lengths_of(np.random.default_rng(5), 20_000)
        ds = Dataset.from_tensor_slices(lengths)
        ds = ds.map(lambda n: ps.fill([n], n))
        ds = ds.bucket_by_sequence_length(
            lambda x: ps.size(x),
            bucket_boundaries=[10, 20, 30, 50, 80],
            bucket_batch_sizes=[32] * 6,
            drop_remainder=True,
        )
        unlike = 0
        total = 0
        for got in in_step(rounds(ds, service, "c4", 4)):
            longest = [batch.shape[1] for batch in got]
            total += 1
            unlike += max(longest) > 1.7 * min(longest)
        assert total > 100
        assert unlike <= total * 0.1

    def test_equal_for_a_seed_and_any_workers(self):
        ds = Dataset.range(5_000).shuffle(100, seed=3).batch(4)
        seen = []
        for workers in (1, 3):
            with ps.LocalService(workers=workers, cpu=1) as service:
                got = in_step(rounds(ds, service, "same", 2))
                seen.append([[x.tolist() for x in each] for each in got])
        assert seen[0] == seen[1]


class TestPartialRounds:
    def test_the_rest_is_padded(self, service):
        ds = Dataset.range(1_003).batch(2)
        got = list(in_step(rounds(ds, service, "p1", 4, partial_round="pad")))
        flat = [
            x for each in got for batch, real in each if real for x in batch
        ]
        assert sorted(flat) == list(range(1_003))
        padded = [
            (each, batch) for each in got for batch, real in each if not real
        ]
        assert padded, "502 batches are no whole rounds of 4"
        for each, batch in padded:
            assert not batch.any()
            assert batch.shape in {other.shape for other, real in each if real}

    def test_whole_rounds_need_none(self, service):
        ds = Dataset.range(64).map(
            lambda x: {"x": x, "s": ps.strings.as_string(x)}
        )
        got = list(in_step(rounds(ds, service, "p2", 4, partial_round="pad")))
        assert len(got) == 16
        assert all(bool(real) for each in got for _, real in each)
        assert {int(e["x"]) for each in got for e, _ in each} == set(range(64))

    def test_texts_are_empty(self, service):
        ds = Dataset.range(5).map(
            lambda x: (ps.strings.as_string(x), ps.fill([x], x))
        )
        got = list(in_step(rounds(ds, service, "p3", 4, partial_round="pad")))
        a, b = next(e for each in got for e, real in each if not real)
        assert a == b""
        assert not b.any()
        assert sum(bool(real) for each in got for _, real in each) == 5

    def test_all_go_on_in_the_middle(self, service):
        ds = Dataset.range(103)
        its = [
            iter(each)
            for each in rounds(ds, service, "p4", 4, partial_round="pad")
        ]
        for _ in range(24):
            [next(it) for it in its]
        states = [it.state_dict() for it in its]
        rest = [[(int(x), bool(m)) for x, m in it] for it in its]
        again = [
            iter(each)
            for each in rounds(ds, service, "p4", 4, partial_round="pad")
        ]
        for it, state in zip(again, states, strict=True):
            it.load_state_dict(state)
        assert [[(int(x), bool(m)) for x, m in it] for it in again] == rest
        assert {len(each) for each in rest} == {2}


def new_size(its, n, make, **more):
    """The same replicas as n, and as many more as it takes."""
    row = more.pop("row")
    kept = its[:n]
    for it in its[n:]:
        it.close()
    for it in kept:
        it.resize(n)
    return kept + [make(i, n, from_round=row) for i in range(len(kept), n)]


class TestResize:
    @pytest.mark.parametrize("sizes", [(2, 3), (4, 1), (3, 5, 2, 4)])
    @pytest.mark.parametrize("batch", [None, 3])
    def test_no_element_is_lost_or_comes_twice(self, service, sizes, batch):
        ds = Dataset.range(3_001).shuffle(40, seed=2)
        if batch:
            ds = ds.batch(batch)
        job = f"r{sizes}{batch}"

        def make(i, n, **more):
            return iter(
                ds.distribute(
                    service.address,
                    job=job,
                    consumer=i,
                    num_consumers=n,
                    **more,
                )
            )

        its = [make(i, sizes[0]) for i in range(sizes[0])]
        seen = []
        row = 0
        for n in sizes:
            if n != len(its):
                its = new_size(its, n, make, row=row)
            for _ in range(37):
                seen += [np.atleast_1d(next(it)).tolist() for it in its]
                row += 1
        while True:
            got = [next(it, None) for it in its]
            if got[0] is None:
                assert all(x is None for x in got)
                break
            seen += [np.atleast_1d(x).tolist() for x in got]
        flat = [x for each in seen for x in each]
        assert len(flat) == len(set(flat))
        # What makes no round at the end.
        assert len(flat) > 3_001 - 2 * len(its) * (batch or 1)

    def test_the_sequence_follows_from_the_seed(self, service):
        ds = Dataset.range(2_000).shuffle(40, seed=2).batch(2)
        seen = []
        for job in ("f1", "f2"):
            its = [iter(each) for each in rounds(ds, service, job, 2)]
            for _ in range(100):
                got = [next(it).tolist() for it in its]
            for it in its:
                it.resize(1, consumer=0) if it is its[0] else it.close()
            seen.append((got, [x.tolist() for x in its[0]]))
        assert seen[0] == seen[1]

    def test_a_worker_is_killed_meanwhile(self):
        with ps.LocalService(workers=2, cpu=1) as service:
            ds = Dataset.range(60_000).map(lambda x: x + 1).batch(10)
            its = [iter(each) for each in rounds(ds, service, "k", 2)]
            seen = []
            for _ in range(50):
                seen += [next(it).tolist() for it in its]
            os.kill(service.worker_pids[0], signal.SIGKILL)
            its[1].close()
            its[0].resize(1)
            seen += [x.tolist() for x in its[0]]
            flat = [x for each in seen for x in each]
            assert len(flat) == len(set(flat)) == 60_000

    def test_a_checkpoint_of_another_size(self, service):
        ds = Dataset.range(1_000)
        its = [iter(each) for each in rounds(ds, service, "elastic", 4)]
        seen = []
        for _ in range(30):
            seen += [int(next(it)) for it in its]
        states = [it.state_dict() for it in its]
        for it in its:
            it.close()
        its = [iter(each) for each in rounds(ds, service, "elastic", 3)]
        with pytest.raises(ps.InvalidArgumentError, match="resize=True"):
            its[0].load_state_dict(states)
            next(its[0])
        its = [iter(each) for each in rounds(ds, service, "elastic", 3)]
        for it, state in zip(its, (states, states[2], states[1:]), strict=True):
            it.load_state_dict(state, resize=True)
        # Nothing has come yet: what is saved is what was loaded.
        saved = [it.state_dict() for it in its]
        again = [iter(each) for each in rounds(ds, service, "elastic", 3)]
        for it, state in zip(again, saved, strict=True):
            it.load_state_dict(state)
        for it in its:
            it.close()
        while (got := [next(it, None) for it in again])[0] is not None:
            seen += [int(x) for x in got]
        assert len(seen) == len(set(seen)) == 999

    def test_a_resized_one_goes_on_from_its_state(self, service):
        ds = Dataset.range(1_000)
        its = [iter(each) for each in rounds(ds, service, "later", 2)]
        for _ in range(30):
            [next(it) for it in its]
        its[1].close()
        its[0].resize(1)
        assert int(next(its[0])) == 60
        state = its[0].state_dict()
        rest = [int(x) for x in its[0]]
        back = iter(rounds(ds, service, "later", 1)[0])
        back.load_state_dict(state)
        assert [int(x) for x in back] == rest == list(range(61, 1_000))

    def test_an_engine_that_dies(self, service):
        ds = Dataset.range(1_000)
        its = [iter(each) for each in rounds(ds, service, "dies", 2)]
        for _ in range(30):
            [next(it) for it in its]
        its[1].close()
        its[0].resize(1)
        os.kill(its[0]._connection.engine.pid, signal.SIGKILL)
        assert [int(x) for x in its[0]] == list(range(60, 1_000))

    def test_all_must_be_at_one_round(self, service):
        ds = Dataset.range(10_000).repeat()
        its = [iter(each) for each in rounds(ds, service, "apart", 2)]
        for _ in range(30):
            [next(it) for it in its]
        next(its[1])
        its[0].resize(3)
        its[1].resize(3)
        next(its[0])
        with pytest.raises(ps.InvalidArgumentError, match=r"has 30, .* 31"):
            next(its[1])

    def test_refusals(self, service):
        it = iter(Dataset.range(3))
        with pytest.raises(ps.FailedPreconditionError, match="num_consumers"):
            it.resize(2)
        it = iter(rounds(Dataset.range(9), service, "ref", 2)[1])
        with pytest.raises(ps.InvalidArgumentError, match="have begun"):
            it.resize(3)
        next(it)
        with pytest.raises(ps.InvalidArgumentError, match=r"\[0, 1\)"):
            it.resize(1)
        with pytest.raises(ps.InvalidArgumentError, match="given, or"):
            it.resize()
        assert int(next(it)) == 3, "it goes on as it was"


class TestFailures:
    def test_a_killed_worker_breaks_no_round(self):
        with ps.LocalService(workers=2, cpu=1) as service:
            ds = Dataset.range(100_000).map(lambda x: x + 1).batch(10)
            got = []
            for each in in_step(rounds(ds, service, "killed", 3)):
                got.append([x.tolist() for x in each])
                if len(got) == 100:
                    os.kill(service.worker_pids[0], signal.SIGKILL)
            flat = [x for each in got for batch in each for x in batch]
            assert len(flat) == len(set(flat))
            assert len(flat) > 100_000 - 2 * 3 * 10

    def test_all_go_on_from_one_checkpoint(self, service):
        ds = Dataset.range(4_001).shuffle(50, seed=1).batch(3)
        make = lambda: [  # noqa: E731
            iter(each) for each in rounds(ds, service, "resumed", 3)
        ]
        its = make()
        for _ in range(200):
            for it in its:
                next(it)
        states = [it.state_dict() for it in its]
        rest = [[x.tolist() for x in it] for it in its]
        again = make()
        for it, state in zip(again, states, strict=True):
            it.load_state_dict(state)
        assert [[x.tolist() for x in it] for it in again] == rest
        assert len({len(each) for each in rest}) == 1

    def test_one_goes_on_from_its_state(self, service):
        ds = Dataset.range(3_000)
        its = [iter(each) for each in rounds(ds, service, "one", 2)]
        for _ in range(100):
            pairs = [int(next(it)) for it in its]
        state = its[1].state_dict()
        its[1].close()
        back = iter(rounds(ds, service, "one", 2)[1])
        back.load_state_dict(state)
        while (left := next(its[0], None)) is not None:
            pairs = [int(left), int(next(back))]
            assert pairs[1] == pairs[0] + 1
        assert next(back, None) is None

    def test_one_without_a_state_goes_on_with_the_others(self, service):
        ds = Dataset.range(10**8).repeat()
        its = [iter(each) for each in rounds(ds, service, "back", 2)]
        for _ in range(50):
            [next(it) for it in its]
        its[1].close()
        with pytest.raises(
            (ps.AlreadyExistsError, ps.FailedPreconditionError),
            match='on_existing="attach"',
        ):
            next(iter(rounds(ds, service, "back", 2)[1]))
        back = iter(
            rounds(ds, service, "back", 2, on_existing="attach", from_round=50)[
                1
            ]
        )
        # The other one has had 50, and waits.
        assert int(next(back)) == int(next(its[0])) + 1

    def test_one_that_is_not_told_the_round_finds_it(self, service):
        """The service knows it but for the last few, which came together."""
        ds = Dataset.range(10**9).repeat().batch(1_000_000)
        its = [iter(each) for each in rounds(ds, service, "found", 2)]
        for _ in range(12):
            last = [int(next(it)[0]) for it in its]
        its[1].close()

        def is_known():
            jobs = state_of(service.address)["jobs"]
            (job,) = (job for job in jobs if job["job"] == "found[0/2]")
            return int(job["epochs"][0]["consumers"][0]["row"]) >= 8

        wait_until(is_known)
        back = iter(rounds(ds, service, "found", 2, on_existing="attach")[1])
        assert abs(int(next(back)[0]) - last[1]) <= 4 * 2_000_000

    def test_a_slow_one_is_waited_for_by_nobody_but_the_trainer(self, service):
        ds = Dataset.range(2_000)
        a, b = rounds(ds, service, "slow-c", 2)
        assert len([int(x) for x in a]) == 1_000
        got = [int(x) for x in b]
        assert len(got) == 1_000


class TestBadInput:
    @pytest.mark.parametrize(
        ("more", "says"),
        [
            ({"consumer": 2, "num_consumers": 2}, r"in \[0, 2\)"),
            ({"consumer": -1, "num_consumers": 2}, "negative"),
            ({"num_consumers": 0}, "at least 1"),
            ({"consumer": 1}, "num_consumers must be given"),
            ({"consumer": "all"}, '"auto"'),
            ({"num_consumers": 2, "num_readers": 2}, "num_readers"),
            (
                {"num_consumers": 2, "visitation": "at_most_once"},
                "exactly_once",
            ),
            ({"num_consumers": 2, "on_existing": "fresh"}, "another name"),
        ],
    )
    def test_settings(self, more, says):
        with pytest.raises((ValueError, TypeError), match=says):
            Dataset.range(10).distribute(
                "penstock://localhost:1", job="j", **more
            )

    def test_no_job(self):
        with pytest.raises(ps.InvalidArgumentError, match="job must be given"):
            Dataset.range(10).distribute(
                "penstock://localhost:1", num_consumers=2
            )

    def test_what_counts_elements(self):
        with pytest.raises(ps.InvalidArgumentError, match="take"):
            Dataset.range(10).filter(lambda x: x > 2).take(5).distribute(
                "penstock://localhost:1", job="j", num_consumers=2
            )

    def test_other_numbers_of_consumers(self, service):
        ds = Dataset.range(100)
        it = iter(rounds(ds, service, "numbers", 2)[0])
        next(it)
        with pytest.raises(ps.InvalidArgumentError) as e:
            next(iter(rounds(ds, service, "numbers", 3)[1]))
        assert "num_consumers" in str(e.value)
        assert "has 2" in str(e.value)
        assert int(next(it)) == 2

    def test_an_index_twice(self, service):
        ds = Dataset.range(100)
        it = iter(rounds(ds, service, "twice", 2)[0])
        next(it)
        with pytest.raises(ps.AlreadyExistsError, match="consumer 0 of 2"):
            next(iter(rounds(ds, service, "twice", 2)[0]))

    def test_states_of_others(self, service):
        ds = Dataset.range(100)
        its = [iter(each) for each in rounds(ds, service, "others", 2)]
        states = []
        for it in its:
            next(it)
            states.append(it.state_dict())
            it.close()
        for state in (states, states[0]):
            it = iter(rounds(ds, service, "others", 3)[0])
            with pytest.raises(ps.InvalidArgumentError, match="resize=True"):
                it.load_state_dict(state)
                next(it)

    def test_a_function_that_raises(self, service):
        ds = Dataset.range(100).map(lambda x: ps.fill([x - 50], x))
        ds = ds.bucket_by_sequence_length(
            lambda x: ps.size(x), [10, 20], [2, 2, 2]
        )
        a, b = (iter(each) for each in rounds(ds, service, "raises", 2))
        failures = 0
        for it in (a, b):
            while True:
                try:
                    if next(it, None) is None:
                        break
                except ps.InvalidArgumentError:
                    failures += 1
        assert failures >= 1


class TestRanks:
    def test_of_the_environment(self, monkeypatch):
        monkeypatch.setenv("RANK", "3")
        monkeypatch.setenv("WORLD_SIZE", "8")
        ds = Dataset.range(10).distribute(
            "penstock://localhost:1", job="j", consumer="auto"
        )
        assert "consumer 3 of 8" in str(ds.describe())

    def test_of_nobody(self, monkeypatch):
        monkeypatch.delenv("RANK", raising=False)
        monkeypatch.delenv("WORLD_SIZE", raising=False)
        monkeypatch.setitem(__import__("sys").modules, "jax", None)
        with pytest.raises(ps.FailedPreconditionError, match="WORLD_SIZE"):
            Dataset.range(10).distribute(
                "penstock://localhost:1", job="j", consumer="auto"
            )


def test_replicas_in_threads(service):
    """All at once, with a barrier as a training step has it."""
    n = 4
    barrier = threading.Barrier(n, timeout=60)
    steps = [[] for _ in range(n)]
    ds = Dataset.range(4_000).batch(5)

    def train(i):
        for batch in rounds(ds, service, "threads", n)[i]:
            steps[i].append(batch.tolist())
            barrier.wait()

    threads = [threading.Thread(target=train, args=(i,)) for i in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {len(each) for each in steps} == {200}
    flat = sorted(x for each in steps for batch in each for x in batch)
    assert flat == list(range(4_000))
