"""The part of `Dataset` that measures: explain, tune."""

from __future__ import annotations

import copy
import dataclasses
import math
import os
import statistics
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from penstock import (
    _budget,
    _epochs,
    _explain,
    _foreseen,
    _impure,
    _read_back,
    _rewrites,
    _tuning,
)
from penstock._errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    InvalidTypeError,
)
from penstock._explain import Explanation, Trial
from penstock._location import refused, warn
from penstock._pipeline import Pipeline
from penstock._report import Setting
from penstock._report_text import rate as rate_text
from penstock._report_text import setting_text
from penstock._rewrites import Decision
from penstock._tracing import Progress
from penstock._tuning import Tuning, TuningDiff
from penstock._units import time_text

if TYPE_CHECKING:
    from penstock._dataset import Dataset

_MAX_SECONDS = 10.0
# Of the rate before: keeping rows costs copies, in the first epoch alone.
_LEAST_WHILE_KEEPING = 0.8
# What is better by less is not told from luck, however even the windows are.
_LEAST_GAIN = 0.02
# What is slower by less may hold less instead.
_MOST_LOSS = 0.05
# A gain, and of the longest run, from which on one that is longer is no use.
_WORTH_LONGER = 0.1
_LONG = 0.8
# Beyond a budget, with what measuring itself may be wrong by.
_OVER = 1.1
# A trace, in parts that are long.
_PARTS = 8
# Of tasks: fewer are kept for their own sake.
_LEAST_GIVEN_BACK = 0.25


