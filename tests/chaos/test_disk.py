"""A dispatcher whose disk is full, and those who wait for it."""

import asyncio
import os
import signal

import pytest
from cluster import Cluster
from job import Job
from plan import Round
from processes import PRELOAD

import penstock as ps

pytestmark = pytest.mark.skipif(
    not PRELOAD.exists(), reason="needs the target chaos_preload"
)


async def wait_for(condition, seconds=60.0):
    for _ in range(int(seconds / 0.02)):
        if condition():
            return
        await asyncio.sleep(0.02)
    raise AssertionError("it did not come to that")


async def refusal(address):
    """Why another job cannot begin."""
    ds = ps.Dataset.range(3).distribute(address)
    try:
        await asyncio.to_thread(lambda: next(iter(ds)))
    except ps.ResourceExhaustedError as error:
        return str(error)
    return ""


async def kill_engine_while_full(folder):
    cluster = Cluster(folder, 1, 2)
    try:
        await cluster.start()
        address = cluster.dispatcher.for_trainers.address
        spec = Round("rows", 1, is_apart=False)
        job = Job("full", spec, folder / "job", address, 0.1, rate=20_000)
        running = asyncio.create_task(job.run())
        await wait_for(lambda: job.trainers and job.noted_by(job.trainers[0]))
        cluster.dispatcher.set_disk("f")
        trainer = job.trainers[0]
        before = trainer.engine_pid
        os.kill(before, signal.SIGKILL)
        await wait_for(lambda: trainer.engine_pid not in (None, before))
        noted = job.noted_by(trainer)
        while not (await cluster.dispatcher.state() or {}).get("is_disk_full"):
            pass
        # Whoever begins is refused, and so would it be.
        assert "disk is full" in await refusal(address)
        cluster.dispatcher.set_disk("-")
        await wait_for(lambda: job.noted_by(trainer) > noted)
        assert await running
        await job.end()
        assert not job.errors and not job.refused
        assert job.judge()
    finally:
        cluster.close()


def test_an_engine_that_dies_then_waits(tmp_path):
    asyncio.run(kill_engine_while_full(tmp_path))
