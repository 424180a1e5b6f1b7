"""Explanations: which wall is named, and what they look like."""

import json
import os
import re
import signal
import sys
import time
import xml.etree.ElementTree
from html.parser import HTMLParser

import numpy as np
import pytest

import penstock as ps
from penstock import (
    _engine,
    _explain,
    _report,
    _report_html,
    _report_text,
    _tracing,
)

SPEC = ps.TensorSpec((), ps.int64)


def work(x):
    """Native, and a good part of a millisecond."""
    y = ps.cast(x, ps.float32) + ps.zeros((20_000,))
    for _ in range(5):
        y = ps.exp(ps.sin(y))
    return y


def sleeps(x):
    time.sleep(0.01)
    return x


def one_task():
    return ps.Dataset.range(10**7).map(work, num_parallel_calls=1).batch(8)


@pytest.fixture(scope="module")
def explained(tmp_path_factory):
    """An explanation of a map with one task, and its trace."""
    path = tmp_path_factory.mktemp("trace") / "t.bin"
    return one_task().explain(seconds=1.5, trace=path), path


# ---- What to do.


@pytest.mark.parametrize("is_pure", [False, True])
def test_python_that_may_be_kept(is_pure):
    """Whether it may, only the user knows, unless it was said."""
    function = ps.python_function(sleeps, output_signature=SPEC, pure=is_pure)
    ds = ps.Dataset.range(50).map(function).batch(5).repeat()
    e = ds.explain(seconds=1.5)
    advice = [fix.title for fix in e.fixes if "pure=True" in fix.title]
    if is_pure:
        assert advice == []
    else:
        (title,) = advice
        assert "map_1" in title and ".cache()" in title
        assert e.fixes[0].title == title


def test_python_that_draws_is_not_to_be_kept():
    def draws(x, rng):
        time.sleep(0.01)
        return x + rng.integers(10)

    function = ps.python_function(draws, output_signature=SPEC, rng=True)
    ds = ps.Dataset.range(50).map(function).batch(5).repeat()
    e = ds.explain(seconds=1.5)
    assert not any("pure=True" in fix.title for fix in e.fixes)


# ---- Which wall.


def test_a_map_of_one_task(explained):
    e, _ = explained
    assert e.is_input_bound
    assert e.wall.node == "map_1"
    assert e.wall.kind in ("tasks", "inline nodes")
    if e.cores >= 2:
        first = e.fixes[0]
        assert re.search(r"set num_parallel_calls=\d+ of map_1", first.title)
        assert re.search(
            r"at .*test_explain\.py:\d+ \(you set 1\)", first.title
        )
        assert first.needs_the_user
        assert first.expected.middle > 1.05 * e.possible.middle
    costliest = e.nodes[0]
    assert costliest.name == "map_1"
    assert costliest.cpu_share > 0.5
    assert costliest.visits == pytest.approx(8, rel=0.5)
    assert "test_explain.py" in costliest.made_at


def test_a_sequential_scan():
    ds = ps.Dataset.range(10**9).scan(np.int64(0), lambda s, x: (s + x, s))
    e = ds.batch(1000).explain(seconds=1)
    assert e.is_input_bound
    assert e.wall.node == "scan_1"
    assert e.wall.kind in ("sequential node", "inline nodes")


def test_a_python_function_that_sleeps():
    function = ps.python_function(sleeps, output_signature=SPEC)
    e = ps.Dataset.range(800).map(function).batch(4).explain(seconds=30)
    assert e.is_input_bound
    assert e.wall.node == "map_1"
    assert e.nodes[0].is_python or any(n.is_python for n in e.nodes)
    assert e.used_cores < 0.9 * e.cores


