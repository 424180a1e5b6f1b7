"""Elements kept in files and read again: save, load and snapshot.

After the documentation of `tf.data.Dataset.save`, `load` and `snapshot`.
"""

import tempfile


def build(tf, folder):
    datasets = tf.data.Dataset
    path = tempfile.mkdtemp(dir=folder)

    def features(x):
        return {
            "number": x,
            "half": tf.cast(x, tf.float32) / 2,
            "text": tf.strings.as_string(x),
        }

    def shard_of(element):
        return element["number"] % 3

    def in_turn(shards):
        return shards.interleave(lambda shard: shard, cycle_length=2)

    def one_by_one(shards):
        return shards.flat_map(lambda shard: shard)

    ds = datasets.range(10).map(features)
    ds.save(f"{path}/plain")
    ds.save(f"{path}/shards", compression="GZIP", shard_func=shard_of)
    pairs = datasets.range(6).map(lambda x: (x, x * x))
    pairs.save(f"{path}/pairs", shard_func=lambda x, square: square % 2)

    snapshot = ds.snapshot(
        f"{path}/snapshot", reader_func=one_by_one, shard_func=shard_of
    )
    for _ in snapshot:
        pass  # The first pass writes; TensorFlow's gives another order.
    gzip = "GZIP"
    return {
        "plain": datasets.load(f"{path}/plain"),
        "spec": datasets.load(f"{path}/plain", ds.element_spec),
        "one by one": datasets.load(
            f"{path}/shards", compression=gzip, reader_func=one_by_one
        ),
        "in turn": datasets.load(
            f"{path}/shards", compression=gzip, reader_func=in_turn
        ),
        "a part": datasets.load(
            f"{path}/shards",
            compression=gzip,
            reader_func=lambda shards: one_by_one(shards.skip(1)),
        ),
        "pairs": datasets.load(f"{path}/pairs", reader_func=one_by_one),
        "snapshot": snapshot,
        "default snapshot": pairs.snapshot(f"{path}/default"),
    }
