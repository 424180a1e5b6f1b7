"""The user's Python in scan, reduce, keys, flat_map and interleave."""

import collections

import numpy as np
import pytest
from complaints import refuses
from pipelines import assert_equal

import penstock as ps

Dataset = ps.Dataset
SEEN = collections.Counter()
INT64 = ps.TensorSpec((), ps.int64)


def outcomes(ds):
    found = []
    iterator = iter(ds)
    while True:
        try:
            found.append(next(iterator))
        except StopIteration:
            return found
        except ps.PenstockError as error:
            found.append(error)


def numbers(ds):
    return [int(x) for x in ds]


def where_errors_are(found):
    return [i for i, x in enumerate(found) if isinstance(x, Exception)]


def every_position(ds):
    """Holds if a state saved anywhere gives the rest."""
    whole = list(ds)
    it = iter(ds)
    for position in range(len(whole) + 1):
        resumed = iter(ds)
        resumed.load_state_dict(it.state_dict())
        assert_equal(list(resumed), whole[position:])
        if position < len(whole):
            assert_equal([next(it)], [whole[position]])


# ---- scan and reduce.


def python_sum(total, x):
    SEEN["calls"] += 1  # Nothing that a recording could hold.
    return total + x, total + x


def test_scan_passes_its_state_on():
    ds = Dataset.range(1, 2000).scan(np.int64(0), python_sum)
    assert ds.element_spec == INT64
    assert numbers(ds) == np.cumsum(np.arange(1, 2000)).tolist()
    assert "scan_1 runs as Python" in ds.describe()
    assert len(ds) == 1999


def test_scan_state_at_every_position():
    every_position(Dataset.range(40).scan(np.int64(3), python_sum))


def test_scan_over_tuples_and_structures():
    def remember(state, pair):
        if pair[0] == 2:
            state["words"] = state["words"] + pair[1]
        count = state["count"] + 1
        return {"count": count, "words": state["words"]}, (count, pair[1])

    ds = Dataset.zip(
        Dataset.range(4), Dataset.from_tensor_slices(["a", "b", "c", "d"])
    ).scan({"count": np.int32(0), "words": "w"}, remember)
    assert list(ds) == [(1, b"a"), (2, b"b"), (3, b"c"), (4, b"d")]
    assert next(iter(ds))[0].dtype == np.int32


def test_a_state_may_change_its_size():
    def collect(seen, x):
        SEEN["calls"] += 1
        return np.append(seen, x), len(seen)

    ds = Dataset.range(5).scan(np.zeros(0, np.int64), collect)
    assert numbers(ds) == [0, 1, 2, 3, 4]
    every_position(ds)


def test_what_a_failing_call_does_to_the_state_is_undone():
    def spoils(state, x):
        state += 1
        if x % 3 == 2:
            raise ValueError(f"not {x}")
        return state, state[0]

    found = outcomes(Dataset.range(8).scan(np.zeros(2, np.int64), spoils))
    assert where_errors_are(found) == [2, 5]
    assert [int(x) for x in found if not isinstance(x, Exception)] == [
        1, 2, 3, 4, 5, 6,
    ]  # fmt: skip
    assert "ValueError: not 2" in str(found[2])
    assert "in spoils" in str(found[2])
    assert "test_python_elsewhere.py" in str(found[2])


def test_outputs_do_not_change_with_the_state():
    def grows(state, x):
        state[:] += x
        return state, state

    got = [x.tolist() for x in Dataset.range(4).scan(np.zeros(1, int), grows)]
    assert got == [[0], [1], [3], [6]]


def test_errors_of_the_input_leave_the_state():
    bad = Dataset.from_tensor_slices([2, -1, 3]).map(
        lambda n: ps.size(ps.zeros((n,)))
    )
    found = outcomes(bad.scan(np.int64(0), python_sum))
    assert where_errors_are(found) == [1]
    assert [int(found[0]), int(found[2])] == [2, 5]


def test_reduce():
    def longest(best, word):
        return word if len(word) > len(best) else best

    words = Dataset.from_tensor_slices(["a", "ccc", "bb"])
    assert words.reduce("", longest) == b"ccc"
    assert Dataset.range(0).reduce(np.int64(7), python_reduce) == 7
    assert Dataset.range(5000).reduce(np.int64(0), python_reduce) == 12497500
    mixed = Dataset.range(4).reduce(
        (np.float32(0), np.int64(0)),
        lambda s, x: (s[0] + float(x) if x >= 0 else 0, s[1] + 1),
    )
    assert mixed == (6.0, 4)
    assert mixed[0].dtype == np.float32


