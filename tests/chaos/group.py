"""Groups under faults: members that share a pipeline, or read it in rounds.

Each member has a ledger, checkpoints and lives of its own. One that is killed
goes on from its own checkpoint, or without one, and nobody asks the others.

| kind | what each must have |
|---|---|
| share | each id once, in the order of all others |
| skip | ids that grow; what is missing is what it was told, or was lost |
| rounds | its own of each round, as a service without faults gives it |
"""

from __future__ import annotations

import dataclasses
import sys
import time
from typing import Any

import numpy as np
import rows
from job import AnyJob
from ledger import (
    Life,
    Verdict,
    compare,
    is_place,
    ledger_path,
    lineage,
    read_ledger,
    state_path,
)
from processes import Dispatcher, Trainer
from reference import Rounds

MOST_MEMBERS = 5
# Of its rows, had when one may still join: the others are there for a while.
_EARLY = 0.3


@dataclasses.dataclass
class Member:
    job: str
    lives: list[Life]
    began: float = 0.0  # its present life
    saves: int = 0
    asked: Life | None = None  # that the last save was asked of
    last_save: str = ""
    last_life: Life | None = None
    # Elements that the service says it missed, by life.
    told: dict[int, int] = dataclasses.field(default_factory=dict)

    @property
    def life(self) -> Life:
        return self.lives[-1]


