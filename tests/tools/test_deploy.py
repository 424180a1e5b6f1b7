"""The units of deploy/ are what systemd and the binary understand."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from penstock._engine import binary_path

UNITS = Path(__file__).resolve().parents[2] / "deploy" / "systemd"


def verify(tmp_path, name, as_name):
    """What `systemd-analyze verify` says of a unit."""
    text = (UNITS / name).read_text()
    # What is not installed here.
    text = text.replace("/usr/bin/penstock", binary_path())
    text = text.replace("=penstock\n", "=root\n")
    (tmp_path / as_name).write_text(text)
    return subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(tmp_path / as_name)],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="needs systemd-analyze"
)
@pytest.mark.parametrize(
    ("name", "as_name"),
    [
        ("penstock-dispatcher.service", "penstock-dispatcher.service"),
        ("penstock-worker@.service", "penstock-worker@a.service"),
    ],
)
def test_units(tmp_path, name, as_name):
    verified = verify(tmp_path, name, as_name)
    if "Failed to initialize manager" in verified.stderr:
        pytest.skip(verified.stderr)
    said = [
        line
        for line in verified.stderr.splitlines()
        if as_name in line or "penstock" in line
    ]
    assert not said, verified.stderr
    assert verified.returncode == 0, verified.stderr


def keys_of(command):
    shown = subprocess.run(
        [binary_path(), command, "--help"],
        capture_output=True,
        text=True,
        check=True,
    )
    flags = re.findall(r"^  --([\w-]+)", shown.stdout, re.MULTILINE)
    return {flag.replace("-", "_") for flag in flags}


@pytest.mark.parametrize("command", ["dispatcher", "worker"])
def test_settings(command):
    text = (UNITS / "penstock.toml").read_text().split(f"[{command}]")[1]
    table = text.split("\n[")[0]
    keys = set(re.findall(r"^(\w+) = ", table, re.MULTILINE))
    assert len(keys) >= 6
    assert keys <= keys_of(command)


@pytest.mark.parametrize("command", ["dispatcher", "worker"])
def test_settings_are_read(tmp_path, command):
    """All of them are taken, up to the files that are not there."""
    text = (UNITS / "penstock.toml").read_text()
    text = text.replace("/etc/penstock", str(tmp_path)).replace("/data", "/")
    config = tmp_path / "penstock.toml"
    config.write_text(text)
    refused = subprocess.run(
        [binary_path(), command, "--config", str(config)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert refused.returncode == 2
    assert f"'{tmp_path}/ca.pem' cannot be read" in refused.stderr
