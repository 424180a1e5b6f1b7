"""An explanation for a terminal."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

from penstock._units import (
    bar,
    has_colour,
    short_place,
    si,
    si_bytes,
    three_digits,
    time_text,
)

if TYPE_CHECKING:
    from penstock._explain import Explanation, Trial
    from penstock._report import (
        Fix,
        Interval,
        NodeReport,
        Offer,
        Prediction,
        Setting,
    )

_WIDTH = 100
TIMES = "\N{MULTIPLICATION SIGN}"
_TO = "\N{EN DASH}"
_NOTHING = "\N{EN DASH}"
_LEAST_WIDTH = 40
_BAR = 8
_GAP = "  "
_MAX_CACHES = 4
_MAX_NODES = 24
_MOST_DECISIONS = 12
_BOLD, _DIM, _RED, _GREEN, _OFF = (
    f"\x1b[{code}m" for code in ("1", "2", "31", "32", "0")
)


class _Column(NamedTuple):
    title: str
    cell: Callable[[NodeReport], str]
    is_left: bool
    # Those of the lowest go first where there is no room; 9 stay.
    rank: int


def rate(number: float) -> str:
    return f"{si(number)}/s"


def between(interval: Interval) -> str:
    """`4.2/s (3.1-5.0)`."""
    low, high = si(interval.low), si(interval.high)
    return f"{rate(interval.middle)} ({low}{_TO}{high})"


def percent(share: float) -> str:
    if 0 < share < 0.005:
        return "<1 %"
    return f"{100 * share:.0f} %"


def gain(now: float, then: float) -> str:
    """`+20 %`, or so many times where that says more."""
    if now <= 0:
        return ""
    times = then / now
    if times >= 2:
        return f"{TIMES}{three_digits(times)}" if times < 1e6 else "far away"
    return f"{100 * (times - 1):+.0f} %"


def waits(node: NodeReport) -> str:
    # Of several files or tasks, each waits: together longer than there is time.
    shares = (node.wait_input_share, node.wait_room_share)
    return "/".join(percent(min(1.0, share)) for share in shares)


def fix_gain(e: Explanation, fix: Fix) -> str:
    """What it brings: beyond what is possible as it is, or what was seen."""
    more = fix.expected.middle > 1.01 * e.possible.middle
    is_for_users_knobs = bool(fix.settings)
    now = e.possible.middle if more or is_for_users_knobs else e.rate
    return gain(now, fix.expected.middle)


def tasks(node: NodeReport) -> str:
    return f"{node.tasks_useful:.1f}/{node.tasks}"


def _span(nanos: float) -> str:
    return time_text(nanos / 1e9) if nanos else _NOTHING


COLUMNS = (
    _Column("transformation", lambda n: n.name, True, 9),
    _Column("made at", lambda n: short_place(n.made_at), True, 8),
    _Column(
        "CPU",
        lambda n: f"{bar(n.cpu_share, _BAR)} {percent(n.cpu_share):>5}",
        True,
        9,
    ),
    _Column(
        "a core does",
        lambda n: rate(n.rate_per_core) if n.rate_per_core else _NOTHING,
        False,
        7,
    ),
    _Column("visits", lambda n: si(n.visits), False, 3),
    _Column("a row has", lambda n: si_bytes(n.row_bytes), False, 4),
    _Column("tasks", tasks, False, 6),
    _Column("waits in/out", waits, False, 5),
    _Column("p50", lambda n: _span(n.service_p50_ns), False, 2),
    _Column("p99", lambda n: _span(n.service_p99_ns), False, 1),
    _Column("CPU ±", lambda n: percent(n.cpu_error), False, 0),
)

_WORDS = {
    "a core does": "elements of the pipeline a second, were a core to do this "
    "alone",
    "visits": "its rows per element",
    "tasks": "at work/there",
    "waits in/out": "for its input/for room",
    "p50": "time of a row; p99: of a slow one",
    "CPU ±": "how sure that is",
}


def legend(columns: Iterable[_Column] = COLUMNS) -> str:
    """What the columns' titles mean."""
    return "; ".join(
        f"{column.title}: {_WORDS[column.title]}"
        for column in columns
        if column.title in _WORDS
    )


