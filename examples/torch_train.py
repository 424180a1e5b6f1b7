"""Trains a small network with PyTorch, and goes on exactly where it stopped.

    python examples/torch_train.py --folder /tmp/shapes
    python examples/torch_train.py --folder /tmp/shapes --kill-at 50
    python examples/torch_train.py --folder /tmp/shapes      # goes on

The checkpoint holds the model, the optimizer and the position in the data, so a
run that was killed sees every picture once an epoch, as if nothing had been.
"""

from __future__ import annotations

import argparse
import os
import signal
import time
from pathlib import Path

import shapes
import torch
from torch import nn


def make_model() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(4),
        nn.Flatten(),
        nn.Linear(32 * 4 * 4, len(shapes.KINDS)),
    )


def save(path: Path, checkpoint: dict) -> None:
    """Replaces the checkpoint as a whole: a kill leaves the old or the new."""
    part = path.with_suffix(".part")
    torch.save(checkpoint, part)
    os.replace(part, path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path("/tmp/shapes"))
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--save-every", type=int, default=20)
    parser.add_argument("--kill-at", type=int, help="kill this process there")
    parser.add_argument(
        "--device", default="cuda" if torch.cuda.is_available() else "cpu"
    )
    args = parser.parse_args()

    shapes.make_files(args.folder)
    feed = shapes.dataset(args.folder, args.batch).to_torch(
        args.device, pin_memory=args.device != "cpu"
    )
    torch.manual_seed(0)
    model = make_model().to(args.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    step = 0

    path = args.folder / "torch.pt"
    if path.exists():
        checkpoint = torch.load(path)
        model.load_state_dict(checkpoint["model"])
        optimizer.load_state_dict(checkpoint["optimizer"])
        feed.load_state_dict(checkpoint["input"])
        step = checkpoint["step"]
        print(f"going on after step {step}")

    # A run that was killed has written the steps after its last checkpoint,
    # too. The model forgot them, so the next run takes them again, with the
    # same elements: a step that is there twice was learnt from once.
    ledger = (args.folder / "torch-seen.txt").open("a")
    began, first = time.monotonic(), step
    while step < args.steps:
        for batch in feed:  # One epoch, or what is left of it.
            images = batch["image"].permute(0, 3, 1, 2)
            labels = batch["label"].long()
            logits = model(images)
            loss = nn.functional.cross_entropy(logits, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1

            print(step, *batch["id"].tolist(), file=ledger, flush=True)
            if step % args.save_every == 0 or step == args.steps:
                checkpoint = {
                    "model": model.state_dict(),
                    "optimizer": optimizer.state_dict(),
                    "input": feed.state_dict(),
                    "step": step,
                }
                save(path, checkpoint)
                right = (logits.argmax(1) == labels).float().mean().item()
                rate = (step - first) * args.batch / (time.monotonic() - began)
                print(
                    f"step {step:4}  loss {loss.item():.6f}  "
                    f"right {right:4.0%}  {rate:,.0f} pictures/s",
                    flush=True,
                )
            if step == args.kill_at:
                os.kill(os.getpid(), signal.SIGKILL)
            if step == args.steps:
                break


if __name__ == "__main__":
    main()
