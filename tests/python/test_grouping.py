"""Windows, groups and buckets: tf.data's rules, as Python sees them."""

import numpy as np
import pytest
from pipelines import Point, assert_equal, ints, lists

import penstock as ps


def windows(dataset):
    return [ints(window) for window in dataset]


@pytest.mark.parametrize(
    ("arguments", "want"),
    [
        ((2,), [[0, 1], [2, 3], [4]]),
        ((2, 1), [[0, 1], [1, 2], [2, 3], [3, 4], [4]]),
        ((2, None, 2), [[0, 2], [2, 4], [4]]),
        ((2, 3), [[0, 1], [3, 4]]),
        ((3, 1, 2), [[0, 2, 4], [1, 3], [2, 4], [3], [4]]),
        ((9,), [[0, 1, 2, 3, 4]]),
    ],
)
def test_window(arguments, want):
    ds = ps.Dataset.range(5).window(*arguments)
    assert windows(ds) == want
    assert len(ds) == len(want)


def test_window_without_remainder():
    ds = ps.Dataset.range(5).window(2, 1, drop_remainder=True)
    assert windows(ds) == [[0, 1], [1, 2], [2, 3], [3, 4]]
    assert len(ds) == 4
    assert windows(ps.Dataset.range(3).window(4, drop_remainder=True)) == []


@pytest.mark.parametrize("name", ["size", "shift", "stride"])
def test_window_of_nothing_is_refused(name):
    arguments = {"size": 2, "shift": 1, "stride": 1, name: 0}
    with pytest.raises(ps.InvalidArgumentError, match=f"{name} must be"):
        ps.Dataset.range(5).window(**arguments)


def test_nesting_sits_outside_the_windows():
    ds = ps.Dataset.from_tensor_slices(
        {"a": [1, 2, 3], "b": Point(["u", "v", "w"], [1.0, 2.0, 3.0])}
    ).window(2)
    assert isinstance(ds.element_spec["a"], ps.DatasetSpec)
    first = next(iter(ds))
    assert ints(first["a"]) == [1, 2]
    assert list(first["b"].x) == [b"u", b"v"]
    assert type(first["b"]) is Point
    back = ds.flat_map(
        lambda x: ps.Dataset.zip({"a": x["a"], "b": x["b"]}).batch(2)
    )
    assert_equal(
        next(iter(back)),
        {
            "a": np.array([1, 2]),
            "b": Point(np.array([b"u", b"v"], object), np.array([1.0, 2.0])),
        },
    )


def test_windows_of_windows():
    ds = ps.Dataset.range(7).window(2).window(2)
    assert [[ints(w) for w in outer] for outer in ds] == [
        [[0, 1], [2, 3]],
        [[4, 5], [6]],
    ]
    flat = ds.flat_map(lambda outer: outer.flat_map(lambda w: w))
    assert ints(flat) == list(range(7))


def test_a_large_window_is_a_dataset_like_any_other():
    data = np.arange(30_000).reshape(30, 1000)
    ds = ps.Dataset.from_tensor_slices(data).window(20)
    first, second = list(ds)
    assert first.cardinality() == 20
    np.testing.assert_array_equal(np.stack(list(first)), data[:20])
    np.testing.assert_array_equal(next(iter(second.batch(99))), data[20:])
    assert len(list(first)) == 20  # again


def test_windows_with_errors():
    values = np.array([1.0, 2.0, 3.0, 0.0, 5.0, 6.0])
    ds = ps.Dataset.from_tensor_slices(np.arange(6)).map(
        lambda x: ps.take(values, x * (1 + 9 * (x == 3)))
    )
    ds = ds.window(2).ignore_errors().flat_map(lambda w: w)
    assert [float(x) for x in ds] == [1.0, 2.0, 5.0, 6.0]


def test_batch_of_windows_is_refused():
    with pytest.raises(ps.InvalidTypeError, match="flat_map"):
        ps.Dataset.range(4).window(2).batch(2)
    windows = ps.Dataset.range(4).window(2).map(lambda w: w.batch(2))
    assert [[x.tolist() for x in w] for w in windows] == [[[0, 1]], [[2, 3]]]


