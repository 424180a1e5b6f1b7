"""A short form of run.py: every part is broken, and no row is lost."""

import subprocess
import sys
from pathlib import Path

import pytest
import rows
from processes import PRELOAD

RUN = Path(__file__).with_name("run.py")

pytestmark = pytest.mark.skipif(
    not PRELOAD.exists(), reason="needs the target chaos_preload"
)


def run(folder, *arguments):
    done = subprocess.run(
        [
            *(sys.executable, str(RUN), *arguments),
            *("--scale", "0.3", "--folder", str(folder)),
        ],
        capture_output=True,
        text=True,
        timeout=270,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 lost, 0 doubled; 0 errors" in done.stdout
    return done.stdout


@pytest.mark.timeout(280)
def test_a_minute_of_chaos(tmp_path):
    run(
        tmp_path / "run",
        *("--minutes", "0.8", "--seed", "5", "--gap", "1.5"),
        *(
            "--pipelines",
            ",".join(k for k in rows.KINDS if k not in rows.GROUPS),
        ),
    )


@pytest.mark.timeout(280)
def test_groups_in_chaos(tmp_path):
    said = run(
        tmp_path / "run",
        *("--minutes", "0.5", "--seed", "8", "--gap", "1"),
        *("--pipelines", ",".join(rows.GROUPS)),
    )
    for kind in rows.GROUPS:
        assert f"'{kind}': " in said, said
