"""`tf.data.Dataset`: what it gives, and how functions run."""

import dataclasses
from collections import namedtuple

import golden
import numpy as np
import pytest
from inputs import make_inputs

import penstock as ps
import penstock.compat.tf as tf

Dataset = tf.data.Dataset
# The datasets of pipelines whose functions cannot be recorded.
AS_PYTHON = {
    "audio: spectrograms",
    "audio: waveforms",
    "experimental: averages",
    "experimental: by key",
    "guide: rotated",
    "guide: upper",
}


def values(dataset):
    return [np.asarray(x).tolist() for x in dataset.as_numpy_iterator()]


@pytest.mark.parametrize("name", golden.NAMES)
def test_pipelines_run_in_the_engine(name, tmp_path):
    make_inputs(tmp_path)
    built = golden.module_of(name).build(tf, str(tmp_path))
    for dataset, made in built.items():
        is_python = "runs as Python" in made.native.describe()
        assert is_python == (f"{name}: {dataset}" in AS_PYTHON), dataset


# ---- dtypes.


def test_elements_have_tensorflows_dtypes():
    for given, dtype in (
        ([1, 2], tf.int32),
        ([1.0, 2.0], tf.float32),
        (["a", "b"], tf.string),
        ([True, False], tf.bool),
        (np.array([1.0, 2.0]), tf.float64),
        (np.array([1, 2]), tf.int64),
    ):
        ds = Dataset.from_tensor_slices(given)
        assert ds.element_spec == tf.TensorSpec([], dtype)
        assert all(x.dtype == dtype for x in ds)
    assert Dataset.range(2).element_spec.dtype == tf.int64
    assert Dataset.range(2).enumerate().element_spec[0].dtype == tf.int64


def test_functions_may_return_python_values():
    ds = Dataset.range(2).map(lambda x: (x, 1, 2.5, "a", [1, 2]))
    assert [s.dtype for s in ds.element_spec] == [
        tf.int64, tf.int32, tf.float32, tf.string, tf.int32,
    ]  # fmt: skip
    assert ds.element_spec[4].shape == [2]


def test_mixed_dtypes_in_a_function_are_refused_at_map():
    with pytest.raises(TypeError, match="one dtype"):
        Dataset.from_tensor_slices([1]).map(lambda x: x + tf.constant(1.0))


# ---- How functions run.


def test_python_has_functions_of_the_engine():
    table = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(["a", "b"], [1, 2]), -1
    )

    def f(text):
        words = tf.strings.split(text)
        if tf.size(words) > 1:
            return table.lookup(words[1])
        return table.lookup(words[0])

    ds = Dataset.from_tensor_slices(["a", "a b", "c"]).map(f)
    assert values(ds) == [1, 2, -1]


def test_filter_and_take_while_decide_by_python():
    def is_small(x):
        return bool(x.numpy() < 3)

    assert values(Dataset.range(5).filter(is_small)) == [0, 1, 2]
    assert values(Dataset.range(5).take_while(is_small)) == [0, 1, 2]


def test_tf_function_is_the_function():
    @tf.function(input_signature=[tf.TensorSpec([], tf.int64)])
    def double(x):
        return x * 2

    @tf.function
    def triple(x):
        return x * 3

    assert values(Dataset.range(3).map(double).map(triple)) == [0, 6, 12]


def test_py_function_and_numpy_function():
    def both(x):
        y = tf.numpy_function(lambda v: v + 1, [x], tf.int64)
        a, b = tf.py_function(
            lambda v: (v * 2, tf.cast(v, tf.float32)),
            [x],
            [tf.int64, tf.float32],
        )
        return y, a, b

    assert list(Dataset.range(2).map(both).as_numpy_iterator()) == [
        (1, 0, 0.0),
        (2, 2, 1.0),
    ]


def test_a_global_that_changes_is_not_recorded():
    """The user's function is judged, not the one around it."""

    class Counter:
        n = 0

    counter = Counter()

    def f(x):
        counter.n += 1
        return x + counter.n

    ds = Dataset.range(3).map(f)
    assert "runs as Python" in ds.native.describe()
    assert counter.n == 0


