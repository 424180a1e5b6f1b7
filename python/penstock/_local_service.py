"""A service of this process's own: `penstock up`, as long as it is wanted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from typing import TYPE_CHECKING, Any

from penstock._code import Code
from penstock._engine import binary_path
from penstock._errors import UnavailableError
from penstock._location import refused
from penstock._pipeline import index

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType

_END_SECONDS = 40.0
# Of services of this process, by address: zips that their workers accept.
_code_folders: dict[str, str] = {}


def accept(address: str, code: Code) -> None:
    """Has a service run `code`, if it is one of this process."""
    folder = _code_folders.get(address)
    if folder is None:
        return
    path = os.path.join(folder, f"{code.sha256}.zip")
    if os.path.exists(path):
        return
    # At once: a worker may be looking.
    with tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:
        file.write(code.archive)
    os.replace(file.name, path)


class LocalService:
    """A dispatcher and workers on this machine, for as long as it is open.

    They are processes of their own, end with this one, and are started again
    when they die. Their workers run the Python that this process gives
    `distribute(code=...)`, and nobody else's.

    Example:
        >>> with ps.LocalService(workers=2) as service:
        ...     ds = ps.Dataset.range(4).distribute(service.address)
        ...     sorted(int(x) for x in ds)
        [0, 1, 2, 3]
    """

    def __init__(
        self,
        workers: int = 2,
        *,
        cpu: int | None = None,
        memory: int | None = None,
        state_dir: str | os.PathLike[str] | None = None,
        pickle: bool = False,
        allow_services: Iterable[str] = (),
    ) -> None:
        """Starts them, and returns when all are ready.

        Args:
            workers: Worker processes.
            cpu: Cores for each worker; all of them if left out.
            memory: Bytes for each worker; half of the machine's if left out.
            state_dir: Where the dispatcher keeps what it must not forget; left
                out, it is forgotten when the service ends.
            pickle: Whether workers load functions that come as pickles: from
                whoever can call them, which is every user of this machine.
            allow_services: Addresses of other services that pipelines may have
                workers read, where one `distribute` follows another.
        """
        # What is put there is this user's: others cannot write to it.
        self._code = tempfile.TemporaryDirectory(prefix="penstock-code-")
        command = [
            binary_path(),
            "up",
            "--json",
            "--listen",
            "127.0.0.1:0",
            "--workers",
            str(index("workers", workers, 32)),
            "--parent",
            str(os.getpid()),
            "--code-allow",
            self._code.name,
            "--python",
            sys.executable,
        ]
        if pickle:
            command.append("--allow-pickle")
        for service in allow_services:
            command += ["--allow-services", service.removeprefix("penstock://")]
        if cpu is not None:
            command += ["--cpu", str(index("cpu", cpu, 32))]
        if memory is not None:
            command += ["--memory", str(index("memory", memory))]
        if state_dir is not None:
            command += ["--state-dir", os.fspath(state_dir)]
        self._lock = threading.Lock()
        self._workers: dict[str, int] = {}
        self._dispatcher_pid = 0
        self._address = ""
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        for _ in range(workers + 1):
            if not self._read():
                self.close()
                raise refused(
                    UnavailableError,
                    "a dispatcher and its workers must start; they did not, "
                    "and said why above",
                )
        _code_folders[self._address] = self._code.name
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _read(self) -> bool:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            return False
        said: dict[str, Any] = json.loads(line)
        with self._lock:
            if said["kind"] == "dispatcher":
                self._address = said["address"]
                self._dispatcher_pid = said["pid"]
            else:
                self._workers[said["address"]] = said["pid"]
        return True

    def _watch(self) -> None:
        while self._read():
            pass

    @property
    def address(self) -> str:
        """What `distribute` is given."""
        return f"penstock://{self._address}"

    @property
    def worker_pids(self) -> list[int]:
        """The workers' processes, those that have died since included."""
        with self._lock:
            return list(self._workers.values())

    @property
    def dispatcher_pid(self) -> int:
        """The dispatcher's process."""
        with self._lock:
            return self._dispatcher_pid

    def close(self) -> None:
        """Ends all of them. Readers that are still open wait in vain."""
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(_END_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        assert self._process.stdout is not None
        if threading.current_thread() is not getattr(self, "_thread", None):
            thread = getattr(self, "_thread", None)
            if thread is not None:
                thread.join(1.0)
        self._process.stdout.close()
        _code_folders.pop(self._address, None)
        self._code.cleanup()

    def __enter__(self) -> LocalService:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<LocalService at {self.address}>"
