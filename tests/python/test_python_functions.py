"""Functions of the user's that run as Python, in processes of a pool."""

import dataclasses
import importlib.util
import itertools
import os
import pickle
import select
import signal
import subprocess
import sys
import textwrap
import time
from typing import NamedTuple

import numpy as np
import pytest
from pipelines import assert_equal

import penstock as ps
from penstock import _engine, _inside

Dataset = ps.Dataset
STATE = {"calls": 0}


def counted(x):
    """What no recording can hold: it counts its calls."""
    STATE["calls"] += 1
    return x * 2


def branch(x):
    if x % 3 == 0:
        return np.int64(-1)
    return x


def outcomes(iterator):
    found = []
    while True:
        try:
            found.append(next(iterator))
        except StopIteration:
            return found
        except ps.PenstockError as error:
            found.append(error)


def workers():
    """The processes that the engine has started."""
    path = f"/proc/{_engine.current().pid}/task"
    found = []
    for task in os.listdir(path):
        with open(f"{path}/{task}/children") as file:
            found += map(int, file.read().split())
    return found


def await_end(process):
    """Waits until the process of a pidfd has ended."""
    ended, _, _ = select.select([process], [], [], 20)
    os.close(process)
    assert ended, "a process was left behind"


def test_what_cannot_be_recorded_runs_as_python():
    ds = Dataset.range(1000).map(counted)
    assert ds.element_spec == ps.TensorSpec((), ps.int64)
    assert [int(x) for x in ds] == [2 * i for i in range(1000)]
    assert STATE["calls"] == 0, "it runs elsewhere"
    assert [int(x) for x in Dataset.range(7).map(branch)] == [
        -1, 1, 2, -1, 4, 5, -1,
    ]  # fmt: skip


class Pair(NamedTuple):
    left: object
    right: object


@dataclasses.dataclass
class Point:
    x: object
    y: object


@pytest.mark.parametrize(
    "function",
    [
        lambda x: (x, [x, x]) if x >= 0 else None,
        lambda x: {"b": np.full((int(x), 2), x), "a": f"text {x}"},
        lambda x: Pair(np.float32(x), b"bytes") if x > -1 else None,
        lambda x: Point(bool(x % 2), np.arange(int(x))),
        lambda x: None if x > 100 else (int(x), 2.5, 1j * float(x)),
    ],
)
def test_structures(function):
    want = [function(np.int64(i)) for i in range(20)]
    got = list(Dataset.range(20).map(ps.python_function(function)))
    assert len(got) == 20
    for a, b in zip(got, want, strict=True):
        if isinstance(b, tuple) and not isinstance(b, Pair):
            b = tuple(tuple(x) if isinstance(x, list) else x for x in b)
        assert_equal([pickle.loads(pickle.dumps(a))], [a])
        assert type(a) is type(b) or not isinstance(b, (dict, Pair, Point))


def test_tuples_are_arguments():
    ds = Dataset.zip(Dataset.range(3), Dataset.range(3, 6))
    assert [int(x) for x in ds.map(lambda a, b: int(a) * int(b))] == [0, 4, 10]


def test_filter_and_take_while():
    kept = Dataset.range(100).filter(lambda x: str(x).endswith("7"))
    assert [int(x) for x in kept] == list(range(7, 100, 10))
    first = Dataset.range(100).take_while(lambda x: len(str(x)) < 2)
    assert [int(x) for x in first] == list(range(10))


@pytest.mark.parametrize("calls", [None, 1, 3])
def test_order_is_kept(calls):
    def uneven(x):
        sum(range(20_000 * int(x % 3)))
        return x

    ds = Dataset.range(60).map(uneven, num_parallel_calls=calls)
    assert [int(x) for x in ds] == list(range(60))
    loose = Dataset.range(60).map(uneven, calls, deterministic=False)
    assert sorted(int(x) for x in loose) == list(range(60))


def test_errors_are_elements():
    def fails(x):
        if x % 4 == 3:
            raise KeyError(f"no {x}")
        return x

    found = outcomes(iter(Dataset.range(10).map(fails)))
    assert len(found) == 10
    for i, each in enumerate(found):
        if i % 4 == 3:
            assert f"KeyError: 'no {i}'" in str(each)
            assert f"in fails, for element {i} (from 0)" in str(each)
            assert "test_python_functions.py" in str(each)
        else:
            assert each == i
    assert len(list(Dataset.range(10).map(fails).ignore_errors())) == 8


