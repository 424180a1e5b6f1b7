"""F3: samples of tar archives, as WebDataset writes them."""

import tables
from workload import Compared

BATCH = 100

ROW = Compared(
    number="F3",
    title="tar, samples of 1.5 kB and a label, batch(100)",
    elements_per_batch=BATCH,
    must_reach=5,
    moonshot=None,
)


def ours():
    import penstock as ps

    samples = ps.TarDataset(tables.tar_file(), ["bin", "cls"])
    return {"plain": samples.repeat().batch(BATCH)}


class _Tarfile:
    """The standard library, read as a stream."""

    def __iter__(self):
        import tarfile

        while True:
            with tarfile.open(tables.tar_file(), "r|") as tar:
                batch, sample, key = [], {}, None
                for member in tar:
                    stem, extension = member.name.split(".", 1)
                    if stem != key:
                        if sample:
                            batch.append(sample)
                        if len(batch) == BATCH:
                            yield batch
                            batch = []
                        key, sample = stem, {"__key__": stem}
                    sample[extension] = tar.extractfile(member).read()


class _WebDataset:
    def __iter__(self):
        import webdataset

        shards = webdataset.WebDataset(
            tables.tar_file(), shardshuffle=False, empty_check=False
        )
        return iter(shards.repeat().batched(BATCH))


def peer():
    import webdataset  # noqa: F401

    return {"tarfile": _Tarfile(), "webdataset": _WebDataset()}


def check(batches):
    batch = next(batches)
    assert batch["bin"].shape == (BATCH,)
    assert len(batch["bin"][0]) == tables.MEMBER_BYTES
    assert batch["cls"][BATCH - 1] == str(BATCH - 1).encode()
