"""Transformations: what each gives, as tf.data has it."""

import itertools

import numpy as np
import pytest
from pipelines import Pair, Point, assert_equal, ints, lists

import penstock as ps

Dataset = ps.Dataset


# ---- map and filter.


def test_map_gets_the_parts_of_tuples():
    ds = Dataset.from_tensor_slices(([1, 2], [10, 20]))
    assert ints(ds.map(lambda a, b: a + b)) == [11, 22]


def test_map_gets_other_structures_whole():
    ds = Dataset.from_tensor_slices({"a": [1], "b": [2]})
    assert ints(ds.map(lambda d: d["a"] - d["b"])) == [-1]
    ds = Dataset.from_tensor_slices(Point([1], [2]))
    assert ints(ds.map(lambda p: p.x - p.y)) == [-1]
    ds = Dataset.from_tensor_slices(Pair([1], [2]))
    assert ints(ds.map(lambda p: p.left - p.right)) == [-1]


@pytest.mark.parametrize(
    ("function", "want"),
    [
        (lambda x: (x, x), (np.int64(0), np.int64(0))),
        (lambda x: [x, x], (np.int64(0), np.int64(0))),
        (lambda x: {"b": x, "a": x}, {"b": np.int64(0), "a": np.int64(0)}),
        (lambda x: Point(x, 1.5), Point(np.int64(0), np.float64(1.5))),
        (lambda x: Pair(x, None), Pair(np.int64(0), None)),
        (lambda x: (x, ([x, x],)), (np.int64(0), (np.array([0, 0]),))),
        (lambda x: "text", b"text"),
        (lambda x: np.arange(2), np.arange(2)),
        (lambda x: (), ()),
        (lambda x: None, None),
    ],
)
def test_map_returns_structures(function, want):
    assert_equal(list(Dataset.range(1).map(function)), [want])


def test_map_error_takes_its_place(tmp_path):
    ds = Dataset.range(5).map(lambda x: ps.reshape(ps.arange(x), (2,)))
    elements = iter(ds.prefetch(2))
    outcomes = []
    for _ in range(5):
        try:
            outcomes.append(next(elements).tolist())
        except ps.InvalidArgumentError:
            outcomes.append("error")
    assert outcomes == ["error", "error", [0, 1], "error", "error"]
    assert list(elements) == []


def test_parallel_map_keeps_order():
    ds = Dataset.range(1000).map(lambda x: x * 2, num_parallel_calls=4)
    assert ints(ds) == list(range(0, 2000, 2))
    ds = Dataset.range(1000).map(lambda x: x, 4, deterministic=False)
    assert sorted(ints(ds)) == list(range(1000))


@pytest.mark.parametrize("calls", [0, -2, 1.5, "x"])
def test_map_refuses_parallelism(calls):
    with pytest.raises(ValueError):
        Dataset.range(3).map(lambda x: x, num_parallel_calls=calls)


def test_map_accepts_autotune():
    assert ints(Dataset.range(2).map(lambda x: x, ps.AUTOTUNE)) == [0, 1]


def test_filter():
    assert ints(Dataset.range(9).filter(lambda x: x % 3 == 1)) == [1, 4, 7]
    pairs = Dataset.from_tensor_slices(([1, 2], [True, False]))
    assert list(pairs.filter(lambda x, keep: keep)) == [(1, True)]


@pytest.mark.parametrize("predicate", [lambda x: x, lambda x: (x > 1, x)])
def test_a_predicate_gives_a_bool(predicate):
    for method in (Dataset.filter, Dataset.take_while):
        with pytest.raises(TypeError, match="bool"):
            method(Dataset.range(3), predicate)


def test_take_while_ends_for_good():
    ds = Dataset.range(5).take_while(lambda x: x != 2)
    assert ints(ds) == [0, 1]
    assert ints(ds.repeat(2)) == [0, 1, 0, 1]


def test_a_function_must_be_one():
    for method in ("map", "filter", "flat_map", "interleave", "take_while"):
        with pytest.raises(TypeError):
            getattr(Dataset.range(3), method)(3)


# ---- flat_map and interleave.


def test_flat_map():
    ds = Dataset.range(4).flat_map(lambda n: Dataset.range(n))
    assert ints(ds) == [0, 0, 1, 0, 1, 2]


def test_flat_map_nested_twice():
    ds = Dataset.range(1, 4).flat_map(
        lambda x: Dataset.range(x).flat_map(
            lambda y: (
                Dataset.range(x + y).map(lambda z: 100 * x + 10 * y + z).take(x)
            )
        )
    )
    want = [
        100 * x + 10 * y + z
        for x in range(1, 4)
        for y in range(x)
        for z in range(min(x + y, x))
    ]
    assert ints(ds) == want


