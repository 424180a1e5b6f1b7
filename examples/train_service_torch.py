"""Trains with PyTorch from a service, through a kill of the trainer.

    python examples/train_service_torch.py --folder /tmp/shapes

Starts a service and a trainer, kills the trainer in mid-epoch, and starts it
again: it goes on from its checkpoint, and every picture comes once an epoch.
With `--service penstock://host:5050` it is the trainer alone.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import killed_trainer
import shapes
import torch
from torch import nn
from torch_train import make_model, save


def train(args: argparse.Namespace) -> None:
    path = args.folder / "train_service_torch.pt"
    ds = shapes.dataset(args.folder, args.batch).distribute(
        args.service,
        job="shapes-torch",
        # Without a checkpoint, what a killed trainer had begun is over.
        on_existing="error" if path.exists() else "fresh",
    )
    feed = ds.to_torch("cpu")
    torch.manual_seed(0)
    model = make_model()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    step = epoch = 0
    if path.exists():
        checkpoint = torch.load(path)
        model.load_state_dict(checkpoint["model"])
        optimizer.load_state_dict(checkpoint["optimizer"])
        feed.load_state_dict(checkpoint["input"])
        step, epoch = checkpoint["step"], checkpoint["epoch"]
        print(f"going on after step {step}")

    seen = killed_trainer.ledger_of(Path(__file__), args.folder).open("a")
    while step < args.steps:
        for batch in feed:  # One epoch, or what is left of it.
            logits = model(batch["image"].permute(0, 3, 1, 2))
            loss = nn.functional.cross_entropy(logits, batch["label"].long())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1

            print(step, epoch, *batch["id"].tolist(), file=seen, flush=True)
            if step % args.save_every == 0 or step == args.steps:
                checkpoint = {
                    "model": model.state_dict(),
                    "optimizer": optimizer.state_dict(),
                    "input": feed.state_dict(),
                    "step": step,
                    "epoch": epoch,
                }
                save(path, checkpoint)
            print(f"step {step}  loss {loss.item():.4f}", flush=True)
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
