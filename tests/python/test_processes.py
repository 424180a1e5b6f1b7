"""Engines that die, forks, threads, interrupts and what is left behind."""

import gc
import itertools
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import numpy as np
import pytest
from pipelines import assert_equal, ints

import penstock as ps
from penstock import _engine

Dataset = ps.Dataset


def kill_engine():
    engine = _engine.current()
    os.kill(engine.pid, signal.SIGKILL)
    engine._process.wait()


def run_script(text, *, check=True, **options):
    """Runs Python code in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(text)],
        capture_output=True,
        text=True,
        timeout=120,
        check=check,
        env={
            **os.environ,
            "PYTHONPATH": str(Path(ps.__file__).parents[1]),
        },
        **options,
    )


# ---- Death.


@pytest.mark.parametrize(
    "name",
    [
        "map", "shuffle", "interleave", "batch", "text", "dict", "large",
        "window", "group_by_window", "bucket", "token_buckets",
        "batch_by_tokens", "token_window", "sample", "choose", "unique",
        "resample", "ragged_twice", "pack", "pack_split", "file_cache",
        "load",
    ],
)  # fmt: skip
def test_killed_at_every_step(pipelines, name):
    ds = pipelines[name]
    ds.set_epoch(0)
    want = list(ds)
    for position in range(len(want) + 1):
        iterator = iter(ds)
        got = [next(iterator) for _ in range(position)]
        kill_engine()
        got += list(iterator)
        assert_equal(got, want)


def test_the_epoch_after_a_death_is_the_next():
    ds = Dataset.range(50).shuffle(50, seed=4)
    want = [list(ds) for _ in range(4)]
    ds = Dataset.range(50).shuffle(50, seed=4)
    assert list(ds) == want[0]
    older, newer = iter(ds), iter(ds)
    next(newer)
    got = [next(older)]
    kill_engine()
    list(newer)
    assert got + list(older) == want[1]
    assert list(ds) == want[3]


def test_killed_between_all_steps():
    iterator = iter(Dataset.range(8).shuffle(4, seed=1).batch(2))
    got = []
    for _ in range(4):
        kill_engine()
        got += next(iterator).tolist()
    kill_engine()
    assert list(iterator) == []
    assert sorted(got) == list(range(8))


def test_calls_survive_a_death():
    ds = Dataset.range(3)
    kill_engine()
    assert ints(ds.map(lambda x: x + 1)) == [1, 2, 3]


def test_captures_reach_the_next_engine():
    ds = Dataset.from_tensor_slices(np.arange(10_000))
    assert len(ints(ds)) == 10_000
    kill_engine()
    assert len(ints(ds)) == 10_000


def test_state_without_an_engine():
    iterator = iter(Dataset.range(5))
    next(iterator)
    kill_engine()
    state = iterator.state_dict()
    iterator.load_state_dict(state)
    assert ints(iterator) == [1, 2, 3, 4]


def test_an_engine_that_always_dies_is_an_error(tmp_path, monkeypatch):
    ps.close()
    binary = tmp_path / "penstock"
    binary.write_text("#!/bin/sh\necho the end is near >&2\nkill -SEGV $$\n")
    binary.chmod(0o755)
    monkeypatch.setenv("PENSTOCK_BINARY", str(binary))
    with pytest.raises(ps.EngineDiedError, match="the end is near") as caught:
        Dataset.range(3)
    assert "SIGSEGV" in str(caught.value)
    monkeypatch.undo()
    assert ints(Dataset.range(3)) == [0, 1, 2]


def test_a_missing_binary_is_an_error(monkeypatch):
    ps.close()
    monkeypatch.setenv("PENSTOCK_BINARY", "/no/such/binary")
    with pytest.raises(FileNotFoundError):
        Dataset.range(3)
    monkeypatch.undo()
    assert ints(Dataset.range(3)) == [0, 1, 2]


def test_a_second_death_at_one_element_raises(monkeypatch):
    iterator = iter(Dataset.range(5))
    next(iterator)
    made = type(iterator)._made

    def made_and_killed(self, position, rewriting, **more):
        connection = made(self, position, rewriting, **more)
        kill_engine()
        return connection

    monkeypatch.setattr(type(iterator), "_made", made_and_killed)
    iterator.load_state_dict(iterator.state_dict())
    with pytest.raises(ps.EngineDiedError, match="SIGKILL"):
        next(iterator)
    monkeypatch.undo()
    assert ints(iterator) == [1, 2, 3, 4]


# ---- fork.


def in_child(function):
    """Runs `function` in a forked child; gives what it returns."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            data = pickle.dumps(function())
            os.write(write, data)
            ps.close()
            os._exit(0)
        except BaseException:
            import traceback

            traceback.print_exc()
        os._exit(1)
    os.close(write)
    with os.fdopen(read, "rb") as stream:
        data = stream.read()
    assert os.waitpid(pid, 0)[1] == 0
    return pickle.loads(data)


