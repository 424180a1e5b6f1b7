"""Tuning: what is chosen, what is kept, and where it goes."""

import dataclasses
import json
import os
import pickle
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import penstock as ps
from penstock import _engine, _epochs, _explain, _measuring, _report, _tuning

FINGERPRINT = "0123456789abcdef0123456789abcdef"


def work(x):
    """Native, and a good part of a millisecond."""
    y = ps.cast(x, ps.float32) + ps.zeros((20_000,))
    for _ in range(5):
        y = ps.exp(ps.sin(y))
    return y


def one_task(count=10**7):
    return ps.Dataset.range(count).map(work, num_parallel_calls=1).batch(8)


def tuning(ds, tasks=2, cores=None, memory=None, **more):
    """A tuning of `ds` that gives its map so many tasks."""
    here = _tuning.machine()
    knob = {"value": tasks, "chosen_by": "TUNER"}
    fields = {
        "fingerprint": ds.fingerprint(),
        "knobs": {"nodes": {"1": {"parallelism": knob}}},
        "settings": (),
        "cores": here[0] if cores is None else cores,
        "memory_bytes": here[1] if memory is None else memory,
        "needs_bytes": 1e6,
        "rate_before": 1.0,
        "rate": 2.0,
    }
    return _tuning.Tuning(**{**fields, **more})


def tuned(ds, path, **more):
    tuning(ds, **more).save(path)
    return ds.load_tuning(path)


def tasks_of(ds):
    """Those of the map, as the engine had them in a run."""
    e = ds.take(3).explain(seconds=60)
    return next(n.tasks for n in e.nodes if n.name == "map_1")


@pytest.fixture
def file(tmp_path):
    return tmp_path / "tuned.json"


# ---- Two runs.


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one core")
def test_one_task_becomes_several(file):
    ds = one_task()
    made = ds.tune(seconds=2)
    e = made.explanation
    assert e.settings, str(e)
    (trial,) = e.tried
    assert trial.predicted.middle > e.rate
    changes = made.diff(ds)
    assert ds.diff(ds) == ()
    if not trial.is_kept:  # Others had the cores.
        assert changes == ()
        assert made._knobs is None
        return
    assert trial.seen > e.rate
    (tasks,) = (s for s in changes if s.knob == "parallelism")
    assert (tasks.node, tasks.before) == ("map_1", 1)
    assert tasks.after >= 2
    assert "test_tune.py" in tasks.made_at
    assert "map_1" in str(changes)
    assert f"1 -> {tasks.after}" in str(changes)
    assert tasks_of(made) == tasks.after
    made.save_tuning(file)
    assert ds.load_tuning(file)._knobs == made._knobs


def test_nothing_to_gain():
    """Whatever is found: never something slower, and the same elements."""
    ds = ps.Dataset.range(10**6).batch(1000)
    made = ds.tune(seconds=0.5)
    for trial in made.explanation.tried:
        assert trial.is_kept or made.diff(ds) == ()
    assert made.fingerprint() == ds.fingerprint()
    assert next(iter(made)).tolist() == list(range(1000))


def test_too_short_to_tell():
    ds = ps.Dataset.range(40).map(lambda x: x + 1, num_parallel_calls=1)
    made = ds.tune()
    assert made.diff(ds) == ()
    for trial in made.explanation.tried:
        assert "does not tell" in trial.why
    assert len(list(made)) == 40


def test_short_epochs_are_run_again():
    ds = one_task(400)
    made = ds.tune(seconds=4)
    e = made.explanation
    assert e.windows >= 4
    (trial,) = e.tried
    assert "does not tell" not in trial.why


def test_epochs_are_added_up():
    runs = [
        dataclasses.replace(
            explanation(rate, seconds=s, windows=1), timeline=()
        )
        for rate, s in ((90, 0.2), (110, 0.3), (100, 0.3))
    ]
    e = _epochs.together(runs)
    assert (round(e.rate, 2), e.seconds, e.windows) == (101.25, 0.8, 3)
    assert 5 < e.rate_error < 6
    assert _epochs.together(runs[:1]) is runs[0]
    for run, is_short in (
        (explanation(100, seconds=0.5), False),  # It was not at its end.
        (dataclasses.replace(runs[0], _has_ended=True), True),
        (dataclasses.replace(runs[0], _has_ended=True, seconds=1e-3), False),
        (dataclasses.replace(runs[0], _has_ended=True, seconds=2), False),
    ):
        assert _epochs.is_worth_repeating(run) == is_short


