"""Trains a small network with JAX, and goes on exactly where it stopped.

    python examples/jax_train.py --folder /tmp/shapes
    python examples/jax_train.py --folder /tmp/shapes --kill-at 50
    python examples/jax_train.py --folder /tmp/shapes      # goes on

Batches are cut over all devices. To try that on a CPU:

    XLA_FLAGS=--xla_force_host_platform_device_count=4 python …
"""

from __future__ import annotations

import argparse
import os
import pickle
import signal
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import shapes

RATE, MOMENTUM = 0.02, 0.9


def make_model(key: jax.Array) -> dict:
    def weights(key: jax.Array, *shape: int) -> jax.Array:
        return jax.nn.initializers.he_normal()(key, shape)

    first, second, last = jax.random.split(key, 3)
    return {
        "conv1": weights(first, 3, 3, 3, 16),
        "conv2": weights(second, 3, 3, 16, 32),
        "dense": weights(last, 8 * 8 * 32, len(shapes.KINDS)),
        "bias": jnp.zeros(len(shapes.KINDS)),
    }


def predict(model: dict, images: jax.Array) -> jax.Array:
    x = images
    for name in ("conv1", "conv2"):
        x = jax.lax.conv_general_dilated(
            x,
            model[name],
            window_strides=(2, 2),
            padding="SAME",
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
        )
        x = jax.nn.relu(x)
    return x.reshape(len(x), -1) @ model["dense"] + model["bias"]


def loss_of(model: dict, batch: dict) -> tuple[jax.Array, jax.Array]:
    logits = predict(model, batch["image"])
    labels = batch["label"]
    chosen = jax.nn.log_softmax(logits)[jnp.arange(len(labels)), labels]
    right = (logits.argmax(axis=1) == labels).mean()
    return -chosen.mean(), right


@jax.jit
def train_step(model: dict, momentum: dict, batch: dict) -> tuple:
    step = jax.value_and_grad(loss_of, has_aux=True)
    (loss, right), slope = step(model, batch)
    momentum = jax.tree.map(lambda m, s: MOMENTUM * m + s, momentum, slope)
    model = jax.tree.map(lambda w, m: w - RATE * m, model, momentum)
    return model, momentum, loss, right


def save(path: Path, checkpoint: dict) -> None:
    """Replaces the checkpoint as a whole: a kill leaves the old or the new."""
    part = path.with_suffix(".part")
    part.write_bytes(pickle.dumps(jax.device_get(checkpoint)))
    os.replace(part, path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path("/tmp/shapes"))
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--save-every", type=int, default=20)
    parser.add_argument("--kill-at", type=int, help="kill this process there")
    args = parser.parse_args()

    shapes.make_files(args.folder)
    feed = shapes.dataset(args.folder, args.batch).to_jax()
    model = make_model(jax.random.key(0))
    momentum = jax.tree.map(jnp.zeros_like, model)
    step = 0

    path = args.folder / "jax.pickle"
    if path.exists():
        checkpoint = pickle.loads(path.read_bytes())
        model, momentum = checkpoint["model"], checkpoint["momentum"]
        feed.load_state_dict(checkpoint["input"])
        step = checkpoint["step"]
        print(f"going on after step {step}")

    ledger = (args.folder / "jax-seen.txt").open("a")
    began, first = time.monotonic(), step
    while step < args.steps:
        for batch in feed:  # One epoch, or what is left of it.
            model, momentum, loss, right = train_step(model, momentum, batch)
            step += 1

            print(step, *batch["id"].tolist(), file=ledger, flush=True)
            if step % args.save_every == 0 or step == args.steps:
                checkpoint = {
                    "model": model,
                    "momentum": momentum,
                    "input": feed.state_dict(),
                    "step": step,
                }
                save(path, checkpoint)
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


if __name__ == "__main__":
    main()