def python_reduce(total, x):
    SEEN["calls"] += 1
    return total + x


def test_the_first_error_is_what_reduce_raises():
    def fails(total, x):
        if x >= 30:
            raise KeyError(int(x))
        return total + x

    with pytest.raises(ps.PenstockError, match="KeyError: 30"):
        Dataset.range(100).reduce(np.int64(0), fails)


def test_scan_runs_in_order_in_one_process_at_a_time(tmp_path):
    log = tmp_path / "log"

    def writes(state, x):
        with open(log, "a") as file:
            file.write(f"{x}\n")
        return state, x

    f = ps.python_function(writes, output_signature=(INT64, INT64))
    assert numbers(Dataset.range(500).scan(np.int64(0), f)) == list(range(500))
    assert log.read_text().split() == [str(i) for i in range(500)]


def test_scan_has_generators_of_its_own():
    def walk(state, x, rng):
        state = state + rng.normal()
        return state, state

    f = ps.python_function(walk, rng=True)
    ds = Dataset.range(30).scan(np.float64(0), f)
    ds.set_epoch(0)
    first = list(ds)
    assert first == list(ds)
    assert len(set(first)) == 30
    every_position(ds)
    ds.set_epoch(1)
    assert first != list(ds)


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda s, x: (s, x) if x < 3 else x, "new state and the output"),
        (lambda s, x: (s if x < 3 else "s", x), "expected int64"),
        (lambda s, x: (s, x if x < 3 else [1, 2]), "shape"),
        (lambda s, x: (s if x < 3 else [1, 2], x), "shape"),
    ],
)
def test_what_a_scan_returns_is_checked(function, text):
    found = outcomes(Dataset.range(5).scan(np.int64(0), function))
    assert where_errors_are(found) == [3, 4]
    assert text in str(found[3])
    kept = Dataset.range(5).scan(np.int64(0), function).ignore_errors()
    assert numbers(kept) == [0, 1, 2]


# ---- Keys, lengths, classes.


def python_key(x):
    SEEN["keys"] += 1
    return int(x) % 3


def test_keys():
    ds = Dataset.range(50)
    native = ds.group_by_window(
        lambda x: x % 3, lambda k, g: g.batch(4), window_size=4
    )
    python = ds.group_by_window(
        python_key, lambda k, g: g.batch(4), window_size=4
    )
    assert_equal(list(python), list(native))
    assert "group_by_window_1 runs python_key as Python" in python.describe()
    every_position(python)


def test_window_sizes_by_key():
    def size(key):
        SEEN["sizes"] += 1
        return int(key) + 1

    def grouped(key, size):
        return Dataset.range(30).group_by_window(
            key, lambda k, g: g.batch(9), window_size_func=size
        )

    native = list(grouped(lambda x: x % 3, lambda k: k + 1))
    for key in (python_key, lambda x: x % 3):
        assert_equal(list(grouped(key, size)), native)
        every_position(grouped(key, size))


def test_errors_of_keys_and_sizes():
    def key(x):
        if x == 2:
            raise ValueError("no key")
        return 0

    def grouped(**how):
        return Dataset.range(5).group_by_window(
            key, lambda k, g: g.batch(2), **how
        )

    found = outcomes(grouped(window_size=2))
    assert where_errors_are(found) == [1]
    assert "no key" in str(found[1])
    assert [x.tolist() for x in grouped(window_size=2).ignore_errors()] == [
        [0, 1], [3, 4],
    ]  # fmt: skip
    bad = outcomes(grouped(window_size_func=lambda k: 0 if k == 0 else 1))
    assert len(where_errors_are(bad)) == 5
    assert "at least 1 element" in str(bad[0])


def test_keys_must_be_integers():
    found = outcomes(
        Dataset.range(3).group_by_window(
            lambda x: 0.5 if x == 1 else 0, lambda k, g: g.batch(3), 3
        )
    )
    assert where_errors_are(found) == [0]
    assert "expected int64" in str(found[0])
    assert found[1].tolist() == [0, 2]


def test_lengths_of_buckets():
    rows = [[1], [2, 3, 4], [5, 6], [7, 8, 9]]
    ds = Dataset.from_list(rows)

    def length(x):
        SEEN["lengths"] += 1
        return len(x)

    native = ds.bucket_by_sequence_length(lambda x: ps.size(x), [3], [2, 2])
    python = ds.bucket_by_sequence_length(length, [3], [2, 2])
    assert_equal(list(python), list(native))
    every_position(python)


