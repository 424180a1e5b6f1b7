"""Knobs that were chosen for a pipeline: how they are kept, and where."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import tempfile
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from penstock import _engine, _rewrites
from penstock._errors import (
    DataLossError,
    InvalidArgumentError,
    NotFoundError,
    PermissionDeniedError,
    ResourceExhaustedError,
)
from penstock._location import refused, warn
from penstock._report import Setting
from penstock._report_text import setting_text
from penstock._rewrites import Rewrite
from penstock._units import si_bytes
from penstock._version import version

if TYPE_CHECKING:
    from penstock._pipeline import Pipeline

Json = dict[str, Any]

_KIND = "penstock tuning"
_VERSION = 2
# Those before rewrites have none, and are the same otherwise.
_VERSIONS = (1, _VERSION)
_MAX_FILE_BYTES = 16 << 20
_MAX_NODES = 1 << 16
# Of the node's knobs: what the engine takes.
_MOST = {
    "parallelism": 1024,
    "reorder_rows": 1 << 40,
    "buffer_rows": 1 << 40,
    "read_depth": 1024,
    "read_bytes": 1 << 24,
}


class TuningDiff(tuple[Setting, ...]):
    """What tuning changed: settings, as data; `print` shows them.

    `rewrites` has what was rewritten.

    Example:
        >>> print(ps.Dataset.range(5).tune(seconds=0.3).diff(
        ...     ps.Dataset.range(5)))
        nothing changed...
    """

    rewrites: tuple[Rewrite, ...] = ()

    def __bool__(self) -> bool:
        return bool(len(self) or self.rewrites)

    def __str__(self) -> str:
        if not self:
            return "nothing changed"
        return "\n".join([*map(str, self.rewrites), *map(setting_text, self)])


@dataclasses.dataclass(frozen=True)
class Tuning:
    """What was chosen for one pipeline on one machine."""

    fingerprint: str
    knobs: Json
    settings: tuple[Setting, ...]
    cores: float
    memory_bytes: float
    # What rows hold with these knobs, by the model.
    needs_bytes: float
    rate_before: float
    rate: float
    # What the knobs are of, where it is not the pipeline as it was written.
    rewriting: Json | None = None
    rewrites: tuple[Rewrite, ...] = ()

    def save(self, path: str | os.PathLike[str]) -> None:
        body = {
            "kind": _KIND,
            "version": _VERSION,
            "penstock": version(),
            "fingerprint": self.fingerprint,
            "machine": {
                "cores": self.cores,
                "memory_bytes": self.memory_bytes,
            },
            "needs_bytes": self.needs_bytes,
            "rate_before": self.rate_before,
            "rate": self.rate,
            "knobs": self.knobs,
            "settings": [dataclasses.asdict(s) for s in self.settings],
        }
        if self.rewriting is not None:
            body["rewriting"] = self.rewriting
            body["rewrites"] = [dataclasses.asdict(r) for r in self.rewrites]
        _replace(os.fsdecode(path), json.dumps(body, indent=1) + "\n")


def expect_directory(path: str) -> str:
    """The directory that a file of that name can be saved to.

    Raises:
        NotFoundError, PermissionDeniedError: It cannot.
    """
    directory = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(directory):
        raise refused(
            NotFoundError, f"there is no directory {directory!r} to save to"
        )
    if not os.access(directory, os.W_OK | os.X_OK):
        raise refused(PermissionDeniedError, f"cannot write to {directory!r}")
    return directory


def _replace(path: str, text: str) -> None:
    """Writes beside it and renames: nobody sees half of it."""
    directory = expect_directory(path)
    handle, beside = tempfile.mkstemp(".tmp", ".tuning-", directory)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(beside, 0o644)
        os.replace(beside, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.unlink(beside)
        raise refused(
            InvalidArgumentError, f"cannot save to {path!r}: {error.strerror}"
        ) from None


def load(path: str | os.PathLike[str]) -> Tuning:
    """The tuning in a file.

    Raises:
        DataLossError: It is damaged, or something else.
    """
    name = os.fsdecode(path)
    try:
        with open(name, "rb") as file:
            data = file.read(_MAX_FILE_BYTES + 1)
    except FileNotFoundError:
        raise refused(
            NotFoundError, f"expected a tuning; there is no file {name!r}"
        ) from None
    except OSError as error:
        raise refused(
            InvalidArgumentError, f"cannot read {name!r}: {error.strerror}"
        ) from None
    if len(data) > _MAX_FILE_BYTES:
        raise _damaged(name, f"more than {_MAX_FILE_BYTES >> 20} MiB")
    try:
        body = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise _damaged(name, f"no JSON ({error})") from None
    if not isinstance(body, dict) or body.get("kind") != _KIND:
        raise _damaged(name, "another kind of JSON")
    if body.get("version") not in _VERSIONS:
        raise refused(
            InvalidArgumentError,
            f"a tuning must be of version {_VERSION}; {name!r} has "
            f"{body.get('version')!r}.\n  Tune again with this version.",
        )
    try:
        return Tuning(
            fingerprint=_text(body["fingerprint"]),
            knobs=_checked(body["knobs"]),
            settings=tuple(_setting(item) for item in body["settings"]),
            cores=_count(body["machine"]["cores"]),
            memory_bytes=_count(body["machine"]["memory_bytes"]),
            needs_bytes=_count(body["needs_bytes"]),
            rate_before=_count(body["rate_before"]),
            rate=_count(body["rate"]),
            rewriting=_rewrites.checked(body["rewriting"])
            if "rewriting" in body
            else None,
            rewrites=tuple(map(_rewrites.to_rewrite, body.get("rewrites", ()))),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _damaged(name, f"one with a wrong part ({error!r})") from None


def _damaged(name: str, found: str) -> DataLossError:
    return refused(
        DataLossError,
        f"expected a file that save_tuning() wrote; {name!r} is {found}.\n"
        "  Tune again, and save that.",
    )


def _text(given: Any) -> str:
    if not isinstance(given, str):
        raise TypeError(f"{given!r} is no text")
    return given


def _count(given: Any) -> float:
    if isinstance(given, bool) or not isinstance(given, (int, float)):
        raise TypeError(f"{given!r} is no number")
    if not 0 <= given < 1e18:
        raise ValueError(f"{given!r} is out of range")
    return given


def _setting(given: Json) -> Setting:
    setting = Setting(**given)
    for name in ("knob", "node", "why", "made_at"):
        _text(getattr(setting, name))
    _count(setting.after)
    if setting.before is not None:
        _count(setting.before)
    return setting


def _checked(knobs: Json) -> Json:
    """Knobs that an engine can be given, whoever wrote them."""
    made: Json = {"nodes": {}}
    nodes = knobs.get("nodes", {})
    if len(nodes) > _MAX_NODES:
        raise ValueError(f"{len(nodes)} nodes")
    for number, node in nodes.items():
        if not 0 <= int(number) < _MAX_NODES:
            raise ValueError(f"node {number}")
        kept = {}
        for name, most in _MOST.items():
            if name in node:
                kept[name] = _knob(node[name], most)
        if "cache" in node:
            kept["cache"] = _cache(node["cache"])
        made["nodes"][str(int(number))] = kept
    if "output_rows" in knobs:
        made["output_rows"] = _knob(knobs["output_rows"], 1 << 40)
    return made


def _cache(given: Json) -> Json:
    tier = given.get("tier", "MEMORY")
    if tier not in ("MEMORY", "DISK"):
        raise ValueError(f"a cache in {tier!r}")
    size = int(given["max_bytes"])
    share = float(given.get("fraction", 1))
    if not (1 <= size < 1 << 60 and 0 < share <= 1):
        raise ValueError(f"a cache of {size} bytes, for {share} of the rows")
    return {
        "tier": tier,
        "fraction": share,
        "max_bytes": size,
        "chosen_by": "TUNER",
    }


def _knob(given: Json, most: int) -> Json:
    value = int(given["value"])
    if not 1 <= value <= most:
        raise ValueError(f"a knob of {value}")
    return {"value": value, "chosen_by": "TUNER"}


def of_engine(knobs: Json) -> Json:
    """The knobs of a report, as they are sent back: those that are obeyed."""
    return _checked(knobs)


def machine() -> tuple[float, float]:
    """Cores and bytes of memory that the engine here may use."""
    reply = _engine.call("hello", {"version": version()})
    return (
        float(reply.get("cpu_budget", 1)),
        float(reply.get("memory_budget_bytes", 0)),
    )


def fit(tuning: Tuning, path: str) -> Json:
    """Its knobs, fit for this machine; warns where that is another.

    Raises:
        ResourceExhaustedError: They need more memory than there is.
    """
    cores, memory = machine()
    knobs = tuning.knobs
    is_same = (
        cores == tuning.cores
        and abs(memory - tuning.memory_bytes) <= 0.05 * memory
    )
    if is_same:
        return knobs
    if memory and tuning.needs_bytes > memory:
        raise refused(
            ResourceExhaustedError,
            f"the tuning in {path!r} needs {si_bytes(tuning.needs_bytes)} for "
            f"rows; the engine may use {si_bytes(memory)} here.\n"
            "  Tune again on this machine.",
        )
    words = ""
    if cores < tuning.cores:
        knobs = json.loads(json.dumps(knobs))
        for node in knobs["nodes"].values():
            found = node.get("parallelism")
            # A function that waits has more tasks than cores: in proportion.
            if found is not None:
                share = found["value"] * cores / tuning.cores
                found["value"] = max(1, round(share))
        words = ", with fewer tasks in proportion to the cores"
    warn(
        f"the tuning in {path!r} was made with {tuning.cores:g} cores and "
        f"{si_bytes(tuning.memory_bytes)}; here are {cores:g} and "
        f"{si_bytes(memory)}. It is used{words}; tune() here may find better.",
    )
    return knobs


def hand_on(
    op: str,
    inputs: Sequence[Pipeline],
    inside: Sequence[Pipeline],
    into: Pipeline,
) -> None:
    """Gives `into`, a node over `inputs`, what is left of their tuning.

    Args:
        op: Its operator.
        inputs: The datasets that it reads.
        inside: Those that its functions make: they are not tuned.
        into: The dataset that it ends.
    """
    if len(inputs) > 1 or any(x._knobs or x._rewriting for x in inside):
        warn(
            f"tuned settings are dropped: they are by transformation, and {op} "
            "numbers those of its inputs anew. Tune the result instead.",
        )
        return
    into._knobs = after(op, inputs[0]._knobs)
    into._rewriting = inputs[0]._rewriting


def after(op: str, knobs: Json | None) -> Json | None:
    """What is left of the input's knobs after a node on top of it.

    Nodes are numbered from the sources on, so those below one more node keep
    their numbers. Where plans are joined they do not.
    """
    if knobs is None or op == "with_options":
        return knobs
    # What is kept ready at the end was for the elements there.
    return {"nodes": knobs["nodes"]}
