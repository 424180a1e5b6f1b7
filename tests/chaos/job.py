"""Jobs under faults: their trainers, their checkpoints, and their verdicts."""

from __future__ import annotations

import abc
import asyncio
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import rows
from ledger import Life, Verdict, is_place, judge, ledger_path, state_path
from plan import Round
from processes import Trainer

SAVE_SECONDS = 1.5
_LOOK_SECONDS = 0.05
# Without a row for so long, with no fault in sight, it hangs.
STUCK_SECONDS = 120.0
_REFUSED = "disk is full"
_UNANSWERED = "a dispatcher must answer"


class AnyJob(abc.ABC):
    """Trainers that read until each of them has ended, whatever happens."""

    def __init__(
        self,
        name: str,
        spec: Round,
        folder: Path,
        address: str,
        scale: float,
        rate: float = 1e9,
    ) -> None:
        self.name = name
        self.spec = spec
        self.folder = folder
        self.count = rows.row_count(spec.kind, scale)
        self.errors: list[str] = []
        self.trainers: list[Trainer] = []
        self.refused = 0
        self.is_over = False
        self._address = address
        self._rate = rate
        folder.mkdir(parents=True)
        self._files = folder / "files"
        if spec.kind == "files":
            rows.write_files(self._files, self.count)

    def start_trainer(
        self,
        trainer: Trainer,
        number: int,
        life: Life,
        settings: dict[str, Any],
        most: int = sys.maxsize,
    ) -> None:
        """Has it read as `settings` of distribute say, from its checkpoint."""
        restore = ""
        if life.checkpoint:
            restore = str(state_path(self.folder, number, life.checkpoint))
        spec = {
            "kind": self.spec.kind,
            "count": self.count,
            "files": str(self._files),
            "address": self._address,
            "settings": settings,
            "restore": restore,
            "row": life.from_round,
            "most": most,
            "rate": self._rate,
            "ledger": str(ledger_path(self.folder, number, life.number)),
            "ended": str(self.sign("ended", number)),
            "error": str(self.sign("error", number)),
        }
        trainer.start(spec, self.spec.is_apart)

    def sign(self, word: str, number: int) -> Path:
        """A file that says so of a trainer's present life."""
        return self.folder / f"{word}-{number}-{self.life_of(number).number}"

    @abc.abstractmethod
    def life_of(self, number: int) -> Life:
        """That the trainer is in."""

    @abc.abstractmethod
    def start(self) -> None:
        """Starts all."""

    @abc.abstractmethod
    def can_restore(self, number: int) -> bool:
        """Whether there is something to go on from."""

    @abc.abstractmethod
    def bring_back(self, number: int) -> None:
        """A trainer has died: goes on from a save, or begins again."""

    @abc.abstractmethod
    def save(self) -> None:
        """Asks for saves, or notes that they were made."""

    @abc.abstractmethod
    def judge(self) -> Verdict:
        """Of what all had, when it is over."""

    @abc.abstractmethod
    async def look(self) -> None:
        """Notes whatever else there is, now and then."""

    def noted_by(self, trainer: Trainer) -> int:
        """Bytes of the trainer's ledger."""
        if trainer not in self.trainers:
            return 0  # of a life before
        number = self.trainers.index(trainer)
        path = ledger_path(self.folder, number, self.life_of(number).number)
        return path.stat().st_size if path.exists() else 0

    def _has_ended(self) -> bool:
        numbers = range(len(self.trainers))
        return all(self.sign("ended", i).exists() for i in numbers)

    def start_again_if_refused(self) -> None:
        """A full disk refuses jobs, and restores of jobs, until it has room.

        Who begins, and hears nothing from a dispatcher for 10 s, gives up.
        """
        for i in range(len(self.trainers)):
            if self._is_refused(i, self._last_words(i)):
                self.refused += 1
                self.bring_back(i)

    def _last_words(self, number: int) -> str:
        """Of a trainer that has died of an error."""
        path = self.sign("error", number)
        if self.trainers[number].is_running or not path.exists():
            return ""
        return path.read_text()

    def _is_refused(self, number: int, why: str) -> bool:
        had = self.noted_by(self.trainers[number])
        begins = not (self.life_of(number).checkpoint or had)
        return _REFUSED in why or (begins and _UNANSWERED in why)

    def _failed(self) -> int | None:
        """A trainer that has died of an error; the others are seen later."""
        for i in range(len(self.trainers)):
            why = self._last_words(i)
            if why and not self._is_refused(i, why):
                self.errors.append(why)
                return i
        return None

    async def run(self) -> bool:
        """False: it hangs, or there is an error that nothing restores."""
        self.start()
        noted, grew_at = 0, time.monotonic()
        save_at = time.monotonic() + SAVE_SECONDS
        while not self._has_ended():
            await asyncio.sleep(_LOOK_SECONDS)
            now = time.monotonic()
            self.start_again_if_refused()
            failed = self._failed()
            if failed is not None:
                if not self.can_restore(failed) or len(self.errors) > 3:
                    return False
                self.bring_back(failed)
                grew_at = now
            if now >= save_at:
                self.save()
                await self.look()
                save_at = now + SAVE_SECONDS
            found = sum(map(self.noted_by, self.trainers))
            if found != noted:
                noted, grew_at = found, now
            if now - grew_at > STUCK_SECONDS:
                return False
        return True

    async def end(self) -> None:
        self.is_over = True
        for trainer in self.trainers:
            trainer.say("end")
        for trainer in self.trainers:
            if trainer.is_running:
                await trainer.wait(10.0)
            trainer.kill()

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


