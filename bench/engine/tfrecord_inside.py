"""E4 again, with records that stay in the engine: ours alone differs.

Only a number per batch reaches Python, so that this is the engine's own rate,
as E4's peer never makes a Python object of a record either.
"""

import records
from bare import records_per_s as bare  # noqa: F401
from workload import Compared, load

_E4 = load("engine/tfrecord")

ROW = Compared(
    number="E4i",
    title="TFRecord, batch(1000), kept in the engine",
    elements_per_batch=1000,
    must_reach=10,
    moonshot=None,
    share_of_bare=0.8,
)
peer = _E4.peer


def ours():
    import penstock as ps

    batches = ps.TFRecordDataset(records.files()).repeat().batch(1000)
    return {"plain": batches.map(lambda batch: ps.size(batch))}


def check(sizes):
    assert [next(sizes) for _ in range(100)] == [1000] * 100
