"""Python functions on workers: what runs, what is refused, what is kept out."""

import functools
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import servers
from shipped import prep

import penstock as ps
from penstock._code import make

Dataset = ps.Dataset
PACKAGE = Path(__file__).parent / "shipped"
Python = functools.partial(
    ps.python_function, output_signature=ps.TensorSpec((), ps.string)
)


READER = """
import sys
import penstock as ps
from shipped import prep
ds = ps.Dataset.range(2000).map(prep.spell)
ds = ds.distribute(sys.argv[1], job="two", reader=int(sys.argv[2]),
                   num_readers=2, code=["shipped"])
print(*(repr(x) for x in ds), sep="\\n")
"""


@pytest.fixture(scope="module")
def service():
    with ps.LocalService(workers=2, cpu=1) as service:
        yield service


@pytest.fixture(scope="module")
def dispatcher():
    with servers.dispatcher() as dispatcher:
        yield dispatcher


def ship(ds, service, **more):
    return ds.distribute(service.address, code=["shipped"], **more)


def outcomes(ds):
    found, iterator = [], iter(ds)
    while True:
        try:
            found.append(next(iterator))
        except StopIteration:
            return found
        except ps.PenstockError as error:
            found.append(error)


def rows_of(ds):
    """Its rows in an order of their own; those of batches, one by one."""
    return sorted(repr(x) for row in ds for x in np.ravel(row).tolist())


class TestRuns:
    """The same rows as here."""

    @pytest.mark.parametrize(
        "make_ds",
        [
            lambda ds: ds.map(prep.spell),
            lambda ds: ds.filter(prep.is_lucky).map(prep.spell),
            lambda ds: ds.map(prep.spell).batch(7),
            lambda ds: ds.flat_map(prep.count_to),
            lambda ds: ds.map(prep.label).map(prep.unlabel),
            lambda ds: ds.group_by_window(
                prep.last_digit, lambda key, rows: rows, window_size=3
            ),
            lambda ds: ds.map(
                functools.partial(prep.scale, by=np.int32(3), names=["a", b"b"])
            ),
            lambda ds: ds.map(ps.python_function(prep.noise, rng=True, seed=4)),
        ],
        ids=[
            "map",
            "filter",
            "batch",
            "rows",
            "classes",
            "keys",
            "partial",
            "random",
        ],
    )
    def test_as_here(self, service, make_ds):
        ds = make_ds(Dataset.range(300))
        assert rows_of(ship(ds, service)) == rows_of(ds)

    def test_what_counts_stays_here(self, service):
        ds = Dataset.range(50).map(prep.spell)
        ds = ds.scan(np.int64(0), lambda n, x: (n + 1, (n, os.getpid(), x)))
        found = list(ship(ds, service))
        assert [int(n) for n, _, _ in found] == list(range(50))

    def test_a_pipeline_for_each_worker(self, service):
        ds = Dataset.range(30).scan(np.int64(0), prep.add_up)
        found = ship(ds, service, visitation="each_worker")
        assert rows_of(found) == sorted(2 * rows_of(ds))

    def test_a_pickled_dataset_still_goes(self, service):
        cloudpickle = pytest.importorskip("cloudpickle")
        ds = Dataset.range(10).map(prep.spell)
        ds = cloudpickle.loads(cloudpickle.dumps(ds))
        assert rows_of(ship(ds, service)) == rows_of(ds)

    def test_an_error_says_where_in_the_package(self, service):
        ds = Dataset.range(20).map(prep.fail_at_seven)
        found = outcomes(ship(ds, service))
        assert len(found) == 20
        (error,) = (each for each in found if isinstance(each, Exception))
        assert "seven is too much" in str(error)
        assert 'File "shipped/prep.py", line' in str(error)
        assert 'raise ValueError("seven is too much")' in str(error)

    def test_readers_in_several_processes(self, service):
        ds = Dataset.range(2000).map(prep.spell)
        ship(ds, service)  # so that this service accepts the code
        readers = [
            subprocess.Popen(
                [sys.executable, "-c", READER, service.address, str(reader)],
                cwd=PACKAGE.parent,
                env={**os.environ, "PYTHONHASHSEED": str(reader)},
                stdout=subprocess.PIPE,
                text=True,
            )
            for reader in range(2)
        ]
        found = [reader.communicate(timeout=60)[0] for reader in readers]
        assert sorted("".join(found).split()) == rows_of(ds)

    def test_every_row_comes_once_though_workers_die(self):
        with ps.LocalService(workers=2, cpu=1) as service:
            ds = ship(Dataset.range(40_000).map(prep.fail_at_seven), service)
            found, killed = [], 0
            iterator = iter(ds)
            while True:
                try:
                    found.append(int(next(iterator)))
                except StopIteration:
                    break
                except ps.PenstockError as error:
                    assert "seven is too much" in str(error)
                    found.append(7)
                if len(found) % 10_000 == 5_000:
                    victim = next(filter(is_alive, service.worker_pids))
                    os.kill(victim, signal.SIGKILL)
                    servers.wait_until(
                        lambda pid=victim: (
                            service.worker_pids.count(pid) == 0
                            or len(service.worker_pids) > 2
                        )
                    )
                    killed += 1
            assert sorted(found) == list(range(40_000))
            assert killed == 4


