"""Trains a small network with TensorFlow; goes on exactly where it stopped.

    python examples/tensorflow_train.py --folder /tmp/shapes
    python examples/tensorflow_train.py --folder /tmp/shapes --kill-at 50
    python examples/tensorflow_train.py --folder /tmp/shapes      # goes on

TensorFlow takes numpy arrays as they are, so the loop reads the dataset itself,
whose iterator knows its position. `dataset.to_tf()` gives a `tf.data.Dataset`
for `model.fit`, which does not.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import time
from pathlib import Path

import shapes
import tensorflow as tf


def make_model() -> tf.keras.Model:
    layers = tf.keras.layers
    return tf.keras.Sequential(
        [
            layers.Input((shapes.SIZE, shapes.SIZE, 3)),
            layers.Conv2D(16, 3, strides=2, padding="same", activation="relu"),
            layers.Conv2D(32, 3, strides=2, padding="same", activation="relu"),
            layers.Flatten(),
            layers.Dense(len(shapes.KINDS)),
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path("/tmp/shapes"))
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--save-every", type=int, default=20)
    parser.add_argument("--kill-at", type=int, help="kill this process there")
    args = parser.parse_args()

    shapes.make_files(args.folder)
    dataset = shapes.dataset(args.folder, args.batch)
    tf.keras.utils.set_random_seed(0)
    model = make_model()
    optimizer = tf.keras.optimizers.Adam(2e-3)
    optimizer.build(model.trainable_variables)
    loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    @tf.function
    def train_step(images, labels):
        with tf.GradientTape() as tape:
            logits = model(images, training=True)
            loss = loss_of(labels, logits)
        slope = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(
            zip(slope, model.trainable_variables, strict=True)
        )
        found = tf.argmax(logits, 1, tf.int32)
        return loss, tf.reduce_mean(tf.cast(found == labels, tf.float32))

    batches = iter(dataset)
    step = 0
    weights = tf.train.Checkpoint(model=model, optimizer=optimizer)
    path = args.folder / "tensorflow.json"
    if path.exists():
        checkpoint = json.loads(path.read_text())
        weights.read(checkpoint["weights"]).assert_consumed()
        batches.load_state_dict(checkpoint["input"])
        step = checkpoint["step"]
        print(f"going on after step {step}")

    def save() -> None:
        """Replaces the checkpoint: a kill leaves the old one or the new one."""
        checkpoint = {
            "weights": weights.write(str(args.folder / f"weights-{step}")),
            "input": batches.state_dict(),
            "step": step,
        }
        part = path.with_suffix(".part")
        part.write_text(json.dumps(checkpoint))
        os.replace(part, path)

    ledger = (args.folder / "tensorflow-seen.txt").open("a")
    began, first = time.monotonic(), step
    while step < args.steps:
        for batch in batches:
            loss, right = train_step(batch["image"], batch["label"])
            step += 1

            print(step, *batch["id"].tolist(), file=ledger, flush=True)
            if step % args.save_every == 0 or step == args.steps:
                save()
                rate = (step - first) * args.batch / (time.monotonic() - began)
                print(
                    f"step {step:4}  loss {loss:.6f}  right {right:4.0%}  "
                    f"{rate:,.0f} pictures/s",
                    flush=True,
                )
            if step == args.kill_at:
                os.kill(os.getpid(), signal.SIGKILL)
            if step == args.steps:
                break
        else:
            batches = iter(dataset)  # the next epoch


if __name__ == "__main__":
    main()
