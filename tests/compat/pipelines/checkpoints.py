"""Iterators that go on from checkpoints, as in tf.data's guide."""

import tempfile


def build(tf, folder):
    path = tempfile.mkdtemp(dir=folder)

    def numbers(iterator, count):
        return [next(iterator).numpy() for _ in range(count)]

    def squares():
        return tf.data.Dataset.range(20).map(lambda x: x * x).batch(2)

    iterator = iter(squares())
    checkpoint = tf.train.Checkpoint(iterator=iterator)
    manager = tf.train.CheckpointManager(
        checkpoint, f"{path}/managed", max_to_keep=2
    )
    seen = numbers(iterator, 3)
    first = manager.save()
    seen += numbers(iterator, 2)
    checkpoint.restore(manager.latest_checkpoint)
    seen += numbers(iterator, 3)
    manager.save()
    manager.save()
    kept = [first in manager.checkpoints, len(manager.checkpoints)]
    latest = tf.train.latest_checkpoint(f"{path}/managed")
    kept.append(latest == manager.latest_checkpoint)

    # Another iterator, as after a restart.
    again = iter(squares())
    tf.train.Checkpoint(iterator=again).restore(latest)
    seen += numbers(again, 4)

    saved = tf.train.Checkpoint(iterator=iterator).save(f"{path}/own/ckpt")
    kept.append(saved.endswith("ckpt-1"))
    nothing = tf.train.latest_checkpoint(f"{path}/nothing")
    kept.append(nothing is None)
    return {
        "seen": tf.data.Dataset.from_tensor_slices(seen),
        "kept": tf.data.Dataset.from_tensor_slices([int(k) for k in kept]),
    }
