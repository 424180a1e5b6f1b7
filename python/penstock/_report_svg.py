"""An explanation as a picture: what allows which rate, and how it went."""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING

from penstock._report_text import gain, percent, rate, wall_names
from penstock._units import si

if TYPE_CHECKING:
    from penstock._explain import Explanation
    from penstock._report import Moment

_WIDTH = 860
_LEFT = 250
_RIGHT = 150
_TOP = 78
_PITCH = 28
_BAR = 16
_MAX_BARS = 16
_PANEL = 90
_MAX_TITLE = 96
# Of a log scale, at most.
_MAX_DECADES = 7
# Light, and then dark, by class.
_COLOURS = {
    "ground": ("fill", "#ffffff", "#16191d"),
    "ink": ("fill", "#1f2328", "#e6e8ea"),
    "soft": ("fill", "#5f6870", "#9aa4ae"),
    "grid": ("stroke", "#d9dde1", "#343a40"),
    "bar": ("fill", "#3a76b8", "#5b9be0"),
    "wall": ("fill", "#c8553d", "#e0735a"),
    "next": ("fill", "#c89b3d", "#d8b05a"),
    "band": ("fill", "#1b7f5c", "#3fbf91"),
    "seen": ("stroke", "#1b7f5c", "#3fbf91"),
    "seenink": ("fill", "#1b7f5c", "#3fbf91"),
    "cores": ("stroke", "#8a5fb0", "#b58ad8"),
    "coresink": ("fill", "#8a5fb0", "#b58ad8"),
    "mark": ("stroke", "#c89b3d", "#d8b05a"),
}


def _style() -> str:
    def rules(place: int) -> str:
        return "".join(
            f".ps-chart .{name}{{{colours[0]}:{colours[place]}}}"
            for name, colours in _COLOURS.items()
        )

    return (
        "<style>.ps-chart .band{opacity:.16}.ps-chart polyline{fill:none}"
        f"{rules(1)}@media (prefers-color-scheme:dark){{{rules(2)}}}</style>"
    )


def svg(e: Explanation) -> str:
    """The picture's text. Needs nothing else; light or dark as its viewer."""
    bars = [r for r in e.resources if r.rate][:_MAX_BARS]
    has_time = len(_moments(e)) > 1
    bottom = _TOP + _PITCH * max(1, len(bars))
    height = bottom + 46
    if has_time:
        height += 2 * (_PANEL + 34) + 40
    title = e.verdict
    if len(title) > _MAX_TITLE:
        title = title[: _MAX_TITLE - 1].rstrip() + "…"
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="ps-chart" '
        f'width="{_WIDTH}" height="{height}" viewBox="0 0 {_WIDTH} {height}" '
        'font-family="system-ui, sans-serif" font-size="13" role="img">',
        f"<title>{escape(e.verdict)}</title>",
        _style(),
        f'<rect class="ground" width="{_WIDTH}" height="{height}"/>',
        _text(16, 26, title, size=14, weight="bold"),
        _text(
            16, 46, "Elements a second that each resource allows", "soft", 12
        ),
    ]
    out += _roofline(e, bottom)
    if has_time:
        out += _timeline(e, bottom + 74)
    out.append("</svg>")
    return "\n".join(out) + "\n"


def _roofline(e: Explanation, bottom: float) -> list[str]:
    bars = [(r.what, r.rate) for r in e.resources if r.rate][:_MAX_BARS]
    rates = [allowed for _, allowed in bars if allowed]
    points = [x for x in (*rates, e.rate, e.possible.low) if x > 0] or [1.0]
    low = math.floor(math.log10(min(points)) - 0.15)
    high = math.ceil(math.log10(max(points)))
    high = max(low + 1, min(high, low + _MAX_DECADES))
    scale = (_WIDTH - _LEFT - _RIGHT) / (high - low)

    def x(number: float) -> float:
        power = math.log10(max(number, 10.0**low))
        return _LEFT + (min(power, high) - low) * scale

    out = []
    for power in range(low, high + 1):
        at = x(10.0**power)
        out.append(_line(at, _TOP - 4, at, bottom, "grid"))
        out.append(
            _text(at, bottom + 17, rate(10.0**power), "soft", 11, "middle")
        )
    begin, end = x(e.possible.low), x(e.possible.high)
    if e.possible.high > 0:
        out.append(
            _rect(begin, _TOP - 4, end - begin, bottom - _TOP + 4, "band")
        )
    walls = wall_names(e)
    for i, (what, allowed) in enumerate(bars):
        assert allowed is not None
        y = _TOP + _PITCH * i + (_PITCH - _BAR) / 2
        kind = "bar"
        note = gain(e.rate, allowed)
        if what == walls[0]:
            kind, note = "wall", f"{note}  the wall"
        elif what == walls[1]:
            kind, note = "next", f"{note}  the next"
        middle = y + _BAR / 2 + 4.5
        out += [
            _text(_LEFT - 10, middle, _cut(what, 34), anchor="end"),
            _rect(_LEFT, y, x(allowed) - _LEFT, _BAR, kind),
            _text(
                max(x(allowed), x(e.rate)) + 8,
                middle,
                f"{rate(allowed)}  {note}",
                "ink" if kind == "bar" else kind,
                12,
            ),
        ]
    at = x(e.rate)
    out.append(_line(at, _TOP - 8, at, bottom, "seen", 2))
    anchor = "end" if at > _WIDTH - 260 else "start"
    words = f"measured {rate(e.rate)}; the band is what the model allows"
    out.append(
        _text(
            at + (-6 if anchor == "end" else 0),
            _TOP - 13,
            words,
            "seenink",
            12,
            anchor,
        )
    )
    return out