def test_names_and_lines_are_the_users():
    def scale(x):
        return x * 2

    text = Dataset.range(3).map(scale).native.describe()
    assert "map_1(scale)" in text and "test_dataset.py" in text
    with pytest.raises(
        ps.UnsupportedFunctionError, match="must take 1 argument"
    ):
        Dataset.range(3).map(lambda x, y: x)


# ---- Files in functions.


def test_files_are_read_in_functions(tmp_path):
    for i in range(20):
        (tmp_path / f"{i:02}.txt").write_text(f"{i}")
        (tmp_path / f"{i:02}.more").write_text(f"more {i}")

    def read(path, extra):
        first = tf.io.read_file(path)
        name = tf.strings.regex_replace(path, r"\.txt$", ".more")
        second = tf.io.read_file(name)
        number = tf.strings.to_number(first, tf.int32)
        return {"n": number + extra, "more": second}

    files = Dataset.list_files(str(tmp_path / "*.txt"), shuffle=False)
    ds = Dataset.zip(
        (files, Dataset.range(20).map(lambda x: tf.cast(x, tf.int32)))
    )
    ds = ds.map(read, num_parallel_calls=tf.data.AUTOTUNE)
    assert "Python" not in ds.native.describe()
    assert len(ds) == 20
    assert list(ds.as_numpy_iterator()) == [
        {"n": 2 * i, "more": f"more {i}".encode()} for i in range(20)
    ]
    assert values(ds.batch(6).map(lambda x: x["n"]))[1] == [
        12,
        14,
        16,
        18,
        20,
        22,
    ]


def test_a_missing_file_is_an_error_in_its_place(tmp_path):
    (tmp_path / "a").write_text("A")
    names = [str(tmp_path / "a"), str(tmp_path / "b"), str(tmp_path / "a")]
    ds = Dataset.from_tensor_slices(names).map(tf.io.read_file)
    it = iter(ds)
    assert next(it).numpy() == b"A"
    with pytest.raises(tf.errors.NotFoundError):
        next(it)
    assert next(it).numpy() == b"A"
    assert values(ds.ignore_errors()) == [b"A", b"A"]


# ---- Structures.

Pair = namedtuple("Pair", "a b")


@dataclasses.dataclass
class Point:
    x: object
    y: object


def test_structures_come_back():
    ds = Dataset.from_tensor_slices(Pair([1, 2], [3.0, 4.0]))
    ds = ds.map(lambda p: Pair(p.a + 1, p.b))
    first = next(iter(ds))
    assert isinstance(first, Pair) and int(first.a) == 2
    ds = ds.map(lambda p: Point(p.a, {"deep": (p.b, None)}))
    first = next(iter(ds))
    assert isinstance(first, Point) and float(first.y["deep"][0]) == 3.0
    assert first.y["deep"][1] is None


def test_a_list_is_a_tensor_and_a_result_is_a_tuple():
    ds = Dataset.from_tensors(([1, 2], {"a": [1.5]}))
    assert ds.element_spec[0].shape == [2]
    ds = Dataset.range(1).map(lambda x: [x, x + 1])
    assert isinstance(ds.element_spec, tuple)


def test_sparse_and_ragged_elements():
    ragged = tf.ragged.constant([[1, 2], [], [3]])
    ds = Dataset.from_tensor_slices(ragged)
    assert values(ds) == [[1, 2], [], [3]]
    ds = Dataset.from_tensors(ragged).map(lambda r: r.to_tensor() + 1)
    assert values(ds) == [[[2, 3], [1, 1], [4, 1]]]
    ds = Dataset.range(4).map(tf.range).ragged_batch(2)
    assert isinstance(ds.element_spec, tf.RaggedTensorSpec)
    assert [r.to_list() for r in ds] == [[[], [0]], [[0, 1], [0, 1, 2]]]
    sparse = tf.sparse.SparseTensor([[0, 1], [1, 0]], [7, 8], [2, 2])
    ds = Dataset.from_tensors(sparse).map(tf.sparse.to_dense)
    assert values(ds) == [[[0, 7], [8, 0]]]
    ds = Dataset.from_tensors(sparse)
    assert isinstance(ds.element_spec, tf.SparseTensorSpec)
    assert isinstance(next(iter(ds)), tf.SparseTensor)


