"""S5b: coordinated reads: rounds of two consumers, small batches."""

import itertools
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import serving
from workload import ENDLESS, Compared

ROW = Compared(
    number="S5b",
    title="coordinated reads, 2 consumers, batches of 8 int64",
    elements_per_batch=1,
    must_reach=10,
    moonshot=30,
)
_CONSUMERS = 2
_names = (f"rounds-{i}" for i in itertools.count())


class Rounds:
    """What each of the consumers has, round by round."""

    def __init__(self, consumers):
        self._consumers = consumers

    def __iter__(self):
        its = [begin(each) for each in self._consumers]
        # The peer's consumers wait for each other until all have begun.
        with ThreadPoolExecutor(len(its)) as pool:
            first = tuple(pool.map(next, its))
        return itertools.chain([first], zip(*its, strict=True))


def begin(consumer):
    numpy = getattr(consumer, "as_numpy_iterator", None)
    return iter(consumer) if numpy is None else numpy()


def ours():
    import penstock as ps

    service = serving.ours()
    ds = ps.Dataset.range(ENDLESS).batch(8)
    name = next(_names)
    return {
        "plain": Rounds(
            [
                ds.distribute(
                    service.address,
                    job=name,
                    consumer=i,
                    num_consumers=_CONSUMERS,
                )
                for i in range(_CONSUMERS)
            ]
        )
    }


def peer():
    import tensorflow as tf

    service = serving.PeerService()
    ds = tf.data.Dataset.range(ENDLESS).repeat().batch(8)

    def rounds(name, ahead):
        consumers = [
            service.distribute(
                ds, job_name=name, consumer_index=i, num_consumers=_CONSUMERS
            )
            for i in range(_CONSUMERS)
        ]
        return Rounds([each.prefetch(ahead) for each in consumers])

    return {
        "prefetch(1)": rounds("one", 1),
        "prefetch(16)": rounds("many", 16),
    }


def check(batches):
    """A round is two batches that follow one another."""
    for _ in range(50):
        first, second = next(batches)
        np.testing.assert_array_equal(second, first + 8)
