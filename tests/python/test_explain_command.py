"""`python -m penstock.explain`, and what it has in common with `tune`."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import penstock as ps


@pytest.fixture
def pipeline(tmp_path):
    file = tmp_path / "pipeline.py"
    file.write_text(
        "import penstock as ps\n"
        "ds = ps.Dataset.range(10**8).map(lambda x: x + 1).batch(10)\n"
        "short = ps.Dataset.range(100).batch(10)\n"
        "bad = ps.TextLineDataset('/no-such-file')\n"
        "never = ps.Dataset.range(10**15).filter(lambda x: x < 0)\n"
        "def fails():\n"
        "    return ds.batch(0)\n"
    )
    return file


def run(module, *arguments):
    return subprocess.run(
        [sys.executable, "-m", f"penstock.{module}", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "PYTHONPATH": str(Path(ps.__file__).parents[1])},
    )


def test_command(pipeline, tmp_path):
    files = [tmp_path / name for name in ("t.bin", "why.html", "why.svg")]
    done = run(
        "explain", f"{pipeline}:ds", "--seconds", 1, "--trace", files[0],
        "--html", files[1], "--plot", files[2], "--cpu", 2, "--memory", "4GB",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "what to do" in done.stdout
    assert "pipeline.py:2" in done.stdout
    assert "\x1b" not in done.stdout + done.stderr
    assert all(file.stat().st_size > 100 for file in files)
    again = run("explain", files[0], "--json")
    assert json.loads(again.stdout)["verdict"] in " ".join(done.stdout.split())


@pytest.mark.parametrize("name", ["ds", "short"])
def test_a_trace_of_run(pipeline, tmp_path, name):
    trace = tmp_path / "t.bin"
    done = run("run", f"{pipeline}:{name}", "--seconds", 0.5, "--trace", trace)
    assert done.returncode == 0, done.stderr
    e = ps.explain_trace(trace)
    assert e.rate > 0
    assert not any("not whole" in note for note in e.notes)


@pytest.mark.parametrize("command", ["explain", "tune"])
@pytest.mark.parametrize(
    ("target", "options", "code", "text"),
    [
        (":bad", (), 1, "no-such-file"),
        (":never", ("--seconds", "0.3"), 1, "none in 300 ms"),
        (":fails", (), 1, "batch_size must be at least 1; got 0"),
        (":nothing", (), 2, "no such name as 'nothing'"),
        (":ds", ("--cpu", "0"), 2, "cpu must be"),
        (":ds", ("--memory", "much"), 2, "memory must be a size"),
        (":ds", ("--seconds", "0"), 2, "more than 0"),
        ("", (), 2, "FILE:NAME"),
    ],
)
def test_failures(pipeline, command, target, options, code, text):
    done = run(command, f"{pipeline}{target}", *options)
    assert done.returncode == code, done.stderr
    assert text in done.stderr
    assert "runpy" not in done.stderr


def test_where_to_write_is_looked_at_before_anything_runs(pipeline, tmp_path):
    done = run(
        "tune", f"{pipeline}:never", "--seconds", 0.3,
        "--write", tmp_path / "none" / "t.json",
    )  # fmt: skip
    assert done.returncode == 1
    assert "there is no directory" in done.stderr
    assert "none in 300 ms" not in done.stderr


def test_a_trace_that_is_not_there(tmp_path):
    done = run("explain", tmp_path / "none.bin")
    assert done.returncode == 2
    assert "or a trace that is there" in done.stderr


def test_a_budget_that_is_too_small_is_spoken_of(pipeline):
    done = run("tune", f"{pipeline}:ds", "--memory", "5kB", "--seconds", 0.5)
    assert done.returncode == 0, done.stderr
    assert "need more than the memory limit" in done.stdout


@pytest.mark.parametrize("command", ["explain", "tune"])
def test_help(command):
    done = run(command, "--help")
    assert done.returncode == 0
    assert f"penstock {command} train.py:dataset" in done.stdout
    assert "exit codes:" in done.stdout
