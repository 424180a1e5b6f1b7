"""Rewrites: where they are kept, how they are switched off, what is shown."""

import copy
import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from rewritable import (
    PASSES,
    PIPELINES,
    PROFITING,
    TABLE,
    after,
    crawled,
    filtered,
    names,
    numbers,
    pairs,
    resumed,
    rows,
    seldom,
)

import penstock as ps
from penstock import _measuring, _rewrites, _tuning

ONES = np.ones(5000, np.float32)


@pytest.fixture
def kept(monkeypatch):
    """Whatever is tried is kept: rates of short runs tell nothing."""
    monkeypatch.setattr(_measuring, "_judge", lambda *_: (True, "+100 %"))


@pytest.fixture
def file(tmp_path):
    return tmp_path / "tuned.json"


# ---- Files.


def test_saved_and_loaded(kept, file):
    ds = PROFITING["shuffle_before_decode"](200)
    made = ds.tune(seconds=0.3)
    made.save_tuning(file)
    again = ds.load_tuning(file)
    assert again._rewriting == made._rewriting
    assert again._knobs == made._knobs
    assert again.diff(ds) == made.diff(ds)
    assert again.diff(ds).rewrites == made.diff(ds).rewrites
    assert again.fingerprint() == ds.fingerprint()
    assert names(again) == names(made)
    assert rows(again) == rows(ds)
    body = json.loads(file.read_text())
    assert body["rewriting"]["passes"]
    assert body["fingerprint"] == ds.fingerprint()
    state, expected = after(made, 3)
    assert resumed(again, state) == expected
    again.save_tuning(file)
    assert json.loads(file.read_text()) == body


def test_sizes_that_were_measured_are_saved(kept, file):
    """How long text is, only a run tells."""
    ds = PIPELINES["text"](100)
    made = ds.tune(seconds=0.3)
    assert "shuffle_before_decode" in made._rewriting["passes"]
    assert made._rewriting["measured"]
    made.save_tuning(file)
    again = ds.load_tuning(file)
    assert names(again) == names(made)
    assert rows(again) == rows(ds)


def test_a_file_of_another_version(kept, file):
    ds = filtered()
    ds.tune(seconds=0.3).save_tuning(file)
    body = json.loads(file.read_text())
    body["rewriting"]["fingerprint"] = "0" * 32
    file.write_text(json.dumps(body))
    with pytest.warns(UserWarning, match="of another version of penstock"):
        again = ds.load_tuning(file)
    assert again._rewriting is None and again._knobs is None
    # One that was there before: it runs as it was written, and says so.
    again = copy.copy(ds)
    again._rewriting = body["rewriting"]
    again._knobs = {"nodes": {"99": {"buffer_rows": {"value": 3}}}}
    assert rows(again) == rows(ds)


@pytest.mark.parametrize(
    "change",
    [
        3,
        {"passes": []},
        {"passes": "push_filter"},
        {"passes": [3]},
        {"nodes": 0},
        {"nodes": 10**9},
        {"nodes": None},
        {"fingerprint": 3},
        {"measured": 3},
        {"measured": {"x": 3}},
        {"measured": {"x": {"rows": "many"}}},
        {"measured": {"x": {"rows": -1}}},
    ],
)
def test_files_that_say_nonsense(kept, file, change):
    ds = filtered()
    ds.tune(seconds=0.3).save_tuning(file)
    body = json.loads(file.read_text())
    if isinstance(change, dict):
        body["rewriting"].update(change)
    else:
        body["rewriting"] = change
    file.write_text(json.dumps(body))
    if change == {"passes": "push_filter"}:  # Eleven passes of one letter.
        with pytest.warns(UserWarning, match="must be one of"):
            assert ds.load_tuning(file)._rewriting is None
        return
    with pytest.raises(ps.DataLossError):
        ds.load_tuning(file)


def test_files_without_rewrites_are_read(file):
    ds = filtered()
    body = {
        "kind": "penstock tuning",
        "version": 1,
        "fingerprint": ds.fingerprint(),
        "machine": dict(
            zip(("cores", "memory_bytes"), _tuning.machine(), strict=True)
        ),
        "needs_bytes": 1,
        "rate_before": 1,
        "rate": 2,
        "knobs": {"nodes": {}},
        "settings": [],
    }
    file.write_text(json.dumps(body))
    assert ds.load_tuning(file)._rewriting is None