class Measuring(Pipeline):
    """The part of `Dataset` that says how fast it is, and makes it faster."""

    _tuning: Tuning | None = None
    _explanation: Explanation | None = None

    def explain(
        self,
        seconds: float = 5.0,
        cpu: float | None = None,
        memory: int | str | None = None,
        trace: str | os.PathLike[str] | None = None,
    ) -> Explanation:
        """Runs the pipeline for a while and says what limits it.

        It is read as fast as it goes, by nobody who does anything with the
        elements; `Iterator.explain` says what a real consumer sees. It stops
        early when it ends, or when the rate does not change any more. No epoch
        is used up by it.

        Example:
            >>> ds = ps.Dataset.range(10**6).map(lambda x: x * 2).batch(100)
            >>> e = ds.explain(seconds=0.5)
            >>> e.rate > 0 and e.wall.kind != ""
            True

        Args:
            seconds: How long at most.
            cpu: Cores that may be used; all if None.
            memory: Bytes that may be used, or text such as "2GB"; all if None.
            trace: A file to keep what was measured in, for
                `ps.explain_trace`.

        Raises:
            DeadlineExceededError: No element came in that time.
            FailedPreconditionError: There are no elements.
        """
        budget = _budget.message(cpu, memory)
        return explained(self._self(), seconds, budget, trace)

    def tune(
        self,
        cpu: float | None = None,
        memory: int | str | None = None,
        disk: int | str | None = None,
        seconds: float = 5.0,
        rewrites: bool | Iterable[str] = True,
        may_hide_errors: bool = False,
    ) -> Dataset:
        """The same pipeline, with the settings that make it fastest.

        It is measured; transformations are put in a better order where nobody
        can tell; the best settings are computed from that, and it is measured
        again with them: they are used if it is faster beyond doubt, and the
        pipeline is as before if not. `explanation.tried` says so. Elements,
        their order and randomness stay the same, and saved states load into
        both. Settings in the program (`num_parallel_calls`, `buffer_size`) are
        changed as well.

        What is appended later runs with the settings that it has by itself.
        They travel with the dataset, to other processes too.

        Example:
            >>> ds = ps.Dataset.range(10**6).map(lambda x: x * 2).batch(100)
            >>> tuned = ds.tune(seconds=0.5)
            >>> next(iter(tuned))[:3]
            array([0, 2, 4])
            >>> changes = tuned.diff(ds)          # what, from, to, why

        Args:
            cpu: Cores that may be used; all if None.
            memory: Bytes that may be used, or text such as "2GB"; all if None.
            disk: Bytes of disk that may be used, in the same way.
            seconds: How long to measure each time, at most 10.
            rewrites: Which rewrites may be done: all, none, or those named, as
                `penstock tune --list-rewrites` shows them.
            may_hide_errors: Elements that a filter drops need not be computed
                first, even if that would have been an error: such errors are
                then not seen.

        Raises:
            InvalidArgumentError: There is no such rewrite.
        """
        return tuned(
            self._self(), cpu, memory, disk, seconds, rewrites, may_hide_errors
        )

    @property
    def explanation(self) -> Explanation:
        """What `tune` found: of the pipeline as it was, with what was tried."""
        if self._explanation is None:
            raise refused(
                FailedPreconditionError,
                "explanation must be asked of a dataset that tune() gave in "
                "this process; got another. Use explain()",
            )
        return self._explanation

    def diff(self, other: Dataset) -> TuningDiff:
        """What tuning changed against `other`, the dataset before it.

        Example:
            >>> ds = ps.Dataset.range(10**5).batch(10)
            >>> for setting in ds.tune(seconds=0.3).diff(ds):
            ...     line = (setting.node, setting.before, setting.after)

        Returns:
            The settings; `print` shows them.
        """
        if not isinstance(other, Measuring):
            raise refused(
                InvalidTypeError,
                f"diff must be given a dataset; got {type(other).__name__}",
            )
        mine, theirs = self._self().fingerprint(), other._self().fingerprint()
        if mine != theirs:
            raise refused(
                InvalidArgumentError,
                f"diff is of two datasets of one pipeline; got {mine} and "
                f"{theirs}",
            )
        is_same = (self._knobs, self._rewriting) == (
            other._knobs,
            other._rewriting,
        )
        if self._tuning is None or is_same:
            return TuningDiff()
        changes = TuningDiff(self._tuning.settings)
        changes.rewrites = tuple(
            rewrite for rewrite in self._tuning.rewrites if rewrite.is_applied
        )
        return changes

    def save_tuning(self, path: str | os.PathLike[str]) -> None:
        """Keeps what `tune` chose in a file, for `load_tuning`.

        Example:
            >>> import tempfile
            >>> file = tempfile.mkdtemp() + "/tuned.json"
            >>> ds = ps.Dataset.range(10**5).batch(10)
            >>> ds.tune(seconds=0.3).save_tuning(file)
            >>> fast = ds.load_tuning(file)
        """
        if self._tuning is None:
            raise refused(
                FailedPreconditionError,
                "save_tuning must be called on a dataset that tune() or "
                "load_tuning() gave; got another",
            )
        self._tuning.save(path)

    def load_tuning(self, path: str | os.PathLike[str]) -> Dataset:
        """The same pipeline, with the settings in a file of `save_tuning`.

        What was rewritten is rewritten again. On another machine than that
        where they were chosen, they are used with a warning.

        Raises:
            DataLossError: The file is damaged, or something else.
            InvalidArgumentError: It is of another pipeline.
            ResourceExhaustedError: It needs more memory than there is.
        """
        found = _tuning.load(path)
        name = os.fsdecode(path)
        mine = self._self().fingerprint()
        if found.fingerprint != mine:
            raise refused(
                InvalidArgumentError,
                f"expected a tuning of this pipeline ({mine}); {name!r} is of "
                f"pipeline {found.fingerprint}.\n  Tune this one, or load it "
                "where it was tuned: before anything was appended.",
            )
        if found.rewriting is not None:
            why = _rewrites.why_not(self._self(), found.rewriting)
            if why:
                warn(
                    f"the tuning in {name!r} is of another version of penstock "
                    f"({why}). Neither what it rewrote nor its settings are "
                    "used; tune() again.",
                )
                return self._self()
        return with_tuning(self._self(), found, _tuning.fit(found, name))


