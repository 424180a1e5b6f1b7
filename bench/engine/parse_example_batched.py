"""E5b: ours as E5, the peer in the form that batches first, by hand."""

import clicks
from workload import Compared, load

ROW = Compared(
    number="E5b",
    title="the same; the peer's users batch first, then parse_example",
    elements_per_batch=1000,
    must_reach=2.5,
    moonshot=5,
)

_one_by_one = load("engine/parse_example")
ours = _one_by_one.ours
check = _one_by_one.check


def peer():
    import tensorflow as tf

    auto = tf.data.AUTOTUNE
    wanted = _one_by_one.features(tf.io, tf.float32, tf.int64, tf.string)
    records = tf.data.TFRecordDataset(clicks.files()).repeat().batch(1000)

    def parse(batch):
        return tf.io.parse_example(batch, wanted)

    return {
        "plain": records.map(parse),
        "prefetch": records.map(parse).prefetch(auto),
        "parallel": records.map(parse, num_parallel_calls=auto).prefetch(auto),
    }
