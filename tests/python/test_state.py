"""Saved state: exact at any element, in any process."""

import json
import pickle

import numpy as np
import pytest
from pipelines import assert_equal, ints

import penstock as ps

Dataset = ps.Dataset

NAMES = [
    "range", "map", "filter", "batch", "unbatch", "rebatch", "repeat",
    "take_skip", "shuffle", "cache", "zip", "concatenate", "flat_map",
    "interleave", "scan", "enumerate", "shard", "take_while", "prefetch",
    "text", "strings", "dict", "named", "ragged", "padded", "generator",
    "random", "large", "empty", "window", "group_by_window", "bucket",
    "token_buckets", "batch_by_tokens", "token_window",
    "sample", "choose", "unique", "assert_cardinality", "resample",
    "ragged_batch", "ragged_twice", "sparse_batch", "pack", "pack_split",
    "file_cache", "load",
]  # fmt: skip


def outcomes(iterator):
    """The rest of an iterator, with errors in their places."""
    found = []
    while True:
        try:
            found.append(next(iterator))
        except StopIteration:
            return found
        except ps.PenstockError as error:
            found.append(type(error))


def test_every_pipeline_is_tested(pipelines):
    assert sorted(pipelines) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_state_at_every_position(pipelines, name):
    ds = pipelines[name]
    iterator = iter(ds)
    states = [iterator.state_dict()]
    elements = []
    for element in iterator:
        elements.append(element)
        states.append(iterator.state_dict())
    states.append(iterator.state_dict())
    for position, state in enumerate(states):
        state = json.loads(json.dumps(state))
        resumed = iter(ds)
        resumed.load_state_dict(state)
        assert_equal(list(resumed), elements[position:])


@pytest.mark.parametrize("name", ["map", "shuffle", "interleave", "batch"])
def test_state_of_a_resumed_iterator(pipelines, name):
    ds = pipelines[name]
    ds.set_epoch(0)
    want = list(ds)
    iterator = iter(ds)
    got = []
    while True:
        resumed = iter(ds)
        resumed.load_state_dict(iterator.state_dict())
        iterator = resumed
        try:
            got.append(next(iterator))
        except StopIteration:
            break
    assert_equal(got, want)


def test_a_used_iterator_goes_back_and_forth():
    iterator = iter(Dataset.range(5))
    start = iterator.state_dict()
    assert [int(next(iterator)) for _ in range(3)] == [0, 1, 2]
    middle = iterator.state_dict()
    assert ints(iterator) == [3, 4]
    iterator.load_state_dict(middle)
    assert ints(iterator) == [3, 4]
    iterator.load_state_dict(start)
    assert ints(iterator) == [0, 1, 2, 3, 4]


def test_state_around_error_elements():
    ds = Dataset.range(4).map(lambda x: ps.reshape(ps.arange(x), (2,)))
    iterator = iter(ds)
    states = [iterator.state_dict()]
    for _ in range(4):
        try:
            next(iterator)
        except ps.InvalidArgumentError:
            pass
        states.append(iterator.state_dict())
    whole = outcomes(iter(ds))
    assert [type(x) is type for x in whole] == [True, True, False, True]
    for position, state in enumerate(states):
        resumed = iter(ds)
        resumed.load_state_dict(state)
        rest = outcomes(resumed)
        assert_equal(rest, whole[position:])


def test_an_unset_seed_is_in_the_state():
    ds = Dataset.range(50).shuffle(50)
    iterator = iter(ds)
    first = [next(iterator) for _ in range(10)]
    state = iterator.state_dict()
    rest = list(iterator)
    assert sorted(first + rest) == list(range(50))
    same = Dataset.range(50).shuffle(50)
    resumed = iter(same)
    resumed.load_state_dict(state)
    assert list(resumed) == rest