def explained(
    dataset: Dataset,
    seconds: Any,
    budget: dict[str, Any],
    trace: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Explanation:
    """What `Dataset.explain` gives."""
    found = _explain.of_dataset(dataset, seconds, budget, trace, progress)
    found = _read_back.measured(dataset, found, seconds, budget)
    found = _impure.advised(found)
    return _foreseen.advised(dataset, found, budget)


def with_tuning(dataset: Dataset, tuning: Tuning, knobs: Any) -> Dataset:
    """The same dataset but for its knobs, and how it is rewritten."""
    made = copy.copy(dataset)
    made._tokens = dataset._tokens
    is_set = knobs and (knobs["nodes"] or "output_rows" in knobs)
    made._knobs = knobs if is_set else None
    made._rewriting = tuning.rewriting
    made._tuning = tuning
    return made


def tuned(
    dataset: Dataset,
    cpu: Any = None,
    memory: Any = None,
    disk: Any = None,
    seconds: Any = 5.0,
    rewrites: Any = True,
    may_hide_errors: bool = False,
    progress: Progress | None = None,
) -> Dataset:
    """What `Dataset.tune` gives; two runs at most."""
    budget = _budget.message(cpu, memory, disk)
    # Memory that was not offered is not for rows that could be computed again.
    wanted = {
        **budget,
        "ignore_pins": True,
        "no_cache": "memory_bytes" not in budget,
    }
    most = min(_MAX_SECONDS, _budget.seconds("seconds", seconds))
    passes = _rewrites.chosen(rewrites)
    dataset = _begun_with(dataset, passes, may_hide_errors)
    before = _epochs.measured(dataset, most, wanted, progress)
    if before._rewriting != dataset._rewriting:  # Its options asked for it.
        dataset = copy.copy(dataset)
        dataset._rewriting = before._rewriting
    decision = _decide(dataset, before, passes, may_hide_errors, wanted)
    found = _with_rewrites(before, decision)
    knobs = _tuning.of_engine(found._knobs)
    settings = found.settings
    if "memory_bytes" not in budget:
        # How far the engine runs ahead is bounded in bytes already; in small
        # elements, few of them are far too little.
        knobs.pop("output_rows", None)
        settings = tuple(s for s in settings if s.knob != "output_rows")
    cores, memory_bytes = _tuning.machine()
    tuning = Tuning(
        fingerprint=dataset.fingerprint(),
        knobs=knobs,
        settings=settings,
        cores=cores,
        memory_bytes=memory_bytes,
        needs_bytes=found.expected_memory_bytes,
        rate_before=before.rate,
        rate=before.rate,
        rewriting=decision.rewriting,
        rewrites=decision.rewrites,
    )
    is_rewritten = decision.rewriting != dataset._rewriting
    if not settings and not is_rewritten:
        made = _as_before(dataset, tuning)
        made._explanation = found
        return made
    is_free = not settings and dataset._knobs is None
    if is_free:  # It finds its own while it runs, as it did before.
        tuning = dataclasses.replace(tuning, knobs={"nodes": {}})
    candidate = with_tuning(dataset, tuning, None if is_free else knobs)
    rate = 0.0
    try:
        after = _epochs.measured(candidate, most, budget, progress)
        rate = after.rate
        is_kept, why = _judge(
            found, after, budget, is_rewritten and decision.saves_memory
        )
    except FailedPreconditionError as error:  # It ended too soon.
        is_kept, why = False, str(error).partition("\n")[0]
    words = _words(settings, decision if is_rewritten else Decision())
    trial = Trial(words, found.expected, rate, is_kept, why)
    if is_kept:
        made = candidate
        made._tuning = dataclasses.replace(tuning, rate=rate)
    else:
        made = _as_before(dataset, tuning)
    made._explanation = dataclasses.replace(found, tried=(trial,))
    return made


def _decide(
    dataset: Dataset,
    before: Explanation,
    passes: list[str] | None,
    may_hide_errors: bool,
    budget: dict[str, Any],
) -> Decision:
    """What to rewrite of the pipeline as it was written."""
    if passes == [] or before._file is None:
        return Decision(dataset._rewriting)
    path = before._file.path

    def decide(names: list[str] | None) -> Decision:
        return _rewrites.decide(dataset, names, may_hide_errors, path, budget)

    found = decide(passes)
    # Rows that come in another order each time cannot be kept. Other forecasts
    # are left to the second run to judge.
    while (
        found.is_worse_than(before.expected)
        and _keeps_rows(before)
        and not _keeps_rows(_with_rewrites(before, found))
    ):
        tried = [(x, decide(x)) for x in _rewrites.all_but_one(found, passes)]
        passes, best = max(tried, key=lambda x: x[1].rate_or(before.expected))
        found = best.declining(found)
    if found.rewriting is None:  # What was rewritten earlier stays so.
        return dataclasses.replace(found, rewriting=dataset._rewriting)
    return found


def _keeps_rows(found: Explanation) -> bool:
    return any(setting.knob == "cache" for setting in found.settings)


def _begun_with(
    dataset: Dataset, passes: list[str] | None, may_hide_errors: bool
) -> Dataset:
    """The dataset, as it was written if it is rewritten as it may not be."""
    now = dataset._rewriting
    if now is None or (
        passes is None and may_hide_errors == now.get("may_hide_errors", False)
    ):
        return dataset
    made = copy.copy(dataset)
    made._knobs = made._rewriting = made._tuning = None
    return made


def _with_rewrites(before: Explanation, decision: Decision) -> Explanation:
    """What was found, with what is expected of the rewritten pipeline."""
    found = dataclasses.replace(before, rewrites=decision.rewrites)
    if not decision.applied():
        return found
    if not decision.expected:
        # Knobs of the one are none of the other.
        return dataclasses.replace(found, settings=(), _knobs={})
    then = _explain.from_report(decision.expected, None, [])
    return dataclasses.replace(
        found,
        settings=then.settings,
        expected=then.expected,
        expected_cores=then.expected_cores,
        expected_memory_bytes=then.expected_memory_bytes,
        is_over_memory=then.is_over_memory,
        _knobs=then._knobs,
    )


def _as_before(dataset: Dataset, tuning: Tuning) -> Dataset:
    if dataset._tuning is not None:  # What was found earlier stays.
        return with_tuning(dataset, dataset._tuning, dataset._knobs)
    none = dataclasses.replace(
        tuning,
        knobs=dataset._knobs or {"nodes": {}},
        settings=(),
        rewriting=dataset._rewriting,
        rewrites=(),
    )
    return with_tuning(dataset, none, dataset._knobs)


def _words(settings: tuple[Setting, ...], decision: Decision) -> str:
    names = [
        f"{rewrite.name} of {', '.join(rewrite.nodes)}"
        for rewrite in decision.rewrites
        if rewrite.is_applied
    ]
    names += [setting_text(s).partition(" (")[0] for s in settings]
    return "; ".join(names)


def _judge(
    before: Explanation,
    after: Explanation,
    budget: dict[str, Any],
    saves_memory: bool = False,
) -> tuple[bool, str]:
    """Whether the second run is better than the first, and why."""
    seconds = min(before.seconds, after.seconds)
    windows = min(before.windows, after.windows)
    is_long = seconds >= _epochs.LEAST_SECONDS
    if not is_long or windows < _epochs.LEAST_WINDOWS:
        return False, (
            f"a run of {time_text(seconds)} does not tell one rate from "
            "another; tune it on more data"
        )
    keeps_rows = any(setting.knob == "cache" for setting in before.settings)
    if keeps_rows and after.rate > _LEAST_WHILE_KEEPING * before.rate:
        then = rate_text(before.expected.middle)
        return True, (
            f"rows are kept in the first epoch ({then} expected from the "
            "second on, which was not measured)"
        )
    if not (before.rate > 0 and after.rate > 0):
        return after.rate > 0, "a rate of nothing does not compare"
    # Of logarithms: both rates err by a share of themselves.
    gain = math.log(after.rate / before.rate)
    noise = max(
        math.log1p(_LEAST_GAIN),
        2 * math.hypot(_relative_error(before), _relative_error(after)),
    )
    share = math.expm1(gain)
    if gain > noise:
        return True, (
            f"{100 * share:+.0f} %, for a consumer that takes less than "
            f"{time_text(1 / before.rate)} an element"
        )
    for what, limit, first, second in (
        ("cores", "cores", before.used_cores, after.used_cores),
        ("memory", "memory_bytes", before.resident_bytes, after.resident_bytes),
    ):
        most = budget.get(limit, math.inf) * _OVER
        if first > most >= second:
            return True, f"it now is within its {what} ({100 * share:+.0f} %)"
    if -gain > noise:
        return False, f"it was slower ({100 * share:+.0f} %)"
    if share > -_MOST_LOSS:
        saved = (
            "it holds less" if saves_memory else _given_back(before.settings)
        )
        if saved:
            return True, f"as fast ({100 * share:+.0f} %), and {saved}"
    longer = ""
    if share > _WORTH_LONGER and seconds < _LONG * _MAX_SECONDS:
        longer = f"; a longer run may tell: seconds={_MAX_SECONDS:g}"
    return False, (
        f"{100 * share:+.0f} % is not beyond what chance gives "
        f"({100 * math.expm1(noise):.0f} %){longer}"
    )


def _relative_error(e: Explanation) -> float:
    """The standard error of a rate, as a share of it.

    Elements may come in bursts that are longer than a window: windows then
    differ by more than their mean is in doubt. Longer parts tell.
    """
    error = e.rate_error / e.rate
    moments = e.timeline
    each = len(moments) // _PARTS
    if each < 2:
        return error
    rates = []
    for i in range(_PARTS):
        part = moments[i * each : (i + 1) * each]
        seconds = sum(m.end - m.begin for m in part)
        rows = sum(m.rate * (m.end - m.begin) for m in part)
        rates.append(rows / seconds if seconds else 0.0)
    mean = statistics.fmean(rates)
    if mean <= 0:
        return error
    return min(error, statistics.stdev(rates) / mean / math.sqrt(_PARTS))


def _given_back(settings: tuple[Setting, ...]) -> str:
    """What fewer tasks leave to others, if that is worth mentioning."""
    known = [
        (s.before, s.after)
        for s in settings
        if s.knob == "parallelism" and s.before is not None
    ]
    now, then = sum(b for b, _ in known), sum(a for _, a in known)
    if now == 0 or then > (1 - _LEAST_GIVEN_BACK) * now:
        return ""
    return f"{then} tasks do what {now} did"
