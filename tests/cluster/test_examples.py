"""The examples with several processes, in JAX."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def run(name, *arguments):
    said = subprocess.run(
        [sys.executable, EXAMPLES / name, *arguments],
        capture_output=True,
        text=True,
    )
    assert said.returncode == 0, said.stderr
    return said.stdout


def test_replicas_read_in_rounds(tmp_path):
    pytest.importorskip("jax")
    picture = tmp_path / "rounds.svg"
    said = run(
        "coordinated_reads.py",
        *("--replicas", "3", "--steps", "40", "--framework", "jax"),
        *("--plot", str(picture)),
    )
    gain = float(said.split("gain: ")[1].split()[0])
    assert gain > 1.2, said
    assert picture.read_text().startswith("<svg")


def test_trials_share(tmp_path):
    pytest.importorskip("jax")
    picture = tmp_path / "trials.svg"
    said = run(
        "shared_trials.py",
        *("--trials", "3", "--batches", "6", "--framework", "jax"),
        *("--plot", str(picture)),
    )
    assert said.splitlines()[-1].split()[0] == "3"
    assert picture.read_text().startswith("<svg")