class Job(AnyJob):
    """One job of some readers, who are restored together."""

    def __init__(self, name: str, spec: Round, *args: Any, **more: Any) -> None:
        super().__init__(name, spec, *args, **more)
        self.lives = [Life(0)]
        self._saves = 0
        self._asked_life: Life | None = None
        self._last_save = ""  # that all readers have made
        self._last_life = self.lives[0]

    @property
    def life(self) -> Life:
        return self.lives[-1]

    def life_of(self, number: int) -> Life:
        return self.life

    def can_restore(self, number: int) -> bool:
        return bool(self._last_save)

    def start(self) -> None:
        self.trainers = [
            Trainer(f"trainer-{i}-{self.life.number}", self.folder)
            for i in range(self.spec.readers)
        ]
        is_ordered = self.spec.kind == "ordered"
        for i, trainer in enumerate(self.trainers):
            settings = {
                "job": self.name,
                "reader": i,
                "num_readers": self.spec.readers,
                "order": "deterministic" if is_ordered else None,
            }
            self.start_trainer(trainer, i, self.life, settings)

    def bring_back(self, number: int) -> None:
        """Kills what is left of the trainers; others go on from a save."""
        for trainer in self.trainers:
            trainer.kill()
        life = Life(len(self.lives))
        if self._last_save:
            life.checkpoint, life.parent = self._last_save, self._last_life
        else:
            self.name += "+"  # some of its readers may have begun
        self.lives.append(life)
        self.start()

    def save(self) -> None:
        name = f"save-{self._saves}"
        if self._asked_life is self.life:
            paths = [
                state_path(self.folder, i, name)
                for i in range(self.spec.readers)
            ]
            if not all(path.exists() for path in paths):
                return
            if all(map(is_place, paths)):
                self._last_save, self._last_life = name, self.life
        self._saves += 1
        self._asked_life = self.life
        for i, trainer in enumerate(self.trainers):
            path = state_path(self.folder, i, f"save-{self._saves}")
            trainer.say(f"save {path}")

    async def look(self) -> None:
        """There is nothing."""

    def judge(self) -> Verdict:
        return judge(self.folder, self.spec.readers, self.life, self.count)