def test_epochs_are_run_until_there_are_enough(monkeypatch):
    """As long as a second, and yet too few to tell how much they vary."""
    short = dataclasses.replace(
        explanation(100, seconds=0.51, windows=1), _has_ended=True
    )
    monkeypatch.setattr(_explain, "of_dataset", lambda *_, **__: short)
    e = _epochs.measured(ps.Dataset.range(1), 60.0, {})
    assert e.windows == _epochs.LEAST_WINDOWS
    assert "does not tell" not in _measuring._judge(e, e, {})[1]


def test_all_changes_are_named():
    settings = explanation(1).settings * 7
    assert _measuring._words(settings, _measuring.Decision()).count(";") == 6


def explanation(rate, error=0.0, seconds=2.0, windows=20, cores=1.0, held=1e6):
    message = {
        "measured": rate,
        "measured_error": error,
        "seconds": seconds,
        "windows": windows,
        "used_cores": cores,
        "resident_bytes": held,
        "fingerprint": FINGERPRINT,
        "settings": [{"knob": "parallelism", "node": "map_1", "to": "2"}],
        "knobs": {"nodes": {"1": {"parallelism": {"value": "2"}}}},
    }
    return _explain.from_report(message, None, [])


@pytest.mark.parametrize(
    ("before", "after", "budget", "is_kept", "why"),
    [
        (explanation(100), explanation(150), {}, True, "less than 10 ms"),
        (explanation(100), explanation(101), {}, False, "chance"),
        (explanation(100, 20), explanation(130, 5), {}, False, "chance"),
        (explanation(100, 2), explanation(130, 2), {}, True, "+30 %"),
        (explanation(100), explanation(50), {}, False, "slower (-50 %)"),
        (explanation(100), explanation(100), {}, False, "+0 %"),
        (
            explanation(100, seconds=0.1),
            explanation(300),
            {},
            False,
            "100 ms does not tell",
        ),
        (
            explanation(100),
            explanation(300, windows=1),
            {},
            False,
            "does not tell",
        ),
        (
            explanation(100, cores=4),
            explanation(90, cores=2),
            {"cores": 2.0},
            True,
            "within its cores (-10 %)",
        ),
        (
            explanation(100, held=3e9),
            explanation(90, held=1e9),
            {"memory_bytes": 1e9},
            True,
            "within its memory",
        ),
        (
            explanation(100, cores=4),
            explanation(90, cores=4),
            {"cores": 2.0},
            False,
            "slower",
        ),
    ],
)
def test_what_is_kept(before, after, budget, is_kept, why, monkeypatch):
    runs = [before, after]
    asked = []

    def of_dataset(dataset, seconds, given, progress=None):
        asked.append((dataset._knobs, seconds, given))
        return runs[len(asked) - 1]

    monkeypatch.setattr(_explain, "of_dataset", of_dataset)
    ds = one_task()
    arguments = {
        "cpu": budget.get("cores"),
        "memory": budget.get("memory_bytes"),
    }
    made = ds.tune(**arguments, seconds=100)
    assert len(asked) == 2
    assert asked[0][0] is None
    assert asked[0][2]["ignore_pins"]
    assert asked[1][0]["nodes"]["1"]["parallelism"]["value"] == 2
    assert all(seconds <= 10 for _, seconds, _ in asked)
    (trial,) = made.explanation.tried
    assert trial.is_kept == is_kept, trial
    assert why in trial.why
    assert bool(made.diff(ds)) == is_kept
    assert (made._knobs is not None) == is_kept
    assert ds._knobs is None


# ---- Bad pipelines and budgets.


def test_pipelines_that_cannot_be_tuned():
    with pytest.raises(ps.FailedPreconditionError, match="without any"):
        ps.Dataset.range(0).tune()
    never = ps.Dataset.range(10**15).filter(lambda x: x < 0)
    with pytest.raises(ps.DeadlineExceededError):
        never.tune(seconds=0.2)


@pytest.mark.parametrize(
    ("arguments", "kind", "text"),
    [
        ({"cpu": 0}, ValueError, "cpu must be"),
        ({"memory": "0GB"}, ValueError, "memory must be"),
        ({"memory": "lots"}, ValueError, "memory must be a size"),
        ({"disk": -1}, ValueError, "disk must be"),
        ({"seconds": 0}, ValueError, "seconds must be"),
    ],
)
def test_arguments_are_checked(arguments, kind, text):
    with pytest.raises(kind, match=text) as caught:
        ps.Dataset.range(10).tune(**arguments)
    assert "test_tune.py" in str(caught.value)