# ---- Switches.


def test_switches(kept):
    ds = filtered().skip(0)
    assert ds.tune(seconds=0.3, rewrites=False)._rewriting is None
    assert ds.tune(seconds=0.3, rewrites=[])._rewriting is None
    made = ds.tune(seconds=0.3, rewrites=("drop_no_ops",))
    assert made._rewriting["passes"] == ["drop_no_ops"]
    made = ds.tune(seconds=0.3)
    assert made._rewriting["passes"] == ["drop_no_ops", "push_filter"]
    assert [name for name, _ in _rewrites.passes()] == PASSES


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        (["turbo"], ps.InvalidArgumentError),
        ([3], ps.InvalidArgumentError),
        ("push_filter", TypeError),
        (3, TypeError),
        (None, TypeError),
    ],
)
def test_unknown_names(given, kind):
    with pytest.raises(kind, match="rewrites must be") as caught:
        numbers().tune(rewrites=given)
    assert "test_rewrites_kept.py" in str(caught.value)
    if kind is ps.InvalidArgumentError:
        assert ", ".join(PASSES) in str(caught.value)


def test_errors_are_hidden_only_where_that_is_allowed(kept):
    ds = (
        pairs(100)
        .map(lambda i, x: (i, ps.take(TABLE, x)))
        .filter(lambda i, x: i < 50)
    )
    made = ds.tune(seconds=0.3)
    assert made._rewriting is None
    (remark,) = made.explanation.rewrites
    assert not remark.is_applied
    assert "may_hide_errors" in remark.why
    assert "times less often" in remark.why
    assert "not rewritten" in str(made.explanation)
    assert len(rows(ds)) == 100
    made = ds.tune(seconds=0.3, may_hide_errors=True)
    assert made._rewriting["may_hide_errors"]
    assert rows(made) == rows(ds.ignore_errors())
    # Not for ever.
    again = made.tune(seconds=0.3)
    assert again._rewriting is None
    assert rows(again) == rows(ds)


def test_a_filter_that_needs_a_part_of_a_map_goes_before_it(kept):
    ds = crawled(10**8)
    e = ds.explain(seconds=1)
    (refused,) = (x for x in e.rewrites if x.name == "push_filter")
    assert "map_1 may fail" in refused.why
    fix = next(fix for fix in e.fixes if "may_hide_errors" in fix.why)
    assert fix.needs_the_user
    assert "push_filter: map_1 (" in fix.title
    assert fix.expected.middle > 2 * e.expected.middle
    made = ds.tune(seconds=1, may_hide_errors=True)
    order = names(made)
    assert order.index("filter_3") < order.index("map_1")
    assert rows(made.take(50)) == rows(ds.take(50))


@pytest.mark.parametrize("items", [2, 2000])
def test_a_call_that_makes_much_is_no_small_part(items):
    schema = {"label": ps.int64, "many": ps.TensorSpec((items,), ps.float32)}
    texts = [
        json.dumps({"label": i, "many": [0.5] * items}) for i in range(100)
    ]

    def parsed(text):
        read = ps.io.decode_json(text, schema)
        return {**read, "more": ps.exp(ps.sum(read["many"]) * ONES)}

    ds = ps.Dataset.from_list(texts).repeat().map(parsed)
    e = ds.filter(lambda x: x["label"] % 20 == 0).explain(seconds=0.5)
    fixes = [fix for fix in e.fixes if "push_filter" in fix.title]
    assert bool(fixes) == (items == 2)


def test_tuned_again(kept):
    ds = filtered()
    once = ds.tune(seconds=0.3)
    twice = once.tune(seconds=0.3)
    assert twice._rewriting == once._rewriting
    assert rows(twice) == rows(ds)
    assert twice.fingerprint() == ds.fingerprint()
    plain_again = once.tune(seconds=0.3, rewrites=False)
    assert plain_again._rewriting is None
    assert names(plain_again) == names(ds)
    longer = once.unbatch().batch(3).skip(0)
    more = longer.tune(seconds=0.3)
    assert more._rewriting["nodes"] > once._rewriting["nodes"]
    assert rows(more) == rows(ds.unbatch().batch(3))


