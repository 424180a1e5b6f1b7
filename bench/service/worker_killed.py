"""S5c: one of two workers is killed in mid-epoch.

Ours must give every element once, or there is no figure. Each figure is the
time from the kill to the first element that another worker sends of a part of
the data that the killed one was at.

Which parts those are is seen by holding that worker for a moment before it is
killed: what is on its way from it arrives, and its parts are those that stand
still. Holding alone is noticed by nobody; that takes seconds.
"""

import os
import signal
import threading
import time

import serving
from workload import Cost

ROW = Cost(
    number="S5c",
    title="one of two workers killed: first element of another, slowest of 5",
    unit="ms",
    limit=1000,
    has_peer=True,
)
_ROWS = 6400
# Of a part: the service cuts as many rows in 64.
_PART_ROWS = 100
_KILLS = 5
_HOLD_S = 0.2
_PEER_LIMIT_S = 60


def _pipeline(ps):
    # About a millisecond a row, so that workers are what is waited for.
    size = 50_000 if "BENCH_SMOKE" in os.environ else 400_000
    return ps.Dataset.range(_ROWS).map(
        lambda x: (x, ps.sum(ps.random_uniform([size], seed=1)))
    )


class _Epoch:
    """One pass, in which a worker is killed."""

    def __init__(self, elements):
        self._elements = elements
        self.had = []
        self._counts = dict.fromkeys(range(_ROWS // _PART_ROWS), 0)

    def take(self):
        """Which part the next element is of; None at the end."""
        element = next(self._elements, None)
        if element is None:
            return None
        self.had.append(int(element[0]))
        part = self.had[-1] // _PART_ROWS
        self._counts[part] += 1
        return part

    def begun_parts(self):
        counts = self._counts.items()
        return {part for part, n in counts if 0 < n < _PART_ROWS}

    def seconds_to_replace(self, pid):
        """None if the worker was between two parts when it was killed."""
        while len(self.had) < _ROWS // 8:
            self.take()
        os.kill(pid, signal.SIGSTOP)
        end = time.monotonic() + _HOLD_S / 2
        while time.monotonic() < end:
            self.take()
        still = self.begun_parts()
        end = time.monotonic() + _HOLD_S / 2
        while time.monotonic() < end:
            still.discard(self.take())
        os.kill(pid, signal.SIGKILL)
        start = time.monotonic()
        while still:
            part = self.take()
            if part in still:
                return time.monotonic() - start
            if part is None:
                break
        return None

    def finish(self):
        while self.take() is not None:
            pass
        assert sorted(self.had) == list(range(_ROWS)), "not each element once"


def kills(count):
    """Seconds until another worker had taken over, of that many kills."""
    import penstock as ps

    took = []
    while len(took) < count:
        service = serving.ours(workers=2)
        ds = _pipeline(ps).distribute(service.address)
        epoch = _Epoch(iter(ds))
        found = epoch.seconds_to_replace(service.worker_pids[0])
        epoch.finish()
        service.close()
        if found is not None:
            took.append(found)
    return took


def measure(seconds):
    is_smoke = "BENCH_SMOKE" in os.environ
    return max(kills(1 if is_smoke else _KILLS)) * 1e3


def peer_measure(seconds):
    """The longest wait of an epoch that ended whole; fails if it did not."""
    import tensorflow as tf

    def costly(x):
        return x, tf.reduce_sum(tf.random.uniform([400_000]))

    service = serving.PeerService(workers=2)
    ds = tf.data.Dataset.range(_ROWS).map(costly)
    elements = iter(service.distribute(ds, "dynamic"))
    had = [int(next(elements)[0]) for _ in range(_ROWS // 8)]
    waits = [0.0]
    service.workers[0].kill()

    def finish():
        last = time.monotonic()
        for x, _ in elements:
            had.append(int(x))
            now = time.monotonic()
            waits.append(now - last)
            last = now

    rest = threading.Thread(target=finish, daemon=True)
    rest.start()
    rest.join(_PEER_LIMIT_S)
    lost = _ROWS - len(set(had))
    if rest.is_alive():
        raise RuntimeError(
            f"no end within {_PEER_LIMIT_S} s; {lost} of {_ROWS} are missing"
        )
    if lost or len(had) != _ROWS:
        raise RuntimeError(
            f"ended with {lost} of {_ROWS} lost, "
            f"{len(had) - len(set(had))} twice"
        )
    return max(waits) * 1e3