@pytest.mark.parametrize("seed", [None, 4])
def test_the_epoch_after_a_resumed_one_is_the_next(seed):
    def make():
        return Dataset.range(50).shuffle(50, seed=seed)

    ds = make()
    first = list(ds)
    iterator = iter(ds)
    second = [next(iterator) for _ in range(20)]
    state = iterator.state_dict()
    second += iterator
    third = list(ds)
    assert len({tuple(first), tuple(second), tuple(third)}) == 3

    again = make()
    iterator = iter(again)
    iterator.load_state_dict(state)
    assert list(iterator) == second[20:]
    assert list(again) == third


def test_state_loads_in_a_copy_of_the_dataset(pipelines):
    for name in ("large", "map", "generator"):
        ds = pipelines[name]
        iterator = iter(ds)
        next(iterator)
        state = iterator.state_dict()
        copy = pickle.loads(pickle.dumps(ds))
        resumed = iter(copy)
        resumed.load_state_dict(state)
        assert_equal(list(resumed), list(iterator))


def test_another_pipelines_state_is_refused():
    state = iter(Dataset.range(5)).state_dict()
    iterator = iter(Dataset.range(6))
    assert next(iterator) == 0
    with pytest.raises(ps.InvalidArgumentError):
        iterator.load_state_dict(state)
    assert ints(iterator) == [1, 2, 3, 4, 5]  # As if nothing had been asked.


@pytest.mark.parametrize(
    "change",
    [
        {"skip": 99},
        {"state": "AAAA"},
        {"state": 3},
        {"crc32": 0},
        {"state": "not base64!"},
    ],
)
def test_damage_is_noticed(change):
    iterator = iter(Dataset.range(5))
    next(iterator)
    with pytest.raises(ps.DataLossError):
        iterator.load_state_dict({**iterator.state_dict(), **change})
    assert ints(iterator) == [1, 2, 3, 4]


@pytest.mark.parametrize("state", [{}, None, "x", {"version": 1}])
def test_what_is_no_state_is_refused(state):
    with pytest.raises(ps.DataLossError):
        iter(Dataset.range(5)).load_state_dict(state)


def test_another_version_is_refused():
    iterator = iter(Dataset.range(5))
    with pytest.raises(ps.InvalidArgumentError, match="version"):
        iterator.load_state_dict({**iterator.state_dict(), "version": 99})


def test_state_is_small():
    ds = Dataset.from_tensor_slices(np.zeros((100, 1000))).shuffle(50, seed=1)
    iterator = iter(ds)
    next(iterator)
    assert len(json.dumps(iterator.state_dict())) < 2000


def test_closed_iterators():
    iterator = iter(Dataset.range(5))
    next(iterator)
    state = iterator.state_dict()
    iterator.close()
    iterator.close()
    another = r"Make another with iter\(dataset\)(.|\n)*test_state\.py:"
    with pytest.raises(ps.FailedPreconditionError, match=another):
        next(iterator)
    with pytest.raises(ps.FailedPreconditionError, match=another):
        iterator.load_state_dict(state)
    with pytest.raises(ps.FailedPreconditionError, match="before"):
        iterator.stats()


def test_iterators_are_context_managers():
    with iter(Dataset.range(5)) as iterator:
        assert next(iterator) == 0
    with pytest.raises(ps.FailedPreconditionError):
        next(iterator)


def test_an_ended_iterator_stays_ended():
    iterator = iter(Dataset.range(1))
    assert ints(iterator) == [0]
    for _ in range(3):
        with pytest.raises(StopIteration):
            next(iterator)


def test_stats():
    iterator = iter(Dataset.range(100).map(lambda x: x + 1).batch(10))
    list(iterator)
    stats = iterator.stats()
    assert stats.rows == stats.nodes[-1].rows == 10
    assert stats.bytes > 0
    assert len(stats.nodes) == 3
    assert stats.wall_ns > 0
    by_name = {node.name.partition("_")[0]: node for node in stats.nodes}
    assert by_name["map"].rows == 100
    assert "test_state.py" in by_name["map"].made_at
