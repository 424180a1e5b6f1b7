"""Files that go or change while they are read: an error, never silence."""

from __future__ import annotations

import asyncio
import os
import time

import rows
from cluster import Cluster
from job import Job
from ledger import ledger_path, read_ledger
from plan import Fault, Round

_BEGIN_SECONDS = 90.0
# Other faults go on meanwhile and hold a trainer up, but not for so long.
_STILL_SECONDS = 90.0


class VanishingJob(Job):
    """Reads slowly, so that the last files are still to come."""

    def __init__(self, cluster: Cluster) -> None:
        number = cluster.counts.get("file_gone", 0) + cluster.counts.get(
            "file_changed", 0
        )
        super().__init__(
            f"files-{number}-{os.getpid()}",
            Round("lines", 1, False),
            cluster.folder / f"files-{number}",
            cluster.dispatcher.for_trainers.address,
            1.0,
            rate=1000.0,
        )
        self.victim = rows.link_lines(cluster.lines, self._files)

    def noted_bytes(self) -> int:
        """Of rows that it had."""
        ledger = ledger_path(self.folder, 0, self.life.number)
        return ledger.stat().st_size if ledger.exists() else 0

    def has_died(self) -> bool:
        return not self.trainers[0].is_running

    def has_all(self) -> bool:
        had = read_ledger(ledger_path(self.folder, 0, self.life.number))["id"]
        return rows.has_all_lines(had)

    def last_words(self) -> str:
        said = self.sign("error", 0)
        return said.read_text() if said.exists() else "nothing"


async def file_fault(cluster: Cluster, fault: Fault) -> bool:
    """A job of its own, whose last file goes or is replaced."""
    job = VanishingJob(cluster)
    cluster.note(fault.kind)
    job.start()
    try:
        problem = await _change_and_wait(job, fault.kind == "file_gone")
        has_failed = job.has_died()
    finally:
        await job.end()
    if problem:
        cluster.fail(f"{fault.kind}: {problem}; see {job.folder}")
        return True
    if has_failed:
        name = "errors that name the file"
        cluster.counts[name] = cluster.counts.get(name, 0) + 1
    job.remove()
    return True


async def _change_and_wait(job: VanishingJob, is_to_go: bool) -> str:
    """What is wrong with what the trainer then says, or nothing."""
    end = time.monotonic() + _BEGIN_SECONDS
    while not job.noted_bytes():
        await asyncio.sleep(0.05)
        job.start_again_if_refused()
        if time.monotonic() > end or job.has_died():
            return f"the job did not begin: {job.last_words()}"
    if is_to_go:
        job.victim.unlink()
    else:
        other = job.victim.with_suffix(".new")
        other.write_bytes(job.victim.read_bytes() + b"one more\n")
        other.rename(job.victim)
    noted = 0
    while not job.has_died():
        await asyncio.sleep(0.05)
        if job.sign("ended", 0).exists():
            # It may have been read before; then all of it was.
            return "" if job.has_all() else "rows are missing, and no error"
        if noted != job.noted_bytes():
            noted = job.noted_bytes()
            end = time.monotonic() + _STILL_SECONDS
        if time.monotonic() > end:
            return f"no row, no error and no end for {_STILL_SECONDS:.0f} s"
    if job.victim.name not in job.last_words():
        return f"the error must name the file; got {job.last_words()}"
    return ""