def _moments(e: Explanation) -> list[Moment]:
    """Those that are long enough to have a rate."""
    lengths = sorted(m.end - m.begin for m in e.timeline)
    if not lengths:
        return []
    least = lengths[len(lengths) // 2] / 4
    return [m for m in e.timeline if m.end - m.begin >= least]


def _timeline(e: Explanation, top: float) -> list[str]:
    moments = _moments(e)
    begin, end = moments[0].begin, moments[-1].end
    right = _WIDTH - 24.0
    scale = (right - 70) / max(end - begin, 1e-9)

    def x(seconds: float) -> float:
        return 70 + (seconds - begin) * scale

    out = []
    panels = (
        ("elements a second", "seen", [m.rate for m in moments], 0.0),
        ("cores in use", "cores", [m.used_cores for m in moments], e.cores),
    )
    for number, (name, kind, values, least) in enumerate(panels):
        y0 = top + number * (_PANEL + 34)
        most = max((*values, least)) * 1.1 or 1.0

        def y(value: float, y0: float = y0, most: float = most) -> float:
            return y0 + _PANEL * (1 - min(value, most) / most)

        out.append(_text(16, y0 - 8, name, f"{kind}ink", 12, weight="bold"))
        for tick in (0.0, most / 2.2, most / 1.1):
            out.append(_line(70, y(tick), right, y(tick), "grid"))
            out.append(_text(64, y(tick) + 4, si(tick), "soft", 11, "end"))
        points = " ".join(
            f"{x(at):.1f},{y(value):.1f}"
            for moment, value in zip(moments, values, strict=True)
            for at in (moment.begin, moment.end)
        )
        out.append(
            f'<polyline class="{kind}" stroke-width="2" points="{points}"/>'
        )
        for moment in moments[1:]:
            if moment.knobs is not None:
                at = x(moment.begin)
                out.append(_line(at, y0 - 4, at, y0 + _PANEL, "mark", 2, "4 3"))
                out.append(_text(at + 4, y0 + 8, "knobs", "next", 11))
    bottom = top + 2 * _PANEL + 34
    for part in range(5):
        seconds = begin + (end - begin) * part / 4
        anchor = "end" if part == 4 else "middle"
        out.append(
            _text(
                x(seconds), bottom + 18, f"{seconds:.1f} s", "soft", 11, anchor
            )
        )
    words = f"{percent(e.unattributed_share)} of the CPU was charged to nobody"
    out.append(_text(16, bottom + 36, words, "soft", 11))
    return out


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else "…" + text[-most + 1 :]


def _text(
    x: float,
    y: float,
    text: str,
    kind: str = "ink",
    size: int = 13,
    anchor: str = "start",
    weight: str = "normal",
) -> str:
    return (
        f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" font-size="{size}" '
        f'text-anchor="{anchor}" font-weight="{weight}">{escape(text)}</text>'
    )


def _rect(x: float, y: float, width: float, height: float, kind: str) -> str:
    return (
        f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" '
        f'width="{max(1.0, width):.1f}" height="{height:.1f}"/>'
    )


def _line(
    x1: float,
    y1: float,
    x2: float,
    y2: float,
    kind: str,
    width: float = 1,
    dashes: str = "",
) -> str:
    style = f' stroke-dasharray="{dashes}"' if dashes else ""
    return (
        f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" '
        f'y2="{y2:.1f}" stroke-width="{width}"{style}/>'
    )