def test_group_by_window():
    ds = ps.Dataset.range(10).group_by_window(
        lambda x: x % 2, lambda key, group: group.batch(4), window_size=4
    )
    assert lists(ds) == [[0, 2, 4, 6], [1, 3, 5, 7], [8], [9]]


def test_groups_left_over_come_by_ascending_key():
    keys = [3, -1, 2, 3, 7, -1]
    ds = ps.Dataset.from_tensor_slices(keys).group_by_window(
        lambda x: x, lambda key, group: group.batch(9), window_size=9
    )
    assert lists(ds) == [[-1, -1], [2], [3, 3], [7]]


def test_a_full_group_goes_on_at_once():
    ds = ps.Dataset.counter().group_by_window(
        lambda x: x % 3, lambda key, group: group.batch(2), window_size=2
    )
    assert lists(ds.take(3)) == [[0, 3], [1, 4], [2, 5]]


def test_reduce_may_give_none_or_several_and_read_twice():
    several = ps.Dataset.range(4).group_by_window(
        lambda x: x % 2,
        lambda key, group: group.concatenate(group.map(lambda x: -x)),
        window_size=2,
    )
    assert ints(several) == [0, 2, 0, -2, 1, 3, -1, -3]
    none = ps.Dataset.range(4).group_by_window(
        lambda x: x % 2, lambda key, group: group.take(0), window_size=2
    )
    assert list(none) == []
    with_key = ps.Dataset.range(4).group_by_window(
        lambda x: x % 2,
        lambda key, group: group.map(lambda x: (key, x)),
        window_size=2,
    )
    assert [(int(k), int(x)) for k, x in with_key] == [
        (0, 0),
        (0, 2),
        (1, 1),
        (1, 3),
    ]


def test_window_size_func():
    ds = ps.Dataset.range(12).group_by_window(
        lambda x: x % 2,
        lambda key, group: group.batch(9),
        window_size_func=lambda key: 2 + 2 * key,
    )
    assert lists(ds) == [
        [0, 2],
        [4, 6],
        [1, 3, 5, 7],
        [8, 10],
        [9, 11],
    ]
    bad = ps.Dataset.range(2).group_by_window(
        lambda x: x,
        lambda key, group: group,
        window_size_func=lambda key: key,
    )
    it = iter(bad)
    with pytest.raises(ps.InvalidArgumentError, match="at least 1"):
        next(it)
    assert ints(it) == [1]


def test_an_error_of_the_key_names_its_function():
    def my_key(x):
        return ps.take(np.array([0, 0]), x)

    ds = ps.Dataset.range(3).group_by_window(
        my_key, lambda key, group: group.batch(2), window_size=2
    )
    it = iter(ds)
    assert next(it).tolist() == [0, 1]
    with pytest.raises(ps.InvalidArgumentError, match="in key_func my_key"):
        next(it)
    assert list(it) == []


def test_group_by_window_refuses():
    ds = ps.Dataset.range(4)
    with pytest.raises(ps.InvalidArgumentError, match="window_size"):
        ds.group_by_window(lambda x: x, lambda k, g: g, window_size=0)
    with pytest.raises(ps.InvalidTypeError, match="either window_size"):
        ds.group_by_window(lambda x: x, lambda k, g: g)
    with pytest.raises(ps.InvalidTypeError, match="integer scalar"):
        ds.group_by_window(lambda x: x * 1.0, lambda k, g: g, window_size=1)
    with pytest.raises(ps.InvalidTypeError, match="must return a Dataset"):
        ds.group_by_window(lambda x: x, lambda k, g: k, window_size=1)


def words(*lengths):
    return ps.Dataset.from_list([np.full(length, length) for length in lengths])


def test_bucket_boundaries_are_exclusive():
    ds = words(1, 2, 3, 4, 5).bucket_by_sequence_length(
        lambda x: ps.size(x), [3, 5], [2, 2, 2]
    )
    assert lists(ds) == [
        [[1, 0], [2, 2]],
        [[3, 3, 3, 0], [4, 4, 4, 4]],
        [[5, 5, 5, 5, 5]],
    ]
    assert ds.cardinality() == ps.UNKNOWN_CARDINALITY
    assert ds.element_spec == ps.TensorSpec((None, None), np.int64)


