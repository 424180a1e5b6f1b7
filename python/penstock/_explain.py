"""Explanations: what limits a pipeline, why, and what to do."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from penstock import _budget, _engine, _report, _tracing
from penstock._engine import EngineGoneError
from penstock._errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    InvalidTypeError,
    PenstockError,
    UnsupportedFunctionError,
)
from penstock._location import refused
from penstock._report import (
    Consumer,
    Fix,
    Interval,
    Json,
    Moment,
    NodeReport,
    Offer,
    Prediction,
    Resource,
    Setting,
    Wall,
)
from penstock._rewrites import Rewrite

if TYPE_CHECKING:
    from penstock._dataset import Dataset
    from penstock._iterator import Iterator

_ITERATOR_EVERY_MS = 200


@dataclasses.dataclass(frozen=True)
class Trial:
    """Something that was tried: the rate expected, that seen, and the end."""

    what: str
    predicted: Interval
    seen: float
    is_kept: bool
    why: str


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Explanation:
    """What limits a pipeline, why we think so, and what to do.

    Made by `Dataset.explain`, `Iterator.explain` and `ps.explain_trace`.
    `print` shows all of it, a notebook shows it as a page.

    Example:
        >>> ds = ps.Dataset.range(10**6).map(lambda x: x + 1)
        >>> e = ds.explain(seconds=0.5)
        >>> e.rate > 0
        True
        >>> sorted(node.name for node in e.nodes)
        ['map_1', 'range_0']
        >>> str(e).startswith(e.verdict[:20])
        True

    Attributes:
        verdict: One sentence.
        is_input_bound: Whether the consumer waits for the pipeline.
        rate: Elements a second, as measured.
        rate_error: Its standard error.
        possible: The rate that the model allows with the settings as they are.
        wall: What `possible` comes from.
        next_wall: What comes after it, at a rate `next_wall_gain` higher (0.2
            is 20 %).
        consumer: Who takes the elements.
        nodes: The transformations, costliest first.
        resources: What is used and what there is, tightest first.
        fixes: What to do, best first.
        notes: What is odd.
        settings: All that `Dataset.tune` would set.
        expected: The rate with them.
        expected_cores: The cores that they would use.
        expected_memory_bytes: What rows would then hold.
        is_over_memory: Whether not even the least fits into the memory.
        unattributed_share: The part of the CPU that is nobody's.
        seconds: How long the trace is, in `windows` parts.
        timeline: How it went.
        decisions: What was changed while it ran, or not, and why.
        offers: Of a pipeline behind `distribute`, what its workers compute
            again and again, and what to write so that they do not.
        tried: What `Dataset.tune` tried.
        rewrites: What it rewrote, and what not, though one might expect it.
    """

    verdict: str
    is_input_bound: bool
    rate: float
    rate_error: float
    possible: Interval
    wall: Wall
    next_wall: Wall
    next_wall_gain: float
    consumer: Consumer
    nodes: tuple[NodeReport, ...]
    resources: tuple[Resource, ...]
    fixes: tuple[Fix, ...]
    notes: tuple[str, ...]
    settings: tuple[Setting, ...]
    expected: Interval
    expected_cores: float
    expected_memory_bytes: float
    is_over_memory: bool
    unattributed_share: float
    seconds: float
    windows: int
    cores: float
    used_cores: float
    memory_limit_bytes: float
    resident_bytes: float
    fingerprint: str
    timeline: tuple[Moment, ...]
    decisions: tuple[str, ...] = ()
    offers: tuple[Offer, ...] = ()
    tried: tuple[Trial, ...] = ()
    rewrites: tuple[Rewrite, ...] = ()
    _knobs: Json = dataclasses.field(default_factory=dict)
    _file: _tracing.TraceFile | None = None
    # Of what was run.
    _rewriting: Json | None = None
    # The user's cache of which reading its file back is the wall.
    _read_back: str = ""
    # Before its time was over.
    _has_ended: bool = False

    def __str__(self) -> str:
        from penstock import _report_text

        return _report_text.text(self)

    def __repr__(self) -> str:
        return f"<Explanation: {self.verdict}>"

    def _repr_html_(self) -> str:
        from penstock import _report_html

        return _report_html.html(self)

    def to_json(self) -> dict[str, Any]:
        """All of it as values that fit into JSON.

        Example:
            >>> e = ps.Dataset.range(10**6).batch(10).explain(seconds=0.5)
            >>> e.to_json()["wall"]["kind"] == e.wall.kind
            True
        """
        return {
            field.name: _plain(getattr(self, field.name))
            for field in dataclasses.fields(self)
            if not field.name.startswith("_")
        }

    def plot(self, path: str | os.PathLike[str] | None = None) -> str:
        """A picture, as SVG: what allows which rate, and how it went.

        Args:
            path: Where to write it, too.

        Returns:
            The SVG's text.
        """
        from penstock import _report_svg

        picture = _report_svg.svg(self)
        if path is not None:
            with open(path, "w", encoding="utf-8") as file:
                file.write(picture)
        return picture

    def what_if(
        self,
        *,
        cores: float | None = None,
        tasks: Mapping[str, int] | None = None,
        read_depth: Mapping[str, int] | None = None,
        reorder_rows: Mapping[str, int] | None = None,
        cache: str | None = None,
        disk_cache: str | None = None,
        consumer: float | None = None,
        disk: float | None = None,
        cost: Mapping[str, float] | None = None,
        fuse: str | None = None,
        move: Mapping[str, str | None] | None = None,
        workers_after: str | None = None,
        worker_cores: float | None = None,
        network: float | str | None = None,
    ) -> Prediction:
        """What other resources, or another pipeline, would bring.

        Several changes count together. Settings that are named neither here nor
        in the program are taken to be as good as they can be.

        Example:
            >>> e = ps.Dataset.range(10**6).batch(100).explain(seconds=0.5)
            >>> more = e.what_if(cores=16, cost={"range_0": 0.5})
            >>> more.rate.middle > 0
            True

        Args:
            cores: That many.
            tasks: Tasks of a transformation, by its name.
            read_depth: Reads under way at once, by name.
            reorder_rows: Rows that tasks of a transformation may be ahead of
                the one that is next in order, by name.
            cache: All rows kept in memory after this transformation.
            disk_cache: The same on disk.
            consumer: A consumer so many times as fast.
            disk: A disk so many times as fast.
            cost: So many times the work in a transformation, by its name.
            fuse: This transformation done with the one before it.
            move: Transformations done elsewhere: `{"filter_3": "map_2"}` has
                filter_3 right before map_2, `{"map_1": None}` has map_1 last.
                By what was seen of their rows; whether elements would be the
                same is yours to know.
            workers_after: Everything up to this transformation done by the
                workers of a service, as with `distribute` after it.
            worker_cores: Their cores, all together.
            network: Bytes a second from them to here, as in "1.25GB"; as much
                as it takes if None.

        Raises:
            InvalidArgumentError: It cannot be moved, or not past what is there.
            NotFoundError: There is no such transformation.
        """
        # Of rows as they were seen, before caches take some away.
        changes = _moves(move) + _changes(
            {"cores": cores, "consumer": consumer, "disk": disk},
            {
                "tasks": tasks,
                "read_depth": read_depth,
                "reorder_rows": reorder_rows,
                "cost": cost,
            },
            {"cache": cache, "disk_cache": disk_cache},
        )
        if fuse is not None:
            changes.append({"fuse": _name("fuse", fuse)})
        changes += _workers(workers_after, worker_cores, network)
        if not changes:
            raise refused(
                InvalidArgumentError,
                "what_if must be told what changes, as in what_if(cores=16); "
                "got nothing",
            )
        assert self._file is not None
        try:
            found = _engine.call(
                "what_if", {"path": self._file.path, "changes": changes}
            )
        except PenstockError as error:
            raise refused(type(error), str(error)) from None
        return _report.to_prediction(found)


def _changes(
    numbers: Mapping[str, Any],
    of_nodes: Mapping[str, Any],
    caches: Mapping[str, Any],
) -> list[Json]:
    changes: list[Json] = []
    for name, given in numbers.items():
        if given is not None:
            changes.append({name: _budget.factor(name, given)})
    for name, given in of_nodes.items():
        if given is None:
            continue
        if not isinstance(given, Mapping):
            raise refused(
                InvalidTypeError,
                f'{name} must be a dict such as {{"map_2": 4}}; got {given!r}',
            )
        for node, value in given.items():
            number = {
                "node": _name(name, node),
                "value": _budget.factor(f"{name} of {node}", value),
            }
            changes.append({name: number})
    for name, given in caches.items():
        if given is not None:
            number = {"node": _name(name, given), "value": 1.0}
            changes.append({name: number})
    return changes


def _moves(move: Mapping[str, str | None] | None) -> list[Json]:
    if move is None:
        return []
    if not isinstance(move, Mapping):
        raise refused(
            InvalidTypeError,
            'move must be a dict such as {"filter_3": "map_2"}; got '
            f"{move!r}",
        )
    return [
        {
            "move": {
                "node": _name("move", node),
                "before": "" if place is None else _name("move", place),
            }
        }
        for node, place in move.items()
    ]


def _workers(after: str | None, cores: Any, network: Any) -> list[Json]:
    if after is None and cores is None and network is None:
        return []
    if after is None or cores is None:
        raise refused(
            InvalidArgumentError,
            "what workers would bring depends on what they do and on their "
            'cores, as in what_if(workers_after="map_2", worker_cores=16); got '
            f"workers_after={after!r}, worker_cores={cores!r}",
        )
    workers: Json = {
        "after": _name("workers_after", after),
        "cores": _budget.cores("worker_cores", cores),
    }
    if network is not None:
        workers["network_bytes_per_second"] = _budget.size("network", network)
    return [{"workers": workers}]


def _name(argument: str, given: Any) -> str:
    if not isinstance(given, str):
        raise refused(
            InvalidTypeError,
            f"{argument} must name a transformation, as describe() shows it; "
            f"got {given!r}",
        )
    return given


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value


def from_report(
    message: Json, file: _tracing.TraceFile | None, notes: list[str]
) -> Explanation:
    """The engine's Report message, and what was noted beside it."""
    all_notes = [*message.get("notes", ()), *notes]
    if message.get("trace_status"):
        all_notes.append(
            f"the trace is not whole ({message['trace_status']}): this is of "
            "the part before that"
        )

    def several(name: str, make: Any) -> Any:
        return tuple(make(item) for item in message.get(name, ()))

    def number(name: str) -> float:
        return float(message.get(name, 0.0))

    return Explanation(
        verdict=message.get("sentence", ""),
        is_input_bound=bool(message.get("is_input_bound", False)),
        rate=number("measured"),
        rate_error=number("measured_error"),
        possible=_report.to_interval(message.get("possible", {})),
        wall=_report.to_wall(message.get("wall", {})),
        next_wall=_report.to_wall(message.get("next_wall", {})),
        next_wall_gain=number("next_wall_gain"),
        consumer=_report.to_consumer(message.get("consumer", {})),
        nodes=several("nodes", _report.to_node),
        resources=several("resources", _report.to_resource),
        fixes=several("fixes", _report.to_fix),
        notes=tuple(all_notes),
        settings=several("settings", _report.to_setting),
        expected=_report.to_interval(message.get("expected", {})),
        expected_cores=number("expected_cores"),
        expected_memory_bytes=number("expected_memory_bytes"),
        is_over_memory=bool(message.get("is_over_memory", False)),
        unattributed_share=number("unattributed_share"),
        seconds=number("seconds"),
        windows=int(message.get("windows", 0)),
        cores=number("cores"),
        used_cores=number("used_cores"),
        memory_limit_bytes=number("memory_limit_bytes"),
        resident_bytes=number("resident_bytes"),
        fingerprint=message.get("fingerprint", ""),
        timeline=several("timeline", _report.to_moment),
        decisions=tuple(message.get("decisions", ())),
        offers=several("offers", _report.to_offer),
        _knobs=message.get("knobs", {}),
        _file=file,
        _read_back=message.get("read_back", ""),
    )


