"""F2: JSON lines into typed columns."""

import itertools

import numpy as np
import tables
from workload import Compared

BATCH = 1000

ROW = Compared(
    number="F2",
    title="JSON lines, 6 floats, 6 ints, a text, batch(1000)",
    elements_per_batch=BATCH,
    must_reach=5,
    moonshot=None,
)


def ours():
    import penstock as ps

    schema = {
        "floats": ps.TensorSpec((tables.FLOATS,), ps.float32),
        "ints": ps.TensorSpec((tables.INTS,), ps.int64),
        "text": ps.string,
    }
    rows = ps.JsonLinesDataset(tables.json_file(), schema)
    return {"plain": rows.repeat().batch(BATCH)}


class _Reader:
    """What Python has for it, into the same arrays."""

    def __iter__(self):
        import json

        while True:
            with open(tables.json_file(), "rb") as file:
                while lines := list(itertools.islice(file, BATCH)):
                    rows = list(map(json.loads, lines))
                    yield {
                        "floats": np.array(
                            [r["floats"] for r in rows], np.float32
                        ),
                        "ints": np.array([r["ints"] for r in rows]),
                        "text": [r["text"] for r in rows],
                    }


def peer():
    return {"json": _Reader()}


def check(batches):
    batch = next(batches)
    assert batch["floats"].shape == (BATCH, tables.FLOATS)
    assert batch["ints"].shape == (BATCH, tables.INTS)
    assert batch["text"][BATCH - 1] == f"row {BATCH - 1}".encode()