def test_errors_of_the_input_pass_by():
    bad = Dataset.from_tensor_slices([2, -1, 3]).map(lambda n: ps.zeros((n,)))
    found = outcomes(iter(bad.map(lambda x: len(x))))
    assert found[0] == 2
    assert isinstance(found[1], ps.InvalidArgumentError)
    assert found[2] == 3


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda x: "text" if x == 5 else x, "what it returned"),
        (lambda x: np.zeros(3) if x == 5 else np.float64(x), "shape"),
        (lambda x: (x, x) if x == 5 else x, "what it returned"),
    ],
)
def test_other_shapes_and_dtypes_are_errors(function, text):
    found = outcomes(iter(Dataset.range(8).map(function)))
    assert [i for i, x in enumerate(found) if isinstance(x, Exception)] == [5]
    assert text in str(found[5])


def test_the_spec_may_be_given():
    calls = []

    def spelled(x):
        calls.append(x)
        return "x" * int(x)

    f = ps.python_function(
        spelled, output_signature=ps.TensorSpec((), ps.string)
    )
    ds = Dataset.range(3).map(f)
    assert ds.element_spec == ps.TensorSpec((), ps.string)
    assert list(ds) == [b"", b"x", b"xx"]
    assert list(Dataset.range(0).map(f)) == []


def test_without_an_element_the_spec_must_be_given():
    with pytest.raises(ps.UnsupportedFunctionError, match="output_signature"):
        Dataset.range(0).map(counted)


def test_a_function_that_always_fails_says_so_when_built():
    def broken(x):
        raise ValueError("never mind")

    with pytest.raises(ps.InvalidArgumentError) as caught:
        Dataset.range(3).map(broken)
    assert "never mind" in str(caught.value)
    assert "test_python_functions.py" in str(caught.value)


def test_a_sample_does_not_fill_shuffles():
    seen = []

    def watched():
        for i in range(1000):
            seen.append(i)
            yield i

    source = Dataset.from_generator(
        watched, output_signature=ps.TensorSpec((), np.int64)
    )
    ds = source.shuffle(1000, seed=1).repeat(2).map(counted)
    assert len(seen) < 200
    assert sorted(int(x) for x in ds.take(1000)) == list(range(0, 2000, 2))


def test_a_dead_process_is_tried_once_more(tmp_path):
    file = tmp_path / "died"

    def dies_once(x):
        if x == 50 and not file.exists():
            file.touch()
            os._exit(7)
        return x

    ds = Dataset.range(100).map(dies_once)
    assert [int(x) for x in ds] == list(range(100))
    assert file.exists()


@pytest.mark.parametrize("how", ["exit", "kill", "abort"])
def test_a_second_death_is_an_error_of_the_element(how):
    def dies(x):
        if x % 40 == 20:
            if how == "exit":
                os._exit(7)
            os.kill(
                os.getpid(),
                getattr(signal, "SIG" + {"kill": "KILL", "abort": "ABRT"}[how]),
            )
        return x

    found = outcomes(iter(Dataset.range(100).map(dies)))
    bad = [i for i, x in enumerate(found) if isinstance(x, Exception)]
    assert bad == [20, 60]
    assert isinstance(found[20], ps.UnavailableError)
    assert "exit code 7" in str(found[20]) or "SIG" in str(found[20])
    assert [int(x) for i, x in enumerate(found) if i not in bad] == [
        i for i in range(100) if i not in bad
    ]


def test_sys_exit_is_an_error_of_the_element():
    found = outcomes(
        iter(Dataset.range(4).map(lambda x: sys.exit(3) if x == 2 else x))
    )
    assert "SystemExit" in str(found[2])
    assert [int(found[i]) for i in (0, 1, 3)] == [0, 1, 3]


def test_deadlines():
    def sleeps(x):
        if x == 2:
            signal.pause()
        return x

    options = ps.Options(python=ps.PythonOptions(deadline=0.3))
    ds = Dataset.range(5).map(sleeps).with_options(options)
    found = outcomes(iter(ds))
    assert isinstance(found[2], ps.DeadlineExceededError)
    assert [int(found[i]) for i in (0, 1, 3, 4)] == [0, 1, 3, 4]


@pytest.mark.parametrize(
    "options",
    [{"deadline": 0}, {"deadline": -1.0}, {"processes": 0}, {"memory": -5}],
)
def test_options_are_checked(options):
    python = ps.PythonOptions(**options)
    with pytest.raises(ps.InvalidArgumentError, match=next(iter(options))):
        Dataset.range(3).with_options(ps.Options(python=python))


def test_num_parallel_calls_is_how_many_run_at_once():
    def burns(x):
        begin = time.monotonic_ns()
        while time.monotonic_ns() < begin + 2_000_000:
            pass
        return np.array([begin, time.monotonic_ns()])

    ds = Dataset.range(200).map(burns, num_parallel_calls=1)
    spans = sorted(map(tuple, ds))
    for (_, end), (begin, _) in itertools.pairwise(spans):
        assert end <= begin


