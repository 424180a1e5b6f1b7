"""How long the paragraphs of real texts are, in words: this project's own."""

from __future__ import annotations

import re

import numpy as np
from workload import ROOT


def lengths() -> np.ndarray:
    """Of the licence and of what docs/ has: some short, most not, few long."""
    files = [ROOT / "LICENSE", *sorted((ROOT / "docs").rglob("*.md"))]
    counts = [
        len(paragraph.split())
        for file in files
        for paragraph in re.split(r"\n\s*\n", file.read_text())
    ]
    random = np.random.default_rng(4)
    return random.permutation([count for count in counts if count > 0])