def with_fix(explanation: Explanation, fix: Fix) -> Explanation:
    """The explanation, with one more thing to do in its place by rate."""
    fixes = sorted(
        (fix, *explanation.fixes), key=lambda each: -each.expected.middle
    )
    return dataclasses.replace(explanation, fixes=tuple(fixes))


def of_dataset(
    dataset: Dataset,
    seconds: Any = 5.0,
    budget: Json | None = None,
    trace: str | os.PathLike[str] | None = None,
    progress: _tracing.Progress | None = None,
) -> Explanation:
    """Runs it, as fast as it goes, and explains what was seen."""
    if dataset._recording is not None:
        raise refused(
            UnsupportedFunctionError,
            "a dataset inside a function has elements only when the pipeline "
            "runs; it cannot be measured here. Measure the pipeline",
        )
    most = _budget.seconds("seconds", seconds)
    path = None if trace is None else os.fsdecode(trace)
    file = _tracing.TraceFile(path)
    report, notes, rewriting, has_ended = _tracing.measure(
        dataset, most, budget or {}, file, progress
    )
    found = from_report(report, file, notes)
    return dataclasses.replace(
        found, _rewriting=rewriting, _has_ended=has_ended
    )


def of_iterator(iterator: Iterator, cpu: Any, memory: Any) -> Explanation:
    """What a live iterator has done, under its real consumer."""
    budget = _budget.message(cpu, memory)
    connection = iterator._connection
    if connection is None or connection.owner != os.getpid():
        raise refused(
            FailedPreconditionError,
            "an iterator must be explained before it is closed, and in the "
            "process that reads it; got one that is not open here",
        )
    file = _tracing.TraceFile()
    try:
        connection.flush()
        report = connection.explain(budget, file.path)
        if not connection.is_traced:
            connection.trace(_ITERATOR_EVERY_MS)
    except EngineGoneError:
        raise connection.engine.death() from None
    except FailedPreconditionError:
        raise refused(
            FailedPreconditionError,
            "an iterator can be explained once it has given elements; got one "
            "that has given none.\n  Take some, or use Dataset.explain, which "
            "does.",
        ) from None
    return from_report(report, file, [])


def explain_trace(
    path: str | os.PathLike[str], cpu: Any = None, memory: Any = None
) -> Explanation:
    """What a trace shows: a file that `explain` or `penstock run` has written.

    A trace that was cut or damaged is explained up to there, with a note.

    Example:
        >>> import tempfile
        >>> file = tempfile.mkdtemp() + "/t.bin"
        >>> ds = ps.Dataset.range(10**6).batch(100)
        >>> before = ds.explain(seconds=0.5, trace=file)
        >>> ps.explain_trace(file).verdict == before.verdict
        True

    Args:
        path: The file.
        cpu: Cores that may be used; all if None.
        memory: Bytes that may be used, or text such as "2GB"; all if None.

    Raises:
        DataLossError: It is none, or nothing of it can be read.
    """
    budget = _budget.message(cpu, memory)
    file = _tracing.given_file(path)
    try:
        report = _engine.call("explain", {"path": file.path, "budget": budget})
    except PenstockError as error:
        raise refused(type(error), f"{file.path}: {error}") from None
    return from_report(report, file, [])
