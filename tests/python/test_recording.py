"""Recorded functions compute what Python would."""

import functools
import math
import operator
import pickle
from math import hypot

import numpy as np
import pytest
from pipelines import assert_equal

import penstock as ps

Dataset = ps.Dataset
A = np.array([[-7, 3, 5], [2, -1, 8]])
B = np.array([[2, 2, -3], [4, 5, 1]])


def run(function, *arrays):
    """What `function` gives in the engine."""
    ds = Dataset.from_tensors(arrays if len(arrays) > 1 else arrays[0])
    return ds.map(function).get_single_element()


OPERATORS = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.floordiv,
    operator.mod,
    operator.and_,
    operator.or_,
    operator.xor,
    operator.lt,
    operator.le,
    operator.gt,
    operator.ge,
    operator.eq,
    operator.ne,
]


@pytest.mark.parametrize("function", OPERATORS, ids=lambda f: f.__name__)
def test_operators(function):
    assert_equal(run(lambda a, b: function(a, b), A, B), function(A, B))
    assert_equal(run(lambda a: function(a, 3), A), function(A, 3))
    assert_equal(run(lambda a: function(3, a), B), function(3, B))
    assert_equal(run(lambda a: function(a, B), A), function(A, B))
    assert_equal(run(lambda b: function(A, b), B), function(A, B))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: -x,
        lambda x: +x,
        lambda x: ~x,
        lambda x: abs(x),
        lambda x: x**2,
        lambda x: x << 1,
        lambda x: x >> 1,
        lambda x: 2 - x,
        lambda x: x + 1.5,
        lambda x: x + np.float32(1.5),
        lambda x: divmod(x, 3),
        lambda x: x.astype(np.float32),
        lambda x: x.reshape(3, 2),
        lambda x: x.reshape((-1,)),
        lambda x: x.flatten(),
        lambda x: x.T,
        lambda x: x.sum(),
        lambda x: x.sum(axis=0),
        lambda x: x.mean(axis=1, keepdims=True),
        lambda x: x.min(),
        lambda x: x.max(axis=(0, 1)),
        lambda x: x.argmax(axis=1),
        lambda x: np.add(x, x),
        lambda x: np.where(x > 0, x, 0),
        lambda x: np.clip(x, -1, 2),
        lambda x: np.sum(x, axis=1),
        lambda x: np.maximum(x, 2),
        lambda x: np.concatenate([x, x]),
        lambda x: np.stack([x, x], axis=1),
        lambda x: np.reshape(x, (3, 2)),
        lambda x: np.sqrt(np.abs(x)),
        lambda x: np.divide(x, 2),
        lambda x: np.remainder(x, 2),
        lambda x: np.around(x),
    ],
)
def test_like_numpy(function):
    assert_equal(run(function, A), function(A))


@pytest.mark.parametrize(
    "key",
    [
        0,
        -1,
        (0, 1),
        slice(1),
        slice(None, None, -1),
        (slice(None), slice(1, 3)),
        (Ellipsis, 0),
        None,
        (0, None, slice(None, None, 2)),
        ...,
        np.array([1, 0, 1]),
        [0, 0],
        np.array([[True, False, True], [False, True, False]]),
    ],
    ids=str,
)
def test_indexing(key):
    assert_equal(run(lambda x: x[key], A), A[key])


def test_symbolic_indices():
    assert_equal(run(lambda x, i: x[i, 1:], A, np.int64(1)), A[1, 1:])
    assert_equal(run(lambda x, i: x[:, :i], A, np.int64(2)), A[:, :2])
    assert_equal(run(lambda x: x[x > 0], A), A[A > 0])
    assert_equal(run(lambda x, i: x[i], A, np.array([1, 1])), A[[1, 1]])


def test_what_is_known_while_recording():
    seen = []

    def look(x, y):
        assert len(x) == 2
        assert x.shape == (2, 3)
        assert (x + y).shape == (2, 3)
        assert (x / 2).dtype == np.float64
        assert x.ndim == 2
        first, second = x
        return first + second

    assert_equal(run(look, A, B), A[0] + A[1])
    assert seen == []


def test_unknown_sizes_are_symbolic():
    ds = Dataset.range(5).batch(2).map(lambda x: x.shape[0] * 10)
    assert list(ds) == [20, 20, 10]
    with pytest.raises(ps.UnsupportedFunctionError, match="len"):
        Dataset.range(5).batch(2).map(ps.native(len))


def test_python_scalars_are_weak():
    x = np.array([1], np.uint8)
    assert run(lambda x: x + 1, x).dtype == np.uint8
    assert run(lambda x: x + 1.0, x.astype(np.float32)).dtype == np.float32
    assert run(lambda x: x + np.int64(1), x).dtype == np.int64


def test_captured_arrays_are_taken_as_they_are():
    table = np.arange(3)
    ds = Dataset.range(1).map(lambda x: x + table)
    table[:] = 9
    assert ds.get_single_element().tolist() == [0, 1, 2]


