"""docs/service.md as it is written, on machines that are network namespaces."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from servers import Server, wait_until

from penstock._engine import binary_path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "service.md"
HOSTS = {
    "head": "10.213.7.1",
    "worker1": "10.213.7.2",
    "worker2": "10.213.7.3",
    "trainer": "10.213.7.4",
}
DOMAIN = "example.com"


def blocks():
    """The blocks that the page says are run, by name."""
    found = re.findall(
        r"<!-- runs: (\w+) -->\n```\w*\n(.*?)```", PAGE.read_text(), re.DOTALL
    )
    return dict(found)


def ip(*args, check=True):
    return subprocess.run(
        ["ip", *args], check=check, capture_output=True, text=True
    )


class Machines:
    """Namespaces on one bridge, which know each other by name."""

    def __init__(self):
        self._tag = f"ps{os.getpid() % 100000}"
        self._etc = []

    def name(self, host):
        return f"{self._tag}{host}"

    def make(self):
        hub = self.name("hub")
        ip("netns", "add", hub)
        ip("-n", hub, "link", "add", "hub", "type", "bridge")
        ip("-n", hub, "link", "set", "hub", "up")
        known = "127.0.0.1 localhost\n" + "".join(
            f"{address} {host}.{DOMAIN}\n" for host, address in HOSTS.items()
        )
        for number, (host, address) in enumerate(HOSTS.items()):
            name = self.name(host)
            etc = Path("/etc/netns") / name
            etc.mkdir(parents=True)
            self._etc.append(etc)
            (etc / "hosts").write_text(known)
            ip("netns", "add", name)
            ip(
                *("-n", hub, "link", "add", f"port{number}", "type", "veth"),
                *("peer", "name", "eth0", "netns", name),
            )
            ip("-n", hub, "link", "set", f"port{number}", "master", "hub", "up")
            ip("-n", name, "address", "add", f"{address}/24", "dev", "eth0")
            ip("-n", name, "link", "set", "eth0", "up")
            ip("-n", name, "link", "set", "lo", "up")

    def remove(self):
        for host in ("hub", *HOSTS):
            ip("netns", "delete", self.name(host), check=False)
        for etc in self._etc:
            shutil.rmtree(etc, ignore_errors=True)

    def on(self, host, *command):
        return ["ip", "netns", "exec", self.name(host), *command]


@pytest.fixture(scope="module")
def machines():
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("needs root and ip")
    made = Machines()
    try:
        try:
            made.make()
        except (subprocess.CalledProcessError, OSError) as error:
            pytest.skip(f"no network namespaces here: {error}")
        yield made
    finally:
        made.remove()


def sh(text):
    return ("sh", "-c", f"exec {text}" if "\n" not in text.strip() else text)


def test_as_the_page_says(machines, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = os.path.dirname(binary_path())
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    page = blocks()
    (tmp_path / "data").mkdir()
    for i in range(20):
        (tmp_path / "data" / f"{i}.txt").write_text(f"line of {i}\n" * 50)

    def once(host, name):
        return subprocess.run(
            machines.on(host, *sh(page[name])),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    for name in ("certs", "tokens"):
        made = once("head", name)
        assert made.returncode == 0, made.stderr
    worker2 = page["worker1"].replace(
        f"--advertise worker1.{DOMAIN}", f"--advertise worker2.{DOMAIN}"
    )
    servers = [Server(machines.on("head", *sh(page["head"])))]
    try:
        for host, text in {
            "worker1": page["worker1"],
            "worker2": worker2,
        }.items():
            servers.append(Server(machines.on(host, *sh(text))))
        head, *workers = servers
        assert head.address == "0.0.0.0:5050", head.log
        for server in workers:
            wait_until(lambda log=server: " joined " in log.log)
        (tmp_path / "read.py").write_text(page["trainer"])
        read = subprocess.run(
            machines.on("trainer", sys.executable, "read.py"),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert read.stdout == "1000 lines\n", read.stderr
        people = once("trainer", "people")
        assert f"worker1.{DOMAIN}:5060" in people.stdout, people.stderr
        assert f"worker2.{DOMAIN}:5060" in people.stdout
        # Files elsewhere are none of a trainer's business.
        (tmp_path / "read.py").write_text(
            page["trainer"].replace("data/*.txt", "/etc/host*")
        )
        refused = subprocess.run(
            machines.on("trainer", sys.executable, "read.py"),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert "PermissionDenied" in refused.stderr
        assert "--allow" in refused.stderr
        # Without certificates.
        plain = subprocess.run(
            machines.on(
                "trainer",
                *(binary_path(), "workers", f"head.{DOMAIN}:5050"),
            ),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert "expects TLS" in plain.stderr
        for server in reversed(servers):
            assert server.end() == 0, server.log
    finally:
        for server in servers:
            server.close()
