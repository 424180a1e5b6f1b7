"""`python -m penstock.run`."""

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
        "assert __name__ == 'pipeline'\n"
        "ds = ps.Dataset.range(1000).map(lambda x: x + 1).batch(10)\n"
        "forever = ps.Dataset.counter().batch(10)\n"
        "def make():\n"
        "    return ds\n"
        "bad = ps.TextLineDataset('/no-such-file')\n"
        "number = 3\n"
    )
    return file


def run(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-m", "penstock.run", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": str(Path(ps.__file__).parents[1])},
        **options,
    )


@pytest.mark.parametrize("name", ["ds", "make"])
def test_table(pipeline, name):
    done = run(f"{pipeline}:{name}")
    assert done.returncode == 0, done.stderr
    assert "100 elements" in done.stdout
    for part in ("range", "map", "batch", "pipeline.py:3"):
        assert part in done.stdout
    assert "\x1b" not in done.stdout + done.stderr


def test_json(pipeline):
    done = run(f"{pipeline}:ds", "--json", "--epochs", 2)
    result = json.loads(done.stdout)
    assert result["elements"] == 200
    assert result["epochs"] == 2
    assert len(result["stats"]["nodes"]) == 3


def test_seconds(pipeline):
    done = run(f"{pipeline}:forever", "--seconds", 0.2, "--json")
    result = json.loads(done.stdout)
    assert 0.2 <= result["seconds"] < 5


@pytest.mark.parametrize(
    ("target", "code", "text"),
    [
        (":bad", 1, "no-such-file"),
        (":number", 2, "must be a Dataset"),
        (":nothing", 2, "datasets there: ds, forever, bad"),
        ("x:ds", 2, "no file"),
        ("", 2, "FILE:NAME"),
    ],
)
def test_failures(pipeline, target, code, text):
    done = run(
        f"{pipeline}{target}" if target.startswith(":") else target or pipeline
    )
    assert done.returncode == code
    assert text in done.stderr


def test_help_has_an_example_and_the_exit_codes():
    done = run("--help")
    assert done.returncode == 0
    assert "example:" in done.stdout
    assert "exit codes:" in done.stdout