@pytest.mark.parametrize("memory", [1, "2GB", 10**30])
@pytest.mark.parametrize("cpu", [0.01, 10**6])
def test_budgets(cpu, memory):
    ds = ps.Dataset.range(10**4).map(lambda x: x + 1).batch(10)
    made = ds.tune(cpu=cpu, memory=memory, disk="1GB", seconds=0.3)
    assert next(iter(made)).tolist() == list(range(1, 11))
    notes = " ".join(made.explanation.notes)
    assert ("cpu is 1e+06, and there are" in notes) == (cpu == 10**6)


def test_what_was_not_tuned(file):
    ds = ps.Dataset.range(3)
    with pytest.raises(ps.FailedPreconditionError, match=r"Use explain\(\)"):
        _ = ds.explanation
    with pytest.raises(ps.FailedPreconditionError, match="save_tuning"):
        ds.save_tuning(file)
    with pytest.raises(ps.InvalidArgumentError, match="one pipeline"):
        ds.diff(ps.Dataset.range(4))
    with pytest.raises(TypeError, match="must be given a dataset"):
        ds.diff(3)


# ---- Where the knobs go.


def test_the_engine_has_them(file):
    ds = one_task()
    assert tasks_of(ds) == 1
    assert tasks_of(tuned(ds, file)) == 2


def test_pickled(file):
    made = tuned(one_task(), file)
    for again in (
        pickle.loads(pickle.dumps(made)),
        pickle.loads(pickle.dumps(made.prefetch(2))),
    ):
        assert tasks_of(again) == 2
    old = one_task()
    state = old.__getstate__()
    del state["knobs"]  # As an earlier version wrote it.
    again = ps.Dataset.__new__(ps.Dataset)
    again.__setstate__(state)
    assert tasks_of(again) == 1


def test_in_a_new_process(file, tmp_path):
    made = tuned(ps.Dataset.range(100).map(lambda x: x + 1), file)
    (tmp_path / "ds.pickle").write_bytes(pickle.dumps(made))
    code = (
        "import pickle, sys\n"
        "ds = pickle.load(open(sys.argv[1], 'rb'))\n"
        "print(ds._knobs['nodes']['1']['parallelism']['value'], len(list(ds)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "ds.pickle"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(Path(ps.__file__).parents[1])},
    )
    assert done.stdout.split() == ["2", "100"]


def test_after_the_engine_died(file):
    made = tuned(one_task(), file)
    iterator = iter(made)
    before = [next(iterator) for _ in range(2)]
    os.kill(_engine.current().pid, signal.SIGKILL)
    after = [next(iterator) for _ in range(50)]
    assert len(before) + len(after) == 52
    e = iterator.explain()
    assert next(n.tasks for n in e.nodes if n.name == "map_1") == 2
    iterator.close()


def test_states_do_not_depend_on_them(file):
    plain = ps.Dataset.range(200).map(lambda x: x * 3).shuffle(20, seed=1)
    made = tuned(plain, file)
    for first, second in ((plain, made), (made, plain)):
        iterator = iter(first)
        for _ in range(31):
            next(iterator)
        state = iterator.state_dict()
        rest = list(iterator)
        iterator = iter(second)
        iterator.load_state_dict(state)
        assert list(iterator) == rest


