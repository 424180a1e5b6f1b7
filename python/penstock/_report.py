"""What the engine's report of a trace says, as plain values.

Rates are elements a second of the whole pipeline, as its consumer gets them.
"""

from __future__ import annotations

import dataclasses
from typing import Any

Json = dict[str, Any]


def _number(source: Json, name: str) -> float:
    """A field of the proto3 JSON mapping; NaN and the like are text there."""
    return float(source.get(name, 0.0))


def _optional(source: Json, name: str) -> float | None:
    return float(source[name]) if name in source else None


def place_of(source: Json) -> str:
    """`file:line` of a message that has a Location; empty without one."""
    made_at = source.get("made_at", {})
    if not made_at.get("file"):
        return ""
    return f"{made_at['file']}:{made_at.get('line', 0)}"


@dataclasses.dataclass(frozen=True)
class Interval:
    """An estimate: `middle`, within `low` and `high`."""

    low: float
    middle: float
    high: float


@dataclasses.dataclass(frozen=True)
class Wall:
    """What a rate runs into.

    `kind` is "cores", "tasks", "consumer" and the like, `node` the
    transformation where it is one's own, `rate` what it allows (None: no
    limit).
    """

    kind: str
    node: str
    rate: float | None

    def __str__(self) -> str:
        kind = self.kind or "nothing that was measured"
        return f"{kind} of {self.node}" if self.node else kind


@dataclasses.dataclass(frozen=True)
class Padding:
    """How much of what a transformation's batches have is padding.

    `share` is of their items, since the run began; `shapes` is how many
    different shapes they had (4096 may be more). `boundaries` are those that
    would lower it to about `best_share`, where that is worth doing.
    """

    share: float
    shapes: int
    batches: int
    items: int
    padded_items: int
    boundaries: tuple[int, ...]
    best_share: float | None


@dataclasses.dataclass(frozen=True)
class NodeReport:
    """What one transformation costs, and how it is run.

    Shares are of all CPU and of the wall time; `visits` is its rows per
    element of the pipeline, `tasks_useful` how many of its tasks were at work.
    `cache_bytes` is how large a cache after it would be at most, and `why_not`
    why there cannot be one, which is for want of a word alone where it
    `may_be_cached_if_pure`. `padding` is there if it pads.
    """

    node: int
    name: str
    made_at: str
    cpu_share: float
    cpu_ns: float
    cpu_error: float
    rate_per_core: float
    visits: float
    row_bytes: float
    read_bytes: float
    tasks: int
    tasks_useful: float
    wait_input_share: float
    wait_room_share: float
    service_p50_ns: float
    service_p99_ns: float
    is_python: bool
    may_be_cached: bool
    why_not: str
    cache_bytes: float | None
    inputs: tuple[int, ...]
    padding: Padding | None = None
    may_be_cached_if_pure: bool = False


@dataclasses.dataclass(frozen=True)
class Resource:
    """What a pipeline needs: used and there, a second, and the rate it allows.

    `rate` is None where it sets no limit.
    """

    what: str
    used: float
    capacity: float
    rate: float | None


@dataclasses.dataclass(frozen=True)
class Offer:
    """What to write, so that a service's workers compute less.

    `why` says who computes what was computed before, `advice` what to write and
    where, `node` the transformation after which. Each further pass would spare
    `cpu_seconds` of the workers, `cpu_share` of all that they spend on it; what
    is kept has `bytes_low` to `bytes_high` bytes (None: nothing is kept).
    """

    why: str
    advice: str
    node: str
    cpu_seconds: float
    cpu_share: float
    bytes_low: float | None
    bytes_high: float | None


@dataclasses.dataclass(frozen=True)
class Setting:
    """One knob: what it was and what it should be, and why.

    `before` is None where it was the engine's own choice.
    """

    knob: str
    node: str
    before: int | None
    after: int
    why: str
    is_pinned: bool
    made_at: str

    def change(self) -> str:
        """What to write in the program; empty where tune() alone can."""
        operator = self.node.rpartition("/")[2].rpartition("_")[0]
        if self.knob == "cache":
            text = f".cache() after {self.node}"
        elif (operator, self.knob) in _ARGUMENTS:
            argument = _ARGUMENTS[operator, self.knob]
            text = f"{argument}={self.after} of {self.node}"
        else:
            return ""
        return f"{text} at {self.made_at}" if self.made_at else text


# How a program says it, by operator and knob.
_ARGUMENTS = {
    ("map", "parallelism"): "num_parallel_calls",
    ("interleave", "parallelism"): "num_parallel_calls",
    ("prefetch", "buffer_rows"): "buffer_size",
}


# Times the rate: what a change has to bring to be spoken of.
WORTH_IT = 1.05


@dataclasses.dataclass(frozen=True)
class Fix:
    """Something to do, and the rate that is expected of it."""

    title: str
    why: str
    expected: Interval
    settings: tuple[Setting, ...]
    needs_the_user: bool


