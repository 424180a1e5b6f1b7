"""`penstock dispatcher` and what people ask of it, as processes."""

import json
import os
import signal
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from penstock._engine import binary_path


def run(*args: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [binary_path(), *args],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, **environment},
        check=False,
    )


@contextmanager
def dispatcher(*args: str) -> Iterator[str]:
    """Runs one; the line that it says. It must end well when it is told to."""
    process = subprocess.Popen(
        [binary_path(), "dispatcher", "--listen", "127.0.0.1:0", *args],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        assert "listens at 127.0.0.1:" in line
        yield line
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 0
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def address_of(line: str) -> str:
    return line.split("listens at ")[1].split(",")[0].strip()


def test_a_dispatcher_and_its_windows(tmp_path: Path) -> None:
    with dispatcher(
        "--state-dir", str(tmp_path / "state"), "--http", "0"
    ) as line:
        address = address_of(line)
        shown = run("state", address)
        assert shown.returncode == 0, shown.stderr
        assert "No jobs." in shown.stdout
        assert "term 1" in shown.stdout
        state = json.loads(
            run("state", f"penstock://{address}", "--json").stdout
        )
        assert state["jobs"] == []
        unknown = run("drain", address, "nowhere:1")
        assert unknown.returncode == 1
        assert "no worker 'nowhere:1'" in unknown.stderr
        assert run("cancel", address, "job").returncode == 1
        by_name = run("jobs", f"penstock://{address}/")
        assert by_name.returncode == 0, by_name.stderr
        top = run("top", address, "--times", "1", "--interval-ms", "100")
        assert "0 workers, 0 jobs" in top.stdout

        pages = line.split("shows itself at ")[1].strip()
        with urllib.request.urlopen(f"{pages}/healthz", timeout=10) as page:
            assert page.read() == b"ok\n"
        with urllib.request.urlopen(f"{pages}/metrics", timeout=10) as page:
            assert b"\npenstock_workers 0\n" in page.read()
        with urllib.request.urlopen(f"{pages}/state", timeout=10) as page:
            assert json.loads(page.read())["term"] == "1"
    with dispatcher("--state-dir", str(tmp_path / "state")) as line:
        assert "term 2" in run("state", address_of(line)).stdout


def test_certificates_and_tokens(tmp_path: Path) -> None:
    certs = tmp_path / "certs"
    assert run("certs", str(certs), "--host", "example.com").returncode == 0
    tokens = tmp_path / "tokens"
    tokens.write_text("admin:red\nworker:blue\n")
    tokens.chmod(0o600)
    security = [
        *("--tls-ca", str(certs / "ca.pem")),
        *("--tls-cert", str(certs / "server.pem")),
        *("--tls-key", str(certs / "server.key")),
        *("--token-file", str(tokens)),
    ]
    with dispatcher(*security) as line:
        address = address_of(line)
        word = tmp_path / "word"
        caller = {
            "PENSTOCK_TLS_CA": str(certs / "ca.pem"),
            "PENSTOCK_TLS_CERT": str(certs / "client.pem"),
            "PENSTOCK_TLS_KEY": str(certs / "client.key"),
            "PENSTOCK_TOKEN_FILE": str(word),
        }
        for text, problem in {
            "red": "",
            "blue": "needs the role admin",
            "green": "is not one of the server's",
        }.items():
            word.write_text(text)
            called = run("workers", address, **caller)
            assert called.returncode == (1 if problem else 0), called.stderr
            assert problem in called.stderr
        plain = run("workers", address)
        assert plain.returncode == 1
        assert "expects TLS" in plain.stderr


@pytest.mark.parametrize("days", ["0", "-1", "100000", "9" * 30])
def test_certificates_that_hold_for_no_time_or_for_ever(
    tmp_path: Path, days: str
) -> None:
    refused = run("certs", str(tmp_path / "certs"), "--days", days)
    assert refused.returncode == 2
    assert "--days: expected" in refused.stderr
    assert not (tmp_path / "certs").exists()


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        (["--lisen", "x"], "did you mean --listen?"),
        (["--listen", "0.0.0.0:0"], "`penstock certs DIR`"),
        (["--http", "0.0.0.0:0"], "can be reached by other machines"),
        (["--lease-ms", "1"], "--lease-ms: expected at least 300"),
        (["here"], "expected flags; got 'here'"),
    ],
)
def test_what_it_refuses(args: list[str], problem: str) -> None:
    refused = run("dispatcher", *args)
    assert refused.returncode == 2
    assert problem in refused.stderr


def test_settings_from_everywhere(tmp_path: Path) -> None:
    config = tmp_path / "penstock.toml"
    config.write_text("[dispatcher]\nlease_ms = 10\n")
    refused = run("dispatcher", PENSTOCK_DISPATCHER_CONFIG=str(config))
    assert refused.returncode == 2
    assert f"lease_ms in {config}:2: expected at least 300" in refused.stderr


def test_doctor() -> None:
    unsafe = run("doctor", "--listen", "0.0.0.0:1", "--insecure-i-know")
    assert unsafe.returncode == 1
    assert "without TLS" in unsafe.stdout
    safe = run("doctor", "--state-dir", "/nowhere")
    assert safe.returncode == 0
    assert "Nothing unsafe" in safe.stdout


def test_doctor_of_a_worker(tmp_path: Path) -> None:
    safe = run(
        "doctor",
        "worker",
        "--dispatcher",
        "localhost:1",
        "--allow",
        str(tmp_path),
    )
    assert (safe.returncode, safe.stderr) == (0, "")
    assert safe.stdout == "worker\nNothing unsafe or slow was found.\n"
    bad = run(
        *("doctor", "worker", "--dispatcher", "head:1", "--listen", "h:1"),
        *("--insecure-i-know", "--allow-pickle", "--cpu", "100000"),
        *("--memory", "1000", "--http", "0.0.0.0:5"),
    )
    assert bad.returncode == 1
    for fault in (
        "without TLS",
        "no --token-file",
        "everybody at 0.0.0.0:5",
        "no --allow",
        "--allow-pickle: whoever",
        "slow: --cpu 100000",
        "slow: --memory 1000",
    ):
        assert fault in bad.stdout
    assert (
        "would not start: expected --dispatcher"
        in run("doctor", "worker").stdout
    )
    nowhere = run(
        *("doctor", "worker", "--dispatcher", "head:1", "--listen", "me:0"),
        *("--allow", "/", "--insecure-i-know", "--snapshots", "/nowhere"),
    )
    assert "--snapshots: expected a folder that is there" in nowhere.stdout
    wrong = run("doctor", "workers")
    assert wrong.returncode == 2
    assert "expected dispatcher or worker first" in wrong.stderr


def test_a_worker_that_trainers_cannot_reach() -> None:
    alone = run("worker", "--dispatcher", "head:1", "--allow", "/")
    assert alone.returncode == 2
    assert "expected --listen HOST:PORT" in alone.stderr


def test_doctor_looks_at_both_where_the_environment_has_both() -> None:
    found = run(
        "doctor",
        PENSTOCK_DISPATCHER_STATE_DIR="/nowhere",
        PENSTOCK_WORKER_DISPATCHER="localhost:1",
    )
    assert found.returncode == 1
    assert found.stdout.startswith("dispatcher\nNothing unsafe")
    assert "worker\n- no --allow" in found.stdout
