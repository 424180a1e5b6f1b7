"""Workers' memory, looked at all along: what is kept for others is bounded."""

from __future__ import annotations

import asyncio
from pathlib import Path

from cluster import Cluster
from processes import WORKER_MEMORY, Worker

_LOOK_SECONDS = 0.5
# Frames that wait for readers are an eighth of a worker's memory. Those on
# their way to a reader who has stopped come on top, and nothing bounds them.
_SHARED_BYTES = WORKER_MEMORY
_RSS_BYTES = 2 * WORKER_MEMORY


class MemoryWatch:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.most_shared = 0
        self.most_rss = 0
        self.looks = 0

    async def run(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            for worker in list(self._cluster.workers):
                await self._look(worker)

    async def _look(self, worker: Worker) -> None:
        rss = _rss(worker.pid)
        state = await worker.state()
        if state is None:
            return  # it has died, or is stopped
        self.looks += 1
        shared = int(state.get("shared", {}).get("bytes", 0))
        self.most_shared = max(self.most_shared, shared)
        self.most_rss = max(self.most_rss, rss)
        if shared > _SHARED_BYTES:
            self._cluster.fail(
                f"{worker.name} keeps {shared} bytes for members of groups; "
                f"expected at most {_SHARED_BYTES}"
            )
        if rss > _RSS_BYTES:
            self._cluster.fail(
                f"{worker.name} has {rss} bytes of memory; expected at most "
                f"{_RSS_BYTES} with --memory {WORKER_MEMORY}"
            )


def _rss(pid: int) -> int:
    try:
        pages = Path(f"/proc/{pid}/statm").read_text().split()[1]
    except (OSError, IndexError):
        return 0
    return int(pages) * 4096
