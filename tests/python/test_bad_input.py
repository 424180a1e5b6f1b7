"""What cannot be right: parameters, values, structures, limits.

Each is refused with the right class of exception and a message that says what
was expected, what was found and in which line of the user's; nothing hangs, and
the engine goes on.
"""

import threading

import numpy as np
import pytest
from complaints import check_message, outcomes, refuses
from pipelines import ints

import penstock as ps
from penstock import _engine

Dataset = ps.Dataset
INT = ps.TensorSpec((), np.int64)
TYPE = ps.InvalidTypeError
VALUE = ps.InvalidArgumentError


@pytest.fixture(autouse=True)
def _the_engine_goes_on():
    Dataset.range(1)
    before = _engine.current().pid
    yield
    assert ints(Dataset.range(2)) == [0, 1]
    assert _engine.current().pid == before


def same(x):
    return x


def reading(x):
    return Dataset.range(x)


R = Dataset.range
WRONG = {
    # Sources.
    "range_none": (lambda: R(), TYPE, "got 0"),
    "range_four": (lambda: R(1, 2, 3, 4), TYPE, "got 4"),
    "range_text": (lambda: R("a"), TYPE, "string"),
    "range_vector": (lambda: R([1, 2]), TYPE, "(2,)"),
    "range_float": (lambda: R(1.5), TYPE, "float64"),
    "range_null": (lambda: R(None), TYPE, "None"),
    "range_huge": (lambda: R(2**70), TYPE, "64 bits"),
    "range_step": (lambda: R(0, 5, 0), VALUE, "step must not be 0"),
    "range_dtype": (lambda: R(3, output_type="what"), TYPE, "'what'"),
    "range_string": (lambda: R(3, output_type=str), TYPE, "STRING"),
    "counter_text": (lambda: Dataset.counter("x"), TYPE, "start"),
    "counter_step": (lambda: Dataset.counter(0, [1]), TYPE, "step"),
    "random_seed": (lambda: Dataset.random(seed=1.5), TYPE, "seed"),
    "random_seed_huge": (lambda: Dataset.random(seed=2**70), VALUE, "64 bits"),
    "tensors_object": (lambda: Dataset.from_tensors(object()), TYPE, "object"),
    "tensors_key": (lambda: Dataset.from_tensors({1: 2}), TYPE, "got 1"),
    "tensors_dates": (
        lambda: Dataset.from_tensors(np.zeros(2, "M8[s]")),
        TYPE,
        "datetime64",
    ),
    "slices_scalar": (lambda: Dataset.from_tensor_slices(3), VALUE, "scalar"),
    "slices_none": (lambda: Dataset.from_tensor_slices(()), VALUE, "got none"),
    "slices_lengths": (
        lambda: Dataset.from_tensor_slices(([1], [1, 2])),
        VALUE,
        "got 1 and",
    ),
    "slices_uneven": (
        lambda: Dataset.from_tensor_slices([[1], [2, 3]]),
        TYPE,
        "inhomogeneous",
    ),
    "list_empty": (lambda: Dataset.from_list([]), VALUE, "from_tensor_slices"),
    "list_number": (lambda: Dataset.from_list(3), TYPE, "got int"),
    "list_mixed": (lambda: Dataset.from_list([1, "a"]), TYPE, "string"),
    "list_structures": (
        lambda: Dataset.from_list([(1, 2), (1, 2, 3)]),
        TYPE,
        "2 components",
    ),
    "generator_list": (
        lambda: Dataset.from_generator([1], output_signature=INT),
        TYPE,
        "callable",
    ),
    "generator_bare": (
        lambda: Dataset.from_generator(lambda: 3),
        TYPE,
        "output_signature",
    ),
    "generator_dtype": (
        lambda: Dataset.from_generator(lambda: 3, output_signature=np.int64),
        TYPE,
        "TensorSpec",
    ),
    "generator_args": (
        lambda: Dataset.from_generator(
            lambda x: 3, args=(object(),), output_signature=INT
        ),
        TYPE,
        "args",
    ),
    "spec_shape": (lambda: ps.TensorSpec(("a",), np.int64), TYPE, "'a'"),
    "spec_dtype": (lambda: ps.TensorSpec((), "nothing"), TYPE, "'nothing'"),
    "zip_nothing": (lambda: Dataset.zip(), TYPE, "datasets"),
    "zip_number": (lambda: Dataset.zip(3), TYPE, "int"),
    "zip_list": (lambda: Dataset.zip([R(1), R(2)]), TYPE, "list"),
    # Files.
    "list_files_number": (lambda: Dataset.list_files(3), TYPE, "int64"),
    "list_files_null": (lambda: Dataset.list_files(None), TYPE, "None"),
    "list_files_seed": (lambda: Dataset.list_files("*", seed=""), TYPE, "seed"),
    "text_number": (lambda: ps.TextLineDataset(3), TYPE, "filenames"),
    "text_numbers": (lambda: ps.TextLineDataset([3]), TYPE, "filenames"),
    "text_matrix": (lambda: ps.TextLineDataset([["a"]]), TYPE, "filenames"),
    "text_dataset": (lambda: ps.TextLineDataset(R(3)), TYPE, "filenames"),
    "text_compression": (
        lambda: ps.TextLineDataset("x", compression_type="BZIP2"),
        VALUE,
        '"GZIP" or "ZLIB"; got \'BZIP2\'',
    ),
    "text_compression_case": (
        lambda: ps.TFRecordDataset("x", compression_type="gzip"),
        VALUE,
        "got 'gzip'",
    ),
    "text_compression_number": (
        lambda: ps.FixedLengthRecordDataset("x", 1, compression_type=3),
        VALUE,
        "got 3",
    ),
    "text_buffer": (
        lambda: ps.TextLineDataset("x", buffer_size=-5),
        VALUE,
        "buffer_size",
    ),
    "text_buffer_text": (
        lambda: ps.TextLineDataset("x", buffer_size="big"),
        TYPE,
        "buffer_size",
    ),
    "text_reads": (
        lambda: ps.TextLineDataset("x", num_parallel_reads=0),
        VALUE,
        "num_parallel_reads",
    ),
    "text_reads_text": (
        lambda: ps.TextLineDataset("x", num_parallel_reads="a"),
        TYPE,
        "num_parallel_reads",
    ),
    "fixed_none": (
        lambda: ps.FixedLengthRecordDataset("x", 0),
        VALUE,
        "record_bytes",
    ),
    "fixed_text": (
        lambda: ps.FixedLengthRecordDataset("x", "a"),
        TYPE,
        "record_bytes",
    ),
    "fixed_header": (
        lambda: ps.FixedLengthRecordDataset("x", 1, header_bytes=-1),
        VALUE,
        "header_bytes",
    ),
    "fixed_footer": (
        lambda: ps.FixedLengthRecordDataset("x", 1, footer_bytes=-1),
        VALUE,
        "footer_bytes",
    ),
    # Transformations.
    "batch_zero": (lambda: R(3).batch(0), VALUE, "at least 1; got 0"),
    "batch_negative": (lambda: R(3).batch(-1), VALUE, "at least 1; got -1"),
    "batch_text": (lambda: R(3).batch("x"), TYPE, "batch_size"),
    "batch_float": (lambda: R(3).batch(1.5), TYPE, "batch_size"),
    "batch_null": (lambda: R(3).batch(None), TYPE, "batch_size"),
    "batch_vector": (lambda: R(3).batch([1, 2]), TYPE, "batch_size"),
    "batch_huge": (lambda: R(3).batch(2**70), TYPE, "batch_size"),
    "batch_calls": (
        lambda: R(3).batch(2, num_parallel_calls=0),
        VALUE,
        "num_parallel_calls",
    ),
    "padded_zero": (lambda: R(3).padded_batch(0), VALUE, "batch_size"),
    "padded_rank": (
        lambda: R(3).padded_batch(2, padded_shapes=(3,)),
        VALUE,
        "rank",
    ),
    "padded_negative": (
        lambda: Dataset.from_list([[1], [2, 3]]).padded_batch(2, (-3,)),
        VALUE,
        "got -3",
    ),
    "padded_text": (
        lambda: Dataset.from_list([[1]]).padded_batch(2, ("a",)),
        TYPE,
        "'a'",
    ),
    "padded_number": (
        lambda: Dataset.from_list([[1]]).padded_batch(2, 3),
        TYPE,
        "padded_shapes",
    ),
    "padded_structure": (
        lambda: Dataset.zip(R(1), R(1)).padded_batch(2, ((),)),
        TYPE,
        "2 components",
    ),
    "padded_value": (
        lambda: R(3).padded_batch(2, padding_values="x"),
        TYPE,
        "padding value",
    ),
    "padded_value_float": (
        lambda: R(3).padded_batch(2, padding_values=1.5),
        TYPE,
        "padding_values",
    ),
    "unbatch_scalar": (lambda: R(3).unbatch(), VALUE, "dimension"),
    "unbatch_sizes": (
        lambda: Dataset.from_tensors(([1], [1, 2])).unbatch(),
        VALUE,
        "first dimension",
    ),
    "rebatch_scalar": (lambda: R(3).rebatch(2), VALUE, "dimension"),
    "rebatch_zero": (lambda: R(3).batch(2).rebatch(0), VALUE, "positive"),
    "rebatch_empty": (lambda: R(3).batch(2).rebatch([]), VALUE, "positive"),
    "rebatch_negative": (lambda: R(3).batch(2).rebatch(-2), VALUE, "got -2"),
    "rebatch_text": (lambda: R(3).batch(2).rebatch("x"), TYPE, "'x'"),
    "rebatch_float": (lambda: R(3).batch(2).rebatch([1.5]), TYPE, "1.5"),
    "rebatch_null": (lambda: R(3).batch(2).rebatch(None), TYPE, "None"),
    "take_text": (lambda: R(3).take("x"), TYPE, "count"),
    "take_negative": (lambda: R(3).take(-5), VALUE, "got -5"),
    "take_float": (lambda: R(3).take(2.0), TYPE, "count"),
    "skip_negative": (lambda: R(3).skip(-5), VALUE, "got -5"),
    "skip_text": (lambda: R(3).skip("x"), TYPE, "count"),
    "repeat_negative": (lambda: R(3).repeat(-3), VALUE, "got -3"),
    "repeat_text": (lambda: R(3).repeat("x"), TYPE, "count"),
    "shard_none": (lambda: R(3).shard(0, 0), VALUE, "num_shards"),
    "shard_past": (lambda: R(3).shard(2, 5), VALUE, "got 5"),
    "shard_negative": (lambda: R(3).shard(2, -1), VALUE, "got -1"),
    "shard_text": (lambda: R(3).shard("a", 0), TYPE, "num_shards"),
    "enumerate_text": (lambda: R(3).enumerate("a"), TYPE, "start"),
    "shuffle_zero": (lambda: R(3).shuffle(0), VALUE, "buffer_size"),
    "shuffle_negative": (lambda: R(3).shuffle(-7), VALUE, "got -7"),
    "shuffle_text": (lambda: R(3).shuffle("x"), TYPE, "buffer_size"),
    "shuffle_seed": (lambda: R(3).shuffle(2, seed="x"), TYPE, "seed"),
    "prefetch_negative": (lambda: R(3).prefetch(-3), VALUE, "got -3"),
    "prefetch_text": (lambda: R(3).prefetch("x"), TYPE, "buffer_size"),
    "concatenate_number": (lambda: R(3).concatenate(3), TYPE, "int"),
    "concatenate_dtype": (
        lambda: R(3).concatenate(Dataset.from_tensor_slices(["a"])),
        TYPE,
        "string",
    ),
    "cache_file": (lambda: R(3).cache("f"), ps.UnimplementedError, "'f'"),
    # Functions.
    "map_number": (lambda: R(3).map(3), TYPE, "function"),
    "map_arguments": (
        lambda: R(3).map(lambda x, y: x),
        ps.UnsupportedFunctionError,
        "'y'",
    ),
    "map_raises": (
        lambda: R(3).map(lambda x: 1 // 0),
        ps.UnsupportedFunctionError,
        "ZeroDivisionError",
    ),
    "map_object": (lambda: R(3).map(lambda x: object()), TYPE, "object"),
    "map_calls": (
        lambda: R(3).map(same, num_parallel_calls=0),
        VALUE,
        "num_parallel_calls",
    ),
    "map_calls_text": (
        lambda: R(3).map(same, num_parallel_calls="x"),
        TYPE,
        "num_parallel_calls",
    ),
    "map_dataset": (lambda: R(3).map(reading), VALUE, "flat_map()"),
    "filter_int": (lambda: R(3).filter(same), TYPE, "bool"),
    "filter_number": (lambda: R(3).filter(True), TYPE, "function"),
    "take_while_int": (lambda: R(3).take_while(same), TYPE, "bool"),
    "flat_map_value": (lambda: R(3).flat_map(same), TYPE, "Dataset"),
    "interleave_value": (lambda: R(3).interleave(same), TYPE, "Dataset"),
    "interleave_cycle": (
        lambda: R(3).interleave(reading, cycle_length=0),
        VALUE,
        "cycle_length",
    ),
    "interleave_block": (
        lambda: R(3).interleave(reading, block_length=-4),
        VALUE,
        "block_length",
    ),
    "scan_state": (lambda: R(3).scan(0, lambda s, x: s), TYPE, "tuple"),
    "scan_dtype": (
        lambda: R(3).scan(0, lambda s, x: ("a", x)),
        TYPE,
        "string",
    ),
    "reduce_dtype": (lambda: R(3).reduce(0, lambda s, x: "a"), TYPE, "string"),
    "single_many": (lambda: R(3).get_single_element(), VALUE, "more than one"),
    "single_none": (lambda: R(0).get_single_element(), VALUE, "none"),
    "apply_value": (lambda: R(3).apply(lambda ds: 3), TYPE, "got int"),
    "epoch_negative": (lambda: R(3).set_epoch(-1), VALUE, "got -1"),
    "epoch_text": (lambda: R(3).set_epoch("x"), TYPE, "epoch"),
    # Options.
    "options_number": (lambda: R(3).with_options(3), TYPE, "ps.Options"),
    **{
        f"options_{name}_{i}": (
            lambda name=name, bad=bad: R(3).with_options(
                ps.Options(**{name: bad})
            ),
            kind,
            name,
        )
        for name, i, bad, kind in [
            ("memory_budget", 0, "x", TYPE),
            ("memory_budget", 1, -1, VALUE),
            ("memory_budget", 2, 0, VALUE),
            ("memory_budget", 3, 2**70, VALUE),
            ("max_element_bytes", 0, 0, VALUE),
            ("max_element_bytes", 1, 1.5, TYPE),
            ("run_ahead", 0, -1, VALUE),
            ("run_ahead", 1, [1], TYPE),
            ("name", 0, 3, TYPE),
            ("deterministic", 0, "yes", TYPE),
        ]
    },
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_parameters(name):
    make, kind, part = WRONG[name]
    with refuses(kind, part):
        make()


def test_the_line_is_the_users():
    here = test_the_line_is_the_users.__code__.co_firstlineno
    for make in (lambda: R(3).batch(0), lambda: R(3).batch(None)):
        with pytest.raises(ps.PenstockError) as caught:
            make()
        line = make.__code__.co_firstlineno
        assert line > here
        assert f"test_bad_input.py:{line}" in str(caught.value)


# ---- Values that only show when they come.


def test_a_batch_of_unequal_shapes():
    ds = Dataset.from_list([[1], [2, 3], [4], [5]]).batch(2)
    error, last = outcomes(ds)
    assert isinstance(error, VALUE)
    check_message(
        str(error), "(1,) and (2,)", "padded_batch()", file="test_bad_input.py"
    )
    assert last.tolist() == [[4], [5]]


def test_parameters_that_come_with_the_data():
    ds = Dataset.range(-1, 2).flat_map(lambda n: Dataset.range(4).take(n - 1))
    found = outcomes(ds)
    assert isinstance(found[0], VALUE)
    check_message(str(found[0]), "got -2", file="test_bad_input.py")


def test_reshape_that_does_not_fit():
    ds = Dataset.range(1, 4).map(lambda n: ps.reshape(ps.arange(n), (2,)))
    first, second, third = outcomes(ds)
    assert second.tolist() == [0, 1]
    for error in (first, third):
        assert isinstance(error, VALUE)
        assert "cannot reshape array of size" in str(error)
        assert "shape (2,)" in str(error)
        assert "test_bad_input.py:" in str(error)


# ---- Generators.


def failing(n, error):
    yield from range(n)
    raise error


class UnspeakableError(Exception):
    def __str__(self):
        raise RuntimeError("no words")


@pytest.mark.parametrize(
    ("raised", "kind"),
    [
        (ValueError("broken"), VALUE),
        (KeyError("broken"), ps.UnknownError),
        (SystemExit("broken"), ps.UnknownError),
        (KeyboardInterrupt("broken"), ps.UnknownError),
        (GeneratorExit("broken"), ps.UnknownError),
        (MemoryError("broken"), ps.ResourceExhaustedError),
    ],
)
def test_a_generator_that_raises(raised, kind):
    ds = Dataset.from_generator(
        lambda: failing(3, raised), output_signature=INT
    )
    *first, error = outcomes(ds)
    assert first == [0, 1, 2]
    assert isinstance(error, kind)
    text = str(error)
    assert "broken" in text
    assert type(raised).__name__ in text
    assert "in failing" in text  # The generator's own line,
    assert text.count("test_bad_input.py") >= 2  # and where it was given.


def test_a_generator_whose_exception_has_no_message():
    ds = Dataset.from_generator(
        lambda: failing(1, UnspeakableError()), output_signature=INT
    )
    first, error = outcomes(ds)
    assert first == 0
    assert "UnspeakableError" in str(error)


class Unwilling:
    def __array__(self, *args, **kwargs):
        raise RuntimeError("I will not")


@pytest.mark.parametrize(
    ("signature", "bad", "parts"),
    [
        (INT, "x", ["int64", "'x'"]),
        (INT, 1.5, ["int64", "float64"]),
        (INT, [1, 2], ["()", "(2,)"]),
        (INT, None, ["int64"]),
        (INT, 2**70, ["int64"]),
        (INT, Unwilling(), ["I will not"]),
        ((INT, INT), 3, ["2 components", "3"]),
        ((INT, INT), (1, 2, 3), ["2 components"]),
        ({"a": INT}, {"b": 1}, ["'a'", "'b'"]),
        (ps.TensorSpec((2,), np.float32), [1.0], ["(2,)", "(1,)"]),
        (ps.TensorSpec((2,), np.float32), ["a", "b"], ["float32"]),
        (ps.TensorSpec((), str), 3, ["string", "int64"]),
    ],
)
def test_a_generator_that_gives_something_else(signature, bad, parts):
    good = (
        {"a": 1}
        if isinstance(signature, dict)
        else (
            (1, 2)
            if isinstance(signature, tuple)
            else (
                "s"
                if signature.dtype == ps.string
                else np.zeros(signature.shape, signature.dtype.dtype)
            )
        )
    )
    ds = Dataset.from_generator(
        lambda: iter([good, bad, good]), output_signature=signature
    )
    first, error, last = outcomes(ds)
    assert not isinstance(first, Exception)
    assert not isinstance(last, Exception)
    assert isinstance(error, VALUE)
    text = str(error)
    for part in parts:
        assert part in text, text
    assert "from_generator" in text
    assert "test_bad_input.py:" in text


def test_a_generator_that_gives_nothing():
    ds = Dataset.from_generator(lambda: iter(()), output_signature=INT)
    assert list(ds) == []
    assert list(ds.batch(2)) == []


def test_what_is_no_generator():
    ds = Dataset.from_generator(lambda: 3, output_signature=INT)
    (error,) = outcomes(ds)
    assert isinstance(error, VALUE)
    assert "test_bad_input.py:" in str(error)


def test_an_endless_generator_closed_early():
    is_closed = threading.Event()

    def endless():
        try:
            n = 0
            while True:
                yield n
                n += 1
        finally:
            is_closed.set()

    iterator = iter(Dataset.from_generator(endless, output_signature=INT))
    assert next(iterator) == 0
    iterator.close()
    assert is_closed.wait(30)


def test_closed_while_its_generator_blocks():
    is_blocked = threading.Event()
    go_on = threading.Event()

    def blocking():
        yield 0
        is_blocked.set()
        go_on.wait()
        yield 1

    ds = Dataset.from_generator(blocking, output_signature=INT)
    iterator = iter(ds)
    assert next(iterator) == 0
    assert is_blocked.wait(30)
    iterator.close()  # Does not wait for it.
    assert next(iter(ds)) == 0  # Nor does anybody else.
    go_on.set()


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
        assert "test_bad_input.py:" in str(caught.value)
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
        file="test_bad_input.py",
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
    check_message(str(found[1]), "100", file="test_bad_input.py")


def test_a_plan_of_too_many_nodes():
    ds = Dataset.range(1)
    with refuses(VALUE, "at most 10000 nodes; got"):
        for _ in range(20):
            ds = ds.concatenate(ds)


def test_a_plan_of_too_many_bytes():
    big = np.zeros(3 << 20)
    with refuses(VALUE, "at most 16.0 MiB; got"):
        Dataset.range(1).map(lambda x: x + big)


def test_a_request_of_too_many_bytes(monkeypatch):
    monkeypatch.setattr(_engine, "_MAX_REQUEST_BYTES", 1 << 20)
    big = np.zeros(1 << 20)
    with refuses(ps.ResourceExhaustedError, "1 MiB; got", "from_tensor_slices"):
        Dataset.range(1).map(lambda x: x + big)


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
