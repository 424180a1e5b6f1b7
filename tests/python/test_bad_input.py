"""What cannot be right: parameters, values, structures, limits.

Each is refused with the right class of exception and a message that says what
was expected, what was found and in which line of the user's; nothing hangs, and
the engine goes on.
"""

import threading

import numpy as np
import pytest
from complaints import check_message, outcomes, refuses

import penstock as ps

Dataset = ps.Dataset
INT = ps.TensorSpec((), np.int64)
TYPE = ps.InvalidTypeError
VALUE = ps.InvalidArgumentError


pytestmark = pytest.mark.usefixtures("nothing_left")


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
        "Use ps.Dataset.from_list",
    ),
    "slices_uneven_text": (
        lambda: Dataset.from_tensor_slices([["a"], ["b", "c"]]),
        TYPE,
        "Use ps.Dataset.from_list",
    ),
    "slices_objects": (
        lambda: Dataset.from_tensor_slices(np.array([1, None, "x"], object)),
        TYPE,
        "got None (NoneType) at index [1]",
    ),
    "slices_numbers_and_text": (
        lambda: Dataset.from_tensor_slices([1, "x"]),
        TYPE,
        "got 1 (int) at index [0] and 'x' (str) at index [1]",
    ),
    "slices_number_objects": (
        lambda: Dataset.from_tensor_slices(np.array([[1, 2]], object)),
        TYPE,
        "got 1 (int) at index [0, 0] among objects",
    ),
    "list_empty": (lambda: Dataset.from_list([]), VALUE, "from_tensor_slices"),
    "list_number": (lambda: Dataset.from_list(3), TYPE, "got int"),
    "list_mixed": (lambda: Dataset.from_list([1, "a"]), TYPE, "string"),
    "list_ranks": (lambda: Dataset.from_list([[1], [[2]]]), VALUE, "[1, 2]"),
    "tensors_rank": (
        lambda: Dataset.from_tensors(np.zeros((1,) * 9)),
        VALUE,
        "at most 8 dimensions; got 9",
    ),
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
    "zip_list": (
        lambda: Dataset.zip([R(1), R(2)]),
        TYPE,
        "Use ps.Dataset.zip(a, b)",
    ),
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
        '"GZIP", "ZLIB" or "ZSTD"; got \'BZIP2\'',
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
    "batch_float": (
        lambda: R(3).batch(1.5),
        TYPE,
        "batch_size must be an integer; got 1.5",
    ),
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
    "take_negative": (
        lambda: R(3).take(-5),
        VALUE,
        "or -1 to take all; got -5",
    ),
    "take_float": (
        lambda: R(3).take(2.0),
        TYPE,
        "count must be an integer; got 2.0",
    ),
    "skip_negative": (
        lambda: R(3).skip(-5),
        VALUE,
        "or -1 to skip all; got -5",
    ),
    "skip_text": (lambda: R(3).skip("x"), TYPE, "count"),
    "repeat_negative": (
        lambda: R(3).repeat(-3),
        VALUE,
        "or -1 to repeat for ever; got -3",
    ),
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
    "cache_file": (lambda: R(3).cache(3), TYPE, "filename"),
    # Functions.
    "map_number": (lambda: R(3).map(3), TYPE, "function"),
    "map_arguments": (
        lambda: R(3).map(lambda x, y: x),
        ps.UnsupportedFunctionError,
        "must take 1 argument (the element); got one of (x, y)",
    ),
    "map_tuple": (
        lambda: Dataset.zip(R(3), R(3)).map(same),
        ps.UnsupportedFunctionError,
        "must take 2 arguments (a tuple's components are passed as separate "
        "arguments); got one of (x)",
    ),
    "scan_arguments": (
        lambda: R(3).scan(0, same),
        ps.UnsupportedFunctionError,
        "must take 2 arguments (the state and the element); got one of (x)",
    ),
    "map_key": (
        lambda: Dataset.zip({"a": {"u": R(1)}, "b": R(3)}).map(
            lambda x: x["c"]
        ),
        ps.UnsupportedFunctionError,
        "must use the element's keys, {'a': {'u'}, 'b'}; got 'c'",
    ),
    "map_raises": (
        lambda: R(3).map(ps.native(lambda x: 1 // 0)),
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
    "filter_dataset": (lambda: R(3).filter(reading), VALUE, "flat_map()"),
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
            ("memory_budget", 0, "x", VALUE),
            ("memory_budget", 1, -1, VALUE),
            ("memory_budget", 2, 0, VALUE),
            ("memory_budget", 3, 2**70, VALUE),
            ("max_element_bytes", 0, 0, VALUE),
            ("max_element_bytes", 1, 1.5, TYPE),
            ("run_ahead", 0, -1, VALUE),
            ("run_ahead", 1, [1], TYPE),
            ("name", 0, 3, TYPE),
            ("kept_directory", 0, 3, TYPE),
            ("kept_directory", 1, "", VALUE),
            ("deterministic", 0, "yes", TYPE),
            ("rewrite", 0, "yes", TYPE),
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
