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


def check_service_lineage(name, tmp_path, env=None):
    """Killed by its parent, it learns from every picture once an epoch."""
    script = f"train_service_{name}.py"
    done = run(script, tmp_path, "--kill-at=13", env=env)
    assert done.returncode == 0, done.stderr
    assert "killed after step 13" in done.stdout
    assert re.search(r"going on after step \d+", done.stdout), done.stdout
    # Looked at apart from what the example makes of it.
    steps = {}
    lines = (tmp_path / f"train_service_{name}-seen.txt").read_text()
    for line in lines.splitlines():
        step, epoch, *ids = map(int, line.split())
        steps[step] = (epoch, ids)
    assert sorted(steps) == list(range(1, STEPS + 1))
    of_epoch = {0: [], 1: []}
    for epoch, ids in steps.values():
        of_epoch[epoch] += ids
    assert sorted(of_epoch[0]) == list(range(PICTURES))
    assert len(of_epoch[1]) == len(set(of_epoch[1])) == STEPS * BATCH - PICTURES
