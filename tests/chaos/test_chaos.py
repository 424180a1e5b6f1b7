"""A short form of run.py: every part is broken, and no row is lost."""

import subprocess
import sys
from pathlib import Path

import pytest
from processes import PRELOAD

RUN = Path(__file__).with_name("run.py")

pytestmark = pytest.mark.skipif(
    not PRELOAD.exists(), reason="needs the target chaos_preload"
)


@pytest.mark.timeout(280)
def test_a_minute_of_chaos(tmp_path):
    done = subprocess.run(
        [
            *(sys.executable, str(RUN)),
            *("--minutes", "0.8", "--seed", "5", "--gap", "1.5"),
            *("--scale", "0.3", "--folder", str(tmp_path / "run")),
        ],
        capture_output=True,
        text=True,
        timeout=270,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 lost, 0 doubled; 0 errors" in done.stdout
