"""Rewrites through tune(): what is run is another plan, and nobody can tell."""

import copy
import json
import os
import pickle
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from rewritable import (
    PASSES,
    PIPELINES,
    PROFITING,
    STEPS,
    after,
    filtered,
    names,
    numbers,
    pairs,
    plain,
    rest,
    resumed,
    rows,
    seldom,
)

import penstock as ps
from penstock import _engine, _measuring, _rewrites
from penstock._connection import Start
from penstock._iterator import Iterator


@pytest.fixture
def kept(monkeypatch):
    """Whatever is tried is kept: rates of short runs tell nothing."""
    monkeypatch.setattr(_measuring, "_judge", lambda *_: (True, "+100 %"))


@pytest.fixture
def file(tmp_path):
    return tmp_path / "tuned.json"


# ---- Each pass.


@pytest.mark.parametrize("name", PASSES)
def test_each_pass(name, kept):
    make = PROFITING[name]
    ds = make(200)
    made = ds.tune(seconds=0.3, rewrites=[name])
    e = made.explanation
    applied = [x for x in e.rewrites if x.is_applied]
    assert {x.name for x in applied} == {name}, str(e)
    assert all("rewritable.py:" in at for x in applied for at in x.made_at)
    (trial,) = e.tried
    assert name in trial.what
    assert trial.predicted.low <= trial.predicted.middle
    assert trial.predicted.middle > 0
    assert trial.seen > 0
    assert made._rewriting["passes"] == [name]
    assert after(made, 0)[0]["fingerprint"] != ds.fingerprint()
    assert rows(made) == rows(ds)
    assert made.diff(ds).rewrites == tuple(applied)
    assert made.diff(ds)
    assert made.fingerprint() == ds.fingerprint()
    assert str(applied[0]) in str(made.diff(ds))


def test_a_filter_that_goes_first_is_faster():
    """99 elements of 100 are not computed: nothing else explains it."""
    ds = seldom()
    made = ds.tune(seconds=2, rewrites=["push_filter"])
    (trial,) = made.explanation.tried
    assert trial.predicted.middle > 2 * made.explanation.rate
    assert trial.seen > 2 * made.explanation.rate
    if trial.is_kept:  # Unless others had the cores now and then.
        assert names(made)[:3] == ["range_0", "enumerate_1", "filter_3"]
    it, other = iter(made), iter(ds)
    for _ in range(5):
        assert plain(next(it)) == plain(next(other))


def test_what_precludes_a_better_cache_is_not_rewritten():
    """Shuffled first, no row would come where it came before."""
    ds = (
        ps.Dataset.range(200)
        .map(lambda x: ps.exp(ps.sin(ps.zeros((50_000,)) + x)))
        .shuffle(200)
        .map(lambda y: y + ps.random_uniform())
        .batch(10)
        .repeat()
    )
    found = ds.tune(seconds=1.5, memory="1GB").explanation
    assert [s.node for s in found.settings if s.knob == "cache"] == ["map_1"]
    shuffled = [r for r in found.rewrites if r.name == "shuffle_before_decode"]
    assert [r.is_applied for r in shuffled] == [False]
    assert "could not be kept" in shuffled[0].why
    rewrites = ds.tune(seconds=1.5).explanation.rewrites
    assert any(r.name == shuffled[0].name and r.is_applied for r in rewrites)


# ---- Nobody can tell.


@pytest.mark.parametrize("name", PIPELINES)
def test_rows_stay_the_same(name, kept):
    ds = PIPELINES[name](150)
    made = ds.tune(seconds=3 if name == "python" else 0.3)
    if name == "nothing_to_do":
        assert made._rewriting is None
    else:
        assert made._rewriting is not None, str(made.explanation)
        assert any(x.is_applied for x in made.explanation.rewrites)
    for epoch in (0, 3):
        assert rows(made, epoch) == rows(ds, epoch)
    assert made.element_spec == ds.element_spec
    # A run that goes on, in the same engine and as another dataset.
    again = pickle.loads(pickle.dumps(made))
    if name != "errors":
        state, expected = after(made, 3)
        assert resumed(made, state) == expected
        assert resumed(again, state) == expected
        assert resumed(ds, state) == expected
        state, expected = after(ds, 3)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert resumed(made, state) == expected