def test_callables():
    class Scale:
        def __init__(self, factor):
            self.factor = factor

        def __call__(self, x):
            return x * self.factor

        def method(self, x):
            return x - self.factor

    x = np.int64(5)
    assert run(Scale(3), x) == 15
    assert run(Scale(3).method, x) == 2
    assert run(functools.partial(operator.sub, 7), x) == 2
    assert run(np.negative, x) == -5
    assert run(ps.negative, x) == -5


def test_functions_run_at_once_on_values():
    assert_equal(ps.add(np.array([1, 2]), 10), np.array([11, 12]))
    assert ps.add(1, 2) == 3
    with pytest.raises(ps.InvalidArgumentError):
        ps.add(np.zeros(2), np.zeros(3))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: 1 if x else 2,
        lambda x: x and 1,
        lambda x: int(x),
        lambda x: float(x),
        lambda x: range(x),
        lambda x: max(x, 1),
        lambda x: x in [1, 2],
        lambda x: 1 in x,
        lambda x: {0: 1}.get(x, 2),
        lambda x: x in {1, 2},
        lambda x: f"{x}",
        lambda x: str(x),
        lambda x: np.linalg.norm(x),
        lambda x: np.asarray(x),
        lambda x: x.no_such_method(),
        lambda x: x[1.5],
        lambda x: no_such_name + x,  # noqa: F821
    ],
)
def test_what_cannot_be_recorded(function):
    with pytest.raises(ps.UnsupportedFunctionError) as caught:
        Dataset.range(3).map(ps.native(function))
    assert "recorded" in str(caught.value) or "index" in str(caught.value)


TEXT = Dataset.from_tensor_slices(["a b"])
ROWS = Dataset.from_tensor_slices(np.ones((2, 3)))


@pytest.mark.parametrize(
    ("dataset", "function", "parts"),
    [
        (TEXT, lambda s: s.split(), ["'split'", "ps.strings"]),
        (TEXT, lambda s: len(s), ["len() of a string", "ps.strings"]),
        (TEXT, lambda s: float(s), ["float() of a string", "ps.strings"]),
        (TEXT, lambda s: f"{s}!", ["text", "ps.strings"]),
        (Dataset.range(3), lambda x: len(x), ["scalar"]),
        (Dataset.range(3), lambda x: list(x), ["iteration", "scalar"]),
        (Dataset.range(3).batch(2), lambda x: len(x), ["ps.shape(x)[0]"]),
        (Dataset.range(3), lambda x: x.upper(), ["'upper'", "functions in ps"]),
        (Dataset.range(3), lambda x: math.sqrt(x), ["Use ps.sqrt."]),
        (Dataset.range(3), lambda x: math.atan(x), ["Use ps.arctan."]),
        (Dataset.range(3), lambda x: hypot(x, 1), ["math.hypot", "python_fun"]),
        (Dataset.range(3), lambda x: float(x), ["ps.cast(x, ps.float64)"]),
        (
            Dataset.range(3),
            lambda x: np.array([x, x + 1]),
            ["ps.stack([a, b])"],
        ),
        (
            ROWS,
            lambda x: np.linalg.norm(x),
            ["np.linalg.norm at", "ps.sqrt(ps"],
        ),
        (ROWS, lambda x: np.fmod(x, 3), ["np.fmod at", "ps.trunc(x / y)"]),
        (Dataset.range(3), lambda x: round(x, 2), ["ps.round(x * 100) / 100"]),
        (ROWS, lambda x: np.median(x), ["np.median at", "python_function"]),
    ],
)
def test_refusals_say_what_to_do(dataset, function, parts):
    with pytest.raises(ps.UnsupportedFunctionError) as caught:
        dataset.map(ps.native(function))
    for part in [*parts, "test_recording.py:", "cannot be recorded"]:
        assert part in str(caught.value)
    assert "ps.shape(x)" in parts[0] or "ps.shape" not in str(caught.value)


def catching():
    """Sent by value: this module runs pipelines when it is imported."""

    def caught(x):
        try:
            return int(x) + 1
        except Exception:
            return -1

    def caught_below(x):
        return caught(x) * 2

    return caught, caught_below


@pytest.mark.parametrize("function", catching())
def test_what_is_caught_while_it_is_recorded_is_not_believed(function):
    with pytest.raises(ps.UnsupportedFunctionError, match="catches Unsupp"):
        Dataset.range(3).map(ps.native(function))
    found = [int(x) for x in Dataset.range(3).map(function)]
    assert found == [function(i) for i in range(3)]


def test_handlers_that_nothing_comes_to_may_be_there():
    def careful(x):
        try:
            return x + 1
        except ValueError:
            return -1
        finally:
            x = 0

    assert list(Dataset.range(3).map(ps.native(careful))) == [1, 2, 3]


@pytest.mark.parametrize(
    "function", [lambda x: repr(x), lambda x: f"{(x,)}", lambda x: str([x])]
)
def test_symbols_have_no_text(function):
    found = list(Dataset.range(2).map(function))
    assert found == [function(np.int64(i)).encode() for i in range(2)]