class Group(AnyJob):
    def __init__(
        self, *args: Any, dispatcher: Dispatcher, rounds: Rounds | None
    ) -> None:
        super().__init__(*args)
        self.members: list[Member] = []
        self.joined = 0
        self._dispatcher = dispatcher
        self._rounds = rounds
        self._names = 0

    def life_of(self, number: int) -> Life:
        return self.members[number].life

    def can_restore(self, number: int) -> bool:
        return bool(self.members[number].last_save)

    def start(self) -> None:
        for _ in range(self.spec.readers):
            self._add()

    def _add(self) -> None:
        number = len(self.members)
        self.members.append(Member(self._new_name(), [Life(0)]))
        self.trainers.append(Trainer(f"trainer-{number}-0", self.folder))
        self._start(number)

    def _new_name(self) -> str:
        if self.spec.kind == "rounds":
            return self.name
        self._names += 1
        return f"{self.name}-{self._names}"

    def _start(self, number: int) -> None:
        member = self.members[number]
        member.began = time.monotonic()
        settings: dict[str, Any] = {"job": member.job}
        most = sys.maxsize
        if self.spec.kind == "rounds":
            settings |= {"consumer": number, "num_consumers": self.spec.readers}
            if member.life.parent and not member.life.checkpoint:
                settings |= {
                    "on_existing": "attach",
                    "from_round": member.life.from_round,
                }
        elif self.spec.kind == "share":
            settings |= {"share": self.name, "visitation": "exactly_once"}
        else:
            # Not compressed: how far an engine is ahead is then known.
            settings |= {"share": self.name, "compression": "none"}
            most = self.count
        self.start_trainer(
            self.trainers[number], number, member.life, settings, most
        )

    def _live_again(self, number: int, life: Life) -> None:
        member = self.members[number]
        life.number = len(member.lives)
        member.lives.append(life)
        self.trainers[number] = Trainer(
            f"trainer-{number}-{life.number}", self.folder
        )
        self._start(number)

    def bring_back(self, number: int) -> None:
        """Goes on from its own last save, if there is one."""
        member = self.members[number]
        self.trainers[number].kill()
        if member.last_save:
            life = Life(0, member.last_save, parent=member.last_life)
            self._live_again(number, life)
        else:
            self.bring_back_anew(number)

    def bring_back_anew(self, number: int) -> None:
        """Without a state: at the next round, or as another that comes late."""
        member = self.members[number]
        self.trainers[number].kill()
        if self.spec.kind == "rounds":
            had = self._had(number)
            row = int(had["row"][-1]) + 1 if len(had) else 0
            self._live_again(
                number, Life(0, parent=member.life, from_round=row)
            )
        else:
            member.job = self._new_name()
            member.last_save = ""
            self._live_again(number, Life(0))

    def may_join(self) -> bool:
        """Another one may come, and will find those that are there."""
        if self.spec.kind == "rounds" or len(self.members) >= MOST_MEMBERS:
            return False
        return all(
            len(self._had(i)) < _EARLY * self.count
            and not self.sign("ended", i).exists()
            for i in range(len(self.members))
        )

    def join(self) -> None:
        self.joined += 1
        self._add()

    def is_inside_a_round(self) -> bool:
        """Some have had what others have not."""
        ends = {
            int(had["row"][-1]) if len(had) else -1
            for had in map(self._had, range(len(self.members)))
        }
        return self.spec.kind == "rounds" and len(ends) > 1

    def save(self) -> None:
        for i, member in enumerate(self.members):
            name = f"save-{member.saves}"
            if member.asked is member.life:
                if not state_path(self.folder, i, name).exists():
                    continue
                if is_place(state_path(self.folder, i, name)):
                    member.last_save, member.last_life = name, member.life
            member.saves += 1
            member.asked = member.life
            path = state_path(self.folder, i, f"save-{member.saves}")
            self.trainers[i].say(f"save {path}")

    async def look(self) -> None:
        """What the service says that members have missed."""
        if self.spec.kind != "skip":
            return
        state = await self._dispatcher.state()
        missed = {
            job["job"]: int(consumer.get("missed_items", 0))
            for job in (state or {}).get("jobs", ())
            for epoch in job["epochs"]
            for consumer in epoch["consumers"]
        }
        for i, member in enumerate(self.members):
            # Later ones may be of elements that it never comes to read.
            if len(self._had(i)) + rows.SKIP_AHEAD > self.count:
                continue
            # Before the first of them it may be what a life before missed.
            if not self.noted_by(self.trainers[i]):
                continue
            number = member.life.number
            told = max(member.told.get(number, 0), missed.get(member.job, 0))
            member.told[number] = told

    def _had(self, number: int) -> np.ndarray:
        """All that counts of it."""
        return lineage(self.folder, number, self.members[number].life)

    def judge(self) -> Verdict:
        had = [self._had(i) for i in range(len(self.members))]
        judges = {
            "share": self._judge_sharing,
            "skip": self._judge_skipping,
            "rounds": self._judge_rounds,
        }
        return judges[self.spec.kind](had)

    def _judge_sharing(self, had: list[np.ndarray]) -> Verdict:
        verdicts = [compare([each["id"]], self.count) for each in had]
        wrong = ""
        # One that comes after the others have left begins another group.
        first, latest = 0, 0.0
        for i in sorted(range(len(had)), key=lambda i: had[i]["at"][0]):
            if had[i]["at"][0] > latest:
                first = i
            elif not np.array_equal(had[i]["id"], had[first]["id"]):
                wrong = f"member {i} had another order than member {first}"
            latest = max(latest, had[i]["at"][-1])
        return _sum(verdicts, wrong)

    def _judge_skipping(self, had: list[np.ndarray]) -> Verdict:
        wrong = ""
        doubled: list[int] = []
        for i, each in enumerate(had):
            steps = np.diff(each["id"].astype(np.int64))
            doubled += each["id"][1:][steps == 0].tolist()
            if (steps < 0).any():
                wrong = f"member {i} had ids that do not grow"
            if len(each) < self.count:
                wrong = f"member {i} had {len(each)} of {self.count}"
            wrong = wrong or self._misjudged(i)
        return Verdict(sum(map(len, had)), [], doubled, wrong)

    def _misjudged(self, number: int) -> str:
        """What it was told to have missed must be missing, in each life."""
        member = self.members[number]
        for life in member.lives:
            path = ledger_path(self.folder, number, life.number)
            ids = read_ledger(path)["id"].astype(np.int64)
            told = member.told.get(life.number, 0)
            # One that was killed may have been told of some that it did not
            # come to.
            if life is not member.life or len(ids) == 0:
                continue
            # Where it joined is not known, but for one that has a state.
            last = -1
            if life.checkpoint:
                before = lineage(self.folder, number, life)["id"]
                if len(before) > len(ids):
                    last = int(before[len(before) - len(ids) - 1])
            gaps = int(ids[-1]) - last - len(ids)
            if told > gaps:
                return (
                    f"member {number} was told that it missed {told}; it did "
                    f"not have {gaps}"
                )
        return ""

    def _judge_rounds(self, had: list[np.ndarray]) -> Verdict:
        assert self._rounds is not None
        lost: list[int] = []
        doubled: list[int] = []
        wrong = ""
        for i, each in enumerate(had):
            expected = self._rounds.of(i)
            if np.array_equal(each["id"], expected["id"]) and np.array_equal(
                each["row"], expected["row"]
            ):
                continue
            lost += np.setdiff1d(expected["id"], each["id"]).tolist()
            found, times = np.unique(each["id"], return_counts=True)
            doubled += found[times > 1].tolist()
            first = np.flatnonzero(
                each["id"][: len(expected)] != expected["id"][: len(each)]
            )
            at = int(first[0]) if len(first) else min(len(each), len(expected))
            wrong = (
                f"consumer {i} had other rounds, from record {at} on: "
                f"{each[at : at + 2].tolist()} instead of "
                f"{expected[at : at + 2].tolist()}"
            )
        return Verdict(sum(map(len, had)), lost, doubled, wrong)


def _sum(verdicts: list[Verdict], wrong: str) -> Verdict:
    return Verdict(
        sum(each.rows for each in verdicts),
        [row for each in verdicts for row in each.lost],
        [row for each in verdicts for row in each.doubled],
        wrong,
    )