def test_windows_are_datasets():
    ds = Dataset.range(5).window(2, drop_remainder=True)
    assert isinstance(ds.element_spec, tf.data.DatasetSpec)
    assert [[int(x) for x in window] for window in ds] == [[0, 1], [2, 3]]
    assert isinstance(next(iter(ds)), Dataset)
    summed = ds.map(lambda w: w.reduce(np.int64(0), lambda a, b: a + b))
    assert values(summed) == [1, 5]


# ---- Iterators and what is asked.


def test_iterators():
    it = iter(Dataset.range(2))
    assert isinstance(it, tf.data.Iterator)
    assert int(it.get_next()) == 0
    optional = it.get_next_as_optional()
    assert bool(optional.has_value()) and int(optional.get_value()) == 1
    assert not bool(it.get_next_as_optional().has_value())
    with pytest.raises(tf.errors.OutOfRangeError):
        it.get_next()
    with pytest.raises(StopIteration):
        next(it)


def test_states_are_penstocks():
    it = iter(Dataset.range(5).shuffle(5, seed=1))
    next(it)
    state = it.state_dict()
    rest = [int(x) for x in it]
    it.load_state_dict(state)
    assert [int(x) for x in it] == rest


def test_cardinality_and_length():
    ds = Dataset.range(5)
    assert int(ds.cardinality()) == 5 and len(ds) == 5
    assert ds.repeat().cardinality() == tf.data.INFINITE_CARDINALITY
    with pytest.raises(TypeError):
        len(ds.filter(lambda x: x > 2))
    assert bool(ds)


def test_options():
    options = tf.data.Options()
    options.deterministic = False
    options.threading.private_threadpool_size = 4
    options.experimental_distribute.auto_shard_policy = (
        tf.data.experimental.AutoShardPolicy.OFF
    )
    ds = Dataset.range(3).with_options(options).batch(2)
    assert ds.options().deterministic is False
    assert ds.options().threading.private_threadpool_size == 4
    assert ds.native.options().deterministic is False
    with pytest.raises(AttributeError, match="no attribute"):
        options.no_such_option = 1
    with pytest.raises(TypeError):
        ds.with_options(3)


def test_a_global_seed_makes_shuffles_the_same():
    def order():
        tf.random.set_seed(5)
        return values(Dataset.range(20).shuffle(20))

    try:
        assert order() == order()
    finally:
        tf.random.set_seed(None)


def test_list_files(tmp_path):
    for name in "cab":
        (tmp_path / name).touch()
    ds = Dataset.list_files(str(tmp_path / "*"), shuffle=False)
    assert [x[-1:] for x in values(ds)] == [b"a", b"b", b"c"]
    assert (
        len(Dataset.list_files([str(tmp_path / "a"), str(tmp_path / "b")])) == 2
    )
    with pytest.raises(tf.errors.OpError):
        Dataset.list_files(str(tmp_path / "none*"))


def test_experimental_transformations():
    e = tf.data.experimental
    ds = Dataset.range(6)
    assert values(ds.apply(e.unbatch()) if False else ds.apply(e.unique())) == [
        0, 1, 2, 3, 4, 5,
    ]  # fmt: skip
    assert values(ds.batch(2).apply(e.unbatch()))[:2] == [0, 1]
    assert values(ds.apply(e.take_while(lambda x: x < 2))) == [0, 1]
    assert values(ds.apply(e.map_and_batch(lambda x: x + 1, 4)))[1] == [5, 6]
    assert sorted(
        values(ds.apply(e.shuffle_and_repeat(6, 2, seed=1)))
    ) == sorted([*range(6)] * 2)
    assert int(e.at(ds, 3)) == 3
    assert int(e.cardinality(ds)) == 6
    assert values(e.from_list([[1], [2, 3]])) == [[1], [2, 3]]
    assert values(e.Counter(5).take(2)) == [5, 6]
    assert values(e.choose_from_datasets([ds, ds], Dataset.range(2)))[:2] == [
        0,
        0,
    ]
    scanned = ds.apply(e.scan(np.int64(0), lambda s, x: (s + x, s + x)))
    assert values(scanned)[-1] == 15
    interleaved = Dataset.range(2).apply(
        e.parallel_interleave(
            lambda x: Dataset.from_tensors(x).repeat(2), cycle_length=2
        )
    )
    assert values(interleaved) == [0, 1, 0, 1]
    table = e.index_table_from_dataset(Dataset.from_tensor_slices(["a", "b"]))
    assert int(table.lookup(tf.constant("b"))) == 1