@pytest.mark.parametrize("name", PIPELINES)
def test_what_is_appended_runs_on_top(name, kept):
    ds = PIPELINES[name](150)
    made = ds.tune(seconds=3 if name == "python" else 0.3)

    def more(source):
        return (
            source.shuffle(7, seed=3)
            .enumerate()
            .with_options(ps.Options(name="x"))
            .flat_map(lambda i, *x: ps.Dataset.range(i % 3))
            .map(lambda x: x + ps.random_int((), 0, 99, seed=5))
            .prefetch(2)
        )

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        longer, expected = more(made), more(ds)
    assert longer._rewriting == made._rewriting
    assert rows(longer) == rows(expected)
    assert longer.fingerprint() == expected.fingerprint()
    # Unless a batch is gone: what is random notices which rows were in one.
    is_noticed = name in (
        "profits_by_drop_no_ops",
        "profits_by_vectorize_pairs",
    )
    if not is_noticed:
        assert set(names(longer)) >= set(names(made))
        state = after(longer, 0)[0]
        is_other = state["fingerprint"] != expected.fingerprint()
        assert is_other == (made._rewriting is not None)
    if name != "errors":
        state, left = after(longer, 2)
        assert resumed(longer, state) == left
        assert resumed(pickle.loads(pickle.dumps(longer)), state) == left


@pytest.mark.parametrize("seed", range(60))
def test_any_pipeline_cut_anywhere(seed):
    """The first steps are rewritten, those after them appended."""
    random = np.random.default_rng(seed)
    steps = [STEPS[i] for i in random.integers(len(STEPS), size=7)]
    cut = int(random.integers(2, 8))
    plain_one = pairs(40)
    for step in steps[:cut]:
        plain_one = step(plain_one)
    found = _engine.call("rewrite", {"plan": plain_one._plan}).get("rewriting")
    rewritten = copy.copy(plain_one)
    if found is not None:
        rewritten._rewriting = _rewrites.checked(found)
    for step in steps[cut:]:
        plain_one, rewritten = step(plain_one), step(rewritten)
    for epoch in (0, 2):
        assert _values(rewritten, epoch) == _values(plain_one, epoch)


def _values(ds, epoch):
    """Its rows, seeded: two datasets draw their own seeds."""
    iterator = Iterator(ds, Start(epoch, 7))
    found = rest(iterator)
    iterator = Iterator(ds, Start(epoch, 7))
    for _ in range(3):
        try:
            next(iterator)
        except (StopIteration, ps.PenstockError):
            continue
    again = Iterator(ds, Start(epoch, 7))
    again.load_state_dict(json.loads(json.dumps(iterator.state_dict())))
    assert rest(again) == found[3:]
    return found


def test_epochs_are_counted_together(kept):
    ds = numbers(50).skip(0).shuffle(50)
    made = ds.tune(seconds=0.3)
    assert made._rewriting is not None
    epochs = [rest(iter(each)) for each in (made, ds, made)]
    assert len({tuple(epoch) for epoch in epochs}) == 3
    assert epochs == [rows(ds, epoch) for epoch in range(3)]


# ---- States.


def test_states_say_what_they_are_of(kept):
    ds = filtered()
    made = ds.tune(seconds=0.3)
    state, expected = after(made, 2)
    assert state["rewriting"] == made._rewriting
    assert "rewriting" not in after(ds, 2)[0]
    assert state["fingerprint"] == made._rewriting["fingerprint"]
    # On the tuned dataset, without a word; on the plain one, as it was begun.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert resumed(made, state) == expected
        iterator = iter(ds)
        iterator.load_state_dict(state)
    assert iterator.state_dict()["rewriting"] == made._rewriting
    assert rest(iterator) == expected


def test_a_state_from_before_goes_on_as_written(kept):
    ds = filtered()
    made = ds.tune(seconds=0.3)
    state, expected = after(ds, 2)
    iterator = iter(made)
    with pytest.warns(
        UserWarning, match="saved by the pipeline as it was writ"
    ):
        iterator.load_state_dict(state)
    assert [n.name for n in iterator.stats().nodes] == names(ds)
    assert rest(iterator) == expected
    other = ds.tune(seconds=0.3, rewrites=["drop_no_ops", "fuse_maps"])
    assert other._rewriting is None
    assert names(iter(made)._dataset) == names(made)


def test_a_state_of_another_way_of_rewriting(kept):
    ds = filtered().skip(0)
    one = ds.tune(seconds=0.3, rewrites=["push_filter"])
    two = ds.tune(seconds=0.3, rewrites=["drop_no_ops"])
    state, expected = after(one, 2)
    with pytest.warns(UserWarning, match="rewritten in another way"):
        assert resumed(two, state) == expected


