"""S5: jobs that share one JPEG pipeline: the workers' CPU, against one job's.

Each job has the same batches. Readers are threads of one process, since what is
compared is what the workers spend. BENCH_JOBS: how many, if not 8.
"""

import os
import threading
import time
from pathlib import Path

import photos
import serving
from workload import Cost

_JOBS = int(os.environ.get("BENCH_JOBS", "8"))
ROW = Cost(
    number="S5",
    title=f"{_JOBS} jobs that share a JPEG pipeline: workers' CPU against one",
    unit="times",
    limit=1.04,
    has_peer=True,
)
_TURNS = 3


def _batches() -> int:
    return 4 if "BENCH_SMOKE" in os.environ else 48


def _cpu_seconds(pids) -> float:
    ticks = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2]
        ticks += sum(int(x) for x in fields.split()[11:13])
    return ticks / os.sysconf("SC_CLK_TCK")


def _read_all(iterators, count) -> None:
    """That many batches of each, all at once."""

    def read(iterator):
        for _ in range(count):
            next(iterator)

    threads = [threading.Thread(target=read, args=(it,)) for it in iterators]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _cost(make, pids, jobs) -> float:
    """CPU seconds of the workers for the batches of all jobs."""
    iterators = [iter(make(i)) for i in range(jobs)]
    _read_all(iterators, 2)  # what is done once
    before = _cpu_seconds(pids)
    _read_all(iterators, _batches())
    return _cpu_seconds(pids) - before


def _ratio(cost_of) -> float:
    """The median of a few, one after another."""
    found = []
    for turn in range(_TURNS):
        one = cost_of(f"one-{turn}", 1)
        many = cost_of(f"many-{turn}", _JOBS)
        found.append(many / one)
    return sorted(found)[len(found) // 2]


def measure(seconds):
    import penstock as ps

    files = photos.files(375, 500, 128)
    service = serving.ours()

    def decode(file):
        return ps.image.resize(
            ps.image.decode_jpeg(file, channels=3), (224, 224)
        )

    # As many as are read, so that nothing is computed for nobody.
    rows = 64 * (_batches() + 2)
    numbers = ps.Dataset.from_tensor_slices(files).repeat().take(rows)
    ds = numbers.map(decode).batch(64)

    def cost_of(name, jobs):
        def make(i):
            return ds.distribute(
                service.address,
                job=f"{name}-{i}",
                share=name,
                visitation="exactly_once",
            )

        return _cost(make, service.worker_pids, jobs)

    return _ratio(cost_of)


def peer_measure(seconds):
    import tensorflow as tf

    files = photos.files(375, 500, 128)
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

    return _ratio(cost_of)