def test_a_slow_consumer():
    with iter(ps.Dataset.range(10**9).batch(200_000)) as iterator:
        for _ in range(15):
            next(iterator)
            time.sleep(0.03)
        first = iterator.explain()
        for _ in range(15):
            next(iterator)
            time.sleep(0.03)
        second = iterator.explain()
    for e in (first, second):
        assert not e.is_input_bound
        assert e.wall.kind == "consumer"
        assert e.verdict.startswith("consumer-bound")
        assert e.consumer.wait_share < 0.5
    # What was measured outlives the iterator.
    faster = second.what_if(consumer=2)
    assert faster.rate.middle > second.rate


def test_filling_a_shuffle_is_no_waiting():
    def work(x):
        y = ps.cast(x, ps.float32) + ps.zeros((20_000,))
        for _ in range(5):
            y = ps.exp(ps.sin(y))
        return y[:1]

    ds = ps.Dataset.range(10**9).map(work).shuffle(2000).batch(4)
    with iter(ds) as iterator:
        begin = time.monotonic()
        next(iterator)
        filled = time.monotonic()
        # For as long again, so that half of the time was the filling.
        while time.monotonic() < filled + max(1.0, filled - begin):
            next(iterator)
            time.sleep(0.03)
        e = iterator.explain()
    assert e.consumer.wait_share < 0.25
    assert e.verdict.startswith("consumer-bound")


def test_a_consumer_that_stops_reading():
    with iter(ps.Dataset.range(10**9).batch(200_000)) as iterator:
        next(iterator)
        iterator.explain()
        time.sleep(0.5)
        e = iterator.explain()
        assert e.rate >= 0
        assert e.verdict
        assert iterator.explain().verdict


# ---- What the explanation is.


def test_values(explained):
    e, _ = explained
    assert e.possible.low <= e.possible.middle <= e.possible.high
    assert e.rate > 0
    assert {n.name for n in e.nodes} == {"range_0", "map_1", "batch_2"}
    assert e.resources[0].rate <= e.resources[-1].rate
    assert e.windows > 1
    assert e.fingerprint == one_task().fingerprint()
    assert 0.3 < sum(n.cpu_share for n in e.nodes) <= 1.0001
    assert len(e.timeline) >= e.windows
    for fix in e.fixes:
        assert fix.title


def test_json(explained):
    e, _ = explained
    found = json.loads(json.dumps(e.to_json(), allow_nan=False))
    assert found["verdict"] == e.verdict
    assert found["nodes"][0]["name"] == e.nodes[0].name
    assert found["wall"] == {
        "kind": e.wall.kind,
        "node": e.wall.node,
        "rate": e.wall.rate,
    }


@pytest.mark.parametrize("width", [1, 40, 60, 80, 100, 200])
def test_text_is_as_wide_as_there_is_room(explained, width):
    e, _ = explained
    text = _report_text.text(e, width, False)
    assert "\x1b" not in text
    # Words without a space in them cannot be cut.
    limit = max(width, 75)
    assert max(map(len, text.splitlines())) <= limit, text
    assert " ".join(text.split()).startswith(" ".join(e.verdict.split()))
    for part in ("map_1", "◄ the wall", "what to do", "traced"):
        assert part in text