class _Pen:
    """Writes with or without colour, no wider than there is room."""

    def __init__(self, width: int, is_coloured: bool) -> None:
        self.width = max(_LEAST_WIDTH, width)
        self._is_coloured = is_coloured

    def paint(self, text: str, colour: str) -> str:
        return f"{colour}{text}{_OFF}" if self._is_coloured else text

    def wrap(self, text: str, first: str = "", rest: str = "") -> list[str]:
        return textwrap.wrap(
            text,
            self.width,
            initial_indent=first,
            subsequent_indent=rest,
            break_long_words=False,
            break_on_hyphens=False,
        ) or [first.rstrip()]

    def named(self, name: str, text: str) -> list[str]:
        """`name    text`, further lines below the text."""
        return self.wrap(text, f"{name:<10}", " " * 10)

    def heading(self, text: str) -> list[str]:
        return ["", self.paint(text, _BOLD)]


def text(
    e: Explanation, width: int | None = None, is_coloured: bool | None = None
) -> str:
    """All of it; of the terminal's width and colours unless told."""
    if width is None:
        width = shutil.get_terminal_size((_WIDTH, 24)).columns
    if is_coloured is None:
        is_coloured = has_colour(sys.stdout)
    pen = _Pen(width, is_coloured)
    colour = _RED if e.is_input_bound else _GREEN
    lines = [pen.paint(line, _BOLD + colour) for line in pen.wrap(e.verdict)]
    lines += ["", *_summary(e, pen)]
    lines += ["", *_nodes(e, pen)]
    lines += _resources(e, pen)
    lines += _memory(e, pen)
    lines += _fixes(e, pen)
    if e.offers:
        lines += pen.heading("what workers need not compute again")
        for offer in e.offers:
            lines += pen.wrap(offer_text(offer), "  ", "    ")
    for title, items in rewrite_lists(e):
        lines += pen.heading(title)
        for item in items:
            lines += pen.wrap(item, "  ", "    ")
    if e.tried:
        lines += pen.heading("tried")
        for trial in e.tried:
            lines += pen.wrap(trial_text(trial), "  ", "  ")
    if e.decisions:
        lines += pen.heading("changed while it ran")
        for line in e.decisions[-_MOST_DECISIONS:]:
            lines += pen.wrap(line, "  ", "    ")
    if e.notes:
        lines += pen.heading("notes")
        for note in e.notes:
            lines += pen.wrap(note, "- ", "  ")
    lines += ["", *(pen.paint(x, _DIM) for x in pen.wrap(trace_text(e)))]
    return "\n".join(lines)


def offer_text(offer: Offer) -> str:
    kept = ""
    if offer.bytes_low is not None and offer.bytes_high is not None:
        low, high = si_bytes(offer.bytes_low), si_bytes(offer.bytes_high)
        kept = f"; keeps {high if low == high else f'{low} to {high}'}"
    return (
        f"{offer.advice}: spares {percent(offer.cpu_share)} of the workers' "
        f"CPU, {offer.cpu_seconds:.3g} s of each pass{kept}, since {offer.why}"
    )


def summary(e: Explanation) -> list[tuple[str, str]]:
    """What stands above the tables, by name."""
    error = e.rate_error / e.rate if e.rate else 0.0
    return [
        (
            "rate",
            f"{rate(e.rate)} ± {percent(error)} measured; "
            f"{between(e.possible)} possible as it is",
        ),
        ("wall", _walls(e)),
        ("consumer", _consumer(e)),
    ]


def _summary(e: Explanation, pen: _Pen) -> list[str]:
    return [
        line for name, words in summary(e) for line in pen.named(name, words)
    ]


def _walls(e: Explanation) -> str:
    words = str(e.wall)
    if e.next_wall.kind:
        more = f"+{percent(e.next_wall_gain)}" if e.next_wall_gain else "close"
        words += f"; once that is gone, {e.next_wall} ({more})"
    return words


