"""Breaks a service of real processes, and counts what its readers lose.

  python tests/chaos/run.py --minutes 30 --seed 7

Everything is on this machine. What is done, and when, follows from the seed and
is in FOLDER/plan.txt. Exit code 1: a row was lost or doubled, or something else
is not as it should be.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import faults
import plan
import rows
from cluster import Cluster
from group import Group
from job import STUCK_SECONDS, AnyJob, Job
from ledger import ledger_path, read_ledger
from memory import MemoryWatch
from recovery import handovers, percentile
from reference import Rounds

_TARGETS = {
    "worker crash to first replacement row": 1.0,
    "worker hang to first replacement row": 7.0,
}


class Chaos:
    """A run: jobs one after the other, and faults meanwhile."""

    def __init__(self, arguments: argparse.Namespace, folder: Path) -> None:
        self.arguments = arguments
        self.folder = folder
        self.cluster = Cluster(folder, arguments.seed, arguments.workers)
        self.seconds = arguments.minutes * 60
        self.rows = self.lost = self.doubled = self.jobs = self.replayed = 0
        self.refused = 0
        self.errors: list[str] = []
        self.members: dict[str, int] = {}  # of groups, by kind
        self.memory = MemoryWatch(self.cluster)
        self._rounds: Rounds | None = None
        self._begin = time.monotonic()

    async def run(self) -> bool:
        kinds = self.arguments.faults.split(",")
        planned = plan.faults(
            self.arguments.seed, self.seconds, kinds, self.arguments.gap
        )
        text = "".join(f"{fault}\n" for fault in planned)
        (self.folder / "plan.txt").write_text(text)
        print(
            f"chaos: seed {self.arguments.seed}, {len(planned)} faults in "
            f"{self.arguments.minutes:g} minutes, in {self.folder}",
            flush=True,
        )
        if "rounds" in self.arguments.pipelines.split(","):
            count = rows.row_count("rounds", self.arguments.scale)
            self._rounds = Rounds(count, plan.GROUP_MEMBERS)
        await self.cluster.start()
        self._begin = time.monotonic()
        breaking = asyncio.create_task(self._break(planned))
        watching = asyncio.create_task(self.memory.run())
        try:
            await self._work(breaking)
        finally:
            watching.cancel()
            breaking.cancel()
            self.cluster.close()
        self._show()
        return not (
            self.lost or self.doubled or self.errors or self.cluster.failures
        )

    async def _break(self, planned: list[plan.Fault]) -> None:
        under_way = set()
        for fault in planned:
            wait = self._begin + fault.at - time.monotonic()
            await asyncio.sleep(max(0.0, wait))
            task = asyncio.create_task(self._do(fault))
            under_way.add(task)
            task.add_done_callback(under_way.discard)
        if under_way:
            await asyncio.wait(under_way)

    async def _do(self, fault: plan.Fault) -> None:
        try:
            await faults.do(self.cluster, fault)
        except Exception as error:
            self.cluster.fail(f"{fault.kind} could not be done: {error!r}")

    async def _work(self, breaking: asyncio.Task[None]) -> None:
        for spec in plan.rounds(
            self.arguments.seed, self.arguments.pipelines.split(",")
        ):
            name = f"job-{self.jobs}-{os.getpid()}"
            job = self._make(name, spec)
            self.cluster.job = job
            began = time.monotonic()
            is_whole = await job.run()
            await job.end()
            self._judge(job, is_whole, began)
            self.jobs += 1
            self._tell(spec, time.monotonic() - began)
            if breaking.done() or self.cluster.failures:
                return

    def _make(self, name: str, spec: plan.Round) -> AnyJob:
        dispatcher = self.cluster.dispatcher
        arguments = (
            name,
            spec,
            self.folder / name,
            dispatcher.for_trainers.address,
            self.arguments.scale,
        )
        if spec.kind not in rows.GROUPS:
            return Job(*arguments)
        return Group(*arguments, dispatcher=dispatcher, rounds=self._rounds)

    def _judge(self, job: AnyJob, is_whole: bool, began: float) -> None:
        self.errors += job.errors
        self.refused += job.refused
        for error in job.errors:
            print(f"\n{job.name} ({job.spec}): {error}", flush=True)
        if not is_whole:
            why = job.errors[-1] if job.errors else "no row"
            self.cluster.fail(
                f"{job.name} ({job.spec}) did not end: {why}; "
                f"waited for {STUCK_SECONDS:.0f} s"
            )
            return
        verdict = job.judge()
        self.rows += verdict.rows
        self.lost += len(verdict.lost)
        self.doubled += len(verdict.doubled)
        if not verdict:
            self.cluster.fail(
                f"{job.name} ({job.spec}): lost {verdict.lost[:9]}, "
                f"doubled {verdict.doubled[:9]}; {verdict.wrong}"
            )
            return
        if isinstance(job, Group):
            before = self.members.get(job.spec.kind, 0)
            self.members[job.spec.kind] = before + len(job.members)
        if isinstance(job, Job) and job.spec.kind == "who":
            self._measure(job, began)
        if not job.errors:
            job.remove()

    def _measure(self, job: Job, began: float) -> None:
        """How long those that waited for a worker that was lost have waited."""
        names = {
            "crash": "worker crash to first replacement row",
            "hang": "worker hang to first replacement row",
        }
        lives = [
            read_ledger(ledger_path(job.folder, reader, life.number))
            for reader in range(job.spec.readers)
            for life in job.lives
        ]
        for event in self.cluster.events:
            if not event.takes or event.at < began:
                continue
            found = [
                handover.seconds
                for had in lives
                for handover in handovers(had, job.count, event.pid, event.at)
            ]
            if event.takes == "drain":
                self.replayed += len(found)
            elif found:
                self.cluster.took(names[event.takes], min(found))

    def _tell(self, spec: plan.Round, seconds: float) -> None:
        minutes = (time.monotonic() - self._begin) / 60
        print(
            f"{minutes:6.1f} min  {len(self.cluster.events):4} faults  "
            f"{self.jobs:3} jobs  {self.rows:9} rows  {self.lost} lost  "
            f"{self.doubled} doubled  {len(self.errors)} errors   "
            f"{spec.kind} x{spec.readers} in {seconds:.0f} s",
            flush=True,
        )

    def _show(self) -> None:
        cluster = self.cluster
        print("\n| fault | count |\n|---|---|")
        for kind, count in sorted(cluster.counts.items()):
            print(f"| {kind} | {count} |")
        print(f"| in all | {len(cluster.events)} |")
        print("\n| time | count | p50 | p99 | max |\n|---|---|---|---|---|")
        for what, times in sorted(cluster.times.items()):
            p50, p99 = percentile(times, 0.5), percentile(times, 0.99)
            print(
                f"| {what} | {len(times)} | {p50:.2f} s | {p99:.2f} s "
                f"| {max(times):.2f} s |"
            )
        print(
            f"\n{self.jobs} jobs, {self.rows} rows: {self.lost} lost, "
            f"{self.doubled} doubled; {len(self.errors)} errors; bundles that "
            f"a drained worker left behind: {self.replayed}; starts that a "
            f"full disk refused, or no dispatcher answered: {self.refused}"
        )
        shared, rss = self.memory.most_shared, self.memory.most_rss
        print(
            f"members of groups: {self.members}; memory of workers, looked at "
            f"{self.memory.looks} times: {shared >> 20} MiB kept for others, "
            f"{rss >> 20} MiB in all, at most"
        )
        for failure in cluster.failures:
            print(f"FAILED: {failure}")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument(
        "--scale", type=float, default=1.0, help="rows of each job"
    )
    parser.add_argument(
        "--faults",
        default=",".join(plan.WEIGHTS),
        help="kinds of faults, separated by commas",
    )
    parser.add_argument(
        "--pipelines",
        default=",".join(rows.KINDS),
        help="what jobs read, separated by commas",
    )
    parser.add_argument(
        "--gap", type=float, default=1.2, help="seconds between faults"
    )
    parser.add_argument("--folder", type=Path, help="kept, if it is given")
    arguments = parser.parse_args()
    folder = arguments.folder or Path(tempfile.mkdtemp(prefix="chaos-"))
    folder = folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    is_good = asyncio.run(Chaos(arguments, folder).run())
    if is_good and not arguments.folder:
        shutil.rmtree(folder, ignore_errors=True)
    elif not is_good:
        print(f"what is left is in {folder}")
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
