"""Generators: rows out of this process."""

import gc
import threading

import numpy as np
import pytest
from pipelines import Point, assert_equal, ints

import penstock as ps

Dataset = ps.Dataset
INT = ps.TensorSpec((), np.int64)


def generated(values, signature=INT, **options):
    return Dataset.from_generator(
        lambda: iter(values), output_signature=signature, **options
    )


def outcomes(dataset):
    iterator = iter(dataset)
    found = []
    while True:
        try:
            found.append(next(iterator))
        except StopIteration:
            return found
        except ps.PenstockError as error:
            found.append(error)


@pytest.mark.parametrize(
    ("signature", "value", "want"),
    [
        (INT, 3, np.int64(3)),
        (ps.TensorSpec((), np.float32), 3, np.float32(3)),
        (ps.TensorSpec((), str), "ä", "ä".encode()),
        (ps.TensorSpec((2,), np.int32), [1, 2], np.array([1, 2], np.int32)),
        (ps.TensorSpec((None,), str), ["a", "b"], None),
        ((INT, INT), (1, 2), (np.int64(1), np.int64(2))),
        ((INT, INT), [1, 2], (np.int64(1), np.int64(2))),
        ({"b": INT, "a": INT}, {"a": 1, "b": 2}, None),
        (Point(INT, INT), Point(1, 2), Point(np.int64(1), np.int64(2))),
        (ps.TensorSpec(None, np.int64), [[1]], np.array([[1]])),
    ],
)
def test_values_are_converted(signature, value, want):
    (got,) = generated([value], signature)
    if want is not None:
        assert_equal(got, want)
    elif isinstance(got, dict):
        assert list(got) == ["b", "a"]
        assert got == {"a": 1, "b": 2}
    else:
        assert got.tolist() == [b"a", b"b"]


def test_each_iterator_has_its_own():
    ds = generated(range(3))
    a, b = iter(ds), iter(ds)
    assert [next(a), next(a), next(b), next(a), next(b)] == [0, 1, 0, 2, 1]


def test_many_rows():
    assert ints(generated(range(10_000))) == list(range(10_000))


def test_infinite():
    def forever():
        n = 0
        while True:
            yield n
            n += 1

    ds = Dataset.from_generator(forever, output_signature=INT)
    assert ints(ds.take(5)) == [0, 1, 2, 3, 4]


def test_arguments():
    def count(n, words):
        assert isinstance(n, np.int64)
        for i in range(n):
            yield words[i]

    ds = Dataset.from_generator(
        count,
        args=(2, ["a", "b", "c"]),
        output_signature=ps.TensorSpec((), str),
    )
    assert list(ds) == [b"a", b"b"]


def test_arguments_of_an_outer_function():
    def count(n):
        yield from range(n)

    ds = Dataset.range(3).flat_map(
        lambda n: Dataset.from_generator(count, args=(n,), output_signature=INT)
    )
    assert ints(ds) == [0, 0, 1]


@pytest.mark.parametrize(
    "bad", ["x", [1, 2], 1.5, None, (1, 2), {"a": 1}, 2**70]
)
def test_what_does_not_fit_is_an_error_and_it_goes_on(bad):
    first, error, last = outcomes(generated([1, bad, 3]))
    assert (first, last) == (1, 3)
    assert isinstance(error, ps.InvalidArgumentError)


def test_an_exception_ends_it():
    def fails():
        yield 1
        raise KeyError("broken")

    ds = Dataset.from_generator(fails, output_signature=INT)
    first, error = outcomes(ds)
    assert first == 1
    text = str(error)
    assert "KeyError" in text
    assert "broken" in text
    assert "test_generator.py" in text


@pytest.mark.parametrize(
    ("raised", "kinds"),
    [
        (ValueError, (ps.InvalidArgumentError, ValueError)),
        (TypeError, (ps.InvalidArgumentError, ValueError)),
        (FileNotFoundError, (ps.NotFoundError, FileNotFoundError)),
        (PermissionError, (ps.PermissionDeniedError, PermissionError)),
        (MemoryError, (ps.ResourceExhaustedError, MemoryError)),
        (NotImplementedError, (ps.UnimplementedError, NotImplementedError)),
        (KeyError, (ps.UnknownError, RuntimeError)),
    ],
)
def test_exceptions_keep_their_kind(raised, kinds):
    def fails():
        raise raised("x")
        yield

    (error,) = outcomes(Dataset.from_generator(fails, output_signature=INT))
    assert all(isinstance(error, kind) for kind in kinds)
    assert f"{raised.__name__}: " in str(error)
    assert "in fails" in str(error)  # its traceback


