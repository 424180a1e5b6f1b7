"""tools/run_tests counts cases, and counts nothing that went wrong as right."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[2] / "tools/run_tests"


def run_cpp(build: Path, script: str, timeout_s: int = 60) -> tuple[int, str]:
    """Runs the tool on a build whose one test is a shell script.

    The script finds the name of the report that it should write in $report.
    """
    body = build / "body.sh"
    body.write_text(f"report=${{1#--gtest_output=json:}}\n{script}\n")
    (build / "CTestTestfile.cmake").write_text(
        f'add_test(it "/bin/sh" "{body}")\n'
        f"set_tests_properties(it PROPERTIES TIMEOUT {timeout_s})\n"
    )
    result = subprocess.run(
        [sys.executable, TOOL, "--cpp", build], capture_output=True, text=True
    )
    assert result.stderr == ""
    return result.returncode, result.stdout


def report(*cases: dict) -> str:
    """A shell command that writes a report of gtest cases."""
    text = json.dumps({"testsuites": [{"testsuite": cases}]})
    return f"cat > $report <<'END'\n{text}\nEND"


PASSED = {"status": "RUN", "result": "COMPLETED"}
FAILED = {**PASSED, "failures": [{"failure": "1 is not 2"}]}
SKIPPED = {"status": "RUN", "result": "SKIPPED"}
DISABLED = {"status": "NOTRUN", "result": "SUPPRESSED"}


def last_line(text: str) -> str:
    return text.splitlines()[-1]


def test_counts_cases(tmp_path: Path) -> None:
    script = report(PASSED, PASSED, SKIPPED, DISABLED)
    status, said = run_cpp(tmp_path, script)
    assert status == 0
    assert last_line(said) == "2 passed, 0 failed, 1 skipped"


def test_shows_what_failed(tmp_path: Path) -> None:
    script = report(PASSED, FAILED) + "\necho it is broken\nexit 1"
    status, said = run_cpp(tmp_path, script)
    assert status == 1
    assert "it is broken" in said
    assert last_line(said) == "1 passed, 1 failed, 0 skipped"


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("kill -SEGV $$", "ended by signal 11"),
        ("exit 3", "it: 0 passed, 1 failed"),
        ("exec sleep 60", "expected to end in 1 s"),
    ],
)
def test_no_report_is_a_failure(
    tmp_path: Path, script: str, reason: str
) -> None:
    status, said = run_cpp(tmp_path, script, timeout_s=1)
    assert status == 1
    assert reason in said
    assert last_line(said) == "0 passed, 1 failed, 0 skipped"


def test_a_bad_end_after_a_clean_report_is_a_failure(tmp_path: Path) -> None:
    # What a leak found at exit looks like.
    status, said = run_cpp(tmp_path, report(PASSED) + "\nexit 23")
    assert status == 1
    assert last_line(said) == "1 passed, 1 failed, 0 skipped"
