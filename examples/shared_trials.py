"""Trials over one pipeline, which share what workers compute, or do not.

    python examples/shared_trials.py --trials 1 2 4 8 --plot shared.svg

Each trial is a process that reads the same costly pipeline. What is shown is
the CPU that the workers spent, against that of one trial.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

import penstock as ps


def pipeline(batches: int) -> ps.Dataset:
    """Random pictures, made and resized: some milliseconds each."""
    ds = ps.Dataset.range(batches * 16)
    ds = ds.map(
        lambda x: ps.image.resize(
            ps.random_uniform([256, 256, 3], seed=3), [128, 128]
        )
    )
    return ds.batch(16)


def trial(options: argparse.Namespace) -> None:
    ds = pipeline(options.batches).distribute(
        options.service,
        job=options.job,
        share=options.share or None,
        visitation="exactly_once",
    )
    if options.framework == "jax":
        ds = ds.to_jax()
    elif options.framework == "torch":
        ds = ds.to_torch()
    batches = iter(ds)
    next(batches)
    print("ready", flush=True)
    sys.stdin.readline()  # all have begun
    print(1 + sum(1 for _ in batches))


def cpu_seconds(pids: list[int]) -> float:
    ticks = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2]
        ticks += sum(int(x) for x in fields.split()[11:13])
    return ticks / os.sysconf("SC_CLK_TCK")


def cost(service: ps.LocalService, count: int, share: str, options) -> float:
    """Of that many trials at once."""
    before = cpu_seconds(service.worker_pids)
    processes = [
        subprocess.Popen(
            [
                *(sys.executable, __file__, "--service", service.address),
                *("--job", f"{share or 'alone'}-{count}-{i}"),
                *("--share", share and f"{share}-{count}"),
                *("--batches", str(options.batches)),
                *("--framework", options.framework),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for i in range(count)
    ]
    for process in processes:
        process.stdout.readline()
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    had = [int(process.communicate()[0]) for process in processes]
    assert had == [options.batches] * count, had
    return cpu_seconds(service.worker_pids) - before


def plot(counts: list[int], shared: list[float], alone: list[float], path):
    width, height, left, bottom = 640, 360, 60, 310
    most = max(*alone, *shared)

    def at(i: int, value: float) -> str:
        x = left + 540 * i / max(1, len(counts) - 1)
        return f"{x:.1f},{bottom - 250 * value / most:.1f}"

    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" '
        f'height="{height}" viewBox="0 0 {width} {height}" '
        'font-family="sans-serif" font-size="13">',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
        '<text x="20" y="28" font-size="16">CPU of the workers, one trial = 1'
        "</text>",
    ]
    for tick in (0, 1, 2, 4, 8, 16, 32):
        if tick > most:
            break
        y = at(0, tick).split(",")[1]
        out.append(
            f'<line x1="{left}" x2="{left + 540}" y1="{y}" y2="{y}" '
            'stroke="#ddd"/>'
            f'<text x="{left - 8}" y="{float(y) + 4:.0f}" text-anchor="end" '
            f'fill="#666">{tick}</text>'
        )
    for values, colour, name in (
        (alone, "#c8553d", "each alone"),
        (shared, "#1b7f5c", "shared"),
    ):
        points = " ".join(at(i, v) for i, v in enumerate(values))
        out.append(
            f'<polyline points="{points}" fill="none" stroke="{colour}" '
            'stroke-width="3"/>'
        )
        x, y = at(len(values) - 1, values[-1]).split(",")
        out.append(
            f'<text x="{float(x) - 10:.0f}" y="{float(y) - 10:.0f}" '
            f'text-anchor="end" fill="{colour}">{name}: '
            f"{values[-1]:.2f}</text>"
        )
    for i, count in enumerate(counts):
        x = at(i, 0).split(",")[0]
        out.append(
            f'<text x="{x}" y="{bottom + 22}" text-anchor="middle">{count}'
            "</text>"
        )
    out.append(f'<text x="{left}" y="{bottom + 42}">trials</text></svg>')
    Path(path).write_text("\n".join(out))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--batches", type=int, default=200)
    parser.add_argument(
        "--framework", choices=("numpy", "jax", "torch"), default="numpy"
    )
    parser.add_argument("--plot")
    parser.add_argument("--service", help=argparse.SUPPRESS)
    parser.add_argument("--job", help=argparse.SUPPRESS)
    parser.add_argument("--share", default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.service:
        trial(options)
        return
    with ps.LocalService(workers=2, cpu=1) as service:
        cost(service, 1, "first", options)  # what is done once
        cost(service, 1, "", options)
        one = cost(service, 1, "", options)
        print(f"{'trials':>8}{'shared':>10}{'each alone':>12}")
        shared, alone = [], []
        for count in options.trials:
            shared.append(cost(service, count, "trials", options) / one)
            alone.append(cost(service, count, "", options) / one)
            print(f"{count:>8}{shared[-1]:>10.2f}{alone[-1]:>12.2f}")
    if options.plot:
        plot(options.trials, shared, alone, options.plot)


if __name__ == "__main__":
    main()