class TestDeaths:
    def test_a_row_is_tried_again(self, service, tmp_path):
        function = functools.partial(prep.die_once, mark=str(tmp_path / "died"))
        (tmp_path / "died").touch()  # not when it is built
        ds = Dataset.range(20).map(function)
        (tmp_path / "died").unlink()
        assert sorted(int(x) for x in ship(ds, service)) == list(range(20))
        assert (tmp_path / "died").exists()

    def test_but_once(self, service):
        pids = service.worker_pids
        found = outcomes(ship(Dataset.range(20).map(prep.die), service))
        (error,) = (each for each in found if isinstance(each, Exception))
        assert isinstance(error, ps.UnavailableError)
        assert "ended with exit code 3" in str(error)
        assert len(found) == 20
        assert service.worker_pids == pids

    def test_a_row_has_a_deadline(self, service):
        options = ps.Options(python=ps.PythonOptions(deadline=0.3))
        ds = Dataset.range(20).map(prep.loop).with_options(options)
        found = outcomes(ship(ds, service))
        (error,) = (each for each in found if isinstance(each, Exception))
        assert isinstance(error, ps.DeadlineExceededError)
        assert len(found) == 20

    @pytest.mark.parametrize(
        "said", [b"\xff" * 64, b"half a message"], ids=["whole", "half"]
    )
    def test_whoever_says_nonsense_hurts_itself_alone(self, service, said):
        pids = service.worker_pids
        ds = Dataset.range(20).map(functools.partial(prep.garble, said=said))
        found = outcomes(ship(ds, service))
        (error,) = (each for each in found if isinstance(each, Exception))
        assert isinstance(error, ps.UnavailableError)
        assert len(found) == 20
        assert service.worker_pids == pids


class TestConfinement:
    def test_it_sees_nothing_of_the_worker(self, dispatcher):
        secret = {"MY_CLOUD_KEY": "red", "PENSTOCK_TOKEN_FILE": "/dev/null"}
        ds = Dataset.range(1).map(Python(prep.environment))
        parent = Dataset.range(1).map(Python(prep.environment_of_parent))
        with servers.worker(
            dispatcher.address,
            "--code-allow",
            "any",
            **worker_python(),
            **secret,
        ):
            (found,) = ship(ds, dispatcher)
            assert "MY_CLOUD_KEY" not in json.loads(found)
            assert "PENSTOCK_TOKEN_FILE" not in json.loads(found)
            assert list(ship(parent, dispatcher)) == [b"PermissionError"]

    def test_limits_are_in_force(self, dispatcher):
        ds = Dataset.range(1).map(Python(prep.surroundings))
        large = Dataset.range(1).map(
            ps.python_function(
                prep.grab, output_signature=ps.TensorSpec((), ps.uint64)
            )
        )
        size = 600 << 20
        with servers.worker(
            dispatcher.address,
            *("--code-allow", "any", "--python-memory", str(size)),
            **worker_python(),
        ) as worker:
            found = json.loads(next(iter(ship(ds, dispatcher))))
            assert found["no_new_privs"] == 1
            assert found["capabilities"] == 0
            assert found["core"] == [0, 0]
            assert max(found["files"]) <= 1024
            assert found["data"] == [size, size]
            assert found["session"]
            assert found["cwd"] == found["home"] != os.getcwd()
            with pytest.raises(ps.PenstockError, match="MemoryError"):
                next(iter(ship(large, dispatcher)))
            worker.process.kill()
            servers.wait_until(lambda: not is_alive(found["pid"]))
        # What it left behind, the next one takes away.
        with servers.worker(
            dispatcher.address, "--code-allow", "any", **worker_python()
        ) as worker:
            (last,) = ship(ds, dispatcher)
            assert not os.path.exists(os.path.dirname(found["cwd"]))
            folder = os.path.dirname(json.loads(last)["cwd"])
            assert os.path.exists(folder)
            assert worker.end() == 0
            assert not os.path.exists(folder)


