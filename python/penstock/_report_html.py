"""An explanation as a page of a notebook, or of its own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

from penstock import _report_svg
from penstock import _report_text as words

if TYPE_CHECKING:
    from penstock._explain import Explanation

# Its own ground and ink: readable whatever it stands on.
_LIGHT = "--g:#fff;--i:#1f2328;--s:#5f6870;--l:#d9dde1;--b:#3a76b8;--w:#c8553d;"
_DARK = (
    "--g:#16191d;--i:#e6e8ea;--s:#9aa4ae;--l:#343a40;--b:#5b9be0;--w:#e0735a;"
)
_STYLE = f"""<style>
.ps-report{{{_LIGHT}background:var(--g);color:var(--i);padding:16px 20px;
font:14px/1.45 system-ui,sans-serif;max-width:980px;border-radius:6px}}
@media (prefers-color-scheme:dark){{.ps-report{{{_DARK}}}}}
.ps-report h2{{font-size:16px;margin:0 0 10px}}
.ps-report h3{{font-size:14px;margin:18px 0 6px}}
.ps-report .w{{color:var(--w)}} .ps-report .s{{color:var(--s);font-size:12px}}
.ps-report .t{{overflow-x:auto}}
.ps-report table{{border-collapse:collapse;background:none;font-size:13px;
margin:6px 0;color:inherit}}
.ps-report td,.ps-report th{{padding:3px 10px 3px 0;text-align:right;
border:0;border-bottom:1px solid var(--l);white-space:nowrap;background:none}}
.ps-report td.l,.ps-report th.l{{text-align:left}}
.ps-report td.f{{white-space:normal;text-align:left}}
.ps-report .b{{display:inline-block;width:80px;height:9px;background:var(--l);
margin-right:6px}}
.ps-report .b i{{display:block;height:9px;background:var(--b)}}
.ps-report svg{{max-width:100%;height:auto;margin-top:8px}}
.ps-report li{{margin-bottom:6px}}
</style>"""


def html(e: Explanation) -> str:
    """A part of a page: it needs nothing, and changes nothing around it."""
    kind = ' class="w"' if e.is_input_bound else ""
    out = [
        '<div class="ps-report">',
        _STYLE,
        f"<h2{kind}>{escape(e.verdict)}</h2>",
        _pairs(words.summary(e)),
        "<h3>Transformations</h3>",
        _nodes(e),
        f'<p class="s">{escape(words.legend())}</p>',
        "<h3>Resources</h3>",
        _resources(e),
        "<h3>Memory</h3>",
        _pairs(words.memory_lines(e)),
        "<h3>What to do</h3>",
        _fixes(e),
    ]
    if e.offers:
        out += [
            "<h3>What workers need not compute again</h3>",
            _list(map(words.offer_text, e.offers)),
        ]
    for title, items in words.rewrite_lists(e):
        out += [f"<h3>{title.capitalize()}</h3>", _list(items)]
    if e.tried:
        out += ["<h3>Tried</h3>", _list(map(words.trial_text, e.tried))]
    if e.decisions:
        out += ["<h3>Changed while it ran</h3>", _list(e.decisions)]
    if e.notes:
        out += ["<h3>Notes</h3>", _list(e.notes)]
    out += [
        _report_svg.svg(e),
        f'<p class="s">{escape(words.trace_text(e))}</p>',
        "</div>",
    ]
    return "\n".join(out)


def page(e: Explanation) -> str:
    """A whole page."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f"<title>{escape(e.verdict)}</title>"
        '<meta name="color-scheme" content="light dark">'
        "<style>body{margin:24px;background:#fff}"
        "@media (prefers-color-scheme:dark){body{background:#16191d}}</style>"
        f"</head><body>\n{html(e)}\n</body></html>\n"
    )


def _pairs(pairs: Iterable[tuple[str, str]]) -> str:
    rows = "".join(
        f'<tr><td class="l"><b>{escape(name)}</b></td>'
        f'<td class="f">{escape(text)}</td></tr>'
        for name, text in pairs
    )
    return f"<table>{rows}</table>"


def _list(items: Iterable[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(item)}</li>' for item in items)}</ul>"


def _table(
    titles: Sequence[str], rows: Iterable[Sequence[str]], left: Sequence[bool]
) -> str:
    """Cells are HTML already."""

    def line(tag: str, cells: Sequence[str]) -> str:
        made = "".join(
            f'<{tag} class="{"l" if is_left else "r"}">{cell}</{tag}>'
            for cell, is_left in zip(cells, left, strict=True)
        )
        return f"<tr>{made}</tr>"

    body = "".join(line("td", row) for row in rows)
    return f'<div class="t"><table>{line("th", titles)}{body}</table></div>'


def _nodes(e: Explanation) -> str:
    rows = []
    for node in e.nodes:
        cells = [escape(column.cell(node)) for column in words.COLUMNS]
        cells[1] = f'<span title="{escape(node.made_at)}">{cells[1]}</span>'
        width = 100 * min(1.0, max(0.0, node.cpu_share))
        cells[2] = (
            f'<span class="b"><i style="width:{width:.1f}%"></i></span>'
            f"{words.percent(node.cpu_share)}"
        )
        rows.append(cells)
    titles = [escape(column.title) for column in words.COLUMNS]
    return _table(titles, rows, [column.is_left for column in words.COLUMNS])


def _resources(e: Explanation) -> str:
    rows = [
        [
            f'<span class="w">{escape(cell)}</span>'
            if row[4].endswith("◄ the wall")
            else escape(cell)
            for cell in row
        ]
        for row in words.resource_rows(e)
    ]
    titles = ["resource", "used", "of", "allows", "from now"]
    return _table(titles, rows, [True, False, False, False, True])


def _fixes(e: Explanation) -> str:
    if not e.fixes:
        return "<p>Nothing that the model knows would make it faster.</p>"
    items = []
    for fix in e.fixes:
        more = words.fix_gain(e, fix)
        lines = [
            f"<b>{escape(fix.title)}</b>",
            escape(f"expected: {words.between(fix.expected)}, {more}"),
            *(escape(x) for x in (fix.why, *words.fix_changes(fix)) if x),
        ]
        items.append(f"<li>{'<br>'.join(lines)}</li>")
    return f"<ol>{''.join(items)}</ol>"
