"""The ratios as horizontal bars on a log scale, as SVG."""

from __future__ import annotations

import math
from html import escape

from report import TIMES, Result, times
from workload import Compared

_LEFT = 330
_WIDTH = 900
_RIGHT = 90
_TOP = 64
_PITCH = 34
_BAR = 18
_COLOURS = {"moonshot": "#1b7f5c", "reached": "#3a76b8", "missed": "#c8553d"}


def svg(results: list[Result], heading: str) -> str | None:
    """None if nothing was compared."""
    shown = [
        r
        for r in results
        if isinstance(r.row, Compared)
        and r.ratio is not None
        and not r.row.peer_variables
    ]
    if not shown:
        return None
    largest = max(
        max(r.ratio or 0, r.row.must_reach, r.moonshot or 0) for r in shown
    )
    smallest = min(min(r.ratio or 1, 1) for r in shown)
    low = math.floor(math.log10(smallest))
    high = math.ceil(math.log10(largest * 1.05))
    scale = (_WIDTH - _LEFT - _RIGHT) / (high - low)

    def x(ratio: float) -> float:
        return _LEFT + (math.log10(ratio) - low) * scale

    bottom = _TOP + _PITCH * len(shown)
    height = bottom + 62
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" '
        f'height="{height}" viewBox="0 0 {_WIDTH} {height}" '
        'font-family="sans-serif" font-size="13" fill="#222">',
        f'<rect width="{_WIDTH}" height="{height}" fill="#fff"/>',
        _text(16, 28, "Elements a second, ours ÷ the peer's", size=17),
        _text(16, 47, heading, colour="#666", size=12),
    ]
    for power in range(low, high + 1):
        at = x(10.0**power)
        out.append(_line(at, _TOP - 6, at, bottom, "#ddd"))
        label = f"{10.0**power:,g}{TIMES}"
        out.append(_text(at, bottom + 16, label, "middle", "#666", 12))
    for i, result in enumerate(shown):
        y = _TOP + _PITCH * i + (_PITCH - _BAR) / 2
        out += _bar(result, x, y)
    out.append(_line(x(1), _TOP - 6, x(1), bottom, "#888"))
    y = bottom + 42
    out += [
        _line(_LEFT, y - 10, _LEFT, y + 2, "#222", 2.5),
        _text(_LEFT + 8, y, "must reach", size=12),
        _line(_LEFT + 100, y - 10, _LEFT + 100, y + 2, "#222", 2.5, "3 2"),
        _text(_LEFT + 108, y, "moonshot", size=12),
    ]
    at = _LEFT + 210.0
    for verdict, colour in _COLOURS.items():
        out.append(
            f'<rect x="{at:.1f}" y="{y - 10}" width="12" height="12" '
            f'fill="{colour}"/>'
        )
        words = "moonshot reached" if verdict == "moonshot" else verdict
        out.append(_text(at + 18, y, words, size=12))
        at += 40 + 7.0 * len(words)
    out.append("</svg>")
    return "\n".join(out) + "\n"


def _bar(result: Result, x, y: float) -> list[str]:
    row, ratio = result.row, result.ratio
    assert isinstance(row, Compared) and ratio is not None
    begin, end = sorted((x(1), x(ratio)))
    middle = y + _BAR / 2 + 4.5
    colour = _COLOURS[result.verdict]
    out = [
        _text(_LEFT - 12, middle, f"{row.number}  {row.title}", "end"),
        f'<rect x="{begin:.1f}" y="{y:.1f}" width="{end - begin:.1f}" '
        f'height="{_BAR}" fill="{colour}"/>',
    ]
    marks = [(row.must_reach, "")]
    if result.moonshot is not None:
        marks.append((result.moonshot, "3 2"))
    for value, dashes in marks:
        at = x(value)
        out.append(_line(at, y - 5, at, y + _BAR + 5, "#222", 2.5, dashes))
    # Beyond whatever mark the figure would lie on.
    at = end
    for value, _ in sorted(marks):
        if at - 4 <= x(value) <= at + 58:
            at = x(value)
    out.append(_text(at + 7, middle, times(ratio), weight="bold"))
    return out


def _text(
    x: float,
    y: float,
    text: str,
    anchor: str = "start",
    colour: str = "#222",
    size: int = 13,
    weight: str = "normal",
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" '
        f'fill="{colour}" font-size="{size}" font-weight="{weight}">'
        f"{escape(text)}</text>"
    )


def _line(
    x1: float,
    y1: float,
    x2: float,
    y2: float,
    colour: str,
    width: float = 1,
    dashes: str = "",
) -> str:
    style = f' stroke-dasharray="{dashes}"' if dashes else ""
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
        f'stroke="{colour}" stroke-width="{width}"{style}/>'
    )
