"""Jobs that have what workers compute once."""

import itertools
import os
import signal
import threading

import numpy as np
import pytest
from servers import state_of, wait_until

import penstock as ps

Dataset = ps.Dataset


def numbers(ds):
    return [int(x) for x in ds]


def shared_by_workers(service):
    """The sums over all workers of what `penstock state WORKER` says."""
    sums = {}
    for worker in state_of(service.address)["workers"]:
        shared = state_of(worker["address"])["shared"]
        for name, value in shared.items():
            sums[name] = sums.get(name, 0) + int(value)
    return sums


def in_threads(datasets):
    """All of them read at once, to their ends."""
    got = [None] * len(datasets)

    def read(i):
        got[i] = numbers(datasets[i])

    threads = [
        threading.Thread(target=read, args=(i,)) for i in range(len(datasets))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return got


class TestExactlyOnce:
    def share(self, ds, service, name, job):
        return ds.distribute(
            service.address, job=job, share=name, visitation="exactly_once"
        )

    def test_all_have_all_in_one_order(self, service):
        ds = Dataset.range(20_000).shuffle(500).map(lambda x: x * 3)
        members = [
            self.share(ds, service, "all", f"all-{i}").batch(50).unbatch()
            for i in range(4)
        ]
        got = in_threads(members)
        assert sorted(got[0]) == list(range(0, 60_000, 3))
        assert got[0] != sorted(got[0])
        assert got[1] == got[0]
        assert got[2] == got[0]
        assert got[3] == got[0]

    def test_it_is_computed_once(self):
        with ps.LocalService(workers=2, cpu=1) as service:
            ds = Dataset.range(100_000).map(lambda x: x + 1).batch(100)
            members = [
                self.share(ds, service, "once", f"once-{i}").unbatch()
                for i in range(4)
            ]
            for got in in_threads(members):
                assert sorted(got) == list(range(1, 100_001))
            shared = shared_by_workers(service)
        assert shared["computed"] > 0
        assert shared["again"] == 0
        assert shared["sent_again"] >= 2 * shared["computed"]

    def test_one_after_another_has_all_too(self, service):
        ds = Dataset.range(5_000).batch(10)
        for i in range(3):
            one = self.share(ds, service, "later", f"later-{i}")
            assert sum(len(batch) for batch in one) == 5_000

    def test_a_slow_one_holds_nobody_up(self, service):
        ds = Dataset.range(3_000).map(lambda x: x * 2)
        slow = iter(self.share(ds, service, "slow", "slow-a"))
        first = [int(next(slow)) for _ in range(3)]
        fast = numbers(self.share(ds, service, "slow", "slow-b"))
        assert sorted(fast) == list(range(0, 6_000, 2))
        assert first + [int(x) for x in slow] == fast

    def test_a_state_goes_on_where_it_was(self, service):
        ds = Dataset.range(4_000).shuffle(100).batch(8)
        other = iter(self.share(ds, service, "states", "states-b"))
        next(other)
        make = lambda: iter(self.share(ds, service, "states", "states-a"))  # noqa: E731
        it = make()
        head = [next(it).tolist() for _ in range(100)]
        state = it.state_dict()
        rest = [x.tolist() for x in it]
        again = make()
        again.load_state_dict(state)
        assert [x.tolist() for x in again] == rest
        assert len(head) + len(rest) == 500

    def test_a_killed_worker_costs_nothing(self):
        with ps.LocalService(workers=2, cpu=1) as service:
            ds = Dataset.range(200_000).map(lambda x: x + 1).batch(20)
            its = [
                iter(self.share(ds, service, "kill", f"kill-{i}"))
                for i in range(2)
            ]
            got = [[next(it).tolist() for _ in range(50)] for it in its]
            os.kill(service.worker_pids[0], signal.SIGKILL)
            for it, had in zip(its, got, strict=True):
                had.extend(batch.tolist() for batch in it)
        rows = [list(itertools.chain.from_iterable(had)) for had in got]
        assert sorted(rows[0]) == list(range(1, 200_001))
        assert rows[1] == rows[0]


class TestAtMostOnce:
    def share(self, ds, service, name, job, **more):
        return ds.distribute(service.address, job=job, share=name, **more)

    def test_nobody_has_an_element_twice(self, service):
        ds = Dataset.range(10**9).map(lambda x: x + 1).batch(100)
        members = [
            self.share(ds.repeat(), service, "trials", f"trials-{i}").take(200)
            for i in range(3)
        ]
        for got in in_threads([m.unbatch() for m in members]):
            assert len(got) == 20_000
            assert len(set(got)) == 20_000

    def test_one_that_comes_late_begins_where_the_others_are(self):
        with ps.LocalService(workers=1, cpu=1, memory=512 << 20) as service:
            ds = Dataset.range(10**9).repeat()
            ds = ds.map(lambda x: ps.fill([10_000], x))
            first = iter(self.share(ds, service, "late", "late-a"))
            for _ in range(6_000):  # half a gigabyte
                last = int(next(first)[0])
            late = iter(self.share(ds, service, "late", "late-b"))
            began = int(next(late)[0])
        assert began > 0
        assert abs(began - last) < 5_000

    def test_a_slow_one_is_told_what_it_missed(self, caplog):
        with ps.LocalService(workers=1, cpu=1, memory=256 << 20) as service:
            # 80 kB each: the window has a few hundred of them.
            ds = Dataset.range(10**9).repeat()
            ds = ds.map(lambda x: ps.fill([10_000], x))
            slow = iter(self.share(ds, service, "told", "told-a"))
            had = [int(next(slow)[0])]
            fast = iter(self.share(ds, service, "told", "told-b"))
            for _ in range(4_000):
                next(fast)
            while had[-1] < 2_000:
                had.append(int(next(slow)[0]))
            assert "job 'told-a' is slower" in caplog.text
            assert had == sorted(set(had))

            def is_shown():
                jobs = state_of(service.address)["jobs"]
                (job,) = (job for job in jobs if job["job"] == "told-a")
                consumer = job["epochs"][0]["consumers"][0]
                return int(consumer["missed_items"]) > 0

            wait_until(is_shown)

    def test_with_wait_the_others_wait(self):
        with ps.LocalService(workers=1, cpu=1, memory=256 << 20) as service:
            ds = Dataset.range(10**9).repeat()
            ds = ds.map(lambda x: ps.fill([10_000], x))
            more = {"share_policy": "wait"}
            slow = iter(self.share(ds, service, "wait", "wait-a", **more))
            had = [int(next(slow)[0])]
            fast = iter(self.share(ds, service, "wait", "wait-b", **more))
            ahead = []

            def read():
                for _ in range(3_000):
                    ahead.append(int(next(fast)[0]))

            thread = threading.Thread(target=read)
            thread.start()
            while len(had) < 3_000:
                had.append(int(next(slow)[0]))
            thread.join()
            assert had == list(range(3_000))
            assert ahead == list(range(3_000))

    def test_auto_finds_who_has_the_same_pipeline(self, service, caplog):
        ds = Dataset.range(777).repeat().batch(7)
        one = iter(self.share(ds, service, "auto", "auto-a"))
        next(one)
        next(iter(self.share(ds, service, "auto", "auto-b")))
        assert "job 'auto-b' has what workers compute for auto-a" in caplog.text
        assert "auto-a, auto-b" not in caplog.text


class TestBadInput:
    def test_pipelines_that_end(self, service):
        with pytest.raises(ps.InvalidArgumentError, match="must not end") as e:
            Dataset.range(10).distribute(service.address, share="x")
        assert "repeat()" in str(e.value)

    def test_members_that_differ(self, service):
        a = (
            Dataset.range(10)
            .repeat()
            .distribute(service.address, job="differ-a", share="differ")
        )
        b = (
            Dataset.range(11)
            .repeat()
            .distribute(service.address, job="differ-b", share="differ")
        )
        it = iter(a)
        next(it)
        with pytest.raises(ps.InvalidArgumentError) as e:
            next(iter(b))
        assert "job 'differ-a' has" in str(e.value)
        assert "job 'differ-b'" in str(e.value)
        assert int(next(it)) == 1  # the others go on
        c = (
            Dataset.range(10)
            .repeat()
            .distribute(
                service.address,
                job="differ-c",
                share="differ",
                visitation="exactly_once",
            )
        )
        with pytest.raises(ps.InvalidArgumentError, match="same visitation"):
            next(iter(c))

    @pytest.mark.parametrize(
        ("more", "says"),
        [
            ({"share": ""}, "share must be a name"),
            ({"share": 3}, "share must be a name"),
            ({"share": "x", "share_policy": "drop"}, '"skip" or "wait"'),
            ({"share_policy": "skip"}, "left out without share"),
            ({"share": "x", "num_readers": 2}, "num_readers must be left out"),
            ({"share": "x", "visitation": "each_worker"}, "same elements"),
            (
                {
                    "share": "x",
                    "visitation": "exactly_once",
                    "share_policy": "skip",
                },
                "loses elements",
            ),
            ({"share": "x", "num_consumers": 2, "job": "j"}, "together"),
        ],
    )
    def test_settings(self, more, says):
        ds = Dataset.range(10).repeat()
        with pytest.raises((ValueError, TypeError), match=says):
            ds.distribute("penstock://localhost:1", **more)


def test_what_is_shared_cannot_be_changed(service):
    """Two trainers on one host look at the same memory."""
    ds = Dataset.range(100).map(lambda x: ps.fill([100_000], x)).batch(2)
    its = [
        iter(
            ds.distribute(
                service.address,
                job=f"memory-{i}",
                share="memory",
                visitation="exactly_once",
            )
        )
        for i in range(2)
    ]
    for _ in range(20):
        a, b = (next(it) for it in its)
        np.testing.assert_array_equal(a, b)
        if not a.flags.writeable:
            continue
        a[:] = -1  # its own, then
        assert int(b[0, 0]) >= 0


def test_jobs_of_a_group_are_shown(service):
    ds = Dataset.range(1_000).repeat()
    it = iter(ds.distribute(service.address, job="seen-a", share="seen"))
    next(it)

    def is_shown():
        jobs = state_of(service.address)["jobs"]
        return any(
            job["job"] == "seen-a" and job["group"]["name"] == "seen"
            for job in jobs
        )

    wait_until(is_shown)