def test_bucket_pads_to_the_boundary_less_one():
    ds = words(1, 2, 3).bucket_by_sequence_length(
        lambda x: ps.size(x),
        [3, 6],
        [2, 2, 2],
        pad_to_bucket_boundary=True,
        padding_values=-1,
    )
    assert lists(ds) == [[[1, -1], [2, 2]], [[3, 3, 3, -1, -1]]]


def test_known_dimensions_are_not_padded_to_the_boundary():
    ds = ps.Dataset.from_list([np.ones((1, 3)), np.ones((2, 3))])
    (batch,) = ds.bucket_by_sequence_length(
        lambda x: ps.shape(x)[0], [5], [2, 2], pad_to_bucket_boundary=True
    )
    assert batch.shape == (2, 4, 3)


def test_an_element_that_is_too_long_fails_when_its_batch_comes():
    ds = words(9, 1, 9, 1).bucket_by_sequence_length(
        lambda x: ps.size(x), [3], [1, 2], pad_to_bucket_boundary=True
    )
    it = iter(ds)
    assert next(it).tolist() == [[1, 0]]
    with pytest.raises(ps.InvalidArgumentError, match="last boundary"):
        next(it)
    assert lists(it) == [[[1, 0]]]


def test_bucket_of_structures_and_shapes():
    ds = ps.Dataset.from_list([([1, 2], 7), ([3], 8)])
    batch = next(
        iter(
            ds.bucket_by_sequence_length(
                lambda x, y: ps.size(x),
                [5],
                [2, 2],
                padded_shapes=((4,), ()),
                padding_values=(9, None),
            )
        )
    )
    assert_equal(
        batch,
        (np.array([[1, 2, 9, 9], [3, 9, 9, 9]]), np.array([7, 8])),
    )


def test_bucket_remainders_and_no_padding():
    ds = words(1, 4, 4, 4).bucket_by_sequence_length(
        lambda x: ps.size(x), [3], [2, 2], drop_remainder=True
    )
    assert lists(ds) == [[[4] * 4, [4] * 4]]
    ds = words(2, 4, 2, 4).bucket_by_sequence_length(
        lambda x: ps.size(x), [3], [2, 2], no_padding=True
    )
    assert lists(ds) == [[[2, 2], [2, 2]], [[4] * 4, [4] * 4]]


@pytest.mark.parametrize(
    ("boundaries", "sizes", "message"),
    [
        ([3, 2], [1, 1, 1], "ascend"),
        ([3], [1], "one entry more"),
        ([3], [1, 0], "bucket_batch_sizes"),
    ],
)
def test_bucket_refuses(boundaries, sizes, message):
    with pytest.raises(ps.InvalidArgumentError, match=message):
        words(1).bucket_by_sequence_length(
            lambda x: ps.size(x), boundaries, sizes
        )


def test_a_window_can_be_pickled():
    import pickle

    ds = ps.Dataset.range(5).window(2)
    assert windows(pickle.loads(pickle.dumps(ds))) == windows(ds)
    window = next(iter(ds))
    assert ints(pickle.loads(pickle.dumps(window))) == [0, 1]


def test_groups_are_within_the_memory_budget():
    rows = ps.Dataset.range(1000).map(lambda x: ps.zeros((1 << 14,)))
    options = ps.Options(memory_budget=1 << 22)
    grouped = rows.group_by_window(
        lambda x: 0 * ps.size(x), lambda k, g: g, window_size=900
    )
    for ds in (grouped, rows.window(900)):
        with pytest.raises(ps.ResourceExhaustedError, match="budget"):
            next(iter(ds.with_options(options)))


def test_a_window_in_a_function_has_no_elements_yet():
    """It runs as Python instead, where it has."""
    ds = ps.Dataset.range(4).window(2)
    sums = ds.map(lambda w: w.reduce(np.int64(0), lambda a, b: a + b))
    assert "runs as Python" in sums.describe()
    assert [int(x) for x in sums] == [1, 5]
    with pytest.raises(ps.UnsupportedFunctionError, match="flat_map"):
        ds.map(ps.native(lambda w: next(iter(w))))
