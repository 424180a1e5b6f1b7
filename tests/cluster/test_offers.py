"""What workers compute again is offered to be kept; and is kept, if asked."""

import re
import time

import numpy as np
import pytest
from servers import dispatcher, state_of, wait_until, worker

import penstock as ps

ROWS = 640


def costly(x):
    """A millisecond or so of work, and a small result."""
    many = ps.cast(x, ps.float32) * np.ones(200_000, np.float32)
    return x, ps.sum(ps.sin(many))


def noisy(x, y):
    return x, y, ps.random_uniform([])


def pipeline(keep_in=None, size=10):
    ds = ps.Dataset.range(ROWS).map(costly)
    if keep_in is not None:
        ds = ds.snapshot(keep_in)
    return ds.map(noisy).batch(size)


def rows(ds):
    """[x, y, noise] of each row, by x."""
    parts = [np.stack(batch, axis=1) for batch in ds]
    found = np.concatenate(parts)
    found = found[np.argsort(found[:, 0])]
    assert found[:, 0].tolist() == list(range(ROWS))
    return found


def cpu_seconds(service):
    return sum(time.clock_gettime(~pid << 3 | 2) for pid in service.worker_pids)


def cost_of(service, ds):
    before = cpu_seconds(service)
    found = rows(ds)
    return cpu_seconds(service) - before, found


def job(service, name):
    jobs = state_of(service.address)["jobs"]
    return next(each for each in jobs if each["job"] == name)


def offers(service, name):
    return job(service, name).get("offers", [])


def offers_of(iterator):
    """Those that it has heard of, if it has run for long enough to say."""
    try:
        return iterator.explain().offers
    except ps.FailedPreconditionError:
        return ()


def has_said_all(service, name):
    """Workers have said what the job's epochs cost."""
    epochs = job(service, name)["epochs"]
    return all(float(each.get("cpu_seconds", 0)) > 0 for each in epochs)


def test_a_second_epoch_is_offered_to_be_kept_and_is(service, tmp_path):
    ds = pipeline().distribute(service.address, job="again")
    first, plain = cost_of(service, ds)
    assert not offers(service, "again")
    rows(ds)
    wait_until(lambda: offers(service, "again"))
    # A reader hears of it, too.
    iterator = iter(ds)
    next(iterator)
    wait_until(lambda: offers_of(iterator))
    e = iterator.explain()
    iterator.close()
    (offer,) = e.offers
    assert offer.advice in str(e).replace("\n    ", " ")
    assert re.match(
        r'put \.snapshot\("/shared/path"\) after map_1 \(.*\.py:\d+\)$',
        offer.advice,
    )
    assert offer.node == "map_1"
    assert "job 'again'" in offer.why
    assert offer.cpu_share > 0.5
    assert offer.bytes_low <= offer.bytes_high < 100 * ROWS

    kept = pipeline(tmp_path).distribute(service.address, job="kept")
    writing, written = cost_of(service, kept)
    reading, read = cost_of(service, kept)
    assert reading < 0.5 * min(first, writing)
    assert (written[:, :2] == plain[:, :2]).all()
    assert (read[:, :2] == plain[:, :2]).all()
    assert (read[:, 2] != written[:, 2]).any()  # what is random still is
    # Another job, with something else after the same.
    other = pipeline(tmp_path, 16).distribute(service.address, job="kept-too")
    reading, read = cost_of(service, other)
    assert reading < 0.5 * min(first, writing)
    assert (read[:, :2] == plain[:, :2]).all()
    wait_until(lambda: has_said_all(service, "kept"))
    assert not offers(service, "kept")


def test_a_second_job_is_offered_what_both_compute(service):
    def pictures(size):
        ds = ps.Dataset.range(1000, 1000 + ROWS).map(costly)
        return ds.map(noisy).batch(size)

    list(pictures(10).distribute(service.address, job="first"))
    list(pictures(16).distribute(service.address, job="second"))
    wait_until(lambda: offers(service, "second"))
    (offer,) = offers(service, "second")
    assert offer["node"] == "map_1"
    assert "for job 'first'" in offer["why"]


def test_what_runs_twice_now_is_offered_to_be_shared(service):
    ds = ps.Dataset.range(2000, 2000 + ROWS).repeat().map(costly).map(noisy)
    both = [
        iter(ds.distribute(service.address, job=f"now-{i}")) for i in range(2)
    ]

    def is_offered():
        for iterator in both:
            for _ in range(20):
                next(iterator)
        return any(
            'share="auto"' in offer["advice"]
            for i in range(2)
            for offer in offers(service, f"now-{i}")
        )

    wait_until(is_offered, 60)
    for iterator in both:
        iterator.close()


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(
            lambda: ps.Dataset.range(400_000).map(lambda x: x + 1).batch(100),
            id="cheap",
        ),
        pytest.param(
            lambda: (
                ps.Dataset.range(3000, 3000 + ROWS)
                .map(lambda x: x + ps.cast(2 * ps.random_uniform([]), ps.int64))
                .map(costly)
                .batch(10)
            ),
            id="after what is random",
        ),
    ],
)
def test_nothing_is_offered(service, make, request):
    name = f"nothing-{request.node.callspec.id}"
    ds = make().distribute(service.address, job=name)
    for _ in range(2):
        for _ in ds:
            pass
    wait_until(lambda: has_said_all(service, name))
    assert not offers(service, name)


def test_padding_is_counted_by_jobs(service):
    lengths = np.arange(1, 401) % 20 + 1
    ds = ps.Dataset.from_tensor_slices(lengths).map(lambda n: ps.fill([n], n))
    list(ds.padded_batch(10).distribute(service.address, job="padded"))

    def padding_said():
        return job(service, "padded").get("padding", {"items": 0})

    # Workers say it piece by piece, and not of batches made of loose rows.
    wait_until(lambda: int(padding_said()["items"]) > 0.5 * lengths.sum())
    padding = padding_said()
    assert int(padding["items"]) <= lengths.sum()
    assert int(padding["padded_items"]) > int(padding["items"])


def test_workers_write_snapshots_where_they_were_told(tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    (data / "numbers.txt").write_text("".join(f"{i}\n" for i in range(100)))
    ds = ps.TextLineDataset(str(data / "numbers.txt"))
    ds = ds.map(lambda x: ps.strings.to_number(x, ps.int64))

    def read(address, folder):
        kept = ds.snapshot(tmp_path / folder).map(lambda x: x + 1)
        return sorted(int(x) for x in kept.distribute(address))

    (tmp_path / "kept").mkdir()
    with (
        dispatcher() as head,
        worker(
            head.address,
            *("--allow", str(data), "--snapshots", str(tmp_path / "kept")),
        ),
    ):
        for _ in range(2):
            assert read(head.address, "kept") == list(range(1, 101))
        files = list((tmp_path / "kept").glob("*/*.penstock"))
        assert len(files) == 1
        with pytest.raises(ps.PermissionDeniedError, match="--snapshots"):
            read(head.address, "data/elsewhere")
        # What it was made of has changed.
        (data / "numbers.txt").write_text("7\n")
        assert read(head.address, "kept") == [8]


def test_workers_write_no_snapshots_where_nobody_made_one(service, tmp_path):
    ds = pipeline(tmp_path)
    for mark in tmp_path.glob("*/*.shares"):
        mark.unlink()
    with pytest.raises(ps.PermissionDeniedError, match="found none"):
        list(ds.distribute(service.address, job="not-kept"))