def test_not_even_a_generator():
    (error,) = outcomes(Dataset.from_generator(lambda: 3, output_signature=INT))
    assert isinstance(error, ps.InvalidArgumentError)
    with pytest.raises(TypeError):
        Dataset.from_generator([1, 2], output_signature=INT)
    with pytest.raises(TypeError):
        Dataset.from_generator(lambda: 3)
    with pytest.raises(TypeError):
        Dataset.from_generator(lambda: 3, output_signature=np.int64)


def test_output_types_as_tf_data_has_them():
    ds = Dataset.from_generator(lambda: iter([(1, "a")]), (np.int32, str))
    assert ds.element_spec[0].shape is None
    assert list(ds) == [(1, b"a")]
    ds = Dataset.from_generator(lambda: iter([[1, 2]]), np.int32, (None,))
    assert ds.element_spec.shape == (None,)


def test_it_is_closed_when_the_iterator_ends_early():
    is_closed = threading.Event()

    def watched():
        try:
            yield from range(1_000_000)
        finally:
            is_closed.set()

    ds = Dataset.from_generator(watched, output_signature=INT)
    iterator = iter(ds)
    next(iterator)
    iterator.close()
    assert is_closed.wait(10)


def test_its_thread_ends():
    # Others may have generators that hang.
    others = set(threading.enumerate())
    before = threading.active_count()
    iterator = iter(generated(range(5)))
    assert ints(iterator) == list(range(5))
    iterator.close()
    del iterator
    gc.collect()
    for thread in threading.enumerate():
        if thread.name == "penstock-generator" and thread not in others:
            thread.join(10)
            assert not thread.is_alive()
    assert threading.active_count() <= before + 1  # the service's


def test_rows_are_computed_only_when_asked_for():
    given = []

    def watched():
        for i in range(100):
            given.append(i)
            yield i

    ds = Dataset.from_generator(watched, output_signature=INT)
    iterator = iter(ds.with_options(ps.Options(run_ahead=0)))
    assert next(iterator) == 0
    assert next(iterator) == 1
    assert given == [0, 1]


@pytest.mark.parametrize("ahead", [1, 2, 7, 1 << 40])
def test_run_ahead_computes_at_most_that_many_more(ahead):
    given = []

    def watched():
        for i in range(100):
            given.append(i)
            yield i

    ds = Dataset.from_generator(watched, output_signature=INT)
    iterator = iter(ds.with_options(ps.Options(run_ahead=ahead)))
    assert not given
    for i, element in enumerate(iterator):
        assert element == i
        assert len(given) <= i + 1 + ahead
    assert len(given) == 100


@pytest.mark.parametrize("size", [0, 1, 3])
def test_prefetch_computes_exactly_that_many(size):
    given = []
    enough = threading.Event()

    def watched():
        for i in range(100):
            given.append(i)
            if len(given) == 2 + size:
                enough.set()
            yield i

    ds = Dataset.from_generator(watched, output_signature=INT)
    ds = ds.prefetch(size).with_options(ps.Options(run_ahead=0))
    iterator = iter(ds)
    assert next(iterator) == 0
    assert next(iterator) == 1
    assert enough.wait(10)
    assert len(given) == 2 + size


def test_a_state_fits_whatever_other_generators_there_are():
    def make(end):
        def numbers():
            yield from range(end)

        return Dataset.from_generator(numbers, output_signature=INT)

    iterator = iter(make(10))
    assert [next(iterator) for _ in range(3)] == [0, 1, 2]
    state = iterator.state_dict()
    make(10)
    again = iter(make(10))
    again.load_state_dict(state)
    assert list(again) == list(range(3, 10))
    with pytest.raises(ps.InvalidArgumentError, match="of this pipeline"):
        iter(make(11)).load_state_dict(state)


def test_integers_that_do_not_fit_are_errors():
    large = 5_000_000_000
    given = [np.int64(7), np.int64(large), np.array(-large), np.uint64(3)]
    ds = ps.Dataset.from_generator(
        lambda: iter(given), output_signature=ps.TensorSpec((), np.int32)
    )
    it = iter(ds)
    assert int(next(it)) == 7
    for found in (large, -large):
        with pytest.raises(ps.InvalidArgumentError, match=f"got {found}"):
            next(it)
    assert int(next(it)) == 3