def _consumer(e: Explanation) -> str:
    consumer = e.consumer
    if consumer.wait_share is None:
        return "nothing is known of it"
    words = (
        f"waits {percent(consumer.wait_share)} of its time, "
        f"{_span(consumer.wait_ns)} an element"
    )
    if consumer.own_ns is not None:
        words += f"; its own work takes {_span(consumer.own_ns)}"
    return words


def _nodes(e: Explanation, pen: _Pen) -> list[str]:
    columns = list(COLUMNS)
    nodes, others = e.nodes[:_MAX_NODES], e.nodes[_MAX_NODES:]
    while True:
        table = [[column.title for column in columns]]
        table += [[column.cell(node) for column in columns] for node in nodes]
        widths = [
            max(len(row[i]) for row in table) for i in range(len(columns))
        ]
        least = min(columns, key=lambda column: column.rank)
        wide = sum(widths) + len(_GAP) * (len(columns) - 1)
        if wide <= pen.width or least.rank == 9:
            break
        columns.remove(least)
    lines = [
        _row(row, widths, [column.is_left for column in columns])
        for row in table
    ]
    lines[0] = pen.paint(lines[0], _BOLD)
    if others:
        share = percent(sum(node.cpu_share for node in others))
        lines.append(f"and {len(others)} more, with {share} of the CPU")
    words = [pen.paint(line, _DIM) for line in pen.wrap(legend(columns))]
    return lines + words


def _row(cells: list[str], widths: list[int], is_left: list[bool]) -> str:
    return _GAP.join(
        cell.ljust(width) if left else cell.rjust(width)
        for cell, width, left in zip(cells, widths, is_left, strict=True)
    ).rstrip()


def resource_rows(e: Explanation) -> list[tuple[str, str, str, str, str]]:
    """What, used, there, the rate it allows, and how far that is."""
    rows = []
    walls = wall_names(e)
    for i, resource in enumerate(e.resources):
        allowed = resource.rate
        far = "" if allowed is None else gain(e.rate, allowed)
        if resource.what == walls[0] or (not walls[0] and i == 0):
            far += " ◄ the wall"
        elif resource.what == walls[1]:
            far += " ◄ the next"
        rows.append(
            (
                resource.what,
                _amount(resource.what, resource.used),
                _amount(resource.what, resource.capacity),
                _NOTHING if allowed is None else rate(allowed),
                far.strip(),
            )
        )
    return rows


def wall_names(e: Explanation) -> tuple[str, str]:
    """What the wall and the next one are called among the resources."""

    def name(wall: object) -> str:
        kind, node = e.wall.kind, e.wall.node
        if wall is e.next_wall:
            kind, node = e.next_wall.kind, e.next_wall.node
        return f"{node}: {kind}" if node else kind

    return name(e.wall), name(e.next_wall)


def _amount(what: str, number: float) -> str:
    if what.endswith(" bytes") or what == "disk seeks":
        return f"{si_bytes(number)}/s"
    if what == "disk operations":
        return rate(number)
    return f"{number:.2f}" if number < 100 else si(number)


def _resources(e: Explanation, pen: _Pen) -> list[str]:
    if not e.resources:
        return []
    table = [("resource", "used", "of", "allows", "from now")]
    table += resource_rows(e)
    widths = [max(len(row[i]) for row in table) for i in range(5)]
    is_left = [True, False, False, False, True]
    lines = [_row(list(row), widths, is_left) for row in table]
    lines[0] = pen.paint(lines[0], _BOLD)
    for i, row in enumerate(table):
        if row[4].endswith("◄ the wall"):
            lines[i] = pen.paint(lines[i], _RED)
    return ["", *lines]


