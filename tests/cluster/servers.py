"""Dispatchers and workers as processes, with what they print and log."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from penstock._engine import binary_path


def kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass  # It was killed before, and another is about to be started.


def run(*args: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [binary_path(), *args],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, **environment},
        check=False,
    )


def state_of(address: str) -> Any:
    """What `penstock state` says of a dispatcher or worker."""
    command = [binary_path(), "state", address, "--json"]
    said = subprocess.run(command, check=True, capture_output=True)
    return json.loads(said.stdout)


def wait_until(is_so: Callable[[], bool], seconds: float = 30.0) -> None:
    """Looks until it is so; fails if that takes too long."""
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end, "it took too long"
        threading.Event().wait(0.02)


class Server:
    """One that runs: the first line that it printed, and all that it logs."""

    def __init__(self, command: Sequence[str], **environment: str) -> None:
        self._errors = tempfile.NamedTemporaryFile(prefix="penstock")  # noqa: SIM115
        self.process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            env={**os.environ, **environment},
        )
        assert self.process.stdout is not None
        self.line = self.process.stdout.readline().strip()

    @property
    def address(self) -> str:
        if " listens at " in self.line:
            return self.line.split(" listens at ")[1].split(",")[0]
        return self.line.split()[-1]

    @property
    def pages(self) -> str:
        return "http://" + self.line.split("http://")[1].split()[0]

    @property
    def log(self) -> str:
        return Path(self._errors.name).read_text()

    def end(self, seconds: float = 40.0) -> int:
        """Its exit code, after it was told to end, if it has not ended."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(seconds)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()
        self._errors.close()


@contextmanager
def dispatcher(*args: str, **environment: str) -> Iterator[Server]:
    command = [binary_path(), "dispatcher", "--listen", "127.0.0.1:0", *args]
    server = Server(command, **environment)
    try:
        yield server
    finally:
        server.close()


@contextmanager
def worker(address: str, *args: str, **environment: str) -> Iterator[Server]:
    command = [binary_path(), "worker", "--dispatcher", address, *args]
    server = Server(command, **environment)
    try:
        yield server
    finally:
        server.close()


class Secrets:
    """Certificates and words for a test."""

    def __init__(self, folder: Path, *certs_args: str) -> None:
        self.folder = folder
        made = run("certs", str(folder / "certs"), *certs_args)
        assert made.returncode == 0, made.stderr
        self.tokens = self.write(
            "tokens", "consumer:red\nworker:blue\nadmin:green\n"
        )

    def __getitem__(self, name: str) -> str:
        return str(self.folder / "certs" / name)

    def write(self, name: str, text: str) -> str:
        path = self.folder / name
        path.write_text(text)
        path.chmod(0o600)
        return str(path)

    @property
    def server_flags(self) -> list[str]:
        return [
            *("--tls-ca", self["ca.pem"]),
            *("--tls-cert", self["server.pem"]),
            *("--tls-key", self["server.key"]),
            *("--token-file", self.tokens),
        ]

    @property
    def admin_flags(self) -> list[str]:
        return [
            *("--tls-ca", self["ca.pem"]),
            *("--tls-cert", self["client.pem"]),
            *("--tls-key", self["client.key"]),
            *("--token-file", self.tokens),
        ]
