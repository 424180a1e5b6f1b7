"""JPEG files that cost what photographs cost, made once.

Smooth noise at several scales, down to single pixels: about 66 kB at 500 x 375,
which is what photographs of that size take.
"""

from __future__ import annotations

import os

import numpy as np
from workload import ROOT

_FOLDER = ROOT / "build/bench-data"
_QUALITY = 90


def files(height: int, width: int, count: int) -> list[bytes]:
    """`count` files of that size; 2 under BENCH_SMOKE=1."""
    if os.environ.get("BENCH_SMOKE"):
        count = 2
    path = _FOLDER / f"photographs-{height}x{width}-{count}.npz"
    if not path.exists():
        _FOLDER.mkdir(parents=True, exist_ok=True)
        made = [_encode(_photo(height, width, i)) for i in range(count)]
        partial = path.with_suffix(f".{os.getpid()}.npz")
        np.savez(partial, *(np.frombuffer(file, np.uint8) for file in made))
        partial.rename(path)
    with np.load(path) as kept:
        return [kept[name].tobytes() for name in kept.files]


def _encode(pixels: np.ndarray) -> bytes:
    try:
        import tensorflow as tf

        return bytes(tf.io.encode_jpeg(pixels, quality=_QUALITY).numpy())
    except ImportError:
        import penstock as ps

        return bytes(ps.image.encode_jpeg(pixels, quality=_QUALITY))


def _photo(height: int, width: int, seed: int) -> np.ndarray:
    random = np.random.default_rng(seed)
    out = np.full((height, width, 3), 128.0)
    # Grains as large as the picture have the most contrast.
    for grain, weight in ((160, 45), (60, 25), (20, 12), (6, 8), (2, 6)):
        rows, columns = height // grain + 2, width // grain + 2
        light = random.normal(size=(rows, columns, 1))
        colour = random.normal(size=(rows, columns, 3)) * 0.3
        out += weight * _stretched(light + colour, height, width)
    out += random.normal(size=(height, width, 1)) * 7
    return np.clip(out, 0, 255).astype(np.uint8)


def _stretched(small: np.ndarray, height: int, width: int) -> np.ndarray:
    y = np.linspace(0, small.shape[0] - 1.001, height)
    x = np.linspace(0, small.shape[1] - 1.001, width)
    top, left = y.astype(int), x.astype(int)
    down, right = (y - top)[:, None, None], (x - left)[None, :, None]
    rows = small[top] * (1 - down) + small[top + 1] * down
    return rows[:, left] * (1 - right) + rows[:, left + 1] * right