def test_what_is_not_kept(monkeypatch):
    monkeypatch.setattr(_measuring, "_judge", lambda *_: (False, "no"))
    ds = filtered()
    made = ds.tune(seconds=0.3)
    assert made._rewriting is None and made._knobs is None
    assert not made.diff(ds)
    assert [x for x in made.explanation.rewrites if x.is_applied]
    assert made.explanation.tried[0].what.startswith("push_filter of ")
    # What was kept earlier stays.
    monkeypatch.setattr(_measuring, "_judge", lambda *_: (True, "yes"))
    kept_one = ds.tune(seconds=0.3)
    monkeypatch.setattr(_measuring, "_judge", lambda *_: (False, "no"))
    again = kept_one.tune(seconds=0.3)
    assert again._rewriting == kept_one._rewriting
    assert again._knobs == kept_one._knobs


# ---- What is shown.


def test_reports(kept):
    made = filtered().tune(seconds=0.3)
    e = made.explanation
    (rewrite,) = e.rewrites
    assert (rewrite.name, rewrite.nodes) == (
        "push_filter",
        ("map_2", "filter_3"),
    )
    assert "\nrewritten\n" in str(e)
    assert "push_filter: map_2 (" in str(e)
    assert "<h3>Rewritten</h3>" in e._repr_html_()
    body = json.loads(json.dumps(e.to_json()))
    assert body["rewrites"][0]["name"] == "push_filter"
    assert body["rewrites"][0]["is_applied"] is True


def test_explain_says_what_they_would_bring():
    e = seldom().explain(seconds=1)
    fix = next(fix for fix in e.fixes if "rewrite it" in fix.title)
    assert "push_filter: map_2 (" in fix.title
    assert "tune() does it" in fix.why
    assert fix.expected.middle > e.expected.middle
    assert e.rewrites == ()
    assert "rewrite it" in str(e)
    assert "rewrite it" in e._repr_html_()
    ds = numbers(10**8).batch(100)
    e = ds.explain(seconds=0.3)
    assert not any("rewrite" in fix.title for fix in e.fixes)
    may_fail = (
        pairs(10**8)
        .map(lambda i, x: (i, ps.take(TABLE, x % 50)))
        .filter(lambda i, x: i < 50)
        .repeat()
    )
    e = may_fail.explain(seconds=0.3)
    assert [x.name for x in e.rewrites] == ["push_filter"]
    assert "\nnot rewritten\n" in str(e)


def test_holding_less_is_enough():
    e = filtered().explain(seconds=0.3)
    before, same, slower = (
        dataclasses.replace(
            e, rate=rate, rate_error=10.0, seconds=2.0, windows=20, settings=()
        )
        for rate in (100.0, 98.0, 90.0)
    )
    judge = _measuring._judge
    assert judge(before, same, {}, True) == (
        True,
        "as fast (-2 %), and it holds less",
    )
    assert not judge(before, same, {}, False)[0]
    assert not judge(before, slower, {}, True)[0]


def run(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "penstock.tune", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": str(Path(ps.__file__).parents[1])},
    )


def test_the_command_lists_them():
    done = run("--list-rewrites")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines] == PASSES
    assert all(line.endswith(".") for line in lines)


def test_the_command(tmp_path):
    path = tmp_path / "pipeline.py"
    path.write_text(
        "import penstock as ps\n"
        "ds = (ps.Dataset.range(10**8).enumerate()\n"
        "      .map(lambda i, x: (i, ps.exp(ps.cast(x, ps.float32))))\n"
        "      .filter(lambda i, x: i % 100 == 0).skip(0).batch(10))\n"
    )
    target = [f"{path}:ds", "--seconds", "0.5", "--json"]
    done = run(*target, "--without", "push_filter")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["explanation"]["rewrites"]
    assert [x["name"] for x in found if x["is_applied"]] == ["drop_no_ops"]
    done = run(*target, "--no-rewrites")
    assert json.loads(done.stdout)["explanation"]["rewrites"] == []
    done = run(*target, "--without", "turbo")
    assert done.returncode == 2
    assert "drop_no_ops, push_filter" in done.stderr
