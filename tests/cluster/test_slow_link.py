"""Frames over a network that is slower than compressing them."""

import json
import os
import shutil
import subprocess
import sys
from contextlib import ExitStack

import pytest
from servers import Server

from penstock._engine import binary_path

ADDRESS = "10.213.9.1"
RATE = "100mbit"
# Text that gets smaller, and noise that does not.
TRAINER = """
import json, sys
import numpy as np
import penstock as ps

service, compression = sys.argv[1:]
words = np.tile(np.arange(1 << 16, dtype=np.int32), 4)
noise = np.random.default_rng(1).integers(0, 1 << 31, 1 << 18, np.int32)
values = noise if compression == "noise" else words
ds = ps.Dataset.range(48).map(lambda i: ps.cast(i, ps.int32) * 0 + values)
asked = None if compression in ("any", "noise") else compression
ds = ds.distribute(service, job=compression, compression=asked)
count = 0
for row in ds:
    np.testing.assert_array_equal(row, values)
    count += 1
print(count)
"""


def run(*command):
    return subprocess.run(
        command, check=True, capture_output=True, text=True, timeout=120
    ).stdout


@pytest.fixture(scope="module")
def slow_link():
    """A machine of its own, whose every packet goes over a slow wire."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("needs root and ip")
    name = f"psslow{os.getpid() % 100000}"
    inside = ["ip", "netns", "exec", name]
    with ExitStack() as stack:
        try:
            run("ip", "netns", "add", name)
            stack.callback(run, "ip", "netns", "delete", name)
            run("ip", "-n", name, "link", "set", "lo", "up")
            run(
                "ip", "-n", name, "address", "add", f"{ADDRESS}/32", "dev", "lo"
            )
        except subprocess.CalledProcessError as error:
            pytest.skip(f"no network namespaces here: {error}")
        made = subprocess.run(
            [
                *(*inside, "tc", "qdisc", "add", "dev", "lo", "root", "tbf"),
                *("rate", RATE, "burst", "128kb", "latency", "100ms"),
            ],
            capture_output=True,
        )
        if made.returncode:
            pytest.skip("this kernel cannot slow a network down")
        yield inside


@pytest.fixture
def servers(slow_link):
    plain = "--insecure-i-know"
    with ExitStack() as stack:
        listen = ["--listen", f"{ADDRESS}:0", plain]
        head = Server([*slow_link, binary_path(), "dispatcher", *listen])
        stack.callback(head.close)
        worker = Server(
            [
                *(*slow_link, binary_path(), "worker", *listen),
                *("--dispatcher", head.address),
            ]
        )
        stack.callback(worker.close)
        yield slow_link, head, worker


def read(servers, compression):
    """How frames went, of a reader that asks for `compression`."""
    inside, head, worker = servers
    said = run(
        *inside,
        *("env", "PENSTOCK_NO_LOCAL_MEMORY=1", sys.executable, "-c", TRAINER),
        *(f"penstock://{head.address}", compression),
    )
    assert int(said) == 48
    state = run(*inside, binary_path(), "state", worker.address, "--json")
    [link] = json.loads(state)["links"]
    assert link["host"] == ADDRESS
    return link


def test_what_gets_smaller_is_compressed(servers):
    link = read(servers, "any")
    assert link["way"] in ("lz4", "zstd")
    assert int(link["sent_bytes"]) < int(link["bytes"]) / 2
    # The wire gives 12.5 MB/s, and holds some bytes.
    assert float(link["bytes_per_second"]) < 1e8
    inside, _, worker = servers
    said = run(*inside, binary_path(), "state", worker.address)
    assert f"{ADDRESS}  {link['way']}" in said


def test_what_does_not_get_smaller_is_sent_as_it_is(servers):
    link = read(servers, "noise")
    assert link["way"] == "none"
    assert int(link["sent_bytes"]) == int(link["bytes"])


@pytest.mark.parametrize("asked", ["none", "lz4", "zstd"])
def test_what_a_reader_asks_for(servers, asked):
    link = read(servers, asked)
    if asked == "none":
        assert int(link["sent_bytes"]) == int(link["bytes"])
    assert link["way"] in (asked, "none")