def test_appended_to(file):
    made = tuned(one_task(), file)
    more = made.unbatch().take(100).batch(4).prefetch(2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert tasks_of(more.with_options(ps.Options(name="x"))) == 2


def test_the_output_is_that_of_what_was_tuned():
    knobs = {"nodes": {"0": {}}, "output_rows": {"value": 3}}
    assert _tuning.after("batch", knobs) == {"nodes": {"0": {}}}
    assert _tuning.after("with_options", knobs) == knobs
    assert _tuning.after("batch", None) is None


@pytest.mark.parametrize(
    "join",
    [
        lambda a, b: ps.Dataset.zip(a, b),
        lambda a, b: ps.Dataset.zip(b, a),
        lambda a, b: a.concatenate(b),
        lambda a, b: ps.Dataset.sample_from_datasets([b, a]),
    ],
)
def test_joined_plans_drop_them(file, join):
    a = tuned(ps.Dataset.range(9).map(lambda x: x + 1), file)
    b = ps.Dataset.range(9)
    with pytest.warns(UserWarning, match="tuned settings are dropped") as seen:
        made = join(a, b)
    assert seen[0].filename == __file__
    assert made._knobs is None
    assert list(made)


def test_the_original_stays(file):
    ds = ps.Dataset.range(30).map(lambda x: x + 1).cache()
    made = tuned(ds, file)
    assert ds._knobs is None
    assert list(made) == list(ds)
    del ds
    assert len(list(made)) == 30


# ---- Files.


def test_saved_and_loaded(file):
    ds = one_task()
    made = tuned(ds, file)
    body = json.loads(file.read_text())
    assert body["fingerprint"] == ds.fingerprint()
    assert body["machine"]["cores"] > 0
    assert _tuning.load(file) == made._tuning
    made.save_tuning(file)
    assert json.loads(file.read_text()) == body
    assert [x.name for x in file.parent.iterdir()] == [file.name]


def test_another_pipeline(file):
    ds = one_task()
    tuning(ds).save(file)
    other = ps.Dataset.range(3).map(lambda x: x + 1)
    with pytest.raises(ps.InvalidArgumentError) as caught:
        other.load_tuning(file)
    assert ds.fingerprint() in str(caught.value)
    assert other.fingerprint() in str(caught.value)


def test_another_machine(file):
    ds = one_task()
    cores, memory = _tuning.machine()
    with pytest.warns(UserWarning, match="was made with") as seen:
        made = tuned(ds, file, tasks=16, cores=8 * cores)
    assert seen[0].filename == __file__
    assert made._knobs["nodes"]["1"]["parallelism"]["value"] == 2
    with pytest.warns(UserWarning, match="was made with"):
        made = tuned(ds, file, tasks=1, cores=cores, memory=memory * 4)
    assert made._knobs["nodes"]["1"]["parallelism"]["value"] == 1
    tuning(ds, memory=memory * 8, needs_bytes=memory * 4).save(file)
    with pytest.raises(ps.ResourceExhaustedError, match="Tune again"):
        ds.load_tuning(file)


def test_a_file_cut_anywhere(file):
    ds = one_task()
    tuning(ds).save(file)
    data = file.read_bytes()
    for end in {0, 1, 2, len(data) // 3, len(data) // 2, len(data) - 3}:
        file.write_bytes(data[:end])
        with pytest.raises(ps.DataLossError, match="save_tuning"):
            ds.load_tuning(file)


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "another"},
        {"fingerprint": 3},
        {"knobs": None},
        {"knobs": {"nodes": {"x": {}}}},
        {"knobs": {"nodes": {"-1": {}}}},
        {"knobs": {"nodes": {"99999999": {}}}},
        {"knobs": {"nodes": {"1": {"parallelism": {"value": 0}}}}},
        {"knobs": {"nodes": {"1": {"parallelism": {"value": 10**9}}}}},
        {"knobs": {"nodes": {"1": {"parallelism": 2}}}},
        {"knobs": {"nodes": {}, "output_rows": {"value": -1}}},
        {"settings": [{}]},
        {"settings": [3]},
        {"settings": None},
        {"machine": {}},
        {"machine": {"cores": "two", "memory_bytes": 1}},
        {"rate": True},
        {"needs_bytes": float("inf")},
    ],
)
def test_files_that_say_nonsense(file, change):
    ds = one_task()
    tuning(ds).save(file)
    file.write_text(json.dumps({**json.loads(file.read_text()), **change}))
    with pytest.raises(ps.DataLossError):
        ds.load_tuning(file)


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("", ps.DataLossError, "no JSON"),
        ("not JSON", ps.DataLossError, "no JSON"),
        ("[1, 2]", ps.DataLossError, "another kind"),
        ("[" * 100_000, ps.DataLossError, "no JSON"),
        ('{"kind": "penstock tuning", "version": 9}', ValueError, "version 2"),
    ],
)
def test_other_files(file, text, kind, message):
    file.write_text(text)
    with pytest.raises(kind, match=message):
        ps.Dataset.range(3).load_tuning(file)


def test_files_that_are_not_there(tmp_path):
    ds = ps.Dataset.range(3)
    with pytest.raises(FileNotFoundError, match="there is no file"):
        ds.load_tuning(tmp_path / "nothing.json")
    with pytest.raises(ValueError, match="cannot read"):
        ds.load_tuning(tmp_path)
    made = _measuring.with_tuning(ds, tuning(ds), None)
    with pytest.raises(FileNotFoundError, match="no directory"):
        made.save_tuning(tmp_path / "nothing" / "tuned.json")
    (tmp_path / "taken").mkdir()
    with pytest.raises(ValueError, match="cannot save"):
        made.save_tuning(tmp_path / "taken")
    assert os.listdir(tmp_path) == ["taken"]