def test_flat_map_over_another_dataset():
    other = Dataset.range(2)
    ds = Dataset.range(10, 12).flat_map(
        lambda x: other.map(lambda y: x * 10 + y)
    )
    assert ints(ds) == [100, 101, 110, 111]


def reference_interleave(inner, cycle, block):
    """The order as tf.data's tests write it down.

    A slot whose dataset has ended stays empty until its next turn.
    """
    waiting = [iter(part) for part in inner]
    slots = [None] * cycle
    is_first = True
    while is_first or waiting or any(slot is not None for slot in slots):
        for i in range(cycle):
            if is_first or slots[i] is None:
                # At first all slots are filled, in order.
                slots[i] = waiting.pop(0) if waiting else None
        is_first = False
        for i in range(cycle):
            for _ in range(block if slots[i] is not None else 0):
                try:
                    yield next(slots[i])
                except StopIteration:
                    slots[i] = None
                    break


@pytest.mark.parametrize("cycle", [1, 2, 3, 7])
@pytest.mark.parametrize("block", [1, 2, 3])
@pytest.mark.parametrize("calls", [None, 2])
def test_interleave_order(cycle, block, calls):
    sizes = [4, 0, 2, 0, 0, 5, 1]
    ds = Dataset.from_tensor_slices(sizes).enumerate()
    ds = ds.interleave(
        lambda i, n: Dataset.range(n).map(lambda x: 10 * i + x),
        cycle_length=cycle,
        block_length=block,
        num_parallel_calls=calls,
    )
    inner = [[10 * i + x for x in range(n)] for i, n in enumerate(sizes)]
    assert ints(ds) == list(reference_interleave(inner, cycle, block))


@pytest.mark.parametrize("option", ["cycle_length", "block_length"])
@pytest.mark.parametrize("size", [0, -2, 2**20 + 1])
def test_interleave_refuses(option, size):
    with pytest.raises(ValueError, match=option):
        Dataset.range(3).interleave(Dataset.range, **{option: size})


def test_functions_must_return_datasets():
    for method in ("flat_map", "interleave"):
        with pytest.raises(TypeError, match="Dataset"):
            getattr(Dataset.range(3), method)(lambda x: x)
    with pytest.raises(ValueError, match=r"[Dd]ataset"):
        Dataset.range(3).filter(lambda x: Dataset.range(x))


def test_a_map_may_give_datasets():
    ds = Dataset.range(3).map(lambda x: Dataset.range(x))
    assert ds.element_spec == ps.DatasetSpec(ps.TensorSpec((), ps.int64))
    assert [[int(x) for x in part] for part in ds] == [[], [0], [0, 1]]
    assert [int(x) for x in ds.flat_map(lambda part: part)] == [0, 0, 1]
    batches = ds.flat_map(lambda part: part.batch(2))
    assert [x.tolist() for x in batches] == [[0], [0, 1]]


# ---- Counts.


@pytest.mark.parametrize("count", [0, 1, 3, 5, 9])
def test_take_and_skip(count):
    ds = Dataset.range(5)
    assert ints(ds.take(count)) == list(range(5))[:count]
    assert ints(ds.skip(count)) == list(range(5))[count:]


def test_minus_one_is_all():
    ds = Dataset.range(3)
    assert ints(ds.take(-1)) == [0, 1, 2]
    assert ints(ds.skip(-1)) == []
    assert ints(ds.repeat(-1).take(4)) == [0, 1, 2, 0]
    assert ints(ds.repeat(None).take(4)) == [0, 1, 2, 0]


@pytest.mark.parametrize("method", ["take", "skip", "repeat"])
@pytest.mark.parametrize("count", [-2, 1.5, "x", [1]])
def test_counts_are_checked(method, count):
    with pytest.raises(ValueError):
        getattr(Dataset.range(3), method)(count)


def test_repeat():
    ds = Dataset.range(2)
    assert ints(ds.repeat(0)) == []
    assert ints(ds.repeat(2).repeat(2)) == [0, 1] * 4
    assert ints(Dataset.range(0).repeat()) == []


def test_shard():
    ds = Dataset.range(7)
    shards = [ints(ds.shard(3, i)) for i in range(3)]
    assert shards == [[0, 3, 6], [1, 4], [2, 5]]
    assert ints(Dataset.range(1).shard(3, 2)) == []


@pytest.mark.parametrize(("num", "index"), [(0, 0), (-1, 0), (2, 2), (2, -1)])
def test_shard_refuses(num, index):
    with pytest.raises(ValueError):
        list(Dataset.range(3).shard(num, index))


def test_enumerate():
    assert list(Dataset.range(5, 7).enumerate(2)) == [(2, 5), (3, 6)]


