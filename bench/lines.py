"""A file of text lines and its vocabulary, made once.

Words are drawn as in natural text, the n-th most frequent with probability of
about 1/n. Line i has `words_of(i)` words, so that how many lines a filter by
length keeps is known.
"""

from __future__ import annotations

import os

import numpy as np
from workload import ROOT

FOLDER = ROOT / "build/bench-data"
WORDS = 30_000  # in the vocabulary, and as many that are not
MOST_WORDS = 40  # in a line
_LINES = 200_000
_SMOKE_LINES = 4_000


def words_of(line: int) -> int:
    """How many words line number `line` has: 1 to MOST_WORDS, in turns."""
    return line * 7 % MOST_WORDS + 1


def vocabulary() -> list[bytes]:
    """Every second of all words."""
    return _all_words()[::2]


def file() -> str:
    """The file; a small one under BENCH_SMOKE=1."""
    lines = _SMOKE_LINES if os.environ.get("BENCH_SMOKE") else _LINES
    path = FOLDER / f"lines-{lines}.txt"
    if not path.exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(f".{os.getpid()}")
        partial.write_bytes(_text(lines))
        partial.rename(path)
    return str(path)


def _all_words() -> list[bytes]:
    random = np.random.default_rng(8)
    letters = np.frombuffer(b"etaoinshrdlucmfwypvbgkjqxz", np.uint8)
    found: dict[bytes, None] = {}
    while len(found) < 2 * WORDS:
        # Frequent words are short.
        size = min(12, 1 + int(random.poisson(1 + np.log10(len(found) + 1))))
        found[random.choice(letters, size).tobytes()] = None
    return list(found)


def _text(lines: int) -> bytes:
    words = _all_words()
    random = np.random.default_rng(9)
    weights = 1 / np.arange(1, len(words) + 1)
    counts = [words_of(i) for i in range(lines)]
    chosen = random.choice(
        len(words), sum(counts), p=weights / weights.sum()
    ).tolist()
    out = []
    at = 0
    for count in counts:
        out.append(b" ".join([words[i] for i in chosen[at : at + count]]))
        at += count
    return b"\n".join(out) + b"\n"