def test_knobs_that_the_engine_does_not_obey_are_left_out():
    cache = {"tier": "MEMORY", "fraction": 1.0, "max_bytes": 9}
    knobs = {"nodes": {"1": {"cache": cache, "turbo": {"value": 3}}}}
    kept = {**cache, "chosen_by": "TUNER"}
    assert _tuning.of_engine(knobs) == {"nodes": {"1": {"cache": kept}}}


# ---- The command.


def test_command(tmp_path):
    path = tmp_path / "pipeline.py"
    path.write_text(
        "import penstock as ps\n"
        "ds = ps.Dataset.range(10**8).map(lambda x: x + 1).batch(100)\n"
    )
    written = tmp_path / "tuned.json"
    done = subprocess.run(
        [sys.executable, "-m", "penstock.tune", f"{path}:ds", "--seconds",
         "0.5", "--cpu", "100000", "--memory", "1GiB", "--write", str(written)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": str(Path(ps.__file__).parents[1])},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "bound: " in done.stdout
    assert "note: cpu is 100000, and there are" in done.stdout
    assert _tuning.load(written).fingerprint
    assert "\x1b" not in done.stdout + done.stderr


def test_diff_is_data():
    setting = explanation(1).settings[0]
    diff = ps.TuningDiff([setting])
    assert dataclasses.asdict(diff[0])["after"] == 2
    assert str(diff).startswith("map_1: parallelism its own -> 2")
    assert str(ps.TuningDiff()) == "nothing changed"


@pytest.fixture(scope="module")
def seen():
    e = ps.Dataset.range(10**6).batch(10).explain(seconds=0.5)
    return dataclasses.replace(e, seconds=5.0, windows=50, settings=())


class TestJudging:
    """Which of two runs is better, by what was seen of them."""

    def run(self, seen, rates, error, settings=()):
        moments = tuple(
            _report.Moment(i * 0.1, (i + 1) * 0.1, rate, 1.0, None)
            for i, rate in enumerate(rates)
        )
        mean = sum(rates) / len(rates)
        return dataclasses.replace(
            seen,
            rate=mean,
            rate_error=error * mean,
            timeline=moments,
            settings=settings,
        )

    def fewer(self, before, after):
        return (
            _report.Setting(
                "parallelism", "map_1", before, after, "", False, ""
            ),
        )

    def test_a_clear_gain(self, seen):
        before = self.run(seen, [100.0] * 50, 0.01)
        after = self.run(seen, [120.0] * 50, 0.01)
        is_kept, why = _measuring._judge(before, after, {})
        assert is_kept
        assert why.startswith("+20 %, ")
        is_kept, why = _measuring._judge(after, before, {})
        assert not is_kept
        assert "slower" in why

    def test_a_gain_far_beyond_an_error_as_large(self, seen):
        before = self.run(seen, [100.0] * 8, 0.1)
        after = self.run(seen, [10_000.0] * 8, 0.6)
        assert _measuring._judge(before, after, {})[0]

    def test_bursts_are_no_doubt(self, seen):
        """Four windows without an element, then all of them."""
        before = self.run(seen, [100.0] * 50, 0.02)
        after = self.run(seen, [0, 0, 0, 0, 750.0] * 10, 0.3)
        assert _measuring._judge(before, after, {})[0]

    def test_chance(self, seen):
        before = self.run(seen, [90.0, 110.0] * 4, 0.05)
        after = self.run(seen, [95.0, 115.0] * 4, 0.05)
        is_kept, why = _measuring._judge(before, after, {})
        assert not is_kept
        assert "chance" in why

    def test_fewer_tasks_for_the_same(self, seen):
        before = self.run(seen, [100.0] * 50, 0.01, self.fewer(64, 2))
        after = self.run(seen, [99.0] * 50, 0.01)
        is_kept, why = _measuring._judge(before, after, {})
        assert is_kept
        assert "2 tasks do what 64 did" in why

    def test_not_fewer_tasks_for_less(self, seen):
        before = self.run(seen, [100.0] * 50, 0.01, self.fewer(64, 2))
        after = self.run(seen, [90.0] * 50, 0.01)
        assert not _measuring._judge(before, after, {})[0]

    def test_not_more_tasks_for_the_same(self, seen):
        before = self.run(seen, [100.0] * 50, 0.01, self.fewer(2, 4))
        after = self.run(seen, [100.5] * 50, 0.01)
        assert not _measuring._judge(before, after, {})[0]
