"""`tf.train.Checkpoint`: what it refuses, and how it goes on."""

import pytest

import penstock.compat.tf as tf


def iterator():
    return iter(tf.data.Dataset.range(9))


def test_refuses_what_has_no_state():
    with pytest.raises(TypeError, match="state_dict"):
        tf.train.Checkpoint(step=3)
    with pytest.raises(ValueError, match="max_to_keep"):
        tf.train.CheckpointManager(tf.train.Checkpoint(), "x", 0)


def test_refuses_files_that_are_missing_or_damaged(tmp_path):
    checkpoint = tf.train.Checkpoint(iterator=iterator())
    with pytest.raises(tf.errors.NotFoundError, match="there is none"):
        checkpoint.restore(tmp_path / "ckpt-1")
    path = checkpoint.save(tmp_path / "ckpt")
    (file,) = tmp_path.glob("ckpt-1*")
    text = file.read_text()
    for damaged in ("", "{}", "[]", text[:-9], text.replace("iterator", "x")):
        file.write_text(damaged)
        with pytest.raises(tf.errors.DataLossError, match="must be what"):
            checkpoint.restore(path)
    file.write_text(text)
    checkpoint.restore(path).assert_consumed()


def test_goes_on_after_a_restart(tmp_path):
    first = iterator()
    manager = tf.train.CheckpointManager(
        tf.train.Checkpoint(it=first), tmp_path, None
    )
    assert manager.restore_or_initialize() is None
    next(first), next(first)
    manager.save()
    second = iterator()
    manager = tf.train.CheckpointManager(
        tf.train.Checkpoint(it=second), tmp_path, None
    )
    assert manager.restore_or_initialize() == str(tmp_path / "ckpt-1")
    assert int(next(second)) == 2
    assert manager.save() == str(tmp_path / "ckpt-2")
    assert len(manager.checkpoints) == 2
