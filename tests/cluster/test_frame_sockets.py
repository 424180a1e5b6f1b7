"""Frames over connections of their own, beside gRPC's.

Trainers here are kept from their worker's memory, as if they were elsewhere.
"""

import contextlib
import json
import socket
import subprocess
import sys
import threading
import urllib.request

import pytest
from servers import Secrets, dispatcher, worker

_TRAINER = """
import json, os, signal, sys
import numpy as np
import penstock as ps

address, options = sys.argv[1], json.loads(sys.argv[2])
pid = options.pop("kill", None)
credentials = options.pop("credentials", None)
if credentials:
    options["credentials"] = ps.Credentials(**credentials)
ds = ps.Dataset.range(600).map(
    lambda i: (i, ps.fill([1 << 20], ps.cast(i % 251, ps.uint8)))
)
numbers = []
for number, row in ds.distribute(f"penstock://{address}", **options):
    assert row.shape == (1 << 20,) and (row == number % 251).all()
    numbers.append(int(number))
    if pid and len(numbers) == 300:
        os.kill(pid, signal.SIGKILL)
print(json.dumps(numbers))
"""


def train(address, **options):
    made = subprocess.run(
        [
            *("env", "PENSTOCK_NO_LOCAL_MEMORY=1", sys.executable),
            *("-c", _TRAINER, address, json.dumps(options)),
        ],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert made.returncode == 0, made.stderr
    return json.loads(made.stdout)


def state(server):
    with urllib.request.urlopen(f"{server.pages}/state", timeout=10) as page:
        return json.load(page)


def socket_frames(server):
    return int(state(server)["socket_frames"])


def test_frames_come_over_them():
    with dispatcher() as first, worker(first.address, "--http", "0") as second:
        assert sorted(train(first.address)) == list(range(600))
        assert socket_frames(second) >= 600
        assert int(state(second)["sent_bytes"]) > 600 << 20
        assert int(state(second)["output_bytes"]) == 0


def test_the_port_can_be_named():
    with dispatcher() as first:
        with worker(first.address, "--http", "0") as other:
            taken = other.address.rsplit(":", 1)[1]
            refused = subprocess.run(
                [
                    *(sys.executable, "-m", "penstock", "worker"),
                    *("--dispatcher", first.address, "--frame-port", taken),
                ],
                capture_output=True,
                text=True,
                timeout=60,
            )
        assert refused.returncode == 1
        assert f"cannot listen for frames on 127.0.0.1:{taken}" in (
            refused.stderr
        )
    absurd = subprocess.run(
        [
            *(sys.executable, "-m", "penstock", "worker"),
            *("--dispatcher", "127.0.0.1:1", "--frame-port", "70000"),
        ],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert absurd.returncode == 2
    assert "--frame-port must be at most 65535; got 70000" in absurd.stderr


@pytest.mark.parametrize("compression", ["lz4", "zstd"])
def test_what_is_compressed(compression):
    with dispatcher() as first, worker(first.address, "--http", "0") as second:
        found = train(first.address, compression=compression)
        assert sorted(found) == list(range(600))
        assert socket_frames(second) > 0


class Forwarder:
    """Connections to a port of this host, passed on to another address."""

    def __init__(self, to):
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]
        self._to = to
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            near, _ = self._server.accept()
            far = socket.create_connection(self._to)
            for pair in ((near, far), (far, near)):
                threading.Thread(target=copy, args=pair, daemon=True).start()


def copy(source, to):
    try:
        while data := source.recv(1 << 16):
            to.sendall(data)
        to.shutdown(socket.SHUT_WR)
    except OSError:
        pass


@pytest.mark.parametrize("who", ["nobody", "another worker"])
def test_the_port_is_not_the_workers_where_the_trainer_is(who):
    """As behind a host that passes on the port for gRPC alone."""
    with (
        socket.create_server(("127.0.0.1", 0)) as free,
        socket.create_server(("127.0.0.2", 0)) as other_free,
    ):
        port = str(free.getsockname()[1])
        listen = other_free.getsockname()[1]
    forwarder = Forwarder(("127.0.0.2", listen))
    with contextlib.ExitStack() as stack:
        first = stack.enter_context(dispatcher())
        second = stack.enter_context(
            worker(
                *(first.address, "--http", "0", "--frame-port", port),
                *("--listen", f"127.0.0.2:{listen}"),
                *("--advertise", f"127.0.0.1:{forwarder.port}"),
            )
        )
        if who == "another worker":
            other = stack.enter_context(dispatcher())
            stack.enter_context(worker(other.address, "--frame-port", port))
        assert sorted(train(first.address)) == list(range(600))
        assert socket_frames(second) == 0


def test_a_worker_dies_meanwhile():
    with (
        dispatcher() as first,
        worker(first.address) as second,
        worker(first.address),
    ):
        pid = second.process.pid
        found = train(first.address, kill=pid, order="deterministic")
        assert found == list(range(600))


def test_encrypted_services_have_none(tmp_path):
    secrets = Secrets(tmp_path)
    flags = secrets.server_flags
    with (
        dispatcher(*flags) as first,
        worker(first.address, "--http", "0", *flags) as second,
    ):
        found = train(
            first.address,
            credentials={
                "ca": secrets["ca.pem"],
                "cert": secrets["client.pem"],
                "key": secrets["client.key"],
                "token_file": secrets.tokens,
            },
        )
        assert sorted(found) == list(range(600))
        assert "socket_frames" not in state(second) or (
            socket_frames(second) == 0
        )