@pytest.mark.parametrize(
    "function",
    [
        repr,
        str,
        ascii,
        functools.partial(repr),
        "{}".format,
        "%r".__mod__,
        lambda x: {"a": repr(x)}["a"],
    ],
)
def test_text_by_what_has_no_frame_of_its_own(function):
    found = list(Dataset.range(2).map(function))
    assert found == [function(np.int64(i)).encode() for i in range(2)]
    pairs = Dataset.range(2).map(lambda x: {"a": x})
    want = [function({"a": np.int64(i)}).encode() for i in range(2)]
    assert list(pairs.map(function)) == want


def test_lengths_by_the_builtin():
    texts = Dataset.from_tensor_slices([b"a", b"bcd"])
    assert list(texts.map(len)) == [1, 3]
    assert list(Dataset.range(5).batch(2).map(len)) == [2, 2, 1]
    with pytest.raises(ps.InvalidArgumentError, match="has no len"):
        Dataset.range(2).map(len)


def test_what_a_function_raises_is_the_cause():
    def divide(x):
        return x * (1 // 0)

    with pytest.raises(ps.UnsupportedFunctionError) as caught:
        Dataset.range(3).map(ps.native(divide))
    line = divide.__code__.co_firstlineno + 1
    assert f"test_recording.py:{line}: " in str(caught.value)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_assignment_is_refused():
    def assign(x):
        x[0] = 1
        return x

    with pytest.raises(
        ps.UnsupportedFunctionError, match=r"test_recording\.py"
    ):
        Dataset.range(3).batch(2).map(ps.native(assign))


def test_changing_what_is_captured_is_refused():
    seen = []

    def remember(x):
        seen.append(x)
        return x

    with pytest.raises(ps.UnsupportedFunctionError, match="seen"):
        Dataset.range(3).map(ps.native(remember))


def test_escaped_values_are_refused():
    box = {}

    class Keep:
        def __call__(self, x):
            return x

    keep = Keep()

    def escape(x):
        keep.__dict__["x"] = x
        return x

    # Whether or not it is noticed there, the value is of no use elsewhere.
    try:
        Dataset.range(3).map(ps.native(escape))
    except ps.UnsupportedFunctionError:
        return
    box["x"] = keep.x
    with pytest.raises(ps.InvalidArgumentError):
        Dataset.range(3).map(lambda y: y + keep.x)


def test_errors_name_the_users_line():
    def wrong(x):
        return ps.reshape(x, (2, 2))

    line = wrong.__code__.co_firstlineno + 1
    with pytest.raises(ValueError) as caught:
        Dataset.from_tensors(np.zeros(3)).map(wrong)
    assert f"test_recording.py:{line}" in str(caught.value)


def test_a_function_with_the_wrong_number_of_parameters():
    with pytest.raises(ps.UnsupportedFunctionError, match="1 argument"):
        Dataset.range(3).map(lambda a, b: a)


def test_datasets_of_outer_functions_stay_there():
    def outer(x):
        made = Dataset.range(x)
        return Dataset.range(2).flat_map(lambda y: made.take(y))

    with pytest.raises(ps.InvalidArgumentError, match="make it again"):
        Dataset.range(3).flat_map(outer)


def test_a_value_may_be_returned_and_used_by_a_later_step() -> None:
    def both(x: ps.Symbol) -> tuple[ps.Symbol, ps.Symbol, ps.Symbol]:
        y = x * 2
        return y, ps.max(y), y + 1

    (got,) = ps.Dataset.from_tensors(np.arange(3.0)).map(both)
    np.testing.assert_array_equal(got[0], [0, 2, 4])
    assert got[1] == 4
    np.testing.assert_array_equal(got[2], [1, 3, 5])


def test_divmod():
    ds = ps.Dataset.range(5).map(lambda x: divmod(x, 3) + divmod(7, x + 1))
    want = [divmod(x, 3) + divmod(7, x + 1) for x in range(5)]
    assert [tuple(map(int, row)) for row in ds] == want


def test_large_constants_travel_once():
    table = np.arange(100_000)
    words = np.array([b"w%d" % i for i in range(10_000)], object)
    ds = ps.Dataset.range(3).map(lambda x: (table[:4] + x, words))
    ds = ds.map(lambda a, b: (a, ps.take(b, a + 9990)))
    assert len(ds._plan) < 10_000
    for copy in (ds, pickle.loads(pickle.dumps(ds))):
        a, b = list(copy)[2]
        assert a.tolist() == [2, 3, 4, 5]
        assert b.tolist() == [b"w9992", b"w9993", b"w9994", b"w9995"]
    assert ds.fingerprint() != ps.Dataset.range(3).fingerprint()


def test_large_constants_inside_nested_functions():
    table = np.arange(10_000)
    ds = ps.Dataset.range(2).flat_map(
        lambda n: ps.Dataset.range(2).map(lambda i: ps.take(table, n * 10 + i))
    )
    assert [int(x) for x in ds] == [0, 1, 10, 11]
