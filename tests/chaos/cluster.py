"""A service of real processes behind links, and what was done to it."""

from __future__ import annotations

import asyncio
import dataclasses
import time
from pathlib import Path

import rows
from job import AnyJob
from processes import Dispatcher, Worker
from proxy import Link, Network


@dataclasses.dataclass
class Event:
    """A fault that took place."""

    kind: str
    at: float  # monotonic
    pid: int = 0
    # A worker is gone from the service's point of view, and when.
    takes: str = ""


class Cluster:
    def __init__(self, folder: Path, seed: int, workers: int) -> None:
        self.folder = folder
        self.network = Network(seed)
        self.dispatcher = Dispatcher(folder / "dispatcher", self.network)
        self.workers: list[Worker] = []
        self.events: list[Event] = []
        self.failures: list[str] = []
        # Seconds, by what took them.
        self.times: dict[str, list[float]] = {}
        self.counts: dict[str, int] = {}
        self.job: AnyJob | None = None
        self.lines = folder / "lines"
        self._names = 0
        self._least = workers

    async def start(self) -> None:
        rows.write_lines(self.lines)
        await self.dispatcher.start()
        for _ in range(self._least):
            await self.add_worker()

    def new_worker(self) -> Worker:
        self._names += 1
        name = f"worker-{self._names}"
        worker = Worker(name, self.folder / name, self.network)
        worker.is_busy = True
        self.workers.append(worker)
        return worker

    async def add_worker(self) -> None:
        worker = self.new_worker()
        await worker.start(self.dispatcher.for_workers.address, True)
        worker.is_busy = False

    def links(self) -> list[Link]:
        return [
            self.dispatcher.for_trainers,
            self.dispatcher.for_workers,
            *(worker.link for worker in self.workers),
        ]

    def note(self, kind: str, pid: int = 0, takes: str = "") -> None:
        self.events.append(Event(kind, time.monotonic(), pid, takes))
        self.count(kind)

    def count(self, what: str) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1

    def took(self, what: str, seconds: float) -> None:
        self.times.setdefault(what, []).append(seconds)

    def fail(self, what: str) -> None:
        self.failures.append(what)
        print(f"\nFAILED: {what}", flush=True)

    async def next_grant(self) -> None:
        """Notes how long it takes until a job gets a bundle that it had not."""
        begin = time.monotonic()
        first = await self._granted()
        while first and time.monotonic() - begin < 20:
            await asyncio.sleep(0.02)
            now = await self._granted()
            if now is None or now[0] != first[0]:
                return  # it is over, or another began
            if now[1] > first[1]:
                self.took(
                    "dispatcher restart to next grant", time.monotonic() - begin
                )
                return
            if now[1] >= now[2]:
                return

    async def _granted(self) -> tuple[str, int, int] | None:
        """The job's epoch, and how many bundles are somebody's, of all."""
        state = await self.dispatcher.state()
        job = self.job
        for each in (state or {}).get("jobs", ()):
            if job is None or each["job"] != job.name or not each["epochs"]:
                continue
            epoch = each["epochs"][-1]
            if "bundles" not in epoch:
                return None  # not known yet
            owned = sum(int(c["open"]) for c in epoch["consumers"])
            name = f"{job.name}/{epoch['epoch']}"
            return name, int(epoch["done"]) + owned, int(epoch["bundles"])
        return None

    def close(self) -> None:
        for part in (*self.workers, self.dispatcher):
            part.kill()
        self.network.close()
