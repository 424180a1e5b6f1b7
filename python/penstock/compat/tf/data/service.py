"""`tf.data.experimental.service`: servers as processes, and their readers."""

from __future__ import annotations

import dataclasses
import enum
import subprocess
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from penstock._engine import binary_path
from penstock._errors import (
    InvalidArgumentError,
    UnavailableError,
)
from penstock._location import refused
from penstock.compat.tf._dataset import Dataset

__all__ = [
    "CrossTrainerCache",
    "DispatchServer",
    "DispatcherConfig",
    "ShardingPolicy",
    "WorkerConfig",
    "WorkerServer",
    "distribute",
]

_ANY_PORT = ":%port%"


class ShardingPolicy(enum.IntEnum):
    """How workers share a dataset."""

    OFF = 0
    DYNAMIC = 1
    FILE = 2
    DATA = 3
    FILE_OR_DATA = 4
    HINT = 5


# The words of before there were policies.
_OLD = {
    "parallel_epochs": ShardingPolicy.OFF,
    "distributed_epoch": ShardingPolicy.DYNAMIC,
}


@dataclasses.dataclass(frozen=True)
class CrossTrainerCache:
    """Has trainers with one `job_name` share what workers compute."""

    trainer_id: str

    def __post_init__(self) -> None:
        if not self.trainer_id:
            raise refused(
                InvalidArgumentError,
                f"trainer_id must not be empty; got {self.trainer_id!r}",
            )


def distribute(
    processing_mode: Any,
    service: Any,
    job_name: str | None = None,
    consumer_index: int | None = None,
    num_consumers: int | None = None,
    max_outstanding_requests: int | None = None,
    data_transfer_protocol: str | None = None,
    compression: str | None = "AUTO",
    cross_trainer_cache: Any = None,
    target_workers: str = "AUTO",
) -> Callable[[Dataset], Dataset]:
    """What `apply` is given to have a service run what is before it."""
    policy = _OLD.get(processing_mode, processing_mode)
    if not isinstance(policy, ShardingPolicy):
        raise refused(
            InvalidArgumentError,
            "processing_mode must be a ShardingPolicy; got "
            f"{processing_mode!r}",
        )
    if not isinstance(service, str):  # (protocol, address)
        service = service[1]
    codecs = {"AUTO": None, "SNAPPY": "lz4", None: "none"}
    if compression not in codecs:
        raise refused(
            InvalidArgumentError,
            'compression must be "AUTO", "SNAPPY" or None; got '
            f"{compression!r}",
        )
    settings: dict[str, Any] = {
        "job": job_name,
        "compression": codecs[compression],
    }
    if policy is ShardingPolicy.OFF:
        settings["visitation"] = "each_worker"
    elif policy is not ShardingPolicy.DYNAMIC:
        settings["visitation"] = "static"
        settings["sharding"] = policy.name.lower()
    if consumer_index is not None and num_consumers is None:
        raise refused(
            InvalidArgumentError,
            "num_consumers must be given with consumer_index; got "
            f"consumer_index={consumer_index!r} alone",
        )
    # Several trainers have the same, which is not for each worker to choose.
    if num_consumers is not None:
        settings["visitation"] = "exactly_once"
        settings["consumer"] = 0 if consumer_index is None else consumer_index
        settings["num_consumers"] = num_consumers
    if cross_trainer_cache is not None:
        if not job_name:
            raise refused(
                InvalidArgumentError,
                "job_name must be given with cross_trainer_cache; got "
                f"{job_name!r}",
            )
        settings["visitation"] = "at_most_once"
        settings["share"] = job_name
        settings["job"] = f"{job_name}/{cross_trainer_cache.trainer_id}"
    address = service.split("://")[-1]
    return lambda dataset: dataset._then(
        dataset._ds.distribute(address, **settings)
    )


@dataclasses.dataclass(frozen=True)
class DispatcherConfig:
    """Where a dispatcher is called, and what it must not forget."""

    port: int = 0
    protocol: str | None = None
    work_dir: str | None = None
    fault_tolerant_mode: bool = False
    worker_addresses: Sequence[str] | None = None
    job_gc_check_interval_ms: int | None = None
    job_gc_timeout_ms: int | None = None
    worker_timeout_ms: int | None = None
    worker_max_concurrent_snapshots: int = 0


@dataclasses.dataclass(frozen=True)
class WorkerConfig:
    """Whose work a worker does, and where it is read from."""

    dispatcher_address: str
    worker_address: str | None = None
    port: int = 0
    protocol: str | None = None
    heartbeat_interval_ms: int | None = None
    dispatcher_timeout_ms: int | None = None
    data_transfer_protocol: str | None = None
    data_transfer_address: str | None = None


class _Server:
    """A process of its own, which ends with this one."""

    def __init__(self, command: list[str], start: bool) -> None:
        self._command = command
        self._process: subprocess.Popen[str] | None = None
        self._address = ""
        if start:
            self.start()

    def start(self) -> None:
        """Returns when it can be called."""
        if self._process is not None:
            return
        process = subprocess.Popen(
            [binary_path(), *self._command, "--no-log"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        with process.stdout as said:
            line = said.readline()
        if not line:
            process.wait()
            raise refused(
                UnavailableError,
                f"`penstock {self._command[0]}` must start; it did not, and "
                "said why above",
            )
        self._process = process
        self._address = line.split(" listens at ")[-1].split(",")[0].split()[-1]
        weakref.finalize(self, _end, process)

    def join(self) -> None:
        """Waits until it has ended."""
        if self._process is not None:
            self._process.wait()

    def _stop(self) -> None:
        if self._process is not None:
            _end(self._process)


class DispatchServer(_Server):
    """A dispatcher on this machine."""

    def __init__(
        self, config: DispatcherConfig | None = None, start: bool = True
    ) -> None:
        config = config or DispatcherConfig()
        if config.fault_tolerant_mode and not config.work_dir:
            raise refused(
                InvalidArgumentError,
                "fault_tolerant_mode needs a work_dir; got none",
            )
        command = ["dispatcher", "--listen", f"127.0.0.1:{config.port}"]
        if config.fault_tolerant_mode:
            command += ["--state-dir", str(config.work_dir)]
        for address in config.worker_addresses or ():
            command += ["--workers", address]
        for flag, ms in (
            ("--lease-ms", config.worker_timeout_ms),
            ("--run-timeout-ms", config.job_gc_timeout_ms),
        ):
            if ms:
                command += [flag, str(ms)]
        super().__init__(command, start)

    @property
    def target(self) -> str:
        """What `distribute` is given."""
        port = self._address.rsplit(":", 1)[-1]
        return f"grpc://localhost:{port}"


class WorkerServer(_Server):
    """A worker on this machine."""

    def __init__(self, config: WorkerConfig, start: bool = True) -> None:
        host = config.worker_address or "localhost"
        command = ["worker", "--listen", f"127.0.0.1:{config.port}"]
        command += ["--advertise", host.removesuffix(_ANY_PORT)]
        command += ["--dispatcher", config.dispatcher_address.split("://")[-1]]
        super().__init__(command, start)


def _end(process: subprocess.Popen[str]) -> None:
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(5.0)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
