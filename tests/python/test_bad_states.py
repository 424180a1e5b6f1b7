"""States of others, damaged states, and what is over its limit."""

import pytest
from complaints import check_message, outcomes, refuses
from pipelines import ints

import penstock as ps
from penstock import _engine

Dataset = ps.Dataset
pytestmark = pytest.mark.usefixtures("nothing_left")
VALUE = ps.InvalidArgumentError


# ---- States.


@pytest.fixture(scope="module")
def saved():
    iterator = iter(Dataset.range(9).shuffle(4, seed=1).batch(2))
    next(iterator)
    return iterator.state_dict()


def shuffled():
    return iter(Dataset.range(9).shuffle(4, seed=1).batch(2))


def with_checksum(state, blob):
    from penstock import _iterator

    text = _engine.to_base64(blob)
    return {
        **state,
        "state": text,
        "crc32": _iterator._crc32(text, state["skip"]),
    }


def test_a_state_of_another_pipeline(saved):
    iterator = iter(Dataset.range(9))
    with refuses(VALUE, "this pipeline", "same transformations"):
        iterator.load_state_dict(saved)
    assert len(ints(iterator)) == 9


@pytest.mark.parametrize("state", [None, 3, "x", [], {}, {"version": 1}])
def test_what_is_no_state(state):
    with refuses(ps.DataLossError, "state_dict()", "earlier checkpoint"):
        shuffled().load_state_dict(state)


def test_a_state_of_another_version(saved):
    with refuses(VALUE, "version 1; got version 99", "saved it"):
        shuffled().load_state_dict({**saved, "version": 99})


@pytest.mark.parametrize(
    "change", [{"skip": "3"}, {"skip": None}, {"skip": -1}, {"skip": 2**80}]
)
def test_a_state_with_an_impossible_skip(saved, change):
    from penstock import _iterator

    state = {**saved, **change}
    state["crc32"] = _iterator._crc32(state["state"], state["skip"])
    with refuses(ps.DataLossError):
        shuffled().load_state_dict(state)


def test_damaged_states_at_every_byte(saved):
    blob = _engine.from_base64(saved["state"])
    iterator = shuffled()
    next(iterator)
    for i in range(len(blob)):
        flipped = blob[:i] + bytes([blob[i] ^ 0x40]) + blob[i + 1 :]
        text = _engine.to_base64(flipped)
        with refuses(ps.DataLossError, "checksum", "earlier checkpoint"):
            iterator.load_state_dict({**saved, "state": text})
        # Even one that somebody gave a new checksum.
        with pytest.raises((ps.DataLossError, VALUE)) as caught:
            iterator.load_state_dict(with_checksum(saved, flipped))
        assert "test_bad_states.py:" in str(caught.value)
        with refuses(ps.DataLossError):
            iterator.load_state_dict(with_checksum(saved, blob[:i]))
    assert len(list(iterator)) == 4  # As if nothing had been asked.


# ---- Limits.


def test_a_shuffle_over_its_budget():
    ds = Dataset.range(1000).map(lambda x: ps.zeros((1000,)))
    ds = ds.shuffle(500).with_options(ps.Options(memory_budget=1 << 20))
    with refuses(ps.ResourceExhaustedError, "1048576", "Lower the window"):
        list(ds)
    assert len(list(ds.with_options(ps.Options(memory_budget=1 << 24)))) == 1000


def test_a_cache_over_its_budget():
    ds = Dataset.range(1000).map(lambda x: ps.zeros((1000,)))
    small = ds.cache().with_options(ps.Options(memory_budget=1 << 20))
    with refuses(ps.ResourceExhaustedError, "1048576", "memory_budget"):
        list(small)
    large = ds.cache().with_options(ps.Options(memory_budget=1 << 24))
    assert len(list(large)) == len(list(large)) == 1000


def test_budgets_are_each_iterators_own():
    ds = Dataset.range(100).map(lambda x: ps.zeros((1000,))).shuffle(100)
    ds = ds.with_options(ps.Options(memory_budget=1 << 20))
    iterators = [iter(ds) for _ in range(5)]
    for iterator in iterators:
        next(iterator)  # 800 kB each


def test_an_element_over_its_limit():
    ds = Dataset.from_tensor_slices([3, 300, 5]).map(lambda n: ps.zeros((n,)))
    ds = ds.with_options(ps.Options(max_element_bytes=1000))
    first, error, last = outcomes(ds)
    assert (first.shape, last.shape) == ((3,), (5,))
    assert isinstance(error, ps.ResourceExhaustedError)
    check_message(
        str(error),
        "at most 1000 bytes; got 2400",
        "max_element_bytes",
        file="test_bad_states.py",
    )


def test_elements_over_their_limit_can_be_left_out_of_batches():
    ds = Dataset.range(10).batch(5)
    ds = ds.with_options(ps.Options(max_element_bytes=20))
    found = outcomes(ds)
    assert [type(x) for x in found] == [ps.ResourceExhaustedError] * 2


def test_a_record_over_its_limit(tmp_path):
    file = tmp_path / "lines"
    file.write_text("short\n" + "x" * 500 + "\nshort\n")
    ds = ps.TextLineDataset(file)
    ds = ds.with_options(ps.Options(max_element_bytes=100))
    found = outcomes(ds)
    assert found[0] == b"short"
    assert isinstance(found[1], ps.ResourceExhaustedError)
    check_message(str(found[1]), "100", file="test_bad_states.py")


def test_a_plan_of_too_many_nodes():
    ds = Dataset.range(1)
    with refuses(VALUE, "at most 10000 nodes; got"):
        for _ in range(20):
            ds = ds.concatenate(ds)


def test_a_plan_of_too_many_bytes():
    text = "x" * (17 << 20)
    with refuses(VALUE, "at most 16.0 MiB; got"):
        Dataset.range(1).map(lambda x: x).with_options(ps.Options(name=text))


def test_a_request_of_too_many_bytes(monkeypatch):
    monkeypatch.setattr(_engine, "_MAX_REQUEST_BYTES", 1 << 20)
    text = "x" * (1 << 20)
    with refuses(ps.ResourceExhaustedError, "1 MiB; got", "from_tensor_slices"):
        Dataset.range(1).with_options(ps.Options(name=text))


def nested(depth):
    value = 1
    for _ in range(depth):
        value = (value,)
    return value


def test_the_deepest_structure():
    (got,) = Dataset.from_tensors(nested(16))
    assert got == nested(16)


@pytest.mark.parametrize("depth", [17, 100, 1000, 100_000])
def test_structures_that_are_too_deep(depth):
    value = nested(depth)
    with refuses(VALUE, "at most 16 deep"):
        Dataset.from_tensors(value)
    with refuses(VALUE, "at most 16 deep"):
        Dataset.range(3).map(lambda x: value)


def test_a_structure_that_holds_itself():
    value = {}
    value["again"] = value
    with refuses(VALUE, "at most 16 deep"):
        Dataset.from_tensors(value)