def test_concatenate():
    ds = Dataset.range(2).concatenate(Dataset.range(5, 7))
    assert ints(ds) == [0, 1, 5, 6]
    a = Dataset.from_tensors([1, 2])
    b = Dataset.from_tensors([1, 2, 3])
    assert a.concatenate(b).element_spec.shape == (None,)


@pytest.mark.parametrize(
    "other", [[1.5], ([1], [1]), {"a": [1]}], ids=["dtype", "tuple", "dict"]
)
def test_concatenate_refuses(other):
    with pytest.raises(TypeError):
        Dataset.range(2).concatenate(Dataset.from_tensor_slices(other))
    with pytest.raises(TypeError):
        Dataset.range(2).concatenate([1])


# ---- shuffle and cache.


def test_shuffle_is_a_permutation():
    ds = Dataset.range(100).shuffle(10)
    once = ints(ds)
    assert sorted(once) == list(range(100))
    assert once != list(range(100))
    # No element comes before it can have entered the buffer.
    assert all(x < i + 10 for i, x in enumerate(once))


def test_shuffle_by_seed():
    def order(seed, **options):
        return ints(Dataset.range(50).shuffle(50, seed=seed, **options))

    assert order(0) == order(0)
    assert order(1) == order(1)
    assert order(1) != order(2)
    assert order(-1) == order(-1)


def test_reshuffle_each_iteration():
    ds = Dataset.range(50).shuffle(50, seed=1)
    assert ints(ds) != ints(ds)
    twice = ints(ds.repeat(2))
    assert twice[:50] != twice[50:]
    ds = Dataset.range(50).shuffle(50, seed=1, reshuffle_each_iteration=False)
    assert ints(ds) == ints(ds)
    twice = ints(ds.repeat(2))
    assert twice[:50] == twice[50:]


@pytest.mark.parametrize("size", [None, ps.UNKNOWN_CARDINALITY])
def test_shuffle_of_everything(size):
    assert sorted(ints(Dataset.range(100).shuffle(size))) == list(range(100))


def test_shuffle_of_one_changes_nothing():
    assert ints(Dataset.range(5).shuffle(1)) == [0, 1, 2, 3, 4]


def test_shuffle_of_nothing_ends():
    assert ints(Dataset.range(0).shuffle(5).repeat()) == []


@pytest.mark.parametrize("size", [0, -1, 1.5])
def test_shuffle_refuses(size):
    with pytest.raises(ValueError, match="buffer_size"):
        Dataset.range(5).shuffle(size)


def test_set_epoch():
    ds = Dataset.range(50).shuffle(50, seed=1)
    ds.set_epoch(3)
    first = ints(ds)
    assert ints(ds) == first
    ds.set_epoch(4)
    assert ints(ds) != first


def test_cache_keeps_the_first_pass():
    ds = Dataset.random(seed=1, rerandomize_each_iteration=True).take(3)
    assert ints(ds) != ints(ds)
    cached = ds.cache()
    assert ints(cached) == ints(cached)
    again = ints(cached.repeat(3))
    assert again == again[:3] * 3


def test_two_caches_do_not_share():
    ds = Dataset.random(seed=1, rerandomize_each_iteration=True).take(3)
    a, b = ds.cache(), ds.cache()
    assert ints(a) == ints(a)
    assert ints(b) == ints(b)


def test_a_partial_pass_leaves_no_cache():
    ds = Dataset.range(4).cache()
    assert ints(ds.take(2)) == [0, 1]
    assert ints(ds) == [0, 1, 2, 3]


def test_scan():
    ds = Dataset.range(1, 5).scan(np.int64(0), lambda s, x: (s + x, s * x))
    assert ints(ds) == [0, 2, 9, 24]


def test_scan_with_a_structure():
    ds = Dataset.range(3).scan(
        {"n": np.int64(0), "s": np.float32(1)},
        lambda s, x: ({"n": s["n"] + 1, "s": s["s"] / 2}, (s["n"], s["s"])),
    )
    assert list(ds) == [(0, 1.0), (1, 0.5), (2, 0.25)]


def test_scan_refuses():
    with pytest.raises(TypeError):
        Dataset.range(3).scan(np.int64(0), lambda s, x: s)
    with pytest.raises(TypeError):
        Dataset.range(3).scan(np.int64(0), lambda s, x: (1.5, x))


def test_reduce():
    ds = Dataset.range(5)
    assert ds.reduce(np.int64(0), lambda s, x: s + x) == 10
    total, number = ds.reduce(
        (np.int64(0), np.int64(0)), lambda s, x: (s[0] + x, s[1] + 1)
    )
    assert (total, number) == (10, 5)
    assert Dataset.range(0).reduce(np.int64(7), lambda s, x: s + x) == 7


def test_get_single_element():
    assert Dataset.range(3, 4).get_single_element() == 3
    for n in (0, 2):
        with pytest.raises(ps.InvalidArgumentError):
            Dataset.range(n).get_single_element()