def test_records_are_written_and_read(tmp_path):
    path = str(tmp_path / "a.tfrecord")
    texts = Dataset.from_tensor_slices(["x", "yz"])
    tf.data.experimental.TFRecordWriter(path).write(texts)
    assert values(tf.data.TFRecordDataset(path)) == [b"x", b"yz"]
    assert values(tf.data.TFRecordDataset([path, path])) == [b"x", b"yz"] * 2
    assert values(tf.data.TFRecordDataset(texts.take(0))) == []
    texts.save(str(tmp_path / "saved"))
    assert values(Dataset.load(str(tmp_path / "saved"))) == [b"x", b"yz"]


def test_errors_are_elements():
    ds = Dataset.from_tensor_slices(["1", "x", "3"]).map(
        lambda t: tf.strings.to_number(t, tf.int32)
    )
    it = iter(ds)
    assert int(next(it)) == 1
    with pytest.raises(tf.errors.InvalidArgumentError):
        next(it)
    assert int(next(it)) == 3
    assert values(ds.ignore_errors()) == [1, 3]


def test_shapes_that_are_set_are_known_and_checked():
    def f(x):
        x.set_shape([None, 2])
        return x

    ds = Dataset.from_generator(
        lambda: iter([np.zeros((1, 2)), np.zeros((3, 2)), np.zeros((1, 3))]),
        output_signature=tf.TensorSpec(None, tf.float64),
    ).map(f)
    assert ds.element_spec.shape == [None, 2]
    it = iter(ds)
    assert next(it).shape == [1, 2] and next(it).shape == [3, 2]
    with pytest.raises(tf.errors.InvalidArgumentError, match="shape"):
        next(it)
    ensured = ds.map(lambda x: tf.ensure_shape(x, [3, 2]))
    assert ensured.element_spec.shape == [3, 2]


def test_check_numerics_is_an_error_of_its_element():
    ds = Dataset.from_tensor_slices([1.0, 0.0, 2.0])
    ds = ds.map(lambda x: tf.debugging.check_numerics(1.0 / x, "division"))
    assert "Python" not in ds.native.describe()
    it = iter(ds)
    assert float(next(it)) == 1.0
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"division : .*Inf"
    ):
        next(it)
    assert float(next(it)) == 0.5


def test_what_is_not_offered_is_said_at_once():
    with pytest.raises(
        AttributeError, match=r"does not offer tf\.keras"
    ) as got:
        Dataset.range(3).map(lambda x: tf.keras.layers.Dense(3)(x))
    assert "test_dataset.py" in str(got.value)


def test_tracebacks_end_at_the_method():
    with pytest.raises(TypeError, match="one dtype") as got:
        Dataset.range(3).map(lambda x: x + tf.constant(1.0))
    files = [str(entry.path) for entry in got.traceback]
    assert sum("tf/_dataset.py" in file for file in files) <= 1
    assert not any("_arithmetic.py" in file for file in files)


def test_generators_give_ragged_and_sparse_tensors():
    def elements():
        yield tf.ragged.constant([[1, 2], [3]])
        yield tf.ragged.constant([[4], []])

    ds = Dataset.from_generator(
        elements,
        output_signature=tf.RaggedTensorSpec([2, None], tf.int32, 1),
    )
    assert [x.to_list() for x in ds] == [[[1, 2], [3]], [[4], []]]
