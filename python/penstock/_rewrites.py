"""Rewrites: another plan for the same rows, as the engine decides on it.

A dataset keeps the plan as its user wrote it, and a Rewriting message beside
it: what was decided, so that every engine makes the same plan of it. Nodes that
are appended later run on top.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from penstock import _engine
from penstock._errors import (
    InvalidArgumentError,
    InvalidTypeError,
    PenstockError,
)
from penstock._location import refused
from penstock._report import WORTH_IT, Interval, place_of, to_interval

if TYPE_CHECKING:
    from penstock._dataset import Dataset

Json = dict[str, Any]

_MAX_NODES = 1 << 16
_MAX_PASSES = 64


@dataclasses.dataclass(frozen=True)
class Rewrite:
    """A change to a pipeline that nobody sees in its elements.

    `name` is that of the pass, as `penstock tune --list-rewrites` shows it;
    `nodes` and `made_at` are the transformations that it is about and where
    they were made. Where it is not `is_applied`, `why` says why not.
    """

    name: str
    nodes: tuple[str, ...]
    made_at: tuple[str, ...]
    why: str
    is_applied: bool

    def __str__(self) -> str:
        places = (
            f"{node} ({place})" if place else node
            for node, place in zip(self.nodes, self.made_at, strict=True)
        )
        return ": ".join(filter(None, (self.name, ", ".join(places), self.why)))


@dataclasses.dataclass(frozen=True)
class Decision:
    """What the engine would rewrite, and what that would bring."""

    rewriting: Json | None = None
    rewrites: tuple[Rewrite, ...] = ()
    # The report of a run that has not been, with the best knobs.
    expected: Json = dataclasses.field(default_factory=dict)
    saves_memory: bool = False

    def applied(self) -> list[Rewrite]:
        return [each for each in self.rewrites if each.is_applied]

    def rate_or(self, as_it_is: Interval) -> float:
        """Elements a second; of a plan in which nothing changes, `as_it_is`."""
        if not self.applied():
            return as_it_is.middle
        return to_interval(self.expected.get("expected", {})).middle

    def is_worse_than(self, as_it_is: Interval) -> bool:
        """Whether the plan as it is gains more by its settings alone."""
        return as_it_is.middle > WORTH_IT * self.rate_or(as_it_is)

    def declining(self, more: Decision) -> Decision:
        """This one, which says why it lacks what `more` rewrites."""
        why = "rows could not be kept then, which brings more"
        left_out = [
            dataclasses.replace(each, why=why, is_applied=False)
            for each in more.applied()
            if each.name not in {own.name for own in self.applied()}
        ]
        before = [each for each in more.rewrites if not each.is_applied]
        all_of_them = (*self.rewrites, *left_out, *before)
        return dataclasses.replace(
            self, rewrites=tuple(dict.fromkeys(all_of_them))
        )


def passes() -> list[tuple[str, str]]:
    """The passes that there are: name, and what it does."""
    found = _engine.call("list_passes", {})["passes"]
    return [(item["name"], item["description"]) for item in found]


def chosen(given: Any) -> list[str] | None:
    """The passes that `rewrites=` asks for; None is all of them.

    Raises:
        InvalidArgumentError: A name is none of a pass.
    """
    if given is True:
        return None
    if given is False:
        return []
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise refused(
            InvalidTypeError,
            f"rewrites must be True, False or a list of names; got {given!r}",
        )
    names = list(given)
    known = [name for name, _ in passes()]
    for name in names:
        if name not in known:
            raise refused(
                InvalidArgumentError,
                f"rewrites must be among {', '.join(known)}; got {name!r}",
            )
    return names


def decide(
    dataset: Dataset,
    only: list[str] | None,
    may_hide_errors: bool,
    trace: str,
    budget: Json,
) -> Decision:
    """What to rewrite of a dataset that was traced just now."""
    body: Json = {
        "plan": dataset._plan,
        "may_hide_errors": may_hide_errors,
        "path": trace,
        "budget": budget,
    }
    if only is not None:
        body["only"] = {"names": only}
    if dataset._rewriting is not None:
        body["earlier"] = dataset._rewriting

    def ask(engine: _engine.Engine) -> Json:
        engine.add_captures(dataset._captures)
        return engine.call("rewrite", body)[0]

    reply: Json = _engine.with_engine(ask)
    rewrites = [
        _rewrite(item, is_applied)
        for name, is_applied in (("applied", True), ("declined", False))
        for item in reply.get(name, ())
    ]
    found = reply.get("rewriting")
    return Decision(
        None if found is None else checked(found),
        tuple(dict.fromkeys(rewrites)),
        reply.get("expected", {}),
        bool(reply.get("saves_memory", False)),
    )


def all_but_one(decision: Decision, names: list[str] | None) -> list[list[str]]:
    """Passes without one of those that were applied, each in turn."""
    known = [name for name, _ in passes()] if names is None else names
    applied = dict.fromkeys(each.name for each in decision.applied())
    return [[n for n in known if n != left_out] for left_out in applied]


def why_not(dataset: Dataset, rewriting: Json) -> str:
    """Why this is not what the dataset is rewritten to here; empty: it is."""
    try:
        body = {"plan": dataset._plan, "again": rewriting}
        _engine.call("rewrite", body)
    except PenstockError as error:
        return str(error).partition("\n")[0]
    return ""


def _rewrite(message: Json, is_applied: bool) -> Rewrite:
    nodes = message.get("nodes", ())
    return Rewrite(
        message.get("pass", ""),
        tuple(node.get("name", "") for node in nodes),
        tuple(place_of(node) for node in nodes),
        message.get("why", ""),
        is_applied,
    )


def checked(given: Any) -> Json:
    """A Rewriting that an engine can be given, in one form.

    Raises:
        TypeError, ValueError, KeyError, AttributeError: It is none.
    """
    names = [_text(name) for name in given["passes"]]
    nodes = int(given["nodes"])
    if not (1 <= nodes <= _MAX_NODES and 1 <= len(names) <= _MAX_PASSES):
        raise ValueError(f"{len(names)} passes over {nodes} nodes")
    made: Json = {
        "passes": names,
        "nodes": nodes,
        "fingerprint": _text(given["fingerprint"]),
    }
    if given.get("may_hide_errors", False):
        made["may_hide_errors"] = True
    measured = given.get("measured", {})
    if len(measured) > _MAX_NODES:
        raise ValueError(f"sizes of {len(measured)} nodes")
    if measured:
        made["measured"] = {
            _text(name): {
                field: _whole(rows.get(field, 0))
                for field in ("rows", "row_bytes")
            }
            for name, rows in measured.items()
        }
    return made


def to_rewrite(given: Json) -> Rewrite:
    """One of a file."""
    nodes, places = map(tuple, (given["nodes"], given["made_at"]))
    if len(nodes) != len(places):
        raise ValueError(f"{len(nodes)} nodes at {len(places)} places")
    for text in (given["name"], given["why"], *nodes, *places):
        _text(text)
    return Rewrite(
        given["name"], nodes, places, given["why"], bool(given["is_applied"])
    )


def _text(given: Any) -> str:
    if not isinstance(given, str):
        raise TypeError(f"{given!r} is no text")
    return given


def _whole(given: Any) -> int:
    if isinstance(given, bool) or not isinstance(given, (int, float)):
        raise TypeError(f"{given!r} is no number")
    if not 0 <= given < 1e18 or given != int(given):
        raise ValueError(f"{given!r} is out of range")
    return int(given)