@pytest.mark.parametrize("initial", [None, [0.9, 0.1]])
@pytest.mark.parametrize("is_said", [False, True])
def test_classes_of_rejection_resample(initial, is_said):
    def kind(x):
        return 1 if str(x).endswith("0") else 0

    ds = Dataset.range(2000).rejection_resample(
        ps.python_function(kind) if is_said else kind,
        [0.5, 0.5],
        initial_dist=initial,
        seed=1,
    )
    found = [(int(k), int(x)) for k, x in ds]
    assert all(k == kind(x) for k, x in found)
    assert 0.35 < sum(k for k, _ in found) / len(found) < 0.65


def python_reduce_func(key, group):
    return group.batch(2) if key == 0 else group.batch(3)


def python_rows_func(key, group):
    yield [int(key), *(int(x) for x in group)]


@pytest.mark.parametrize("key", [python_key, lambda x: x % 3])
def test_a_reduce_func_may_run_as_python(key):
    ds = Dataset.range(8).group_by_window(key, python_reduce_func, 3)
    assert [x.tolist() for x in ds] == [[0, 3], [6], [1, 4, 7], [2, 5]]
    assert "runs as Python: a decision" in ds.describe()
    every_position(ds)
    rows = Dataset.range(8).group_by_window(key, python_rows_func, 3)
    assert [x.tolist() for x in rows] == [[0, 0, 3, 6], [1, 1, 4, 7], [2, 2, 5]]
    with pytest.raises(ps.UnsupportedFunctionError, match="decision"):
        Dataset.range(8).group_by_window(key, ps.native(python_reduce_func), 3)


def test_a_reduce_func_fails_for_its_group():
    def fails(key, group):
        if key == 1:
            raise ValueError("no such group")
        return group

    found = outcomes(Dataset.range(6).group_by_window(python_key, fails, 2))
    assert where_errors_are(found) == [2]
    assert "no such group" in str(found[2])
    assert [int(x) for x in found[:2] + found[3:]] == [0, 3, 2, 5]


# ---- flat_map and interleave.


def count_down(n):
    for i in range(int(n), 0, -1):
        yield 10 * n + i


def native_count_down(n):
    return Dataset.range(n).map(lambda i: 10 * n + n - i)


def test_flat_map_of_a_generator():
    ds = Dataset.range(6).flat_map(count_down)
    assert ds.element_spec == INT64
    native = Dataset.range(6).flat_map(native_count_down)
    assert numbers(ds) == numbers(native)
    assert "runs as Python: it is a generator function" in ds.describe()
    every_position(ds)


@pytest.mark.parametrize("cycle", [1, 2, 3])
@pytest.mark.parametrize("block", [1, 2])
@pytest.mark.parametrize("calls", [None, 2])
def test_interleave_has_the_order_of_native_ones(cycle, block, calls):
    def interleaved(function):
        return Dataset.range(7).interleave(
            function, cycle, block, num_parallel_calls=calls
        )

    ds = interleaved(count_down)
    assert numbers(ds) == numbers(interleaved(native_count_down))
    every_position(ds)


def a_list(x):
    return [x] * 2 if x else []


def a_tuple(x):
    return (int(x), int(x))


def an_array(x):
    return np.full(2, int(x))


def a_dataset(x):
    if x % 2:
        return Dataset.from_tensors(x).repeat(2)
    return Dataset.from_tensor_slices([int(x)] * 2)


def an_iterator(x):
    return iter([int(x), int(x)])


@pytest.mark.parametrize(
    "function", [a_list, a_tuple, an_array, a_dataset, an_iterator]
)
def test_what_rows_may_come_as(function):
    ds = Dataset.range(1, 4).flat_map(function)
    assert numbers(ds) == [1, 1, 2, 2, 3, 3]


def test_rows_have_structures_and_sizes():
    def rows(n):
        for i in range(n):
            yield {"name": f"{i}", "values": np.arange(i, dtype=np.float32)}

    ds = Dataset.range(3).flat_map(rows)
    assert ds.element_spec == {
        "name": ps.TensorSpec((), ps.string),
        "values": ps.TensorSpec((None,), ps.float32),
    }
    assert [(x["name"], x["values"].tolist()) for x in ds] == [
        (b"0", []), (b"0", []), (b"1", [0.0]),
    ]  # fmt: skip


def test_rows_that_are_said():
    f = ps.python_function(count_down, output_signature=INT64)
    assert numbers(Dataset.range(0).flat_map(f)) == []
    assert numbers(Dataset.range(3).flat_map(f)) == [11, 22, 21]
    none = ps.python_function(lambda x: [], output_signature=INT64)
    assert numbers(Dataset.range(3).flat_map(none)) == []
    with pytest.raises(ps.PenstockError, match="output_signature"):
        Dataset.range(3).flat_map(lambda x: [] if x < 9 else [1])


