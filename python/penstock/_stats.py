"""What an iterator has done so far."""

from __future__ import annotations

import dataclasses
from typing import Any


@dataclasses.dataclass(frozen=True)
class NodeStats:
    """What one transformation of a running pipeline has done so far.

    `self_ns` is wall time inside it, without its inputs and its waits.
    """

    node: int
    name: str
    made_at: str
    rows: int
    chunks: int
    bytes: int
    errors: int
    self_ns: int
    blocked: int
    inputs: tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class IteratorStats:
    """What an iterator has done so far; the last node is the root.

    `cpu_ns` is that of the whole engine since the iterator began, of which
    `tuning_ns` went into tuning this iterator while it runs. So is the wall
    time in which Python functions were waited for: `python_start_ns` for their
    first process to start, `python_ns` while at least one was called.
    """

    nodes: tuple[NodeStats, ...]
    wall_ns: int
    cpu_ns: int
    rows: int
    bytes: int
    io_bytes: int
    python_start_ns: int = 0
    python_ns: int = 0
    tuning_ns: int = 0


def to_stats(message: dict[str, Any]) -> IteratorStats:
    """The engine's Stats message."""

    def number(source: dict[str, Any], name: str) -> int:
        return int(source.get(name, 0))

    nodes = []
    for node in message.get("nodes", ()):
        made_at = node.get("made_at", {})
        nodes.append(
            NodeStats(
                node=number(node, "node"),
                name=node.get("name", ""),
                made_at=(
                    f"{made_at['file']}:{made_at.get('line', 0)}"
                    if made_at.get("file")
                    else ""
                ),
                rows=number(node, "rows"),
                chunks=number(node, "chunks"),
                bytes=number(node, "bytes"),
                errors=number(node, "errors"),
                self_ns=number(node, "self_ns"),
                blocked=number(node, "blocked"),
                inputs=tuple(node.get("inputs", ())),
            )
        )
    return IteratorStats(
        nodes=tuple(nodes),
        wall_ns=number(message, "wall_ns"),
        cpu_ns=number(message, "cpu_ns"),
        rows=number(message, "rows"),
        bytes=number(message, "bytes"),
        io_bytes=number(message, "io_bytes"),
        python_start_ns=number(message, "python_start_ns"),
        python_ns=number(message, "python_ns"),
        tuning_ns=number(message, "tuning_ns"),
    )
