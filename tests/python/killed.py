"""Training examples: run as they are, and killed and run again."""

import re
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
STEPS = 24
SAVE_EVERY = 5
PICTURES, BATCH = 640, 32
LAST = re.compile(rf"step +{STEPS}  loss (\S+)  right +(\S+)")


def run(script, folder, *arguments, env=None):
    return subprocess.run(
        [
            sys.executable,
            str(ROOT / "examples" / script),
            f"--folder={folder}",
            f"--steps={STEPS}",
            f"--save-every={SAVE_EVERY}",
            f"--batch={BATCH}",
            *arguments,
        ],
        capture_output=True,
        text=True,
        env=env,
        timeout=250,
    )


def result(done):
    """Loss and accuracy of the last step."""
    assert done.returncode == 0, done.stderr
    found = LAST.search(done.stdout)
    assert found, done.stdout
    return found.groups()


def steps_of(ledger):
    """The pictures of each step; what was done again was the same."""
    steps = {}
    for line in ledger.read_text().splitlines():
        step, *ids = map(int, line.split())
        assert steps.setdefault(step, ids) == ids
    return steps


def check_resumes_exactly(name, tmp_path, env=None):
    """Killed twice, it sees the same pictures and ends with the same model."""
    script, ledger = f"{name}_train.py", f"{name}-seen.txt"
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    expected = result(run(script, whole, env=env))
    for kill_at, begins_after in ((8, 0), (22, 5)):
        done = run(script, parts, f"--kill-at={kill_at}", env=env)
        assert done.returncode == -signal.SIGKILL, done.stderr
        has_resumed = f"going on after step {begins_after}" in done.stdout
        assert has_resumed == (begins_after > 0), done.stdout
    done = run(script, parts, env=env)
    assert "going on after step 20" in done.stdout
    assert result(done) == expected

    steps = steps_of(parts / ledger)
    assert steps == steps_of(whole / ledger)
    assert sorted(steps) == list(range(1, STEPS + 1))
    epoch = [i for step in range(1, PICTURES // BATCH + 1) for i in steps[step]]
    assert sorted(epoch) == list(range(PICTURES))