@dataclasses.dataclass(frozen=True)
class Consumer:
    """Who takes the elements: the part of its time that it waited.

    `wait_ns` and `own_ns` are per element; None where they are not known.
    """

    wait_share: float | None
    wait_ns: float
    own_ns: float | None


@dataclasses.dataclass(frozen=True)
class Moment:
    """A part of a trace: from when to when, in seconds, and what was seen.

    `knobs` are those in force, where they are not those of the moment before.
    """

    begin: float
    end: float
    rate: float
    used_cores: float
    knobs: Json | None


@dataclasses.dataclass(frozen=True)
class Prediction:
    """What a change would bring, other knobs as good as they can be.

    Example:
        >>> e = ps.Dataset.range(10**6).batch(100).explain(seconds=0.5)
        >>> prediction = e.what_if(cores=16)
        >>> prediction.rate.low <= prediction.rate.middle
        True
    """

    rate: Interval
    wall: Wall
    next_wall: Wall
    measured: float

    def __str__(self) -> str:
        from penstock._report_text import prediction

        return prediction(self)


def to_interval(message: Json) -> Interval:
    low, middle, high = (
        _number(message, name) for name in ("low", "middle", "high")
    )
    return Interval(low, middle, high)


def to_wall(message: Json) -> Wall:
    return Wall(
        message.get("kind", ""),
        message.get("node", ""),
        _number(message, "rate") or None,
    )


def to_node(message: Json) -> NodeReport:
    return NodeReport(
        node=int(message.get("node", 0)),
        name=message.get("name", ""),
        made_at=place_of(message),
        cpu_share=_number(message, "cpu_share"),
        cpu_ns=_number(message, "cpu_ns"),
        cpu_error=_number(message, "cpu_error"),
        rate_per_core=_number(message, "rate_per_core"),
        visits=_number(message, "visits"),
        row_bytes=_number(message, "row_bytes"),
        read_bytes=_number(message, "read_bytes"),
        tasks=int(message.get("tasks", 1)),
        tasks_useful=_number(message, "tasks_useful"),
        wait_input_share=_number(message, "wait_input_share"),
        wait_room_share=_number(message, "wait_room_share"),
        service_p50_ns=_number(message, "service_p50_ns"),
        service_p99_ns=_number(message, "service_p99_ns"),
        is_python=bool(message.get("is_python", False)),
        may_be_cached=bool(message.get("may_be_cached", False)),
        why_not=message.get("why_not", ""),
        cache_bytes=_optional(message, "cache_bytes"),
        inputs=tuple(message.get("inputs", ())),
        padding=_to_padding(message.get("padding")),
        may_be_cached_if_pure=bool(message.get("may_be_cached_if_pure", False)),
    )


def _to_padding(message: Json | None) -> Padding | None:
    if message is None:
        return None
    return Padding(
        share=_number(message, "share"),
        shapes=int(message.get("shapes", 0)),
        batches=int(message.get("batches", 0)),
        items=int(message.get("items", 0)),
        padded_items=int(message.get("padded_items", 0)),
        boundaries=tuple(int(x) for x in message.get("boundaries", ())),
        best_share=_optional(message, "best_share"),
    )


# What is faster than this is without a limit.
_UNLIMITED = 1e12


def to_resource(message: Json) -> Resource:
    rate = _number(message, "rate")
    return Resource(
        message.get("what", ""),
        _number(message, "used"),
        _number(message, "capacity"),
        rate if rate < _UNLIMITED else None,
    )


def to_setting(message: Json) -> Setting:
    return Setting(
        knob=message.get("knob", ""),
        node=message.get("node", ""),
        before=int(message["from"]) if "from" in message else None,
        after=int(message.get("to", 0)),
        why=message.get("why", ""),
        is_pinned=bool(message.get("is_pinned", False)),
        made_at=place_of(message),
    )


def to_fix(message: Json) -> Fix:
    return Fix(
        title=message.get("title", ""),
        why=message.get("why", ""),
        expected=to_interval(message.get("expected", {})),
        settings=tuple(map(to_setting, message.get("settings", ()))),
        needs_the_user=bool(message.get("needs_the_user", False)),
    )


def to_consumer(message: Json) -> Consumer:
    return Consumer(
        _optional(message, "wait_share"),
        _number(message, "wait_ns"),
        _optional(message, "own_ns"),
    )


def to_moment(message: Json) -> Moment:
    return Moment(
        _number(message, "begin"),
        _number(message, "end"),
        _number(message, "rate"),
        _number(message, "used_cores"),
        message.get("knobs"),
    )


def to_prediction(message: Json) -> Prediction:
    return Prediction(
        to_interval(message.get("rate", {})),
        to_wall(message.get("wall", {})),
        to_wall(message.get("next_wall", {})),
        _number(message, "measured"),
    )


def to_offer(source: Json) -> Offer:
    return Offer(
        why=source.get("why", ""),
        advice=source.get("advice", ""),
        node=source.get("node", ""),
        cpu_seconds=_number(source, "cpu_seconds"),
        cpu_share=_number(source, "cpu_share"),
        bytes_low=_optional(source, "bytes_low"),
        bytes_high=_optional(source, "bytes_high"),
    )
