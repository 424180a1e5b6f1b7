"""Options as the defaults of a block."""

import contextvars
import pickle
import threading

import numpy as np
import pytest
from complaints import refuses

import penstock as ps
from penstock import _options

Dataset = ps.Dataset
LARGE = ps.ResourceExhaustedError


def first_of(dataset):
    with iter(dataset) as iterator:
        return next(iterator)


def test_defaults_of_iterators_made_inside():
    ds = Dataset.range(10).batch(10)
    with ps.Options(max_element_bytes=20), pytest.raises(LARGE):
        first_of(ds)
    assert len(first_of(ds)) == 10


def test_the_datasets_own_options_win_field_by_field():
    ds = Dataset.range(10).map(lambda x: ps.zeros((100,))).shuffle(10)
    ds = ds.with_options(ps.Options(max_element_bytes=10_000))
    with ps.Options(max_element_bytes=20):
        assert len(first_of(ds)) == 100
    with (
        ps.Options(max_element_bytes=20, memory_budget=1000),
        refuses(LARGE, "1000", "Lower the window"),
    ):
        first_of(ds)


def test_inner_blocks_win_over_outer_ones():
    ds = Dataset.range(10).batch(10)
    with ps.Options(max_element_bytes=20, name="outer"):
        with ps.Options(max_element_bytes=1000) as inner:
            assert _options.defaults() == inner.merge(ps.Options(name="outer"))
            assert len(first_of(ds)) == 10
        with pytest.raises(LARGE):
            first_of(ds)
    assert _options.defaults() == ps.Options()


def test_one_object_may_be_entered_twice():
    options = ps.Options(max_element_bytes=20)
    with options, options:
        pass
    with options:
        assert _options.defaults() == options
    assert _options.defaults() == ps.Options()


def test_an_exception_leaves_the_block():
    with pytest.raises(KeyError), ps.Options(name="x"):
        raise KeyError
    assert _options.defaults() == ps.Options()


def test_iterators_keep_what_they_were_made_with():
    ds = Dataset.from_tensor_slices([1, 100]).map(lambda n: ps.zeros((n,)))
    with ps.Options(max_element_bytes=20):
        iterator = iter(ds)
    state = iterator.state_dict()
    for _ in range(2):
        assert len(next(iterator)) == 1
        with pytest.raises(LARGE):
            next(iterator)
        iterator.load_state_dict(state)


def test_run_ahead_makes_rows_exact():
    given = []

    def watched():
        for i in range(100):
            given.append(i)
            yield i

    ds = Dataset.from_generator(
        watched, output_signature=ps.TensorSpec((), np.int64)
    )
    with ps.Options(run_ahead=0):
        iterator = iter(ds)
    assert next(iterator) == 0
    assert next(iterator) == 1
    assert given == [0, 1]


def test_other_threads_and_contexts_are_not_affected():
    found = []
    with ps.Options(name="mine"):
        thread = threading.Thread(
            target=lambda: found.append(_options.defaults())
        )
        thread.start()
        thread.join()
        found.append(contextvars.Context().run(_options.defaults))
    assert found == [ps.Options()] * 2


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({"memory_budget": "x"}, ps.InvalidArgumentError),
        ({"memory_budget": [1]}, ps.InvalidTypeError),
        ({"deterministic": 1}, ps.InvalidTypeError),
        ({"name": b"x"}, ps.InvalidTypeError),
    ],
)
def test_wrong_types_are_refused_at_once(options, kind):
    with refuses(kind, *options), ps.Options(**options):
        pass
    assert _options.defaults() == ps.Options()


def test_wrong_values_are_refused_when_used():
    with (
        ps.Options(memory_budget=0),
        refuses(
            ps.InvalidArgumentError, "memory_budget must be at least 1; got 0"
        ),
    ):
        iter(Dataset.range(3))


def test_datasets_do_not_take_them_along():
    with ps.Options(max_element_bytes=20):
        ds = pickle.loads(pickle.dumps(Dataset.range(10).batch(10)))
    assert ds.options() == ps.Options()
    assert len(first_of(ds)) == 10


def test_there_is_no_cpu_budget():
    with pytest.raises(TypeError):
        ps.Options(cpu_budget=2)


def test_autotune_is_in_the_plan_and_not_in_its_fingerprint():
    ds = Dataset.range(3)
    off = ds.with_options(ps.Options(autotune=False))
    assert "autotune=False" in off.describe()
    assert off.options().autotune is False
    assert off.fingerprint() == ds.fingerprint()
    assert list(off) == [0, 1, 2]
    with refuses(TypeError, "autotune must be a bool", "'no'"):
        ds.with_options(ps.Options(autotune="no"))
