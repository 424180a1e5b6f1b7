"""How each kind of fault is done to a cluster."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from cluster import Cluster
from group import Group
from plan import Fault
from processes import Part, Trainer, Worker, is_engine
from proxy import Link
from vanishing import file_fault

_DRAIN_SECONDS = 32.0
_EXIT_SECONDS = 20.0
_ROW_SECONDS = 5.0
_MOST_WORKERS = 5
_FLAPS = 3
_FLAP_SECONDS = 5.0

PartOrLink = TypeVar("PartOrLink", bound=Part)


async def do(cluster: Cluster, fault: Fault) -> bool:
    """Does it and mends it again. False: there was nothing to do it to."""
    return await _DEEDS[fault.kind](cluster, fault)


def _pick(parts: list[PartOrLink], fault: Fault) -> PartOrLink | None:
    """One that runs and that nobody does anything to."""
    idle = [each for each in parts if not each.is_busy and each.is_running]
    return idle[int(fault.target * len(idle))] if idle else None


async def _kill_worker(cluster: Cluster, fault: Fault) -> bool:
    worker = _pick(cluster.workers, fault)
    if worker is None:
        return False
    worker.is_busy = True
    cluster.note(fault.kind, worker.pid, "crash")
    if isinstance(cluster.job, Group) and cluster.job.is_inside_a_round():
        cluster.count("of them, workers killed inside a round")
    worker.kill()
    await asyncio.sleep(fault.seconds / 2)
    await worker.start(
        cluster.dispatcher.for_workers.address, fault.kind == "worker_move"
    )
    worker.is_busy = False
    return True


async def _stop(cluster: Cluster, part: Part | None, fault: Fault) -> bool:
    if part is None:
        return False
    part.is_busy = True
    is_long = part is not cluster.dispatcher and fault.seconds > 8
    cluster.note(fault.kind, part.pid, "hang" if is_long else "")
    part.signal(signal.SIGSTOP)
    await asyncio.sleep(fault.seconds)
    part.signal(signal.SIGCONT)
    part.is_busy = False
    return True


async def _stop_worker(cluster: Cluster, fault: Fault) -> bool:
    return await _stop(cluster, _pick(cluster.workers, fault), fault)


async def _stop_dispatcher(cluster: Cluster, fault: Fault) -> bool:
    return await _stop(cluster, _pick([cluster.dispatcher], fault), fault)


async def _drain_worker(cluster: Cluster, fault: Fault) -> bool:
    worker: Worker | None = _pick(cluster.workers, fault)
    if worker is None or cluster.dispatcher.is_busy:
        return False
    worker.is_busy = True
    begin = time.monotonic()
    cluster.note(fault.kind, worker.pid, "drain")
    worker.signal(signal.SIGTERM)
    code = await worker.wait(_DRAIN_SECONDS)
    cluster.took("drain", time.monotonic() - begin)
    if code != 0:
        cluster.fail(f"{worker.name} drained with exit code {code}")
    worker.kill()
    cluster.workers.remove(worker)
    if len(cluster.workers) < 3:
        await cluster.add_worker()
    return True


async def _add_worker(cluster: Cluster, fault: Fault) -> bool:
    if len(cluster.workers) >= _MOST_WORKERS:
        return False
    cluster.note(fault.kind)
    await cluster.add_worker()
    return True


async def _restart_dispatcher(cluster: Cluster, kind: str) -> None:
    cluster.note(kind, cluster.dispatcher.pid)
    cluster.dispatcher.kill()
    await cluster.dispatcher.start()
    await cluster.next_grant()


async def _kill_dispatcher(cluster: Cluster, fault: Fault) -> bool:
    if _pick([cluster.dispatcher], fault) is None:
        return False
    cluster.dispatcher.is_busy = True
    await _restart_dispatcher(cluster, fault.kind)
    cluster.dispatcher.is_busy = False
    return True


async def _flap_dispatcher(cluster: Cluster, fault: Fault) -> bool:
    if _pick([cluster.dispatcher], fault) is None:
        return False
    cluster.dispatcher.is_busy = True
    for _ in range(_FLAPS):
        begin = time.monotonic()
        await _restart_dispatcher(cluster, fault.kind)
        left = _FLAP_SECONDS - (time.monotonic() - begin)
        await asyncio.sleep(max(0.0, left))
    cluster.dispatcher.is_busy = False
    return True


async def _kill_engine(cluster: Cluster, fault: Fault) -> bool:
    job = cluster.job
    if job is None or job.is_over or not job.trainers:
        return False
    trainer = job.trainers[int(fault.target * len(job.trainers))]
    pid = trainer.engine_pid
    if pid is None:
        return False
    if pid != trainer.seen_engine:
        trainer.seen_engine, trainer.seen_noted = pid, job.noted_by(trainer)
    end = time.monotonic() + _ROW_SECONDS
    # If two of them die at the same row, the trainer hears so, as it should:
    # this one has to have given one.
    while job.noted_by(trainer) == trainer.seen_noted:
        await asyncio.sleep(0.02)
        if time.monotonic() > end or trainer not in job.trainers:
            return False
    if trainer.engine_pid != pid:
        return False
    cluster.note(fault.kind, pid)
    os.kill(pid, signal.SIGKILL)
    return True


async def _kill_trainer(cluster: Cluster, fault: Fault) -> bool:
    job = cluster.job
    if job is None or job.is_over or not job.trainers:
        return False
    number = int(fault.target * len(job.trainers))
    if not job.can_restore(number):
        return False
    cluster.note(fault.kind, job.trainers[number].pid)
    job.trainers[number].kill()
    job.bring_back(number)
    return True


async def _replace_trainer(cluster: Cluster, fault: Fault) -> bool:
    """Killed, and nobody has its state."""
    job = cluster.job
    if not isinstance(job, Group) or job.is_over or not job.trainers:
        return False
    number = int(fault.target * len(job.trainers))
    cluster.note(fault.kind, job.trainers[number].pid)
    job.bring_back_anew(number)
    return True


def _pick_trainer(cluster: Cluster, fault: Fault) -> Trainer | None:
    job = cluster.job
    if job is None or job.is_over:
        return None
    return _pick(job.trainers, fault)


async def _stop_trainer(cluster: Cluster, fault: Fault) -> bool:
    """The trainer, or the engine beside it with it."""
    trainer = _pick_trainer(cluster, fault)
    if trainer is None:
        return False
    engine = trainer.engine_pid if fault.way else None
    cluster.note(fault.kind, trainer.pid)
    if engine is not None:
        os.kill(engine, signal.SIGSTOP)
    trainer.signal(signal.SIGSTOP)
    await asyncio.sleep(fault.seconds)
    # Its trainer may have been killed meanwhile: then it ends.
    if engine is not None and is_engine(engine):
        os.kill(engine, signal.SIGCONT)
    trainer.signal(signal.SIGCONT)
    return True


async def _slow_trainer(cluster: Cluster, fault: Fault) -> bool:
    trainer = _pick_trainer(cluster, fault)
    if trainer is None:
        return False
    cluster.note(fault.kind, trainer.pid)
    trainer.say(f"slow {fault.seconds:.2f}")
    return True


async def _join(cluster: Cluster, fault: Fault) -> bool:
    job = cluster.job
    if not isinstance(job, Group) or job.is_over or not job.may_join():
        return False
    cluster.note(fault.kind)
    job.join()
    return True


def _link(cluster: Cluster, fault: Fault) -> Link:
    links = cluster.links()
    return links[int(fault.target * len(links))]


async def _cut(cluster: Cluster, fault: Fault) -> bool:
    cluster.note(fault.kind)
    _link(cluster, fault).cut()
    return True


async def _hold(cluster: Cluster, fault: Fault) -> bool:
    cluster.note(fault.kind)
    link = _link(cluster, fault)
    link.hold(fault.way)
    await asyncio.sleep(fault.seconds)
    link.heal()
    return True


async def _delay(cluster: Cluster, fault: Fault) -> bool:
    cluster.note(fault.kind)
    link = _link(cluster, fault)
    link.delay(0.02 + fault.target / 5)
    await asyncio.sleep(fault.seconds)
    link.delay(0.0)
    return True


async def _flip(cluster: Cluster, fault: Fault) -> bool:
    job = cluster.job
    if job is None or job.is_over or not job.spec.is_apart:
        return False
    links = [worker.link for worker in cluster.workers]
    link = links[int(fault.target * len(links))]
    before = link.flipped
    link.flip(3)
    await asyncio.sleep(fault.seconds)
    link.flip(0)
    if link.flipped == before:
        return False  # nothing large went by
    cluster.note(fault.kind)
    return True


async def _break_disk(cluster: Cluster, fault: Fault) -> bool:
    """EIO: it must end by itself, and find all that it said when it is back."""
    dispatcher = cluster.dispatcher
    if _pick([dispatcher], fault) is None:
        return False
    dispatcher.is_busy = True
    cluster.note(fault.kind, dispatcher.pid)
    dispatcher.set_disk("e")
    code = await dispatcher.wait(_EXIT_SECONDS)
    if code == 0:
        cluster.fail("a dispatcher ended well though its disk did not write")
    dispatcher.set_disk("-")
    dispatcher.kill()
    await dispatcher.start()
    await cluster.next_grant()
    dispatcher.is_busy = False
    return True


async def _trouble_disk(cluster: Cluster, fault: Fault) -> bool:
    """Full or slow for a while: it must live through that."""
    dispatcher = cluster.dispatcher
    if _pick([dispatcher], fault) is None:
        return False
    dispatcher.is_busy = True
    cluster.note(fault.kind, dispatcher.pid)
    dispatcher.set_disk("f" if fault.kind == "disk_full" else "s")
    await asyncio.sleep(fault.seconds)
    dispatcher.set_disk("-")
    if not dispatcher.is_running:
        cluster.fail(f"the dispatcher ended at {fault.kind}")
        await dispatcher.start()
    dispatcher.is_busy = False
    return True


_DEEDS: dict[str, Callable[[Cluster, Fault], Awaitable[bool]]] = {
    "worker_kill": _kill_worker,
    "worker_move": _kill_worker,
    "worker_stop": _stop_worker,
    "worker_drain": _drain_worker,
    "worker_add": _add_worker,
    "dispatcher_kill": _kill_dispatcher,
    "dispatcher_stop": _stop_dispatcher,
    "dispatcher_flap": _flap_dispatcher,
    "engine_kill": _kill_engine,
    "trainer_kill": _kill_trainer,
    "trainer_anew": _replace_trainer,
    "trainer_stop": _stop_trainer,
    "trainer_slow": _slow_trainer,
    "member_join": _join,
    "link_cut": _cut,
    "link_hold": _hold,
    "link_delay": _delay,
    "link_flip": _flip,
    "disk_error": _break_disk,
    "disk_full": _trouble_disk,
    "disk_slow": _trouble_disk,
    "file_gone": file_fault,
    "file_changed": file_fault,
}
