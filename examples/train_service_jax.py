"""Trains with JAX from a service, through a kill of the trainer.

    python examples/train_service_jax.py --folder /tmp/shapes

Starts a service and a trainer, kills the trainer in mid-epoch, and starts it
again: it goes on from its checkpoint, and every picture comes once an epoch.
With `--service penstock://host:5050` it is the trainer alone.
"""

from __future__ import annotations

import argparse
import pickle
from pathlib import Path

import jax
import jax.numpy as jnp
import killed_trainer
import shapes
from jax_train import make_model, save, train_step


def train(args: argparse.Namespace) -> None:
    path = args.folder / "train_service_jax.pickle"
    ds = shapes.dataset(args.folder, args.batch).distribute(
        args.service,
        job="shapes-jax",
        # Without a checkpoint, what a killed trainer had begun is over.
        on_existing="error" if path.exists() else "fresh",
    )
    feed = ds.to_jax()
    model = make_model(jax.random.key(0))
    momentum = jax.tree.map(jnp.zeros_like, model)
    step = epoch = 0
    if path.exists():
        checkpoint = pickle.loads(path.read_bytes())
        model, momentum = checkpoint["model"], checkpoint["momentum"]
        feed.load_state_dict(checkpoint["input"])
        step, epoch = checkpoint["step"], checkpoint["epoch"]
        print(f"going on after step {step}")

    seen = killed_trainer.ledger_of(Path(__file__), args.folder).open("a")
    while step < args.steps:
        for batch in feed:  # One epoch, or what is left of it.
            model, momentum, loss, _ = train_step(model, momentum, batch)
            step += 1

            print(step, epoch, *batch["id"].tolist(), file=seen, flush=True)
            if step % args.save_every == 0 or step == args.steps:
                checkpoint = {
                    "model": model,
                    "momentum": momentum,
                    "input": feed.state_dict(),
                    "step": step,
                    "epoch": epoch,
                }
                save(path, checkpoint)
            print(f"step {step}  loss {loss:.4f}", flush=True)
            if step == args.steps:
                break
        epoch += 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path("/tmp/shapes"))
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--save-every", type=int, default=4)
    parser.add_argument("--kill-at", type=int, default=31)
    parser.add_argument("--service", help="train only, from this one")
    args = parser.parse_args()
    if args.service:
        train(args)
        return
    shapes.make_files(args.folder)
    options = ("steps", "batch", "save_every")
    killed_trainer.run(
        Path(__file__),
        args.folder,
        args.kill_at,
        shapes.FILES * shapes.PICTURES_PER_FILE // args.batch * args.batch,
        [f"--{o.replace('_', '-')}={getattr(args, o)}" for o in options],
    )


if __name__ == "__main__":
    main()
