"""What the runs of a case say: shares, ratios, and whether they suffice."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import Any

from all_cases import find

Json = dict[str, Any]

# T2: no worse than any other way.
_SHARE = 0.95
_BASELINES = ("naive", "heuristic", "hill climb", "random walk")
_NONE = "—"
_TIMES, _OVER = "\N{MULTIPLICATION SIGN}", "\N{DIVISION SIGN}"


@dataclass(frozen=True)
class Verdict:
    number: int
    name: str
    ours: float  # batches a second
    # Medians as shares of the best grid point's; by the way of tuning.
    shares: dict[str, float]
    ours_upper: float  # share, at the end of its 95 % interval
    is_near_best: bool
    worse_than: tuple[str, ...]
    times_naive: float
    times_autotune: float | None
    # Modelled / seen: of the naive pipeline, and of the tuned one.
    model_naive: float | None
    model_tuned: float | None
    # Whether the tuned one was in the interval that was expected of it.
    is_in_interval: bool | None
    error_limit: float
    unmet: tuple[str, ...]
    memory: float
    tasks: int

    @property
    def is_met(self) -> bool:
        return self.is_near_best and not self.worse_than and not self.unmet

    @property
    def is_predicted(self) -> bool | None:
        if self.model_naive is None:
            return None
        return abs(self.model_naive - 1) <= self.error_limit


def _upper(rates: list[float]) -> float:
    """The end of the interval in which the median's true value is."""
    if len(rates) < 2:
        return rates[0]
    error = 1.25 * statistics.stdev(rates) / math.sqrt(len(rates))
    return statistics.median(rates) + 2 * error


def _meets(expected: list[float], rates: list[float]) -> bool:
    """Whether the interval has the median, as far as that is known."""
    low, high = expected
    upper = _upper(rates)
    lower = 2 * statistics.median(rates) - upper
    return low <= upper and lower <= high


def of(row: Json) -> Verdict | None:
    """None if the case was not measured."""
    if "rates" not in row:
        return None
    case = find(row["number"])
    rates = row["rates"]
    middle = {name: statistics.median(found) for name, found in rates.items()}
    best = middle["grid"]
    peer = row.get("peer", {}).get("rates")
    upper = _upper(rates["ours"])
    has_model = "rate_seen" in row
    is_kept = any(kept for _, kept, _ in row.get("tried", []))
    return Verdict(
        number=row["number"],
        name=row["name"],
        ours=middle["ours"],
        shares={
            name: middle[name] / best for name in (*_BASELINES, "grid", "ours")
        },
        ours_upper=upper / best,
        is_near_best=upper >= case.share * best,
        worse_than=tuple(
            name for name in _BASELINES if upper < _SHARE * middle[name]
        ),
        times_naive=middle["ours"] / middle["naive"],
        times_autotune=middle["ours"] / statistics.median(peer["AUTOTUNE"])
        if peer
        else None,
        model_naive=row["rate_modelled"] / row["rate_seen"]
        if has_model
        else None,
        model_tuned=row["rate_expected"] / middle["ours"]
        if has_model and is_kept
        else None,
        is_in_interval=_meets(row["rate_interval"], rates["ours"])
        if is_kept and "rate_interval" in row
        else None,
        error_limit=case.error_limit,
        unmet=tuple(what for what, ok in row.get("expects", []) if not ok),
        memory=row["memory"]["ours"],
        tasks=row["tasks"],
    )


def all_of(rows: list[Json]) -> list[Verdict]:
    found = (of(row) for row in rows)
    return [verdict for verdict in found if verdict is not None]


def line(row: Json) -> str:
    """One case, in a few words."""
    if "absent" in row:
        return f"left out: {row['absent']}"
    verdict = of(row)
    if verdict is None:
        return f"failed: {row['failed'].splitlines()[-1]}"
    words = [
        f"{verdict.shares['ours']:.0%} of the best point",
        f"{verdict.times_naive:.2f} {_TIMES} naive",
    ]
    if verdict.times_autotune is not None:
        words.append(
            f"{verdict.times_autotune:.2f} {_TIMES} tf.data's AUTOTUNE"
        )
    if verdict.model_naive is not None:
        words.append(f"modelled {_OVER} seen {verdict.model_naive:.2f}")
    words += [f"worse than {name}" for name in verdict.worse_than]
    words += [f"NOT {what}" for what in verdict.unmet]
    if not verdict.is_near_best:
        words.append(f"BELOW {find(verdict.number).share:.0%}")
    return ", ".join(words)


def _number(value: float | None, form: str = ".2f") -> str:
    return _NONE if value is None else format(value, form)


def table(verdicts: list[Verdict]) -> str:
    heads = (
        *("#", "case", "naive", "heur.", "climb", "walk", "ours", "upper"),
        *(
            f"{_OVER} naive",
            f"{_OVER} tf.data",
            "model",
            "tuned",
            "MB",
            "tasks",
            "met",
        ),
    )
    lines = [heads]
    for v in verdicts:
        shares = [f"{v.shares[name]:.0%}" for name in (*_BASELINES, "ours")]
        lines.append(
            (
                str(v.number),
                v.name,
                *shares,
                f"{v.ours_upper:.0%}",
                _number(v.times_naive),
                _number(v.times_autotune),
                _number(v.model_naive),
                _number(v.model_tuned),
                f"{v.memory / 1e6:.0f}",
                str(v.tasks) if v.tasks else _NONE,
                "yes" if v.is_met else "no",
            )
        )
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    rows = [
        "  ".join(
            cell.ljust(width) if i == 1 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]
    return "\n".join([*rows, "", *_totals(verdicts)])


def _totals(verdicts: list[Verdict]) -> list[str]:
    if not verdicts:
        return ["nothing was measured"]
    met = sum(v.is_met for v in verdicts)
    modelled = [v for v in verdicts if v.is_predicted is not None]
    right = sum(bool(v.is_predicted) for v in modelled)
    shares = statistics.geometric_mean(v.shares["ours"] for v in verdicts)
    out = [
        f"T2: {met} of {len(verdicts)} cases met (95 % of the best point, T2b"
        f" 90 %; below no other way); ours is {shares:.0%} of it, geometric"
        " mean",
        f"T3: {right} of {len(modelled)} rates modelled within their limit",
    ]
    tuned = [v for v in verdicts if v.model_tuned is not None]
    near = sum(abs((v.model_tuned or 0) - 1) <= v.error_limit for v in tuned)
    known = [v.is_in_interval for v in tuned if v.is_in_interval is not None]
    out.append(
        f"expected of {len(tuned)} tuned ones before they ran: {near} within "
        f"that limit, {sum(known)} of {len(known)} within the interval that "
        "was said"
    )
    peers = [v.times_autotune for v in verdicts if v.times_autotune]
    if peers:
        mean = statistics.geometric_mean(peers)
        out.append(
            f"tf.data's AUTOTUNE: ours is {mean:.1f} times as fast over "
            f"{len(peers)} cases, geometric mean"
        )
    return out
