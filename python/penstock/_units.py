"""Numbers, times and places as people read them."""

from __future__ import annotations

import os
from typing import TextIO


def time_text(seconds: float) -> str:
    """Three digits of it, in a unit that shows them."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{three_digits(seconds / size)} {unit}"
    return f"{three_digits(seconds / 1e-6)} µs"


def three_digits(number: float) -> str:
    if number >= 100:
        return f"{number:,.0f}"
    return f"{number:.3g}"


def short_place(made_at: str) -> str:
    """`file:line` without the directory."""
    file, _, line = made_at.rpartition(":")
    return f"{os.path.basename(file)}:{line}" if file else ""


def bar(share: float, width: int) -> str:
    full = round(min(1.0, max(0.0, share)) * width)
    return "█" * full + "·" * (width - full)


def _scaled(number: float) -> tuple[str, str]:
    for unit in ("", "k", "M", "G"):
        if abs(number) < 1000:
            return f"{number:.3g}", unit
        number /= 1000
    return f"{number:.3g}", "T"


def si(number: float) -> str:
    return " ".join(_scaled(number)).rstrip()


def si_bytes(number: float) -> str:
    return " ".join(_scaled(number)) + "B"


def has_colour(out: TextIO) -> bool:
    return out.isatty() and not os.environ.get("NO_COLOR")
