"""Examples that start several trainer processes of their own."""

import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def run(name, *arguments):
    said = subprocess.run(
        [sys.executable, EXAMPLES / name, *arguments],
        capture_output=True,
        text=True,
        timeout=250,
    )
    assert said.returncode == 0, said.stderr
    return said.stdout


def check_rounds(framework, tmp_path):
    """Replicas in rounds wait less for the slowest than without."""
    picture = tmp_path / "rounds.svg"
    said = run(
        "coordinated_reads.py",
        *("--replicas", "3", "--steps", "40", "--framework", framework),
        *("--plot", str(picture)),
    )
    gain = float(said.split("gain: ")[1].split()[0])
    assert gain > 1.2, said
    assert picture.read_text().startswith("<svg")


def check_trials(framework, tmp_path):
    """Trials that share cost the workers less. Each has all batches, which the
    example itself looks at.
    """
    picture = tmp_path / "trials.svg"
    said = run(
        "shared_trials.py",
        *("--trials", "3", "--batches", "6", "--framework", framework),
        *("--plot", str(picture)),
    )
    count, shared, alone = said.splitlines()[-1].split()
    assert count == "3" and float(shared) < 0.75 * float(alone), said
    assert picture.read_text().startswith("<svg")
