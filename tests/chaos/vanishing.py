"""Files that go or change while they are read: an error, never silence."""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from pathlib import Path

import rows
from cluster import Cluster
from job import Job
from ledger import ledger_path
from plan import Fault, Round

_SECONDS = 90.0


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
        self.victim = rows.link_lines(cluster.folder / "lines", self._files)


async def file_fault(cluster: Cluster, fault: Fault) -> bool:
    """A job of its own, whose last file goes or is replaced."""
    job = VanishingJob(cluster)
    cluster.note(fault.kind)
    job.start()
    end = time.monotonic() + _SECONDS
    ledger = ledger_path(job.folder, 0, 0)
    try:
        while not ledger.exists() or not ledger.stat().st_size:
            await asyncio.sleep(0.05)
            if time.monotonic() > end or not job.trainers[0].is_running:
                cluster.fail(f"{fault.kind}: the job did not begin")
                return True
        if fault.kind == "file_gone":
            job.victim.unlink()
        else:
            shutil.copy(job.victim, job.victim.with_suffix(".new"))
            with open(job.victim.with_suffix(".new"), "a") as file:
                file.write("one more\n")
            job.victim.with_suffix(".new").rename(job.victim)
        while job.trainers[0].is_running:
            await asyncio.sleep(0.05)
            if time.monotonic() > end:
                cluster.fail(f"{fault.kind}: neither an error nor the end")
                return True
        said = Path(job._sign("error", 0))
        text = said.read_text() if said.exists() else ""
        if job.victim.name not in text:
            cluster.fail(f"{fault.kind}: the error must name the file: {text}")
        else:
            cluster.counts["errors that name the file"] = (
                cluster.counts.get("errors that name the file", 0) + 1
            )
        return True
    finally:
        await job.end()
        job.remove()