def test_a_child_has_its_own_engine():
    ds = Dataset.range(3)
    mine = _engine.current().pid
    theirs = in_child(lambda: (ints(ds), _engine.current().pid))
    assert theirs[0] == [0, 1, 2]
    assert theirs[1] != mine
    assert ints(ds) == [0, 1, 2]
    assert _engine.current().pid == mine


def test_iterators_go_on_in_parent_and_child():
    iterator = iter(Dataset.range(10_000))
    first = [int(next(iterator)) for _ in range(3)]
    rest = in_child(lambda: ints(iterator))
    assert first + rest == list(range(10_000))
    assert first + ints(iterator) == list(range(10_000))


def test_arrays_alive_at_a_fork_do_not_change():
    ds = Dataset.range(200_000).batch(1000)
    iterator = iter(ds)
    held = next(iterator)
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(write)
        os.read(read, 1)  # until the parent has gone on
        is_same = held.tolist() == list(range(1000))
        os._exit(0 if is_same else 1)
    os.close(read)
    del held
    for _ in iterator:
        pass
    os.write(write, b"x")
    os.close(write)
    assert os.waitpid(pid, 0)[1] == 0


# ---- Threads.


def test_threads_share_an_iterator():
    iterator = iter(Dataset.range(20_000))
    found = [[] for _ in range(4)]

    def take(into):
        for x in iterator:
            into.append(int(x))

    threads = [threading.Thread(target=take, args=(f,)) for f in found]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(itertools.chain(*found)) == list(range(20_000))
    for part in found:
        assert part == sorted(part)


