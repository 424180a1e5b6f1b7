"""Synchronous replicas, with rounds of like batches and without.

    python examples/coordinated_reads.py --replicas 8 --plot coordinated.svg

Each replica is a process. A step is as long as its longest batch takes, which
is as long as its padded tokens are many: the replicas report shapes, and the
steps' lengths are added up. Without rounds, each replica has batches of its own
(`num_readers`); with them, all have batches of one bucket (`num_consumers`).
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np

import penstock as ps

ROOT = Path(__file__).resolve().parents[1]
BOUNDARIES = [8, 16, 32, 64, 128]
ROWS = 32  # of a batch


def lengths() -> np.ndarray:
    """As in real text: the paragraphs of this project's documents, in words."""
    files = sorted((ROOT / "docs").rglob("*.md"))
    words = [
        len(paragraph.split())
        for file in files
        for paragraph in re.split(r"\n\s*\n", file.read_text())
    ]
    found = np.array([n for n in words if 0 < n < 256], np.int64)
    return np.random.default_rng(1).choice(found, 200_000)


def pipeline() -> ps.Dataset:
    ds = ps.Dataset.from_tensor_slices(lengths())
    ds = ds.map(lambda n: ps.fill([n], n))
    return ds.bucket_by_sequence_length(
        lambda tokens: ps.size(tokens),
        bucket_boundaries=BOUNDARIES,
        bucket_batch_sizes=[ROWS] * (len(BOUNDARIES) + 1),
        drop_remainder=True,
    )


def replica(options: argparse.Namespace) -> None:
    """Reports [rows, padded length, tokens but for padding] of each step."""
    more = (
        {"consumer": options.replica, "num_consumers": options.replicas}
        if options.mode == "rounds"
        else {"reader": options.replica, "num_readers": options.replicas}
    )
    ds = pipeline().distribute(options.service, job=options.mode, **more)
    if options.framework == "jax":
        batches = iter(ds.to_jax())
    elif options.framework == "torch":
        batches = iter(ds.to_torch())
    else:
        batches = iter(ds)
    steps = []
    for batch in batches:
        rows, padded = batch.shape
        steps.append([int(rows), int(padded), int((batch != 0).sum())])
        if len(steps) == options.steps:
            break
    print(json.dumps(steps))


def train(service: str, mode: str, options: argparse.Namespace) -> np.ndarray:
    """[replica, step, (rows, padded length, tokens)]."""
    processes = [
        subprocess.Popen(
            [
                *(sys.executable, __file__, "--service", service),
                *("--mode", mode, "--replica", str(i)),
                *("--replicas", str(options.replicas)),
                *("--steps", str(options.steps)),
                *("--framework", options.framework),
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        for i in range(options.replicas)
    ]
    reports = [json.loads(process.communicate()[0]) for process in processes]
    steps = min(len(report) for report in reports)
    return np.array([report[:steps] for report in reports])


def figures(found: np.ndarray) -> dict[str, float]:
    padded = found[:, :, 0] * found[:, :, 1]
    slowest = padded.max(axis=0).sum()
    return {
        "steps": found.shape[1],
        "tokens per unit of time": float(found[:, :, 2].sum() / slowest),
        "waiting for the slowest": 1
        - float(padded.mean(axis=0).sum() / slowest),
        "padding": 1 - float(found[:, :, 2].sum() / padded.sum()),
    }


def plot(plain: np.ndarray, rounds: np.ndarray, path: str) -> None:
    """Of the first steps: the padded tokens of each replica, as dots."""
    out = [
        '<svg xmlns="http://www.w3.org/2000/svg" width="900" height="420" '
        'viewBox="0 0 900 420" font-family="sans-serif" font-size="13">',
        '<rect width="900" height="420" fill="#fff"/>',
    ]
    most = max(found[:, :, 1].max() for found in (plain, rounds))
    for at, (name, found) in enumerate(
        (("each its own batches", plain), ("rounds", rounds))
    ):
        top = 40 + 190 * at
        out.append(f'<text x="20" y="{top - 8}">{name}: padded length</text>')
        for tick in (0, int(most)):
            y = top + 140 - 140 * tick / most
            out.append(
                f'<line x1="20" x2="880" y1="{y:.0f}" y2="{y:.0f}" '
                'stroke="#ddd"/>'
                f'<text x="896" y="{y + 4:.0f}" text-anchor="end" '
                f'fill="#666" font-size="11">{tick}</text>'
            )
        shown = found[:, :78, 1]
        for step in range(shown.shape[1]):
            x = 20 + 10.8 * step
            low, high = shown[:, step].min(), shown[:, step].max()
            y = [top + 140 - 140 * n / most for n in (low, high)]
            out.append(
                f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{y[0]:.1f}" '
                f'y2="{y[1]:.1f}" stroke="#c8553d" stroke-width="3"/>'
            )
            out += [
                f'<circle cx="{x:.1f}" cy="{top + 140 - 140 * n / most:.1f}" '
                'r="2.2" fill="#3a76b8"/>'
                for n in shown[:, step]
            ]
    out.append(
        '<text x="20" y="408" fill="#666">one column per step; red: how far '
        "apart the replicas are, which is time that others wait</text></svg>"
    )
    Path(path).write_text("\n".join(out))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicas", type=int, default=8)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument(
        "--framework", choices=("numpy", "jax", "torch"), default="numpy"
    )
    parser.add_argument("--plot")
    parser.add_argument("--service", help=argparse.SUPPRESS)
    parser.add_argument("--mode", help=argparse.SUPPRESS)
    parser.add_argument("--replica", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.service:
        replica(options)
        return
    with ps.LocalService(workers=2) as service:
        plain = train(service.address, "plain", options)
        rounds = train(service.address, "rounds", options)
    before, after = figures(plain), figures(rounds)
    print(f"{'':26}{'own batches':>14}{'rounds':>12}")
    for name in before:
        shape = ",.0f" if name == "steps" else ".1%"
        if name.startswith("tokens"):
            shape = ".2f"
        print(f"{name:26}{before[name]:>14{shape}}{after[name]:>12{shape}}")
    name = "tokens per unit of time"
    print(f"gain: {after[name] / before[name]:.2f} times")
    if options.plot:
        plot(plain, rounds, options.plot)


if __name__ == "__main__":
    main()