class TestAcceptance:
    def test_nothing_is_accepted_by_default(self, dispatcher):
        ds = ship(Dataset.range(3).map(prep.spell), dispatcher)
        code = make(["shipped"])
        with (
            servers.worker(dispatcher.address, **worker_python()),
            pytest.raises(ps.PermissionDeniedError) as refused,
        ):
            list(ds)
        assert f"--code-allow sha256:{code.sha256}" in str(refused.value)
        assert "shipped: 4 files" in str(refused.value)
        assert "at the worker 127.0.0.1:" in str(refused.value)

    @pytest.mark.parametrize("how", ["hash", "folder", "any"])
    def test_what_is_said_is_accepted(self, dispatcher, tmp_path, how):
        zipped = servers.run(
            *("code", "zip", str(PACKAGE), "-o", str(tmp_path / "x.zip")),
            **worker_python(),
        )
        assert zipped.returncode == 0, zipped.stderr
        hashed = servers.run(
            "code", "hash", str(tmp_path / "x.zip"), **worker_python()
        )
        sha256 = hashed.stdout.split()[0]
        assert zipped.stdout.startswith(sha256)
        given = {"hash": sha256, "folder": str(tmp_path), "any": "any"}[how]
        ds = Dataset.range(3).map(prep.spell)
        with servers.worker(
            *(dispatcher.address, "--code-allow", given), **worker_python()
        ) as worker:
            assert rows_of(ship(ds, dispatcher)) == rows_of(ds)
            assert ("unsafe: --code-allow any" in worker.log) == (how == "any")

    def test_pickles_need_both_sides(self, dispatcher):
        ds = Dataset.range(4).map(lambda x: str(int(x)).encode())
        with pytest.raises(ps.InvalidArgumentError, match="pickle=True"):
            ds.distribute(dispatcher.address)
        asked = ds.distribute(dispatcher.address, pickle=True)
        with servers.worker(
            dispatcher.address, "--code-allow", "any", **worker_python()
        ):
            with pytest.raises(ps.PermissionDeniedError) as refused:
                list(asked)
            assert "--allow-pickle" in str(refused.value)
            assert "pickle=True" in str(refused.value)
        with servers.worker(
            dispatcher.address, "--allow-pickle", **worker_python()
        ) as worker:
            assert rows_of(asked) == rows_of(ds)
            assert "unsafe: --allow-pickle" in worker.log

    def test_a_python_that_is_not_fit(self, dispatcher):
        ds = ship(Dataset.range(3).map(prep.spell), dispatcher)
        flags = ("--code-allow", "any", "--python", "/bin/cat")
        with (
            servers.worker(dispatcher.address, *flags),
            pytest.raises(ps.FailedPreconditionError, match="--python"),
        ):
            list(ds)

    def test_a_flag_that_means_nothing(self, dispatcher):
        said = servers.run(
            *("worker", "--dispatcher", dispatcher.address),
            *("--code-allow", "everything"),
        )
        assert said.returncode == 2
        assert "expected any, sha256:" in said.stderr


class TestAdvice:
    """What cannot go says why, before anything is asked of a service."""

    @pytest.mark.parametrize(
        ("function", "code", "why"),
        [
            (prep.spell, None, 'distribute(code=["shipped"])'),
            (prep.spell, ["email"], 'distribute(code=["shipped"])'),
            (lambda x: str(x).encode(), ["shipped"], "pickle=True"),
            (
                functools.partial(prep.scale, by=2, names={1}),
                ["shipped"],
                "set",
            ),
        ],
        ids=["none", "other", "lambda", "values"],
    )
    def test_of_functions(self, function, code, why):
        ds = Dataset.range(3).map(function)
        with pytest.raises(ps.InvalidArgumentError) as refused:
            ds.distribute("localhost:1", code=code)
        assert why in str(refused.value)
        assert "runs as Python" in str(refused.value)


def worker_python():
    return {"PENSTOCK_PYTHON": sys.executable}


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