def test_colour(explained, monkeypatch):
    e, _ = explained
    assert "\x1b[" in _report_text.text(e, 100, True)
    assert "\x1b[" not in str(e)  # pytest's output is no terminal
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[" in str(e)
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in str(e)


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open = []

    def handle_starttag(self, tag, attributes):
        if tag not in ("br", "meta"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def hostile(e):
    """The same, with names that a page must not run."""
    import dataclasses

    script = "<script>alert(1)</script>&\"'"
    node = dataclasses.replace(e.nodes[0], name=script, made_at=f"{script}:1")
    fix = dataclasses.replace(e.fixes[0], title=script, why=script)
    wall = dataclasses.replace(e.wall, node=script)
    resource = dataclasses.replace(e.resources[0], what=script)
    return dataclasses.replace(
        e,
        verdict=script,
        nodes=(node,),
        fixes=(fix,),
        notes=(script,),
        wall=wall,
        resources=(resource,),
    )


def test_html(explained):
    e, _ = explained
    for page in (e._repr_html_(), _report_html.page(e)):
        tags = Tags()
        tags.feed(page)
        assert tags.open == []
        assert "map_1" in page
        assert "http://" not in page.replace("http://www.w3.org/2000/svg", "")
        assert "prefers-color-scheme:dark" in page
    assert "<script>" not in hostile(e)._repr_html_()


def test_plot(explained, tmp_path):
    e, _ = explained
    picture = e.plot(tmp_path / "why.svg")
    assert (tmp_path / "why.svg").read_text() == picture
    for each in (picture, hostile(e).plot()):
        root = xml.etree.ElementTree.fromstring(each)
        assert root.tag.endswith("svg")
        assert not any("script" in x.tag for x in root.iter())
    assert "measured" in picture
    assert "the wall" in picture
    assert "elements a second" in picture


@pytest.mark.parametrize(
    ("knob", "node", "text"),
    [
        (
            "parallelism",
            "map_2",
            "in the program: num_parallel_calls=4 of map_2 at train.py:31\n"
            "Dataset.tune() does it",
        ),
        (
            "buffer_rows",
            "interleave_1/prefetch_2",
            "in the program: buffer_size=4 of interleave_1/prefetch_2 at "
            "train.py:31\nDataset.tune() does it",
        ),
        ("read_depth", "TextLineDataset_0", "Dataset.tune() does it"),
        (
            "cache",
            "map_2",
            "in the program: .cache() after map_2 at train.py:31",
        ),
    ],
)
def test_the_change_to_the_program(knob, node, text):
    place = {"file": "train.py", "line": 31}
    setting = {"knob": knob, "node": node, "to": "4", "made_at": place}
    fix = _report.to_fix({"title": "something", "settings": [setting]})
    assert "\n".join(_report_text.fix_changes(fix)) == text


def test_repr(explained):
    e, _ = explained
    assert repr(e) == f"<Explanation: {e.verdict}>"


# ---- What if.


def test_what_if(explained):
    e, _ = explained
    if e.cores >= 2:
        more = e.what_if(tasks={"map_1": 2})
        assert more.rate.middle > 1.2 * e.possible.middle
        assert "/s" in str(more)
    cheaper = e.what_if(cost={"map_1": 0.25})
    assert cheaper.rate.middle > 2 * e.possible.middle
    assert e.what_if(cores=16).rate.low > 0
    assert e.what_if(disk=2).rate.middle > 0
    assert e.what_if(fuse="batch_2").rate.middle > 0
    assert e.what_if(tasks={"map_1": 1e30}, cores=1e9).rate.middle > 0
    cached = e.what_if(cache="map_1")
    assert cached.rate.middle > e.possible.middle
    assert cached.wall.kind


def test_what_if_settings_are_as_asked():
    e = ps.Dataset.range(10**7).map(work).batch(8).explain(seconds=0.5)
    if e.cores < 2:
        pytest.skip("one core keeps one task busy")
    one = e.what_if(tasks={"map_1": 1})
    assert one.rate.middle < 0.7 * e.what_if(cores=e.cores).rate.middle
    assert e.what_if(reorder_rows={"map_1": 8}).rate.middle > 0


def test_what_if_workers(explained):
    e, _ = explained
    few, many = (
        e.what_if(workers_after="map_1", worker_cores=cores)
        for cores in (1, 16)
    )
    assert few.wall.kind == "workers"
    assert 8 < many.rate.middle / few.rate.middle <= 16.1
    slow = e.what_if(workers_after="map_1", worker_cores=16, network="1kB")
    assert slow.wall.kind == "network bytes"
    assert slow.rate.middle < few.rate.middle


def test_what_if_it_went_first():
    def costly(i, x):
        return i, ps.exp(ps.sin(ps.cast(x, ps.float32) * np.ones(9, "f4")))

    ds = ps.Dataset.range(10**7).enumerate().map(costly, 1)
    ds = ds.filter(lambda i, x: i % 10 == 0).batch(100)
    e = ds.explain(seconds=0.5)
    now = e.what_if(tasks={"map_2": 1})
    first = e.what_if(move={"filter_3": "map_2"}, tasks={"map_2": 1})
    assert first.rate.middle > 2 * now.rate.middle
    # Rows are kept where they are after the move: the filter is below them.
    kept = e.what_if(move={"filter_3": "map_2"}, cache="map_2")
    assert kept.rate.middle > first.rate.middle
    with pytest.raises(ValueError, match='"filter_3" cannot be moved past'):
        e.what_if(move={"filter_3": None})
    with pytest.raises(ValueError, match="to be moved past; it has 0"):
        e.what_if(move={"map_2": "range_0"})


@pytest.mark.parametrize(
    ("changes", "kind", "text"),
    [
        ({}, ValueError, "got nothing"),
        ({"move": "map_1"}, TypeError, 'such as {"filter_3": "map_2"}'),
        ({"move": {"map_1": 3}}, TypeError, "must name a transformation"),
        ({"move": {"map_7": None}}, ps.NotFoundError, "map_1"),
        ({"workers_after": "map_1"}, ValueError, "worker_cores=None"),
        ({"worker_cores": 8}, ValueError, "workers_after=None"),
        (
            {"workers_after": "map_1", "worker_cores": 0},
            ValueError,
            "worker_cores must be",
        ),
        (
            {"workers_after": "map_1", "worker_cores": 1, "network": "fast"},
            ValueError,
            "network must be a size",
        ),
        ({"tasks": {"map_7": 2}}, ps.NotFoundError, "range_0, map_1, batch_2"),
        ({"fuse": "map_7"}, ps.NotFoundError, "map_1"),
        ({"cache": "map_7"}, ps.NotFoundError, "map_1"),
        ({"cache": 3}, TypeError, "must name a transformation"),
        ({"tasks": 3}, TypeError, 'such as {"map_2": 4}'),
        ({"tasks": {"map_1": 0}}, ValueError, "more than 0"),
        ({"cores": 0}, ValueError, "more than 0"),
        ({"cores": float("nan")}, ValueError, "more than 0"),
        ({"cores": "many"}, TypeError, "must be a number"),
        ({"cores": True}, TypeError, "must be a number"),
        ({"consumer": -1}, ValueError, "more than 0"),
    ],
)
def test_what_if_refuses(explained, changes, kind, text):
    e, _ = explained
    with pytest.raises(kind, match=re.escape(text)):
        e.what_if(**changes)


def test_the_trace_goes_with_the_explanation():
    e = ps.Dataset.range(10**5).batch(10).explain(seconds=0.3)
    path = e._file.path
    assert os.path.exists(path)
    del e
    assert not os.path.exists(path)


# ---- Traces.


def test_a_trace_says_the_same(explained):
    e, path = explained
    again = ps.explain_trace(path)
    assert again.verdict == e.verdict
    assert again.rate == e.rate
    assert again.wall == e.wall
    assert again.what_if(cores=4).rate.middle > 0


def test_a_trace_cut_anywhere(explained, tmp_path):
    _, path = explained
    data = path.read_bytes()
    cut = tmp_path / "cut.bin"
    first = 8 + 12 + int.from_bytes(data[8:12], "little")
    ends = [1, 4, 7, 8, 9, 12, 19, 20, 21, first - 1, first, first + 5]
    ends += [len(data) // 2, len(data) - 1]
    whole = 0
    for end in ends:
        cut.write_bytes(data[:end])
        try:
            e = ps.explain_trace(cut)
        except ps.PenstockError as error:
            assert str(cut) in str(error)
            continue
        whole += 1
        if end > first:
            assert any("not whole" in note for note in e.notes)
    assert whole >= 2


def test_a_damaged_trace(explained, tmp_path):
    _, path = explained
    data = bytearray(path.read_bytes())
    for at in (0, 4, 9, 14, 30, len(data) // 2, len(data) - 3):
        damaged = bytearray(data)
        damaged[at] ^= 0x55
        file = tmp_path / "damaged.bin"
        file.write_bytes(damaged)
        try:
            assert ps.explain_trace(file).notes
        except ps.PenstockError:
            pass


@pytest.mark.parametrize(
    ("make", "kind", "text"),
    [
        (lambda p: p.write_bytes(b""), ps.FailedPreconditionError, "empty"),
        (lambda p: p.write_text("{}"), ps.DataLossError, "PSNP"),
        (lambda p: p.write_text("x" * 99), ps.DataLossError, "PSNP"),
        (lambda p: p.mkdir(), ValueError, "must be a file"),
        (lambda p: os.mkfifo(p), ValueError, "must be a file"),
        (lambda p: None, FileNotFoundError, "no file"),
    ],
)
def test_no_trace(tmp_path, make, kind, text):
    path = tmp_path / "trace"
    make(path)
    with pytest.raises(kind, match=text):
        ps.explain_trace(path)


def test_a_trace_that_cannot_be_written():
    with pytest.raises(ps.PenstockError, match="no-such-directory"):
        ps.Dataset.range(100).explain(0.3, trace="/no-such-directory/t.bin")


# ---- Pipelines that are hard to measure.


def hangs():
    time.sleep(1000)
    yield 1


def breaks():
    yield 1
    yield 2
    raise ValueError("the third")


def test_never_an_element():
    ds = ps.Dataset.range(10**15).filter(lambda x: x < 0)
    begin = time.monotonic()
    with pytest.raises(ps.DeadlineExceededError) as caught:
        ds.explain(seconds=0.3)
    assert time.monotonic() - begin < 60
    assert "none in 300 ms" in str(caught.value)
    assert "filter_1 0 rows" in str(caught.value)
    with pytest.raises(ps.DeadlineExceededError):
        ps.Dataset.from_generator(hangs, output_signature=SPEC).explain(0.3)
    assert list(ps.Dataset.range(2)) == [0, 1]


def test_no_elements():
    with pytest.raises(ps.FailedPreconditionError, match="ended without any"):
        ps.Dataset.range(0).explain()


def test_the_third_element_fails():
    ds = ps.Dataset.from_generator(breaks, output_signature=SPEC)
    e = ds.explain(seconds=1)
    assert any("1 of 3 elements were errors" in note for note in e.notes)


def test_all_elements_fail():
    with pytest.raises(FileNotFoundError, match="no-such-file"):
        ps.TextLineDataset("/no-such-file").explain()


@pytest.mark.parametrize("count", [1, 3, 1000])
def test_shorter_than_a_trace(count):
    e = ps.Dataset.range(count).explain()
    assert e.rate > 0
    assert e.windows == 1
    assert str(e)
    assert e.plot()


def test_an_infinite_source_stops_in_time():
    begin = time.monotonic()
    e = ps.Dataset.counter().batch(100).explain(seconds=0.5)
    assert time.monotonic() - begin < 60
    assert e.rate > 0


def test_one_file(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("some words\n" * 200_000)
    e = ps.TextLineDataset(path).batch(100).explain(seconds=1)
    assert any(n.name == "TextLineDataset_0" for n in e.nodes)


def test_a_function_with_state():
    count = [0]

    def counts(x):
        count[0] += 1
        return x + count[0]

    function = ps.python_function(counts, output_signature=SPEC)
    e = ps.Dataset.range(5000).map(function).batch(10).explain(seconds=30)
    node = next(n for n in e.nodes if n.name == "map_1")
    assert not node.may_be_cached
    assert "Python" in node.why_not


def test_no_epoch_is_used_up():
    ds = ps.Dataset.range(20).shuffle(20, seed=5)
    same = ps.Dataset.range(20).shuffle(20, seed=5)
    ds.explain()
    assert list(ds) == list(same)
    assert list(ds) == list(same)


def test_an_engine_that_dies():
    ds = ps.Dataset.counter().batch(1000)
    seen = []

    def kill(elements, seconds):
        if not seen:
            seen.append(elements)
            os.kill(_engine.current().pid, signal.SIGKILL)

    with pytest.raises(ps.EngineDiedError):
        _explain.of_dataset(ds, 5.0, progress=kill)
    assert ds.explain(seconds=5).rate > 0


def test_an_interrupt_leaves_nothing_behind():
    ds = ps.Dataset.counter().batch(1000)

    def stop(elements, seconds):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        _explain.of_dataset(ds, 5.0, progress=stop)
    assert ds.explain(seconds=5).rate > 0


def test_iterators_that_cannot_be_explained():
    iterator = iter(ps.Dataset.range(10))
    with pytest.raises(ps.FailedPreconditionError, match="has given none"):
        iterator.explain()
    iterator.close()
    with pytest.raises(ps.FailedPreconditionError, match="not open"):
        iterator.explain()


@pytest.mark.parametrize(
    ("arguments", "kind", "text"),
    [
        ({"seconds": 0}, ValueError, "seconds must be"),
        ({"seconds": -1}, ValueError, "seconds must be"),
        ({"seconds": float("inf")}, ValueError, "seconds must be"),
        ({"seconds": "soon"}, TypeError, "seconds must be"),
        ({"cpu": 0}, ValueError, "cpu must be"),
        ({"cpu": float("nan")}, ValueError, "cpu must be"),
        ({"cpu": []}, TypeError, "cpu must be"),
        ({"memory": 0}, ValueError, "memory must be"),
        ({"memory": "2 parsecs"}, ValueError, '"512MiB"'),
        ({"memory": "GB"}, ValueError, '"512MiB"'),
        ({"memory": ""}, ValueError, '"512MiB"'),
        ({"memory": "0GB"}, ValueError, "more than 0"),
        ({"memory": "-1GB"}, ValueError, '"512MiB"'),
    ],
)
def test_arguments_are_checked(arguments, kind, text):
    with pytest.raises(kind, match=re.escape(text)) as caught:
        ps.Dataset.range(10).explain(**arguments)
    assert "test_explain.py" in str(caught.value)


@pytest.mark.parametrize("memory", [1, 10**30, "2GB", "0.5 GiB", "1e9", "3kB"])
@pytest.mark.parametrize("cpu", [0.01, 10**6])
def test_budgets(memory, cpu):
    ds = ps.Dataset.range(10**5).map(lambda x: x + 1).batch(10)
    e = ds.explain(cpu=cpu, memory=memory)
    assert e.expected.middle >= 0


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("2GB", 2e9),
        ("2gb", 2e9),
        ("1 KiB", 1024),
        ("1.5MiB", 1.5 * 2**20),
        ("7", 7),
        ("3T", 3e12),
        (12, 12),
    ],
)
def test_sizes(text, size):
    from penstock import _budget

    assert _budget.size("memory", text) == size


def test_steady_runs_end_early(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(_tracing.time, "monotonic", lambda: now[0])
    watch = _tracing._Watch(None)
    for step in range(30):
        now[0] = 0.1 * step + 0.001
        assert not watch.is_steady() or step > 10
        watch.add(100)
    assert watch.is_steady()
    for step in range(30, 60):
        now[0] = 0.1 * step + 0.001
        watch.add(200)
    assert not watch.is_steady()
    few = _tracing._Watch(None)
    for step in range(60, 120):
        now[0] = 0.1 * step + 0.001
        few.add(1)
    assert not few.is_steady()
