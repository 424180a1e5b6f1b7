"""`python -m penstock.run`."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import penstock as ps
from penstock import run as command


@pytest.fixture
def pipeline(tmp_path):
    file = tmp_path / "pipeline.py"
    file.write_text(
        "import threading, time\n"
        "import penstock as ps\n"
        "assert __name__ == 'pipeline'\n"
        "ds = ps.Dataset.range(1000).map(lambda x: x + 1).batch(10)\n"
        "forever = ps.Dataset.counter().batch(10)\n"
        "def make():\n"
        "    return ds\n"
        "bad = ps.TextLineDataset('/no-such-file')\n"
        "number = 3\n"
        "def needs(path, size=3):\n"
        "    return ds\n"
        "def fails():\n"
        "    return ds.batch(0)\n"
        "main = time.pthread_getcpuclockid(threading.get_ident())\n"
        "before = time.clock_gettime(main)\n"
        "def slow():\n"
        "    start = time.monotonic()\n"
        "    # Until the reader has waited for longer than it worked.\n"
        "    while time.monotonic() - start < 5 * (\n"
        "            time.clock_gettime(main) - before):\n"
        "        threading.Event().wait(0.001)\n"
        "    yield 1\n"
        "spec = ps.TensorSpec((), ps.int64)\n"
        "def double(line):\n"
        "    return int(line) * 2\n"
        "double = ps.python_function(double, output_signature=spec)\n"
        "with open(__file__ + '.txt', 'w') as file:\n"
        "    file.write('1\\n2\\n3\\n')\n"
        "python = ps.TextLineDataset(file.name).map(double)\n"
        "errors = ds.unbatch().map(lambda x: ps.take([5], x % 3 // 2))\n"
        "errors = errors.ignore_errors()\n"
        "waiting = ps.Dataset.from_generator(slow, output_signature=spec)\n"
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
    for part in ("range", "map", "batch", "pipeline.py:4"):
        assert part in done.stdout
    assert "\x1b" not in done.stdout + done.stderr


def test_json(pipeline):
    done = run(f"{pipeline}:ds", "--json", "--epochs", 2)
    result = json.loads(done.stdout)
    assert result["elements"] == 200
    assert result["epochs"] == 2
    nodes = result["stats"]["nodes"]
    assert [node["rows"] for node in nodes] == [2000, 2000, 200]
    assert result["stats"]["rows"] == 200


def test_table_of_all_epochs(pipeline):
    done = run(f"{pipeline}:ds", "--epochs", 3)
    assert "300 elements of 3 epochs" in done.stdout
    assert "3,000" in done.stdout


def test_errors_are_counted(pipeline):
    done = run(f"{pipeline}:errors")
    assert "667 elements" in done.stdout
    assert "\nerrors: map_4 333\n" in done.stdout
    assert "errors" not in run(f"{pipeline}:ds").stdout


def test_what_the_engine_waited_for(pipeline):
    done = run(f"{pipeline}:waiting")
    assert done.stdout.startswith("1 element in ")
    assert "0.000 s" not in done.stdout
    assert "self: time inside a transformation" in done.stdout
    assert "the engine computed for" in done.stdout
    assert done.stdout.endswith("waited for Python generators\n")


def test_waiting_for_python_processes(pipeline):
    done = run(f"{pipeline}:python", "--json")
    stats = json.loads(done.stdout)["stats"]
    assert stats["python_start_ns"] > 1_000_000
    assert 0 < stats["python_ns"] < stats["wall_ns"]
    shown = run(f"{pipeline}:python").stdout
    assert "waited for Python processes to start (" in shown
    assert "files" not in shown


def waiting(name, self_ns, io_bytes, reader, start=0.0, python=0.0):
    node = ps.NodeStats(0, name, "", 1, 1, 1, 0, self_ns, 0, ())
    times = int(start * 1e9), int(python * 1e9)
    stats = ps.IteratorStats((node,), 10**9, 0, 1, 1, io_bytes, *times)
    return " ".join(command._waiting(stats, 1.0, reader))


READER = "the reader, which takes elements one by one in Python"
START = "Python processes to start"


@pytest.mark.parametrize(
    ("name", "io_bytes", "reader", "start", "python", "text"),
    [
        ("a/from_generator_0", 0, 0.0, 0, 0, "Python generators"),
        ("lines_0", 9, 0.1, 0, 0, "files"),
        ("lines_0", 9, 0.9, 0, 0, READER),
        ("range_0", 0, 0.0, 0, 0, READER),
        ("lines_0", 9, 0.1, 0.9, 0.05, f"{START} (900 ms)"),
        ("lines_0", 9, 0.1, 0, 0.7, "Python functions (700 ms)"),
        ("lines_0", 9, 0.1, 0.2, 0, f"{START} (200 ms) and files"),
        ("lines_0", 9, 0.9, 0.9, 0, READER),
    ],
)
def test_who_is_waited_for(name, io_bytes, reader, start, python, text):
    found = waiting(name, 10**6, io_bytes, reader, start, python)
    assert found.endswith(f" it waited for {text}")
    assert waiting(name, 9 * 10**8, io_bytes, reader, start, python) == ""


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 µs"),
        (3.2e-6, "3.2 µs"),
        (0.0128, "12.8 ms"),
        (0.8, "800 ms"),
        (1.234, "1.23 s"),
        (4321.0, "4,321 s"),
    ],
)
def test_times_have_digits(seconds, text):
    assert command._time(seconds) == text


def test_seconds(pipeline):
    done = run(f"{pipeline}:forever", "--seconds", 0.2, "--json")
    result = json.loads(done.stdout)
    assert 0.2 <= result["seconds"] < 5


def test_trace(pipeline, tmp_path):
    trace = tmp_path / "t.bin"
    done = run(f"{pipeline}:ds", "--trace", trace, "--epochs", 2)
    assert done.returncode == 0, done.stderr
    explained = ps.explain_trace(trace)
    assert explained.rate > 0
    assert explained.fingerprint
    done = run(f"{pipeline}:ds", "--trace", "/no-such-directory/t.bin")
    assert done.returncode == 1
    assert "cannot write the trace" in done.stderr


@pytest.mark.parametrize(
    ("target", "code", "text"),
    [
        (":bad", 1, "no-such-file"),
        (":number", 2, "must be a Dataset"),
        (":nothing", 2, "no such name as 'nothing'"),
        (":nothing", 2, "datasets there: ds, forever, bad"),
        (":needs", 2, "without arguments; got one of (path, size=3)"),
        (":fails", 1, "batch_size must be at least 1; got 0"),
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
    assert "runpy" not in done.stderr


@pytest.mark.parametrize(
    ("option", "text"),
    [
        (("--seconds", "-1"), "more than 0; got '-1'"),
        (("--seconds", "0"), "more than 0; got '0'"),
        (("--seconds", "nan"), "more than 0; got 'nan'"),
        (("--epochs", "0"), "more than 0; got '0'"),
        (("--epochs", "2.5"), "a whole number, more than 0; got '2.5'"),
    ],
)
def test_options_are_checked(pipeline, option, text):
    done = run(f"{pipeline}:ds", *option)
    assert done.returncode == 2
    assert text in done.stderr


def test_help_has_an_example_and_the_exit_codes():
    done = run("--help")
    assert done.returncode == 0
    assert "penstock run train.py:dataset --seconds 10" in done.stdout
    for option in ("FILE:NAME", "--seconds", "--epochs", "--trace", "--json"):
        assert option in done.stdout
    assert "exit codes:" in done.stdout


def test_python_functions_of_the_file(tmp_path):
    """Nobody imports the file again, and runs it, to run its functions."""
    file = tmp_path / "functions.py"
    file.write_text(
        "import penstock as ps\n"
        "def helper(x):\n"
        "    return x + 1\n"
        "def function(x):\n"
        "    return helper(x) if x else 7\n"
        "ds = ps.Dataset.range(60).map(function).batch(10)\n"
        "print(list(ds)[0][:2])\n"
    )
    done = run(f"{file}:ds")
    assert done.returncode == 0, done.stderr
    assert "[7 2]" in done.stdout
    assert "6 elements" in done.stdout
