"""What will be broken, and when: all of it follows from a seed."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterator

from rows import GROUPS

GROUP_MEMBERS = 3
# How often each kind comes, in relation to the others.
WEIGHTS = {
    "worker_kill": 14,
    "worker_move": 6,
    "worker_stop": 6,
    "worker_drain": 8,
    "worker_add": 3,
    "dispatcher_kill": 9,
    "dispatcher_stop": 4,
    "dispatcher_flap": 2,
    "engine_kill": 9,
    "trainer_kill": 7,
    "trainer_anew": 8,
    "trainer_stop": 7,
    "trainer_slow": 6,
    "member_join": 6,
    "link_cut": 9,
    "link_hold": 6,
    "link_delay": 4,
    "link_flip": 8,
    "disk_error": 4,
    "disk_full": 4,
    "disk_slow": 3,
    "file_gone": 2,
    "file_changed": 2,
}


@dataclasses.dataclass(frozen=True)
class Fault:
    at: float  # seconds since the run began
    kind: str
    # Which of those that there are, as a share of their number.
    target: float
    seconds: float  # how long it lasts, where it does
    way: int

    def __str__(self) -> str:
        return (
            f"{self.at:8.2f} {self.kind:16} target {self.target:.3f} "
            f"for {self.seconds:5.2f} s, way {self.way}"
        )


@dataclasses.dataclass(frozen=True)
class Round:
    """One job, read to its end."""

    kind: str
    readers: int
    is_apart: bool  # rows come over TCP


def _seconds(kind: str, chance: random.Random) -> float:
    low, high = {
        "worker_stop": (3, 15),
        "dispatcher_stop": (1, 8),
        "trainer_stop": (1, 14),
        "trainer_slow": (1, 6),
        "link_hold": (1, 10),
        "disk_full": (1, 4),
    }.get(kind, (1, 3))
    return chance.uniform(low, high)


def faults(
    seed: int, seconds: float, kinds: list[str], gap: float
) -> list[Fault]:
    chance = random.Random(seed)
    found = []
    at = 2.0
    while at < seconds:
        weights = [WEIGHTS[kind] for kind in kinds]
        kind = chance.choices(kinds, weights)[0]
        found.append(
            Fault(
                at,
                kind,
                chance.random(),
                _seconds(kind, chance),
                chance.randrange(2),
            )
        )
        at += gap * chance.uniform(0.3, 1.7)
    return found


def rounds(seed: int, kinds: list[str]) -> Iterator[Round]:
    chance = random.Random(~seed)
    while True:
        for kind in chance.sample(kinds, len(kinds)):
            readers = chance.choice((1, 1, 2, 3))
            if kind in GROUPS:
                readers = GROUP_MEMBERS
            yield Round(kind, readers, chance.random() < 0.6)
