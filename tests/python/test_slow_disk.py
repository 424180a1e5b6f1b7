"""Pipelines on a disk that is slow in a known way: found, and overcome."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import penstock as ps

_SOURCE = Path(__file__).parents[2] / "bench/tuner/slow_disk.py"
_spec = importlib.util.spec_from_file_location("slow_disk", _SOURCE)
slow_disk = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(slow_disk)

_RECORD = 50_000


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """Eight files of 10 MB."""
    try:
        slow_disk.build()
    except slow_disk.AbsentError as error:
        pytest.skip(str(error))
    folder = tmp_path_factory.mktemp("records")
    rng = np.random.default_rng(3)
    for i in range(8):
        (folder / f"r{i}").write_bytes(rng.bytes(200 * _RECORD))
    return folder


@pytest.fixture
def mounted(source):
    """Mounts the files, as slow as a test says."""
    mounts = []

    def mount(**options):
        disk = slow_disk.slow_disk(source, **options)
        try:
            mounts.append(disk)
            return disk.__enter__()
        except slow_disk.AbsentError as error:
            mounts.pop()
            pytest.skip(str(error))

    yield mount
    for disk in mounts:
        disk.__exit__(None, None, None)


def _records(folder):
    names = sorted(str(path) for path in folder.iterdir())
    ds = ps.FixedLengthRecordDataset(names, _RECORD).repeat(20).batch(4)
    return ds.with_options(ps.Options(autotune=False))


@pytest.fixture
def slow_folder(tmp_path):
    """A directory that may be written, and is read at 20 MB/s."""
    folder = tmp_path / "below"
    folder.mkdir()
    try:
        slow_disk.build()
        with slow_disk.slow_disk(folder, mb_per_second=20, writable=1) as disk:
            yield disk
            ps.close()  # It may have files open.
    except slow_disk.AbsentError as error:
        pytest.skip(str(error))


def _enlarged():
    """Rows of 1 MB that are made in no time."""
    ones = np.ones(250_000, np.float32)
    ds = ps.Dataset.range(64).map(lambda x: ps.cast(x, ps.float32) * ones)
    return ds.with_options(ps.Options(autotune=False))


def test_files_are_the_same(source, mounted):
    assert list(_records(mounted(read_ms=1)).take(3).unbatch()) == list(
        _records(source).take(3).unbatch()
    )


def test_latency_is_overcome_by_reads(mounted):
    ds = _records(mounted(read_ms=20))
    tuned = ds.tune(seconds=2)
    explanation = tuned.explanation
    assert explanation.wall.kind == "reads under way"
    assert "waits for storage" in explanation.verdict
    (trial,) = explanation.tried
    assert trial.is_kept
    assert trial.seen > 2 * explanation.rate
    assert any(setting.knob == "read_depth" for setting in tuned.diff(ds))


def test_bandwidth_is_named(mounted):
    explanation = _records(mounted(mb_per_second=40)).explain(seconds=2)
    assert explanation.wall.kind == "disk bytes"
    rate = 40e6 / (4 * _RECORD)
    assert 0.7 * rate < explanation.possible.middle < 1.4 * rate
    assert explanation.what_if(disk=2).rate.middle > 1.5 * rate


def test_what_is_written_is_read(slow_folder):
    ds = ps.Dataset.range(3).cache(str(slow_folder / "numbers"))
    assert [list(ds), list(ds)] == [[0, 1, 2], [0, 1, 2]]
    assert (slow_folder / "numbers.penstock").exists()


def test_rows_are_not_kept_where_they_come_back_slowly(slow_folder):
    ds = _enlarged().with_options(ps.Options(kept_directory=str(slow_folder)))
    tuned = ds.repeat().batch(4).tune(disk="1GB", seconds=2)
    assert not any(s.knob == "cache" for s in tuned.diff(ds.repeat().batch(4)))
    (note,) = (n for n in tuned.explanation.notes if "not kept on disk" in n)
    assert note.startswith("rows of map_1 are")
    assert "read back at" in note


def test_a_users_cache_that_comes_back_slowly_is_named(slow_folder):
    kept = _enlarged().cache(str(slow_folder / "rows"))
    for _ in kept:
        pass  # The file is there now.
    ds = kept.repeat().batch(4)
    explanation = ds.explain(seconds=3)
    assert "cache_3 (" in explanation.verdict
    assert "reads its rows back from its file" in explanation.verdict
    best = explanation.fixes[0]
    assert best.title.startswith("leave out cache_3 (")
    assert "test_slow_disk.py" in best.title
    assert best.needs_the_user
    # 20 MB/s are five elements of 4 MB a second.
    assert 3 < explanation.rate < 8
    assert best.expected.middle > 4 * explanation.rate
    # What the user wrote stays.
    tuned = ds.tune(seconds=1)
    assert "cache_3" in tuned.describe()