# ---- Cardinality, options and the rest.


@pytest.mark.parametrize(
    ("dataset", "want"),
    [
        (lambda: Dataset.range(5), 5),
        (lambda: Dataset.range(5).batch(2), 3),
        (lambda: Dataset.range(5).batch(2, True), 2),
        (lambda: Dataset.range(5).filter(lambda x: x > 1), "unknown"),
        (lambda: Dataset.range(5).repeat(), "infinite"),
        (lambda: Dataset.range(0).repeat(), 0),
        (lambda: Dataset.range(5).repeat().take(3), 3),
        (lambda: Dataset.range(5).repeat(3), 15),
        (lambda: Dataset.range(5).skip(2), 3),
        (lambda: Dataset.range(5).shard(2, 0), 3),
        (lambda: Dataset.zip(Dataset.range(5), Dataset.counter()), 5),
        (lambda: Dataset.range(5).concatenate(Dataset.counter()), "infinite"),
        (lambda: Dataset.range(5).flat_map(Dataset.range), "unknown"),
        (lambda: Dataset.range(5).ignore_errors(), "unknown"),
        (lambda: ps.TextLineDataset("f"), "unknown"),
    ],
)
def test_cardinality(dataset, want):
    numbers = {
        "infinite": ps.INFINITE_CARDINALITY,
        "unknown": ps.UNKNOWN_CARDINALITY,
    }
    made = dataset()
    assert made.cardinality() == numbers.get(want, want)
    if isinstance(want, int):
        assert len(made) == want
    else:
        with pytest.raises(TypeError):
            len(made)
    assert made  # Truth is not length.


def test_options_merge():
    ds = Dataset.range(3).with_options(ps.Options(memory_budget=9, name="a"))
    ds = ds.batch(2).with_options(ps.Options(name="b", run_ahead=0))
    assert ds.options() == ps.Options(memory_budget=9, name="b", run_ahead=0)
    assert lists(ds) == [[0, 1], [2]]


@pytest.mark.parametrize(
    "options",
    [{"max_element_bytes": 0}, {"memory_budget": -1}, {"run_ahead": -1}],
)
def test_options_are_checked(options):
    with pytest.raises(ValueError):
        Dataset.range(3).with_options(ps.Options(**options))
    with pytest.raises(TypeError):
        Dataset.range(3).with_options(options)


@pytest.mark.parametrize("size", [None, 0, 1, 5, ps.AUTOTUNE])
def test_prefetch(size):
    assert ints(Dataset.range(4).prefetch(size)) == [0, 1, 2, 3]


@pytest.mark.parametrize("size", [-2, 1.5])
def test_prefetch_refuses(size):
    with pytest.raises(ValueError, match="buffer_size"):
        Dataset.range(4).prefetch(size)


def test_ignore_errors():
    ds = Dataset.range(5).map(lambda x: ps.reshape(ps.arange(x), (2,)))
    assert lists(ds.ignore_errors()) == [[0, 1]]


def test_apply_and_iteration():
    ds = Dataset.range(3).apply(lambda d: d.batch(2))
    assert lists(ds.as_numpy_iterator()) == [[0, 1], [2]]
    assert ints(Dataset.range(3)) == ints(Dataset.range(3))


def test_datasets_show_what_they_are():
    ds = Dataset.range(5).map(lambda x: x + 1).batch(2)
    assert "cardinality=3" in repr(ds)
    text = ds.describe()
    assert not text.endswith("\n")
    for part in ("range", "map", "batch", "test_transforms.py"):
        assert part in text
    assert "<table>" in ds._repr_html_()


def test_fingerprints_name_what_is_computed():
    def make(n):
        return Dataset.range(n).map(lambda x: x + 1).batch(2)

    assert make(5).fingerprint() == make(5).fingerprint()
    assert make(5).fingerprint() != make(6).fingerprint()


def test_long_chains():
    ds = Dataset.range(3)
    for _ in range(100):
        ds = ds.map(lambda x: x + 1)
    assert ints(ds) == [100, 101, 102]


def test_many_iterators_at_once():
    ds = Dataset.range(20).batch(2)
    iterators = [iter(ds) for _ in range(20)]
    rounds = [[next(it).tolist() for it in iterators] for _ in range(10)]
    assert list(itertools.chain(*rounds)) == [
        [2 * i, 2 * i + 1] for i in range(10) for _ in iterators
    ]


def test_random_functions_with_a_seed_repeat() -> None:
    def draw() -> list[float]:
        ds = Dataset.range(5).map(lambda x: ps.random_uniform((), seed=3))
        return [float(x) for x in ds]

    first = draw()
    assert len(set(first)) == 5
    assert draw() == first
