"""Services for the rows of bench/service: ours, and the peer's.

Both have their workers in processes of their own on this machine, and both are
reached over loopback. They end with the process that asked for them.
"""

from __future__ import annotations

import atexit
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

_PEER_SERVER = Path(__file__).with_name("peer_server.py")
# Kept for as long as the process lives.
_open: list = []


def ours(workers: int = 1):
    """A `ps.LocalService`."""
    import penstock as ps

    service = ps.LocalService(workers=workers)
    _open.append(service)
    atexit.register(service.close)
    return service


def worker_mappings() -> int:
    """Segments of workers' memory that this process's engine looks into."""
    from penstock import _engine

    assert _engine._engine is not None
    maps = Path(f"/proc/{_engine._engine.pid}/maps").read_text().splitlines()
    return sum(
        "/memfd:penstock (deleted)" in line and " r--s " in line
        for line in maps
    )


class PeerProcess:
    """A dispatcher or a worker of tf.data service. Ends with this process."""

    def __init__(self, *arguments: str) -> None:
        # What TensorFlow says on the way is nobody's answer.
        self._said = tempfile.TemporaryFile()  # noqa: SIM115
        self._process = subprocess.Popen(
            [sys.executable, _PEER_SERVER, *arguments, str(os.getpid())],
            stdout=subprocess.PIPE,
            stderr=self._said,
            text=True,
        )
        assert self._process.stdout is not None
        self.address = self._process.stdout.readline().strip()
        if not self.address:
            self._said.seek(0)
            raise RuntimeError(self._said.read().decode(errors="replace"))
        atexit.register(self.kill)

    @property
    def pid(self) -> int:
        return self._process.pid

    def kill(self) -> None:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()


class PeerService:
    """tf.data service: a dispatcher and workers."""

    def __init__(self, workers: int = 1) -> None:
        self._dispatcher = PeerProcess("dispatcher")
        self.workers = [
            PeerProcess("worker", self._dispatcher.address)
            for _ in range(workers)
        ]
        _open.append(self)

    def distribute(self, ds, mode: str = "off", **more):
        """`ds`, run by the workers; by splits if `mode` is "dynamic"."""
        import tensorflow as tf

        return ds.apply(
            tf.data.experimental.service.distribute(
                processing_mode={
                    "off": tf.data.experimental.service.ShardingPolicy.OFF,
                    "dynamic": (
                        tf.data.experimental.service.ShardingPolicy.DYNAMIC
                    ),
                }[mode],
                service=f"grpc://{self._dispatcher.address}",
                compression=None,
                **more,
            )
        )


def peer_forms(ds):
    """Forms in which users of tf.data service write a pipeline's end."""
    import tensorflow as tf

    service = PeerService()
    plain = service.distribute(ds)
    prefetch = service.distribute(ds.prefetch(tf.data.AUTOTUNE))
    return {
        "plain": plain,
        "prefetch": prefetch.prefetch(tf.data.AUTOTUNE),
        "dynamic": service.distribute(ds, "dynamic").prefetch(tf.data.AUTOTUNE),
    }
