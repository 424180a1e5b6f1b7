"""The parts of a service as processes, on addresses that stay the same."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

from proxy import Link, Network

from penstock._engine import binary_path

ROOT = Path(__file__).resolve().parents[2]
PRELOAD = ROOT / "build/release/tests/chaos/libchaos_preload.so"
WORKER_MEMORY = 256 << 20
_READY_SECONDS = 60.0


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


async def state_at(http: int) -> dict[str, Any] | None:
    """What a part says of itself; None: nothing."""

    def get() -> dict[str, Any] | None:
        url = f"http://127.0.0.1:{http}/state"
        try:
            with urllib.request.urlopen(url, timeout=1) as page:
                return json.loads(page.read())  # type: ignore[no-any-return]
        except (OSError, ValueError):
            return None

    return await asyncio.get_running_loop().run_in_executor(None, get)


def is_engine(pid: int) -> bool:
    """Whether it runs, as an engine beside a trainer."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return words[1:2] == [b"engine"]


class Part:
    """A process that can be started again. It ends with this one."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.folder = folder
        self.process: subprocess.Popen[bytes] | None = None
        self.is_busy = False  # somebody does something to it
        folder.mkdir(parents=True, exist_ok=True)

    def _start(self, command: list[str], **environment: str) -> None:
        with open(self.folder / f"{self.name}.log", "ab") as log:
            # What it is ends with this process, whatever happens to that.
            self.process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", *command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env={**os.environ, **environment},
                cwd=self.folder,
                start_new_session=True,
            )

    async def _first_line(self) -> str:
        assert self.process is not None and self.process.stdout is not None
        output = self.process.stdout
        loop = asyncio.get_running_loop()
        line = await asyncio.wait_for(
            loop.run_in_executor(None, output.readline), _READY_SECONDS
        )
        return line.decode()

    @property
    def pid(self) -> int:
        return self.process.pid if self.process else 0

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def signal(self, number: int) -> None:
        if self.is_running:
            os.kill(self.pid, number)

    def kill(self) -> None:
        if self.process is None:
            return
        self.signal(signal.SIGKILL)
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except OSError:
                    pass  # Bytes for a process that is gone.

    async def wait(self, seconds: float) -> int | None:
        """Its exit code; None: it still runs."""
        assert self.process is not None
        end = time.monotonic() + seconds
        while self.is_running and time.monotonic() < end:
            await asyncio.sleep(0.01)
        return self.process.poll()


class Dispatcher(Part):
    def __init__(self, folder: Path, network: Network) -> None:
        super().__init__("dispatcher", folder)
        self.port = free_port()
        self.http = free_port()
        # Ways to it, of trainers and of workers.
        self.for_trainers = network.link()
        self.for_workers = network.link()
        self.for_trainers.target = ("127.0.0.1", self.port)
        self.for_workers.target = ("127.0.0.1", self.port)
        self.state_dir = folder / "state"
        self._control = folder / "disk"
        self.set_disk("-")

    def set_disk(self, fault: str) -> None:
        """What is wrong with its disk: preload.cc says what there is."""
        with open(
            self._control, "r+b" if self._control.exists() else "wb"
        ) as f:
            f.write(fault.encode())

    async def start(self) -> None:
        command = [
            *(binary_path(), "dispatcher"),
            *("--listen", f"127.0.0.1:{self.port}"),
            *("--state-dir", str(self.state_dir)),
            *("--http", str(self.http)),
        ]
        while True:
            self._start(
                command,
                LD_PRELOAD=str(PRELOAD),
                CHAOS_DISK=f"{self._control}:{self.state_dir}",
            )
            if "listens at" in await self._first_line():
                return
            self.kill()  # Its port may still be another's for a moment.
            await asyncio.sleep(0.2)

    async def state(self) -> dict[str, Any] | None:
        return await state_at(self.http)


class Worker(Part):
    """A worker behind a link of its own."""

    def __init__(self, name: str, folder: Path, network: Network) -> None:
        super().__init__(name, folder)
        self.link: Link = network.link()
        self.port = 0
        self.http = free_port()

    async def start(self, dispatcher: str, is_moved: bool) -> None:
        """Starts it, where it was or at another port."""
        if is_moved or not self.port:
            self.port = free_port()
            self.link.target = ("127.0.0.1", self.port)
        while True:
            self._start(
                [
                    *(binary_path(), "worker"),
                    *("--dispatcher", dispatcher),
                    *("--listen", f"127.0.0.1:{self.port}"),
                    *("--advertise", self.link.address),
                    *("--cpu", "1", "--memory", str(WORKER_MEMORY)),
                    *("--http", str(self.http)),
                ]
            )
            (self.folder / "who").write_text(f"{self.pid}\n")
            if "ready at" in await self._first_line():
                return
            self.kill()
            await asyncio.sleep(0.2)

    async def state(self) -> dict[str, Any] | None:
        return await state_at(self.http)


class Trainer(Part):
    # The engine that was last seen beside it, and bytes of its ledger then.
    seen_engine = 0
    seen_noted = 0

    def start(self, spec: dict[str, Any], is_apart: bool) -> None:
        """`is_apart`: rows come over TCP."""
        path = self.folder / f"{self.name}.json"
        path.write_text(json.dumps(spec))
        environment = {}
        if is_apart:
            environment = {"LD_PRELOAD": str(PRELOAD), "CHAOS_NO_LOCAL": "1"}
        (self.folder / "who").write_text("0\n")
        program = str(Path(__file__).with_name("trainer.py"))
        self._start([sys.executable, program, str(path)], **environment)

    def say(self, words: str) -> None:
        assert self.process is not None and self.process.stdin is not None
        try:
            self.process.stdin.write(words.encode() + b"\n")
            self.process.stdin.flush()
        except OSError:
            pass  # It has died, as will be seen.

    @property
    def engine_pid(self) -> int | None:
        """The engine beside it."""
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children")
        try:
            found = [int(pid) for pid in children.read_text().split()]
        except OSError:
            return None
        return next(filter(is_engine, found), None)
