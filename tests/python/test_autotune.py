"""Settings that are chosen while a pipeline runs."""

import logging
import time

import numpy as np

import penstock as ps

_BUDGET = 1 << 30


def _photos(count):
    rng = np.random.default_rng(7)
    pixels = rng.integers(0, 256, (96, 96, 3), np.uint8)
    photo = ps.image.encode_jpeg(pixels)
    return ps.Dataset.from_tensor_slices([bytes(photo)] * count)


def _decoded(count):
    return _photos(count).map(
        lambda file: ps.image.resize(
            ps.image.decode_jpeg(file, channels=3), (64, 64)
        )
    )


def _computed(ds):
    """Elements of an epoch, and how many of them were decoded in it."""
    iterator = iter(ds)
    seen = sum(1 for _ in iterator)
    nodes = {node.name: node.rows for node in iterator.stats().nodes}
    return seen, nodes["map_1"]


def _epochs_until_kept(ds, most=40):
    for epoch in range(most):
        seen, decoded = _computed(ds)
        assert seen == 50
        if decoded == 0:
            return epoch
    return None


class TestKeptByThemselves:
    def test_with_a_budget(self):
        ds = _decoded(400).batch(8)
        offered = ds.with_options(ps.Options(memory_budget=_BUDGET))
        assert _epochs_until_kept(offered) is not None
        for kept, plain in zip(offered, ds, strict=True):
            np.testing.assert_array_equal(kept, plain)

    def test_not_without_one(self):
        ds = _decoded(400).batch(8)
        assert _epochs_until_kept(ds, most=4) is None

    def test_not_if_switched_off(self):
        options = ps.Options(
            memory_budget=f"{_BUDGET >> 10}KiB", autotune=False
        )
        ds = _decoded(400).batch(8).with_options(options)
        assert _epochs_until_kept(ds, most=4) is None

    def test_never_what_is_random(self):
        ds = _decoded(400).map(
            lambda image: ps.image.random_flip_left_right(image)
        )
        ds = ds.batch(400).with_options(ps.Options(memory_budget=_BUDGET))
        epochs = [next(iter(ds)) for _ in range(6)]
        for epoch in epochs[1:]:
            assert not np.array_equal(epoch, epochs[0])

    def test_states_do_not_know(self):
        ds = _decoded(400).batch(8)
        offered = ds.with_options(ps.Options(memory_budget=_BUDGET))
        assert _epochs_until_kept(offered) is not None
        iterator = iter(offered)
        for _ in range(17):
            next(iterator)
        state = iterator.state_dict()
        resumed = iter(ds.with_options(ps.Options(autotune=False)))
        resumed.load_state_dict(state)
        assert len(list(resumed)) == 33


def test_decisions_are_logged(caplog):
    """As lines that a person can read."""
    photo = next(iter(_photos(1)))
    ds = ps.Dataset.range(10**7).map(lambda _: ps.image.decode_jpeg(photo))
    ds = ds.batch(8).with_options(ps.Options(memory_budget=_BUDGET))
    deadline = time.monotonic() + 60
    iterator = iter(ds)
    with caplog.at_level(logging.INFO, logger="penstock"):
        for _ in iterator:
            if any("autotune" in line for line in caplog.messages):
                break
            if time.monotonic() > deadline:
                break
    found = [line for line in caplog.messages if line.startswith("autotune: ")]
    assert found
    assert " s: " in found[0]
    report = iterator.explain()
    decided = found[0].removeprefix("autotune: ")
    assert report.decisions[0] == decided
    assert "changed while it ran" in str(report)
    assert decided[:20] in str(report)
    assert "Changed while it ran" in report._repr_html_()