def test_a_process_that_holds_too_much_is_replaced():
    hoard = []

    def leaks(x):
        hoard.append(np.ones(8 << 20))
        return os.getpid()

    options = ps.Options(python=ps.PythonOptions(memory=150 << 20, processes=1))
    ds = Dataset.range(16).map(leaks).with_options(options)
    pids = [int(x) for x in ds]
    assert len(set(pids)) > 1
    assert len(pids) == 16


def test_closing_ends_what_is_stuck():
    it = iter(Dataset.range(100).map(lambda x: x and signal.pause()))
    next(it)
    stuck = [os.pidfd_open(pid) for pid in workers()]
    assert stuck
    it.close()
    for process in stuck:
        await_end(process)
    assert [int(x) for x in Dataset.range(3).map(branch)] == [-1, 1, 2]


def test_large_captured_arrays_are_shared():
    table = np.arange(1 << 20)
    table.setflags(write=False)

    def looks_up(x):
        STATE["calls"] += 1
        return table[int(x) * 1000]

    assert [int(x) for x in Dataset.range(5).map(looks_up)] == [
        0, 1000, 2000, 3000, 4000,
    ]  # fmt: skip


def test_random_generators_belong_to_elements():
    def draws(x, rng):
        return rng.normal() + float(x)

    f = ps.python_function(draws, rng=True)
    ds = Dataset.range(50).map(f)
    first = list(ds)
    second = list(ds)
    assert first != second, "another epoch"
    again = Dataset.range(50).map(f, num_parallel_calls=3)
    ds.set_epoch(0)
    assert list(ds) == list(ds)
    assert len(set(first)) == 50
    it = iter(ds)
    head = [next(it) for _ in range(20)]
    state = it.state_dict()
    rest = list(it)
    resumed = iter(ds)
    resumed.load_state_dict(state)
    assert list(resumed) == rest
    assert len(head) == 20
    assert len(list(again)) == 50


def test_pure_is_the_users_word():
    def double(x):
        return np.asarray(x * 2)

    f = ps.python_function(double, pure=True)
    ds = ps.Dataset.range(3).map(f)
    other = ps.Dataset.range(3).map(ps.python_function(double))
    assert [int(x) for x in ds] == [0, 2, 4]
    assert ds.fingerprint() == other.fingerprint()
    with pytest.raises(ps.InvalidArgumentError, match="rng=True"):
        ps.python_function(double, rng=True, pure=True)


def test_seeds_of_random_generators():
    def draws(x, rng):
        return rng.normal() + float(x)

    def drawn(seed):
        f = ps.python_function(draws, rng=True, seed=seed)
        ds = Dataset.range(9).map(f)
        return list(ds), list(ds)

    assert drawn(7) == drawn(7) != drawn(8)
    assert drawn(None) != drawn(None), "each dataset draws its own"
    assert drawn(7)[0] != drawn(7)[1], "another epoch"
    with pytest.raises(ps.InvalidArgumentError, match="rng=True"):
        ps.python_function(draws, seed=7)


def test_state_at_every_position():
    ds = Dataset.range(30).map(counted).filter(lambda x: str(x)[-1] != "4")
    whole = [int(x) for x in ds]
    it = iter(ds)
    for position in range(len(whole)):
        resumed = iter(ds)
        resumed.load_state_dict(it.state_dict())
        assert int(next(resumed)) == whole[position]
        assert int(next(it)) == whole[position]
        resumed.close()


def test_run_ahead_is_kept(tmp_path):
    log = tmp_path / "log"

    def writes(x):
        with open(log, "a") as file:
            file.write("x")
        return x

    f = ps.python_function(writes, output_signature=ps.TensorSpec((), ps.int64))
    ds = Dataset.range(100).map(f).with_options(ps.Options(run_ahead=0))
    it = iter(ds)
    for i in range(5):
        assert next(it) == i
        assert len(log.read_text()) == i + 1


def test_the_engine_dies_and_goes_on():
    it = iter(Dataset.range(200).map(counted))
    got = [int(next(it)) for _ in range(10)]
    old = [os.pidfd_open(pid) for pid in workers()]
    os.kill(_engine.current().pid, signal.SIGKILL)
    got += [int(x) for x in it]
    assert got == [2 * i for i in range(200)]
    for process in old:
        await_end(process)


def test_equal_functions_do_not_drop_each_other():
    def make():
        return Dataset.range(5).map(ps.python_function(lambda x: x + 1))

    first, second = make(), make()
    list(first)
    it = iter(second)
    next(it)
    del first
    assert Dataset.range(3).element_spec is not None
    assert [int(x) for x in it] == [2, 3, 4, 5]


def test_datasets_pickle():
    ds = Dataset.range(5).map(counted)
    copy = pickle.loads(pickle.dumps(ds))
    assert [int(x) for x in copy] == [0, 2, 4, 6, 8]


