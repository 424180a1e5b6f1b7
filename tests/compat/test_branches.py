"""Functions that decide by elements' values: recorded both ways, or Python."""

import numpy as np
import pytest

import penstock.compat.tf as tf

Dataset = tf.data.Dataset


def values(dataset):
    return [np.asarray(x).tolist() for x in dataset.as_numpy_iterator()]


def test_a_decision_by_value_is_recorded_both_ways():
    def double_large(x):
        if tf.reduce_sum(x) > 3:
            return x * 2
        return x

    ds = Dataset.range(4).batch(2).map(double_large)
    assert "Python" not in ds.native.describe()
    assert values(ds) == [[0, 1], [4, 6]]


def test_decisions_nest_and_join():
    def f(x):
        if x > 2 and x < 6:
            y = x * 10
            if x == 4:
                y = -y
        else:
            y = x
        return {"y": y, "x": x}

    ds = Dataset.range(8).map(f)
    assert "Python" not in ds.native.describe()
    assert [int(e["y"]) for e in ds] == [0, 1, 2, 30, -40, 50, 6, 7]


def test_decisions_where_functions_cannot_run_as_python():
    ds = Dataset.range(4)
    assert values(ds.filter(lambda x: x > 1 if x > 0 else x == 0)) == [0, 2, 3]
    total = ds.reduce(np.int64(0), lambda s, x: s + x if x > 1 else s)
    assert int(total) == 5
    scanned = ds.scan(np.int64(0), lambda s, x: (s + x if x > 1 else s, s))
    assert values(scanned) == [0, 0, 0, 2]
    inner = ds.take(3).flat_map(
        lambda x: ds.take(3).map(lambda y: y if y > x else x * 10)
    )
    assert values(inner) == [0, 1, 2, 10, 10, 2, 20, 20, 20]


def test_sizes_may_differ_between_branches():
    def f(x):
        if tf.reduce_sum(x) > 3:
            return x[:1], tf.constant("large")
        return x, tf.constant("small")

    ds = Dataset.range(5).batch(2).map(f)
    assert "Python" not in ds.native.describe()
    assert [x.numpy().tolist() for x, _ in ds] == [[0, 1], [2], [4]]
    assert [s.numpy() for _, s in ds] == [b"small", b"large", b"large"]


def test_what_is_random_before_a_decision_is_drawn_once():
    def f(x):
        r = tf.random.uniform(())
        if r > 0.5:
            return r, tf.constant(True)
        return r, tf.constant(False)

    ds = Dataset.range(300).map(f)
    assert "Python" not in ds.native.describe()
    drawn = [(float(r), bool(is_large)) for r, is_large in ds]
    assert all((r > 0.5) == is_large for r, is_large in drawn)
    assert 90 < sum(is_large for _, is_large in drawn) < 210


@pytest.mark.parametrize("with_cond", [False, True])
def test_what_could_fail_is_computed_only_where_it_is_wanted(with_cond):
    """An element that does not take a branch is no error because of it."""
    table = tf.constant([10, 20, 30], tf.int64)

    def f(x):
        if with_cond:
            return tf.cond(x < 3, lambda: tf.gather(table, x), lambda: -x)
        if x < 3:
            return tf.gather(table, x)
        return -x

    ds = Dataset.range(5).map(f)
    assert "runs as Python" in ds.native.describe()
    assert values(ds) == [10, 20, 30, -3, -4]


def test_crops_are_guarded_by_decisions():
    def crop(x):
        if tf.shape(x)[0] >= 3:
            return tf.image.crop_to_bounding_box(x, 1, 1, 2, 2)
        return x

    sizes = Dataset.from_generator(
        lambda: iter([np.ones((n, n, 1), np.uint8) for n in (1, 3, 4)]),
        output_signature=tf.TensorSpec([None, None, 1], tf.uint8),
    )
    assert [x.shape[0] for x in sizes.map(crop)] == [1, 2, 2]


def test_a_try_around_a_decision_runs_as_python():
    def f(x):
        try:
            return x if x > 1 else -x
        except Exception:
            return x * 0

    ds = Dataset.range(4).map(f)
    assert "runs as Python" in ds.native.describe()
    assert values(ds) == [0, -1, 2, 3]


def test_a_loop_over_values_runs_as_python():
    def total(x):
        s = tf.constant(0, tf.int64)
        for i in tf.range(x):
            s += i
        while s > 10:
            s -= 10
        return s

    assert values(Dataset.range(7).map(total)) == [0, 0, 1, 3, 6, 10, 5]


def test_cond_takes_a_branch():
    def f(x):
        total = tf.reduce_sum(x)
        return tf.cond(total < 9, lambda: x[1:], lambda: -x)

    ds = Dataset.range(6).batch(2).map(f)
    assert "Python" not in ds.native.describe()
    assert values(ds) == [[1], [3], [-4, -5]]


def test_cond_whose_branch_may_fail_runs_as_python():
    def f(text):
        return tf.cond(
            tf.strings.length(text) > 1,
            lambda: tf.strings.to_number(text),
            lambda: -1.0,
        )

    assert values(Dataset.from_tensor_slices(["x", "12"]).map(f)) == [-1, 12]


def test_files_are_read_before_and_in_branches(tmp_path):
    (tmp_path / "a").write_text("12")
    (tmp_path / "b").write_text("3")

    def before(path):
        text = tf.io.read_file(path)
        if tf.strings.length(text) > 1:
            return text
        return tf.constant("short")

    def inside(path):
        if tf.strings.regex_full_match(path, ".*a"):
            return tf.io.read_file(path)
        return tf.constant("other")

    names = Dataset.from_tensor_slices([str(tmp_path / n) for n in "ab"])
    ds = names.map(before)
    assert "Python" not in ds.native.describe()
    assert values(ds) == [b"12", b"short"]
    ds = names.map(inside)
    assert "runs as Python" in ds.native.describe()
    assert values(ds) == [b"12", b"other"]
