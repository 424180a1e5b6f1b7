"""What was measured, as a table, as JSON and as a verdict."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from typing import Any

from workload import Compared, Cost

_NONE = "—"
TIMES = "\N{MULTIPLICATION SIGN}"


@dataclass
class Result:
    """One row's runs; for a Cost row, `ours` are figures in its unit."""

    name: str
    row: Compared | Cost
    ours: list[float] = field(default_factory=list)
    peer: list[float] = field(default_factory=list)
    peer_variant: str = ""
    # Best of each variant that was tried before the turns.
    peer_trials: dict[str, float] = field(default_factory=dict)
    bare: list[float] = field(default_factory=list)
    note: str = ""
    is_absent: bool = False  # ours cannot run here
    load: float = 0.0

    @property
    def best(self) -> float:
        is_cost = isinstance(self.row, Cost)
        return min(self.ours) if is_cost else max(self.ours)

    @property
    def has_bare(self) -> bool:
        row = self.row
        return isinstance(row, Compared) and row.share_of_bare is not None

    @property
    def is_even(self) -> bool:
        return isinstance(self.row, Compared) and self.row.is_even

    @property
    def ratio(self) -> float | None:
        if not self.peer or isinstance(self.row, Cost):
            return None
        return self._typical(self.ours) / self._typical(self.peer)

    @property
    def moonshot(self) -> float | None:
        """As a ratio to the peer, whichever way it is stated."""
        if not isinstance(self.row, Compared):
            return None
        if self.row.share_of_bare is None:
            return self.row.moonshot
        if not self.bare or not self.peer:
            return None
        bare = self.row.share_of_bare * self._typical(self.bare)
        return bare / self._typical(self.peer)

    @property
    def bare_rate(self) -> float:
        return self._typical(self.bare)

    def _typical(self, rates: list[float]) -> float:
        return statistics.median(rates) if self.is_even else max(rates)

    @property
    def verdict(self) -> str:
        if not self.ours:
            return "failed"
        if isinstance(self.row, Cost):
            return "reached" if self.best <= self.row.limit else "missed"
        if self.ratio is None:
            return _NONE
        if self.ratio < self.row.must_reach:
            return "missed"
        is_beyond = self.moonshot is not None and self.ratio >= self.moonshot
        return "moonshot" if is_beyond else "reached"

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "number": self.row.number,
            "title": self.row.title,
            "ours": self.ours,
            "peer": self.peer,
            "peer_variant": self.peer_variant,
            "peer_trials": self.peer_trials,
            "bare": self.bare,
            "ratio": self.ratio,
            "verdict": self.verdict,
            "note": self.note,
            "load_before": self.load,
        }


def table(results: list[Result]) -> str:
    head = ("", "", "ours", "peer", "ratio", "must reach", "moonshot", "")
    lines = [head, *(_cells(result) for result in results)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    out = []
    for cells in lines:
        padded = [
            # Numbers to the right, words to the left.
            cell.rjust(width) if 2 <= i < len(cells) - 1 else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]
        out.append("  ".join(padded).rstrip())
    out += [f"{r.row.number}: {r.note}" for r in results if r.note]
    return "\n".join(out)


def summary(result: Result) -> str:
    """A few words, for the moment at which the row is done."""
    _, _, ours, peer, ratio, *_, verdict = _cells(result)
    if result.ratio is None:
        return f"{ours}, {verdict}"
    return f"{ours} to {peer} ({result.peer_variant}): {ratio}, {verdict}"


def _cells(result: Result) -> tuple[str, ...]:
    row = result.row
    first = (row.number, row.title)
    if not result.ours:
        return (*first, *[_NONE] * 5, result.verdict)
    if isinstance(row, Cost):
        limit = f"≤ {row.limit:g} {row.unit}"
        ours, peer = (
            f"{min(found):.{row.digits}f} {row.unit}" if found else _NONE
            for found in (result.ours, result.peer)
        )
        return (*first, ours, peer, _NONE, limit, _NONE, result.verdict)
    return (
        *first,
        rate(result.best),
        rate(max(result.peer)) if result.peer else _NONE,
        times(result.ratio),
        "≥ " + times(row.must_reach),
        _moonshot(result),
        result.verdict,
    )


def _moonshot(result: Result) -> str:
    row = result.row
    if isinstance(row, Compared) and row.share_of_bare is not None:
        share = f"{row.share_of_bare:.0%} of bare".replace("%", " %")
        if not result.bare:
            return share
        return f"{share}: {rate(row.share_of_bare * result.bare_rate)}"
    if result.moonshot is None:
        return _NONE
    return "≥ " + times(result.moonshot)


def rate(elements_per_s: float) -> str:
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if elements_per_s >= size:
            return f"{elements_per_s / size:.3g} {unit}/s"
    return f"{elements_per_s:.3g} /s"


def times(ratio: float | None) -> str:
    if ratio is None:
        return _NONE
    if ratio < 2:
        return f"{ratio:.2f}{TIMES}"
    return f"{ratio:,.1f}{TIMES}" if ratio < 10 else f"{ratio:,.0f}{TIMES}"