def test_states_that_do_not_fit(kept):
    made = filtered().tune(seconds=0.3)
    state, _ = after(made, 2)
    other = numbers().map(lambda x: x + 1).batch(3)
    with pytest.raises(ps.InvalidArgumentError, match="of this pipeline"):
        iter(other).load_state_dict(state)
    for damage in (
        {"rewriting": {**state["rewriting"], "passes": ["fuse_maps"]}},
        {"rewriting": {**state["rewriting"], "nodes": 2}},
        {"rewriting": "all"},
        {"rewriting": None},
        {"rewriting": {}},
    ):
        with pytest.raises(ps.DataLossError):
            iter(made).load_state_dict({**state, **damage})
    iterator = iter(made)
    with pytest.raises(ps.DataLossError):
        iterator.load_state_dict({**state, "rewriting": []})
    assert rest(iterator) == rows(made)  # Nothing has happened to it.


def test_after_the_engine_died(kept):
    ds = filtered()
    made = ds.tune(seconds=0.3)
    iterator = iter(made)
    found = [plain(next(iterator))]
    os.kill(_engine.current().pid, signal.SIGKILL)
    assert found + rest(iterator) == rows(ds)


# ---- In other places.


def test_in_a_new_process(kept, tmp_path):
    made = filtered().tune(seconds=0.3).unbatch()
    (tmp_path / "ds.pickle").write_bytes(pickle.dumps(made))
    state, expected = after(made, 3)
    (tmp_path / "state.json").write_text(json.dumps(state))
    code = (
        "import json, pickle, sys\n"
        "ds = pickle.load(open(sys.argv[1], 'rb'))\n"
        "it = iter(ds)\n"
        "it.load_state_dict(json.load(open(sys.argv[2])))\n"
        "print(it.stats().nodes[2].name, [int(i) for i, y in it])"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, tmp_path / "ds.pickle",
         tmp_path / "state.json"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(Path(ps.__file__).parents[1])},
    )  # fmt: skip
    assert done.stdout == f"filter_3 {[int(i) for i, _ in expected]}\n"


def test_joined_plans_drop_them(kept):
    ds = filtered()
    made = ds.tune(seconds=0.3, rewrites=["push_filter"])
    made._knobs = None
    with pytest.warns(UserWarning, match="tuned settings are dropped"):
        both = ps.Dataset.zip(made, numbers())
    assert both._rewriting is None
    assert rows(both) == rows(ps.Dataset.zip(ds, numbers()))


def test_python_functions_on_top(kept):
    made = filtered().tune(seconds=0.3)

    def half(i, y):
        return i // 2 if i > 3 else i

    assert rows(made.unbatch().map(half)) == rows(
        filtered().unbatch().map(half)
    )


# ---- Without tune().


@pytest.mark.parametrize("name", PIPELINES)
def test_iterators_rewrite_where_they_may(name):
    ds = PIPELINES[name](150)
    asked = ds.with_options(ps.Options(rewrite=True))
    assert asked.fingerprint() == ds.fingerprint()
    assert rows(asked) == rows(ds)
    with ps.Options(rewrite=True):
        assert rows(ds) == rows(asked)
    if name == "errors":
        return
    state, left = after(asked, 3)
    assert ("rewriting" in state) == (name != "nothing_to_do")
    for each in (asked, ds, pickle.loads(pickle.dumps(asked))):
        assert resumed(each, state) == left
    state, left = after(ds, 3)
    assert "rewriting" not in state
    assert resumed(asked, state) == left
    # What is nearer to the end of a pipeline says it.
    off = asked.with_options(ps.Options(rewrite=False))
    assert "rewriting" not in iter(off).state_dict()


def test_iterators_that_rewrote_outlive_the_engine():
    ds = filtered().with_options(ps.Options(rewrite=True))
    iterator = iter(ds)
    found = [plain(next(iterator))]
    os.kill(_engine.current().pid, signal.SIGKILL)
    assert found + rest(iterator) == rows(filtered())
    assert iterator.state_dict()["rewriting"]["passes"] == ["push_filter"]


def test_knobs_are_of_the_plan_as_it_is(kept, file):
    ds = filtered().with_options(ps.Options(rewrite=True))
    made = copy.copy(ds)
    made._knobs = {"nodes": {"2": {"parallelism": {"value": 2}}}}
    assert "rewriting" not in iter(made).state_dict()
    assert rows(made) == rows(ds)
    # As it was measured: the option is not tune()'s to change.
    made = ds.tune(seconds=0.3, rewrites=False)
    assert made._rewriting["passes"] == ["push_filter"]
    assert rows(made) == rows(ds)
    made = ds.tune(seconds=0.3)
    assert made._rewriting["passes"] == ["push_filter"]
    assert rows(made) == rows(ds)


def test_the_option_is_checked():
    ds = numbers().with_options(ps.Options(rewrite=True))
    assert "rewrite=True" in ds.describe()
    with pytest.raises(TypeError, match="rewrite must be a bool"):
        numbers().with_options(ps.Options(rewrite="all"))