def test_what_cannot_be_sent_is_refused():
    import threading

    lock = threading.Lock()

    def locked(x):
        with lock:
            return x

    with pytest.raises(ps.UnsupportedFunctionError, match="pickled"):
        Dataset.range(3).map(locked)


def test_a_script_of_its_own(tmp_path):
    """Functions of __main__, what they print, and nothing left behind."""
    script = tmp_path / "train.py"
    script.write_text(
        textwrap.dedent(
            """
            import helper_module
            import penstock as ps

            seen = []

            def double(x):
                seen.append(x)
                print("saw", x, flush=True)
                return helper_module.double(x)

            f = ps.python_function(
                double, output_signature=ps.TensorSpec((), ps.int64))
            print([int(x) for x in ps.Dataset.range(3).map(f)])
            """
        )
    )
    (tmp_path / "helper_module.py").write_text("def double(x): return x * 2\n")
    out = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert out.returncode == 0, out.stderr
    assert "[0, 2, 4]" in out.stdout
    assert out.stdout.count("saw") == 3


def test_describe_says_why():
    ds = Dataset.range(3).map(counted)
    text = ds.describe()
    assert "map_1 runs as Python: " in text
    assert "STATE" in text
    assert "Python" not in Dataset.range(3).map(lambda x: x + 1).describe()


def test_a_module_that_only_this_process_knows(tmp_path):
    file = tmp_path / "anywhere.py"
    file.write_text(
        "def helper(x):\n    return [x][0] + 1\n"
        "def function(x):\n    return helper(x) if x else 7\n"
    )
    spec = importlib.util.spec_from_file_location("known_to_nobody", file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
        ds = ps.Dataset.range(3).map(ps.python_function(module.function))
        assert [int(x) for x in ds] == [7, 2, 3]
    finally:
        del sys.modules[spec.name]


def _imported(tmp_path, program):
    """What a program prints that imports modules of `tmp_path`."""
    return subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    ).stdout


def test_a_module_that_runs_pipelines_when_imported(tmp_path):
    """Each process that imports it would start others that import it."""
    (tmp_path / "script.py").write_text(
        textwrap.dedent(
            """
            import penstock as ps

            def function(x):
                return x + 1 if x else 7

            def numbers():
                return [int(x) for x in ps.Dataset.range(2).map(function)]

            print(numbers())
            """
        )
    )
    program = "import script; print(script.numbers())"
    assert _imported(tmp_path, program) == "[7, 2]\n[7, 2]\n"


def test_a_module_with_functions_beside_the_pipeline(tmp_path):
    """Also where a module that imports it has the function."""
    package = tmp_path / "training"
    package.mkdir()
    (package / "__init__.py").write_text("from training.data import ds\n")
    (package / "steps.py").write_text(
        "def helper(x):\n    return [x][0] + 1 if x else 7\n"
    )
    (package / "data.py").write_text(
        textwrap.dedent(
            """
            import penstock as ps
            from training.steps import helper

            source = ps.Dataset.range(3)

            def other(x):
                return 5 if x else 6

            def function(x):
                return helper(x)

            ds = source.map(function)
            """
        )
    )
    program = textwrap.dedent(
        """
        import training
        from training.data import other, source

        print([int(x) for x in training.ds])
        print([int(x) for x in source.map(other)])
        """
    )
    assert _imported(tmp_path, program) == "[7, 2, 3]\n[6, 5, 5]\n"


def test_no_engine_starts_while_a_function_is_loaded(monkeypatch):
    ps.close()
    monkeypatch.setattr(_inside, "is_loading", True)
    with pytest.raises(ps.FailedPreconditionError, match="__main__"):
        list(Dataset.range(2))


def test_python_functions_inside_python_functions_have_an_end(monkeypatch):
    monkeypatch.setattr(_inside, "depth", lambda: 2)
    with pytest.raises(ps.UnsupportedFunctionError, match="inside of 2"):
        Dataset.range(2).map(branch)


def test_what_a_function_raises_while_it_is_learnt_comes_first():
    def fails(x):
        raise ValueError(f"no {int(x)}")

    with pytest.raises(ValueError) as caught:
        ps.Dataset.range(3).map(fails)
    text = str(caught.value)
    assert text.startswith("in fails, for element 0 (from 0): ValueError: no 0")
    assert "Traceback" in text and "output_signature" not in text
    bad = ps.Dataset.range(3).map(lambda i: ps.take(np.array([1]), i + 7))
    with pytest.raises(ValueError, match="output_signature"):
        bad.map(ps.python_function(lambda x: x))


def test_a_function_of_rng_is_told_how_to_get_one():
    def noisy(x, rng):
        return x + rng.normal()

    for function in (noisy, ps.python_function(noisy)):
        with pytest.raises(ps.PenstockError, match="rng=True"):
            ps.Dataset.range(3).map(function)
