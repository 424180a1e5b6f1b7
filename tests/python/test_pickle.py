"""Datasets and errors as values that travel."""

import collections
import copy
import multiprocessing
import pickle

import cloudpickle
import numpy as np
import pytest
from pipelines import assert_equal, ints

import penstock as ps
from penstock import _errors

Dataset = ps.Dataset

SEEDED = ["range", "map", "shuffle", "interleave", "dict", "named", "large"]


@pytest.mark.parametrize("name", [*SEEDED, "generator", "text", "ragged"])
def test_a_copy_gives_the_same(pipelines, name):
    ds = pipelines[name]
    ds.set_epoch(0)
    copied = pickle.loads(pickle.dumps(ds))
    assert copied.element_spec == ds.element_spec
    assert copied.cardinality() == ds.cardinality()
    assert copied.fingerprint() == ds.fingerprint()
    assert_equal(list(copied), list(ds))
    assert_equal(list(copy.deepcopy(ds)), list(ds))


def drain(dataset):
    return ints(dataset)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_datasets_cross_processes(method):
    ds = Dataset.from_tensor_slices(np.arange(2000)).map(lambda x: x + 1)
    context = multiprocessing.get_context(method)
    with context.Pool(1) as pool:
        assert pool.apply(drain, (ds,)) == list(range(1, 2001))


def test_local_classes_travel_with_cloudpickle():
    local = collections.namedtuple("local", ["a"])
    ds = Dataset.range(2).map(lambda x: local(x))
    (first, _) = pickle.loads(cloudpickle.dumps(ds))
    assert first.a == 0


def test_a_generator_of_the_same_name_is_another():
    def make(n):
        return Dataset.from_generator(
            lambda: iter(range(n)), output_signature=ps.TensorSpec((), int)
        )

    a, b = make(2), make(3)
    assert (ints(a), ints(b)) == ([0, 1], [0, 1, 2])
    assert ints(pickle.loads(pickle.dumps(b))) == [0, 1, 2]


def test_specs_options_and_errors():
    for value in (
        ps.TensorSpec((None, 3), np.float32),
        ps.TensorSpec(None, str),
        ps.Options(name="x"),
    ):
        assert pickle.loads(pickle.dumps(value)) == value
    for code in range(1, 17):
        error = _errors.from_status(code, "why")
        back = pickle.loads(pickle.dumps(error))
        assert type(back) is type(error)
        assert str(back) == "why"
        assert back.code == code


@pytest.mark.parametrize(
    ("kind", "bases"),
    [
        (ps.InvalidArgumentError, ValueError),
        (ps.InvalidTypeError, (TypeError, ValueError)),
        (ps.NotFoundError, FileNotFoundError),
        (ps.PermissionDeniedError, PermissionError),
        (ps.DataLossError, OSError),
        (ps.ResourceExhaustedError, MemoryError),
        (ps.OutOfRangeError, IndexError),
        (ps.FailedPreconditionError, RuntimeError),
        (ps.UnavailableError, ConnectionError),
        (ps.EngineDiedError, ps.UnavailableError),
        (ps.UnimplementedError, NotImplementedError),
        (ps.InternalError, RuntimeError),
    ],
)
def test_errors_are_pythons_too(kind, bases):
    for base in bases if isinstance(bases, tuple) else (bases,):
        assert issubclass(kind, base)
    assert issubclass(kind, ps.PenstockError)
