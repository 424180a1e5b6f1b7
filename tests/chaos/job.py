"""One job under faults: its trainers, their checkpoints, and its verdict."""

from __future__ import annotations

import asyncio
import shutil
import time
from pathlib import Path

import rows
from ledger import Life, Verdict, judge, ledger_path, state_path
from plan import Round
from processes import Trainer

_SAVE_SECONDS = 1.5
_LOOK_SECONDS = 0.05
# Without a row for so long, with no fault in sight, it hangs.
STUCK_SECONDS = 120.0
_REFUSED = "disk is full"


class Job:
    """Runs until every reader has ended."""

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
        self.lives = [Life(0)]
        self.trainers: list[Trainer] = []
        self.refused = 0
        self.is_over = False
        self._address = address
        self._rate = rate
        self._saves = 0
        self._asked_life: Life | None = None
        self._last_save = ""  # that all readers have made
        self._last_life = self.lives[0]
        folder.mkdir(parents=True)
        self._files = folder / "files"
        if spec.kind == "files":
            rows.write_files(self._files, self.count)

    @property
    def life(self) -> Life:
        return self.lives[-1]

    @property
    def can_restore(self) -> bool:
        return bool(self._last_save)

    def start(self) -> None:
        readers = range(self.spec.readers)
        self.trainers = [
            Trainer(f"trainer-{i}-{self.life.number}", self.folder)
            for i in readers
        ]
        for i, trainer in enumerate(self.trainers):
            restore = ""
            if self.life.checkpoint:
                state = state_path(self.folder, i, self.life.checkpoint)
                restore = str(state)
            spec = {
                "kind": self.spec.kind,
                "count": self.count,
                "files": str(self._files),
                "address": self._address,
                "job": self.name,
                "reader": i,
                "readers": self.spec.readers,
                "restore": restore,
                "rate": self._rate,
                "ledger": str(ledger_path(self.folder, i, self.life.number)),
                "ended": str(self.sign("ended", i)),
                "error": str(self.sign("error", i)),
            }
            trainer.start(spec, self.spec.is_apart)

    def sign(self, word: str, reader: int) -> Path:
        return self.folder / f"{word}-{reader}-{self.life.number}"

    def restore(self) -> None:
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

    def _save(self) -> None:
        """Asks for a save, or notes that all have made the last one."""
        name = f"save-{self._saves}"
        if self._asked_life is self.life:
            paths = (
                state_path(self.folder, i, name)
                for i in range(self.spec.readers)
            )
            if not all(path.exists() for path in paths):
                return
            self._last_save, self._last_life = name, self.life
        self._saves += 1
        self._asked_life = self.life
        for i, trainer in enumerate(self.trainers):
            path = state_path(self.folder, i, f"save-{self._saves}")
            trainer.say(f"save {path}")

    def noted_by(self, trainer: Trainer) -> int:
        """Bytes of the trainer's ledger."""
        if trainer not in self.trainers:
            return 0  # of a life before
        reader = self.trainers.index(trainer)
        path = ledger_path(self.folder, reader, self.life.number)
        return path.stat().st_size if path.exists() else 0

    def _has_ended(self) -> bool:
        readers = range(self.spec.readers)
        return all(self.sign("ended", i).exists() for i in readers)

    def start_again_if_refused(self) -> None:
        """A full disk refuses jobs, and restores of jobs, until it has room."""
        for i, trainer in enumerate(self.trainers):
            path = self.sign("error", i)
            if trainer.is_running or not path.exists():
                continue
            if _REFUSED in path.read_text():
                self.refused += 1
                self.restore()
                return

    def _note_errors(self) -> bool:
        """Whether a trainer has died of an error; the others go on later."""
        for i, trainer in enumerate(self.trainers):
            path = self.sign("error", i)
            if path.exists() and not trainer.is_running:
                self.errors.append(path.read_text())
                return True
        return False

    async def run(self) -> bool:
        """False: it hangs, or there is an error that nothing restores."""
        self.start()
        noted, grew_at = 0, time.monotonic()
        save_at = time.monotonic() + _SAVE_SECONDS
        while not self._has_ended():
            await asyncio.sleep(_LOOK_SECONDS)
            now = time.monotonic()
            self.start_again_if_refused()
            if self._note_errors():
                if not self.can_restore or len(self.errors) > 3:
                    return False
                self.restore()
                grew_at = now
            if now >= save_at:
                self._save()
                save_at = now + _SAVE_SECONDS
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

    def judge(self) -> Verdict:
        return judge(self.folder, self.spec.readers, self.life, self.count)

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