def memory_lines(e: Explanation) -> list[tuple[str, str]]:
    """Memory, where caches could and could not be, and what is padding."""
    words = f"{si_bytes(e.resident_bytes)} resident"
    if e.memory_limit_bytes:
        words += f" of {si_bytes(e.memory_limit_bytes)}"
    lines = [("memory", words)]
    legal = [n for n in e.nodes if n.may_be_cached]
    name = "cache"
    for node in legal[:_MAX_CACHES]:
        size = "of a size that is not known"
        if node.cache_bytes is not None:
            size = f"at most {si_bytes(node.cache_bytes)}"
        lines.append((name, f"after {node.name}: {size}"))
        name = ""
    why: dict[str, list[str]] = {}
    for node in e.nodes:
        if not node.may_be_cached and node.why_not:
            why.setdefault(node.why_not, []).append(node.name)
    name = "no cache"
    for reason, names in list(why.items())[:_MAX_CACHES]:
        lines.append((name, f"after {', '.join(names)}: {reason}"))
        name = ""
    return lines + _padding_lines(e)


def _padding_lines(e: Explanation) -> list[tuple[str, str]]:
    lines: list[tuple[str, str]] = []
    for node in e.nodes:
        if node.padding is not None:
            many = node.padding.shapes
            shapes = "1 shape" if many == 1 else f"{many} shapes"
            share = percent(node.padding.share)
            words = f"{share} of what {node.name} gives, in {shapes}"
            lines.append(("" if lines else "padding", words))
    return lines


def _memory(e: Explanation, pen: _Pen) -> list[str]:
    lines = [""]
    for name, words in memory_lines(e):
        lines += pen.named(name, words)
    return lines


def fix_changes(fix: Fix) -> list[str]:
    """What to write in the program, and what tune() sets by itself."""
    lines = []
    for setting in fix.settings:
        change = setting.change()
        if change and change not in fix.title:
            lines.append(f"in the program: {change}")
    # A cache is the program's to have.
    is_tuned = all(setting.knob != "cache" for setting in fix.settings)
    if not fix.needs_the_user and fix.settings and is_tuned:
        lines.append("Dataset.tune() does it")
    return lines


def _fixes(e: Explanation, pen: _Pen) -> list[str]:
    lines = pen.heading("what to do")
    if not e.fixes:
        return [*lines, "  nothing that the model knows would make it faster"]
    for number, fix in enumerate(e.fixes, 1):
        first = f"{number:2}. "
        expected = between(fix.expected)
        more = fix_gain(e, fix)
        head = pen.wrap(f"{fix.title}", first, "    ")
        lines += [pen.paint(line, _BOLD) for line in head]
        lines += pen.wrap(f"expected: {expected}, {more}", "    ", "    ")
        for words in (fix.why, *fix_changes(fix)):
            if words:
                lines += pen.wrap(words, "    ", "    ")
    return lines


def rewrite_lists(e: Explanation) -> list[tuple[str, list[str]]]:
    """What was rewritten, and what was not, each with its title."""
    lists = [
        (title, [str(x) for x in e.rewrites if x.is_applied == is_applied])
        for title, is_applied in (("rewritten", True), ("not rewritten", False))
    ]
    return [(title, items) for title, items in lists if items]


def trial_text(trial: Trial) -> str:
    end = "kept" if trial.is_kept else "not kept"
    return (
        f"{trial.what}: expected {between(trial.predicted)}, "
        f"saw {rate(trial.seen)}; {end}: {trial.why}"
    )


def trace_text(e: Explanation) -> str:
    windows = f"{e.windows} window" + ("" if e.windows == 1 else "s")
    return (
        f"traced {time_text(e.seconds)} in {windows}; "
        f"{percent(e.unattributed_share)} of the CPU was charged to nobody; "
        f"{e.used_cores:.2f} of {e.cores:.3g} cores used"
    )


def setting_text(setting: Setting) -> str:
    """`map_2 parallelism: 1 -> 2 (why)`."""
    node = setting.node or "the output"
    before = "its own" if setting.before is None else f"{setting.before:,}"
    place = f" at {setting.made_at}" if setting.made_at else ""
    return (
        f"{node}{place}: {setting.knob} {before} -> {setting.after:,} "
        f"({setting.why})"
    )


def prediction(p: Prediction) -> str:
    words = (
        f"{between(p.rate)}, {gain(p.measured, p.rate.middle)} of the "
        f"{rate(p.measured)} measured; then the wall is {p.wall}"
    )
    return f"{words}, then {p.next_wall}" if p.next_wall.kind else words
