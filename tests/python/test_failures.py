"""The engine beside the trainer: one test for each row of what may fail.

That the engine dies at any step is in test_processes.py; that it cannot start,
in test_engine_start.py.
"""

import gc
import os
import platform
import select
import signal
import subprocess
import sys
import textwrap
import time
import uuid
from pathlib import Path

import numpy as np
import pytest
from complaints import check_message, engines_of, shared_memory
from pipelines import ints

import penstock as ps
from penstock import _engine

Dataset = ps.Dataset


class Trainer:
    """Python code in a process group of its own, and all that it starts."""

    def __init__(self, text, **environment):
        self.mark = f"PENSTOCK_TEST_MARK={uuid.uuid4()}"
        name, _, value = self.mark.partition("=")
        self.process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(text)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env={
                **os.environ,
                "PYTHONPATH": str(Path(ps.__file__).parents[1]),
                name: value,
                **environment,
            },
        )

    def line(self):
        return self.process.stdout.readline().strip()

    def rest(self):
        out, error = self.process.communicate(timeout=120)
        assert self.process.returncode == 0, error
        return out

    def processes(self):
        """Itself and what it started, directly or not, that is alive."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                environment = Path(f"/proc/{pid}/environ").read_bytes()
                state = Path(f"/proc/{pid}/stat").read_text()
            except OSError:
                continue
            is_zombie = state.rpartition(")")[2].split()[0] == "Z"
            if self.mark.encode() in environment and not is_zombie:
                found.append(int(pid))
        return found

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for pid in self.processes():
            os.kill(pid, signal.SIGKILL)
        self.process.communicate()


def seconds_until_ended(pid, limit=20):
    """How long a process that is not a child takes to end."""
    start = time.monotonic()
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return 0
    try:
        assert select.select([handle], [], [], limit)[0], "it did not end"
    finally:
        os.close(handle)
    return time.monotonic() - start


# ---- The trainer dies.


@pytest.mark.parametrize("has_child", [False, True])
def test_the_engine_ends_when_its_trainer_is_killed(has_child):
    with Trainer(
        f"""
        import os, signal
        import numpy as np
        import penstock as ps
        from penstock import _engine
        ds = ps.Dataset.from_tensor_slices(np.zeros(100_000)).repeat()
        it = iter(ds.batch(1000))
        held = [next(it) for _ in range(3)]
        engine = _engine.current().pid
        child = 0
        if {has_child}:
            child = os.fork()
            if child == 0:
                signal.pause()  # with copies of the trainer's sockets
        print(engine, child, flush=True)
        signal.pause()
        """
    ) as trainer:
        engine, child = map(int, trainer.line().split())
        assert shared_memory(engine) > 0
        trainer.process.kill()
        assert seconds_until_ended(engine) < 5  # one, on a quiet machine
        if has_child:
            assert trainer.processes() == [child]
            os.kill(child, signal.SIGKILL)
            seconds_until_ended(child)
        assert trainer.processes() == []


def test_the_engine_ends_with_a_generator_that_blocks():
    with Trainer(
        """
        import threading
        import numpy as np
        import penstock as ps
        from penstock import _engine

        def blocking():
            yield 0
            threading.Event().wait()

        it = iter(ps.Dataset.from_generator(
            blocking, output_signature=ps.TensorSpec((), np.int64)))
        next(it)
        print(_engine.current().pid, flush=True)
        it.close()
        """
    ) as trainer:
        engine = int(trainer.line())
        assert trainer.rest() == ""
        seconds_until_ended(engine)
        assert trainer.processes() == []


# ---- Signals to the group.


@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_the_state_can_be_saved_after_a_signal_to_the_group(number):
    with Trainer(
        f"""
        import os, signal
        import penstock as ps
        from penstock import _engine

        class Stop(Exception):
            pass

        def stop(*_):
            raise Stop

        signal.signal(signal.{number}, stop)
        it = iter(ps.Dataset.range(1_000_000).shuffle(100, seed=1).batch(10))
        engine = _engine.current().pid
        taken = 0
        try:
            while True:
                next(it)
                taken += 1
                if taken == 50:
                    os.killpg(os.getpgrp(), signal.{number})
        except Stop:
            pass
        state = it.state_dict()
        rest = [next(it).tolist() for _ in range(5)]
        assert _engine.current().pid == engine  # It was not even started again.
        it = iter(ps.Dataset.range(1_000_000).shuffle(100, seed=1).batch(10))
        it.load_state_dict(state)
        print(rest == [next(it).tolist() for _ in range(5)])
        """
    ) as trainer:
        assert trainer.rest() == "True\n"


# ---- Memory.


def test_the_engine_goes_before_the_trainer_does():
    engine = _engine.current().pid
    mine = int(Path("/proc/self/oom_score_adj").read_text())
    theirs = int(Path(f"/proc/{engine}/oom_score_adj").read_text())
    assert theirs > mine or theirs == 1000


def test_ten_thousand_batches_kept():
    batches = list(Dataset.range(10_000 * 500).batch(500))
    assert len(batches) == 10_000
    for i in range(0, 10_000, 97):
        assert batches[i][0] == i * 500
        assert batches[i][-1] == i * 500 + 499
    assert sum(int(batch[0]) for batch in batches) == 500 * 9999 * 5000


def test_large_batches_kept():
    ds = Dataset.range(300).map(lambda x: ps.fill([1 << 17], x))
    kept = list(ds)  # 300 MiB, in shared memory up to a half of it
    for i, array in enumerate(kept):
        assert array[0] == array[-1] == i
    assert not all(array.flags.owndata for array in kept)
    assert any(array.flags.owndata for array in kept)
    del kept, array
    gc.collect()


def test_an_element_larger_than_the_shared_memory():
    # As one of a million processes of this machine it has next to none.
    with Trainer(
        """
        import penstock as ps
        ds = ps.Dataset.range(3).map(lambda x: ps.zeros((x * (1 << 20) + 1,)))
        it = iter(ds)
        print(next(it).shape)
        try:
            for _ in range(2):
                next(it)
        except ps.ResourceExhaustedError as error:
            print(str(error))
        """,
        LOCAL_WORLD_SIZE="1000000",
    ) as trainer:
        out = trainer.rest()
    assert out.startswith("(1,)\n")
    check_message(out, "8388608 are there", "smaller", "<string>:3")


def test_held_arrays_never_stop_the_engine():
    with Trainer(
        """
        import penstock as ps
        ds = ps.Dataset.range(64).map(lambda x: ps.fill([1 << 18], x))
        kept = list(ds)  # 2 MiB each; shared memory has 8
        print(all(a[0] == i for i, a in enumerate(kept)))
        """,
        LOCAL_WORLD_SIZE="1000000",
    ) as trainer:
        assert trainer.rest() == "True\n"


# ---- Forks.


def forked(function):
    """Runs `function` in a child; whether it returned true."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            code = 0 if function() else 1
        finally:
            ps.close()
            os._exit(code)
    return os.waitpid(pid, 0)[1] == 0