def test_errors_in_a_generator_come_after_its_rows():
    def fails(n):
        yield n
        if n == 1:
            raise RuntimeError("half way")
        yield "text" if n == 2 else n

    found = outcomes(Dataset.range(4).flat_map(fails))
    assert where_errors_are(found) == [3, 5]
    assert "half way" in str(found[3])
    assert "in fails" in str(found[3])
    assert "what it returned" in str(found[5])
    kept = Dataset.range(4).flat_map(fails).ignore_errors()
    assert numbers(kept) == [0, 0, 1, 2, 3, 3]


@pytest.mark.parametrize("result", [5, "text", {"a": 1}, np.float32(2), None])
def test_what_is_no_rows_is_refused(result):
    def function(x):
        SEEN["calls"] += 1
        return [x] if x == 0 else result

    found = outcomes(Dataset.range(2).flat_map(function))
    assert where_errors_are(found) == [1]
    assert "expected a list, tuple, generator, array" in str(found[1])


def test_rows_of_an_element_are_bounded():
    def endless(n):
        while n:
            yield np.zeros(1000)
        yield np.zeros(1000)

    options = ps.Options(max_element_bytes=100_000)
    f = ps.python_function(
        endless, output_signature=ps.TensorSpec((1000,), ps.float64)
    )
    found = outcomes(Dataset.range(2).flat_map(f).with_options(options))
    assert where_errors_are(found) == [1]
    assert isinstance(found[1], ps.ResourceExhaustedError)
    assert "Options(max_element_bytes=" in str(found[1])


def test_a_value_in_the_place_of_a_dataset_says_what_to_do():
    with refuses(TypeError, "Dataset", where=False):
        Dataset.range(3).flat_map(lambda x: x)


def test_closures_over_big_arrays_are_sent_once():
    table = np.arange(1 << 20)
    table.setflags(write=False)

    def looks_up(total, x):
        SEEN["calls"] += 1
        return total + table[int(x) * 1000]

    assert Dataset.range(5).reduce(np.int64(0), looks_up) == 10_000


def test_functions_inside_functions():
    def double(x):
        SEEN["calls"] += 1
        return 2 * x

    f = ps.python_function(double, output_signature=INT64)
    ds = Dataset.range(4).flat_map(lambda n: Dataset.range(n).map(f))
    assert numbers(ds) == [0, 0, 2, 0, 2, 4]
    assert "flat_map_1/map_1 runs as Python" in ds.describe()
    # Else the whole function runs as Python, with an engine of its own.
    outside = Dataset.range(1, 3).flat_map(
        lambda n: Dataset.range(n).map(double)
    )
    assert "map_1 runs as Python" in outside.describe()
    assert numbers(outside) == [0, 0, 2]


def test_a_buffer_may_be_returned_again_and_again():
    buffer = np.zeros(3, np.int64)

    def fill(x):
        buffer[:] = int(x)
        return buffer

    def give(x):
        for i in range(2):
            yield fill(10 * x + i)

    def part(x):
        return fill(x)[:2]

    def of_state(s, x):
        return s, fill(x)

    spec = ps.TensorSpec((3,), ps.int64)
    source = Dataset.from_generator(
        lambda: map(fill, range(4)), output_signature=spec
    )
    whole = [[i] * 3 for i in range(4)]
    assert [x.tolist() for x in source] == whole
    ds = Dataset.range(4)
    assert [x.tolist() for x in ds.map(fill)] == whole
    assert [x.tolist() for x in ds.map(part)] == [[i] * 2 for i in range(4)]
    scanned = ds.scan(np.int64(0), of_state)
    assert [x.tolist() for x in scanned] == whole
    rows = ds.take(2).flat_map(give)
    assert [x.tolist() for x in rows] == [[i] * 3 for i in (0, 1, 10, 11)]


def test_fingerprints_tell_functions_inside_apart():
    def resampled(kind):
        return Dataset.range(20).rejection_resample(
            kind, [0.5, 0.5], initial_dist=[0.5, 0.5], seed=1
        )

    def odd(x):
        return 1 if x % 2 else 0

    def large(x):
        return 1 if x > 9 else 0

    assert resampled(odd).fingerprint() == resampled(odd).fingerprint()
    assert resampled(odd).fingerprint() != resampled(large).fingerprint()
