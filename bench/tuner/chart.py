"""The cases as dots on a line: shares of the best grid point, as SVG."""

from __future__ import annotations

import math
from html import escape

from verdict import Verdict

_LEFT, _RIGHT, _WIDTH = 170, 40, 900
_TOP, _PITCH = 84, 26
_LOW, _HIGH = 0.02, 20.0
_MARKS = {
    "naive": ("#b0b0b0", 4),
    "heuristic": ("#d9a441", 4),
    "hill climb": ("#8f6bb3", 4),
    "random walk": ("#5aa7c7", 4),
    "ours": ("#1b7f5c", 6),
}


def _x(share: float) -> float:
    span = math.log10(_HIGH / _LOW)
    inside = min(max(share, _LOW), _HIGH)
    scale = (_WIDTH - _LEFT - _RIGHT) / span
    return _LEFT + math.log10(inside / _LOW) * scale


def _text(x: float, y: float, text: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" {more}>{escape(text)}</text>'


def svg(verdicts: list[Verdict]) -> str:
    bottom = _TOP + _PITCH * len(verdicts)
    height = bottom + 46
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" '
        f'height="{height}" viewBox="0 0 {_WIDTH} {height}" '
        'font-family="sans-serif" font-size="12" fill="#222">',
        f'<rect width="{_WIDTH}" height="{height}" fill="#fff"/>',
        _text(
            16,
            26,
            "Throughput as a share of the best point of a grid",
            'font-size="17"',
        ),
    ]
    at = 20.0
    for name, (colour, size) in _MARKS.items():
        out.append(f'<circle cx="{at}" cy="48" r="{size}" fill="{colour}"/>')
        out.append(_text(at + 10, 52, name))
        at += 40 + 7 * len(name)
    for share in (0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20):
        x = _x(share)
        colour = "#888" if share == 1 else "#e4e4e4"
        out.append(
            f'<line x1="{x:.1f}" y1="{_TOP - 12}" x2="{x:.1f}" '
            f'y2="{bottom}" stroke="{colour}"/>'
        )
        label = (
            f"{share:.0%}"
            if share < 1
            else f"{share:g} \N{MULTIPLICATION SIGN}"
        )
        out.append(
            _text(x, bottom + 16, label, 'text-anchor="middle" fill="#666"')
        )
    for i, verdict in enumerate(verdicts):
        y = _TOP + _PITCH * i
        name = f"{verdict.number} {verdict.name}"
        weight = "" if verdict.is_met else 'fill="#c8553d"'
        out.append(_text(16, y + 4, name, weight))
        shares = [verdict.shares[mark] for mark in _MARKS]
        low, high = _x(min(shares)), _x(max(shares))
        out.append(
            f'<line x1="{low:.1f}" y1="{y}" x2="{high:.1f}" y2="{y}" '
            'stroke="#ddd" stroke-width="3"/>'
        )
        for mark, (colour, size) in _MARKS.items():
            out.append(
                f'<circle cx="{_x(verdict.shares[mark]):.1f}" cy="{y}" '
                f'r="{size}" fill="{colour}"/>'
            )
    out.append("</svg>")
    return "\n".join(out) + "\n"