def test_a_fork_with_live_arrays_and_an_iterator_in_use():
    iterator = iter(Dataset.range(1_000_000).batch(1000))
    held = [next(iterator) for _ in range(20)]
    copies = [array.copy() for array in held]

    def child():
        mine = [int(next(iterator)[0]) for _ in range(100)]
        return mine == list(range(20_000, 120_000, 1000)) and all(
            np.array_equal(a, b) for a, b in zip(held, copies, strict=True)
        )

    assert forked(child)
    theirs = [int(next(iterator)[0]) for _ in range(100)]
    assert theirs == list(range(20_000, 120_000, 1000))
    for a, b in zip(held, copies, strict=True):
        np.testing.assert_array_equal(a, b)


def test_children_end_their_engines():
    ds = Dataset.range(10)
    before = engines_of(os.getpid())
    for _ in range(3):
        assert forked(lambda: ints(ds) == list(range(10)))
    assert engines_of(os.getpid()) == before


# ---- No memfd_create.

REFUSE_MEMFD = """
import ctypes, os, platform, struct

number = {"x86_64": 319, "aarch64": 279}[platform.machine()]
steps = b"".join(struct.pack("<HBBI", *step) for step in [
    (0x20, 0, 0, 0),             # load the number of the call
    (0x15, 0, 1, number),        # if it is memfd_create,
    (0x06, 0, 0, 0x00050001),    # then EPERM,
    (0x06, 0, 0, 0x7FFF0000),    # else go on
])
program = ctypes.create_string_buffer(steps, len(steps))
filter = ctypes.create_string_buffer(
    struct.pack("@HP", 4, ctypes.addressof(program)))
libc = ctypes.CDLL(None, use_errno=True)
if (libc.prctl(38, 1, 0, 0, 0) or
        libc.prctl(22, 2, ctypes.byref(filter), 0, 0)):
    print("skip")
    raise SystemExit
try:
    os.memfd_create("x")
except PermissionError:
    pass
else:
    print("skip")
    raise SystemExit
"""


@pytest.mark.skipif(
    platform.machine() not in ("x86_64", "aarch64"), reason="numbers of calls"
)
def test_without_memfd_create(tmp_path):
    with Trainer(
        REFUSE_MEMFD
        + textwrap.dedent(
            """
            import numpy as np
            import penstock as ps
            from penstock import _engine
            ds = ps.Dataset.from_tensor_slices(np.arange(100_000))
            it = iter(ds.batch(1000))
            batches = list(it)
            print([int(b[0]) for b in batches] == list(range(0, 100_000, 1000)))
            print("/penstock-" in open(
                f"/proc/{_engine.current().pid}/maps").read())
            os.kill(_engine.current().pid, 9)
            print(len(list(ds)))
            """
        ),
        TMPDIR=str(tmp_path),
    ) as trainer:
        out = trainer.rest()
    if out.startswith("skip"):
        pytest.skip("no seccomp filters here")
    assert out == "True\nTrue\n100000\n"
    assert list(tmp_path.iterdir()) == []
