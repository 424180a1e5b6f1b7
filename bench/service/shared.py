"""S5: jobs that share one JPEG pipeline: the workers' CPU, against one job's.

Each job has the same batches, all that the pipeline has: workers compute ahead,
and what is for nobody would count as well. Readers are threads of one process,
since what is compared is what the workers spend. Beside the figure of the most
jobs: those of fewer, and how fast the slowest of jobs is that take their time
over a batch, so that workers need not be the wall, against one of them alone.
"""

import os
import threading
import time

import photos
import serving
from workload import Cost, Noted

_JOBS = (2, 4, 8)
ROW = Cost(
    number="S5",
    title=f"{_JOBS[-1]} jobs that share a JPEG pipeline: workers' CPU "
    "against one",
    unit="times",
    limit=1.04,
    has_peer=True,
    digits=3,
)
_TURNS = 5
_IS_SMOKE = "BENCH_SMOKE" in os.environ
_FILES = 128
_BATCHES = 4 if _IS_SMOKE else 48  # of 64
_STEPS = 8 if _IS_SMOKE else 40  # of 16
_STEP_SECONDS = 0.01 if _IS_SMOKE else 0.25


def _cpu_seconds(pids) -> float:
    """To the nanosecond; /proc has hundredths of a second."""
    return sum(time.clock_gettime(~pid << 3 | 2) for pid in pids)


def _at_once(work, count) -> None:
    threads = [threading.Thread(target=work, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _cost(make, pids, jobs) -> float:
    """CPU seconds of the workers for the batches of all jobs."""
    before = _cpu_seconds(pids)
    iterators = [iter(make(i)) for i in range(jobs)]

    def read(i):
        for _ in range(_BATCHES):
            next(iterators[i])  # and lets it go, as a trainer does

    _at_once(read, jobs)
    return _cpu_seconds(pids) - before


def _slowest(make, jobs) -> float:
    """Steps a second of the slowest of jobs whose steps take their time."""
    iterators = [iter(make(i)) for i in range(jobs)]
    _at_once(lambda i: next(iterators[i]), jobs)
    seconds = [0.0] * jobs

    def train(i):
        start = time.monotonic()
        for _ in range(_STEPS - 1):
            next(iterators[i])
            time.sleep(_STEP_SECONDS)
        seconds[i] = time.monotonic() - start

    _at_once(train, jobs)
    return (_STEPS - 1) / max(seconds)


def _median(found) -> float:
    return sorted(found)[len(found) // 2]


def _ratios(cost_of) -> dict[int, float]:
    """By the number of jobs: medians, measured in turns."""
    found = {jobs: [] for jobs in _JOBS}
    cost_of("first", 1)  # what is done once
    for turn in range(1 if _IS_SMOKE else _TURNS):
        one = cost_of(f"one-{turn}", 1)
        for jobs in _JOBS:
            found[jobs].append(cost_of(f"of-{jobs}-{turn}", jobs) / one)
    return {jobs: _median(values) for jobs, values in found.items()}


def _said(ratios) -> str:
    return ", ".join(f"k={k}: {ratio:.3f}" for k, ratio in ratios.items())


def measure(seconds):
    import penstock as ps

    files = photos.files(375, 500, _FILES)
    service = serving.ours()

    def decode(file):
        return ps.image.resize(
            ps.image.decode_jpeg(file, channels=3), (224, 224)
        )

    def jobs_of(name, batches, rows):
        source = ps.Dataset.from_tensor_slices(files)
        times = -(-batches * rows // len(files))
        ds = source.repeat(times).map(decode).batch(rows)
        return lambda i: ds.distribute(
            service.address,
            job=f"{name}-{i}",
            share=name,
            visitation="exactly_once",
        )

    def cost_of(name, jobs):
        make = jobs_of(name, _BATCHES, 64)
        return _cost(make, service.worker_pids, jobs)

    ratios = _ratios(cost_of)
    alone = _slowest(jobs_of("slow-1", _STEPS, 16), 1)
    together = _slowest(jobs_of("slow-8", _STEPS, 16), _JOBS[-1])
    return Noted(
        ratios[_JOBS[-1]],
        f"{_said(ratios)}; the slowest of {_JOBS[-1]} with steps of "
        f"{_STEP_SECONDS:g} s has {together / alone:.2f} of its speed alone",
    )


def peer_measure(seconds):
    import tensorflow as tf

    files = photos.files(375, 500, _FILES)
    service = serving.PeerService()
    pids = [worker.pid for worker in service.workers]

    def decode(file):
        return tf.image.resize(tf.io.decode_jpeg(file, channels=3), (224, 224))

    source = tf.data.Dataset.from_tensor_slices(files).repeat()
    mapped = source.map(decode, num_parallel_calls=tf.data.AUTOTUNE)
    ds = mapped.batch(64)

    def cost_of(name, jobs):
        def make(i):
            return service.distribute(
                ds,
                job_name=name,
                cross_trainer_cache=(
                    tf.data.experimental.service.CrossTrainerCache(
                        trainer_id=f"trainer-{i}"
                    )
                ),
            )

        cost = _cost(make, pids, jobs)
        time.sleep(1)  # iterators that have gone compute for a while
        return cost

    ratios = _ratios(cost_of)
    return Noted(ratios[_JOBS[-1]], f"peer: {_said(ratios)}")