def test_threads_make_datasets():
    results = {}

    def work(n):
        ds = Dataset.range(n).map(lambda x: x + n).batch(3)
        results[n] = [int(x) for batch in ds for x in batch]

    threads = [threading.Thread(target=work, args=(n,)) for n in range(1, 13)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {n: list(range(n, 2 * n)) for n in range(1, 13)}


# ---- Interrupts and exits.


def test_an_interrupt_leaves_the_iterator_usable():
    out = run_script(
        """
        import os, signal, threading
        import numpy as np
        import penstock as ps

        # Processes that a shell starts in the background ignore it.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        go = threading.Event()
        waits = threading.Event()

        def slow():
            yield 0
            waits.set()
            go.wait()
            yield 1
            yield 2

        ds = ps.Dataset.from_generator(
            slow, output_signature=ps.TensorSpec((), np.int64))
        # The second row is asked for by the second next(), not before.
        it = iter(ds.with_options(ps.Options(run_ahead=0)))

        def interrupt():
            waits.wait()
            os.kill(os.getpid(), signal.SIGINT)

        threading.Thread(target=interrupt).start()
        assert next(it) == 0
        try:
            next(it)
        except KeyboardInterrupt:
            print("interrupted")
        state = it.state_dict()
        go.set()
        print([int(x) for x in it], state["skip"] >= 0)
        """
    ).stdout
    assert out.splitlines() == ["interrupted", "[1, 2] True"]


def test_interrupts_at_any_time():
    out = run_script(
        """
        import signal
        import penstock as ps

        is_armed = False

        def interrupt(*_):
            global is_armed
            if is_armed:
                is_armed = False
                raise KeyboardInterrupt

        signal.signal(signal.SIGALRM, interrupt)
        signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
        it = iter(ps.Dataset.range(2_000_000).batch(10))
        got = []
        hits = 0
        while True:
            try:
                is_armed = True
                while True:
                    got.append(int(next(it)[0]))
            except KeyboardInterrupt:
                hits += 1
            except StopIteration:
                break
        is_armed = False
        # An element that was on its way to the caller when the interrupt came
        # may be gone; none comes twice, and order is kept.
        assert got == sorted(set(got))
        assert 200_000 - hits <= len(got) <= 200_000, (len(got), hits)
        print("ok", hits > 0)
        """,
        check=False,
    )
    assert out.stdout == "ok True\n", out.stderr


def has_ended(pid, seconds=5):
    """Waits until a process that is not a child has ended."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    import select

    try:
        return bool(select.select([handle], [], [], seconds)[0])
    finally:
        os.close(handle)


@pytest.mark.parametrize(
    "end", ["", "os._exit(0)", "os.kill(os.getpid(), signal.SIGKILL)"]
)
def test_the_engine_ends_with_its_process(end):
    out = run_script(
        f"""
        import os, signal
        import penstock as ps
        from penstock import _engine
        it = iter(ps.Dataset.range(10).batch(2))
        next(it)
        print(_engine.current().pid, flush=True)
        {end}
        """,
        check=False,
    ).stdout
    assert has_ended(int(out))


def test_import_starts_nothing():
    run_script(
        """
        import penstock
        from penstock import _engine
        assert _engine.started() is None
        """
    )


def test_the_engine_outlives_signals_to_the_group():
    out = run_script(
        """
        import os, signal
        import penstock as ps
        it = iter(ps.Dataset.range(4))
        next(it)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        try:
            os.killpg(os.getpgrp(), signal.SIGINT)
            signal.sigtimedwait([], 1)
        except KeyboardInterrupt:
            pass
        os.killpg(os.getpgrp(), signal.SIGTERM)
        print([int(x) for x in it])
        """,
        start_new_session=True,
    ).stdout
    assert out == "[1, 2, 3]\n"


# ---- Leaks.


def descriptors():
    return len(os.listdir("/proc/self/fd"))


def test_no_descriptors_are_left():
    ds = Dataset.range(10).batch(2)
    list(ds)
    gc.collect()
    before = descriptors()
    for _ in range(50):
        list(ds)
        next(iter(ds))
    gc.collect()
    assert descriptors() <= before + 1


def test_no_captures_are_left():
    list(Dataset.range(1))
    gc.collect()
    before = descriptors()
    for i in range(20):
        ds = Dataset.from_tensor_slices(np.full(10_000, i))
        assert next(iter(ds)) == i
    del ds
    gc.collect()
    Dataset.range(1)  # Takes along what was dropped.
    assert descriptors() <= before + 1


def test_caches_are_dropped_with_their_datasets():
    def resident():
        pid = _engine.current().pid
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmRSS"):
                return int(line.split()[1]) << 10
        raise AssertionError

    def fill():
        ds = Dataset.range(64).map(lambda x: ps.zeros((1 << 17,))).cache()
        for _ in ds:
            pass

    fill()
    Dataset.range(1)
    before = resident()
    for _ in range(8):
        fill()  # 64 MiB each
    Dataset.range(1)
    assert resident() < before + (200 << 20)


def test_logs_reach_logging(caplog):
    ds = Dataset.range(3).map(lambda x: ps.reshape(ps.arange(x), (2,)))
    ds = ds.ignore_errors(log_warning=True)
    seen = threading.Event()

    class Watch:
        def filter(self, record):
            seen.set()
            return True

    import logging

    logger = logging.getLogger("penstock")
    watch = Watch()
    logger.addFilter(watch)
    try:
        list(ds)
        assert seen.wait(10)
    finally:
        logger.removeFilter(watch)
