"""Tensors, shapes and dtypes: what a table of expressions cannot say."""

import pickle

import numpy as np
import pytest

import penstock as ps
import penstock.compat.tf as tf


def test_mixed_dtypes_are_both_kinds_of_error():
    with pytest.raises(TypeError):
        tf.constant(1) + tf.constant(1.0)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"tf\.cast"):
        tf.constant(1) + tf.constant(1.0)


def test_numpy_gives_scalars_bytes_and_arrays():
    assert isinstance(tf.constant(1).numpy(), np.int32)
    assert tf.constant("a").numpy() == b"a"
    assert tf.constant([1.0]).numpy().dtype == np.float32
    np.testing.assert_array_equal(np.asarray(tf.constant([1, 2])), [1, 2])


def test_is_used_like_a_number():
    x = tf.constant(3)
    assert [10, 20, 30, 40][x] == 40
    assert list(range(x)) == [0, 1, 2]
    assert int(x) == 3 and float(x) == 3.0 and bool(x)
    assert f"{x}" == "tf.Tensor(3, shape=(), dtype=int32)"
    assert f"{tf.constant(1.5):.2f}" == "1.50"


def test_is_unhashable_and_pickles():
    with pytest.raises(TypeError, match="unhashable"):
        hash(tf.constant(1))
    again = pickle.loads(pickle.dumps(tf.constant([1, 2])))
    assert again.numpy().tolist() == [1, 2]
    assert pickle.loads(pickle.dumps(tf.float32)) is tf.float32


def test_iterates_over_the_first_dimension():
    assert [x.numpy().tolist() for x in tf.constant([[1, 2], [3, 4]])] == [
        [1, 2],
        [3, 4],
    ]
    with pytest.raises(TypeError, match="scalar"):
        iter(tf.constant(1))


def test_numpy_functions_of_tensors():
    assert (np.float64(2) * tf.constant(1.5)).dtype == tf.float32
    assert np.sum(tf.constant([1, 2])) == 3


def test_set_shape_checks_values():
    x = tf.constant([1, 2])
    x.set_shape([None])
    with pytest.raises(tf.errors.InvalidArgumentError):
        x.set_shape([3])


def test_shapes():
    shape = tf.TensorShape([None, 3])
    assert shape.rank == 2 and shape.ndims == 2
    assert shape[1:] == [3] and shape.num_elements() is None
    assert tf.TensorShape(None).rank is None
    assert tf.TensorShape([2, 3]).num_elements() == 6
    assert shape.concatenate([4]) == (None, 3, 4)
    assert shape.is_compatible_with([7, 3])
    assert not shape.is_compatible_with([7, 4])
    assert shape.merge_with([2, None]).as_list() == [2, 3]
    with pytest.raises(ValueError, match="rank"):
        tf.TensorShape(None).as_list()


def test_dtypes():
    assert tf.as_dtype(np.float64) is tf.float64
    assert tf.float32.is_floating and not tf.float32.is_integer
    assert tf.string != tf.int32 and tf.string == ps.string
    assert tf.half is tf.float16
    assert np.dtype(tf.int64) == np.int64
    assert {tf.int32: 1}[tf.as_dtype("int32")] == 1
    with pytest.raises(TypeError):
        tf.as_dtype("no such dtype")


def test_specs():
    spec = tf.TensorSpec([None, 2], tf.int32, "x")
    assert spec == tf.TensorSpec((None, 2), "int32")
    assert spec.is_compatible_with(tf.zeros([5, 2], tf.int32))
    assert pickle.loads(pickle.dumps(spec)) == spec
    assert tf.TensorSpec.from_tensor(tf.constant(1)).shape == []


def test_unknown_names_say_where_to_look():
    for module in (tf, tf.data, tf.math, tf.data.experimental):
        with pytest.raises(AttributeError, match=r"docs/compatibility\.md"):
            module.no_such_name  # noqa: B018


def test_every_name_is_there():
    modules = [tf, tf.data, tf.data.experimental, tf.io.gfile]
    modules += [
        getattr(tf, name)
        for name in [
            "io",
            "image",
            "strings",
            "lookup",
            "math",
            "random",
            "train",
            "nest",
        ]
    ]
    for module in modules:
        for name in module.__all__:
            assert hasattr(module, name), (module, name)


def test_random_numbers():
    x = tf.random.uniform([1000], -2, 3, dtype=tf.int32, seed=1)
    assert x.dtype == tf.int32
    assert set(np.unique(x.numpy())) == {-2, -1, 0, 1, 2}
    y = tf.random.normal([2000], mean=5.0, stddev=0.1)
    assert abs(float(tf.reduce_mean(y)) - 5) < 0.05
    z = tf.random.truncated_normal([2000])
    assert float(tf.reduce_max(tf.abs(z))) <= 2
    with pytest.raises(ValueError, match="maxval"):
        tf.random.uniform([2], dtype=tf.int32)
    tf.random.set_seed(3)
    first = tf.random.uniform([3]).numpy()
    tf.random.set_seed(3)
    np.testing.assert_array_equal(first, tf.random.uniform([3]).numpy())
    tf.random.set_seed(None)


def test_stateless_random_is_the_same_here_and_in_the_engine():
    def draw(i):
        seed = tf.stack([i, i + 1])
        return (
            tf.random.stateless_uniform([4], seed),
            tf.random.stateless_uniform([4], seed, 0, 10, tf.int32),
            tf.random.stateless_normal([4], seed),
            tf.random.stateless_truncated_normal([4], seed),
        )

    ds = tf.data.Dataset.range(3).map(draw)
    assert "Python" not in ds.native.describe()
    for i, element in enumerate(ds):
        for got, want in zip(
            element, draw(tf.constant(i, tf.int64)), strict=True
        ):
            np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-5)
    many = tf.random.stateless_normal([4000], [1, 2])
    assert abs(float(tf.reduce_mean(many))) < 0.1
    assert abs(float(tf.math.reduce_std(many)) - 1) < 0.1


def test_examples_are_what_protobuf_makes():
    feature = {
        "i": tf.train.Feature(
            int64_list=tf.train.Int64List(value=[1, -2, 1 << 40])
        ),
        "f": tf.train.Feature(float_list=tf.train.FloatList(value=[0.5])),
        "b": tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"x"])),
        "none": tf.train.Feature(),
    }
    made = tf.train.Example(features=tf.train.Features(feature=feature))
    record = made.SerializeToString()
    again = tf.train.Example.FromString(record).features.feature
    assert again["i"].int64_list.value == [1, -2, 1 << 40]
    assert again["f"].float_list.value == [0.5]
    assert again["b"].bytes_list.value == [b"x"]
    assert again["b"].WhichOneof("kind") == "bytes_list"
    parsed = tf.io.parse_single_example(
        record, {"i": tf.io.FixedLenFeature([3], tf.int64)}
    )
    assert parsed["i"].numpy().tolist() == [1, -2, 1 << 40]
    with pytest.raises(TypeError, match="bytes"):
        tf.train.BytesList(value=["text"])
    with pytest.raises(TypeError, match="integer"):
        tf.train.Int64List(value=[1.5])


def test_damaged_messages_are_errors():
    for data in (b"\xff", b"\x0a\xff\x01", b"\x0a" + b"\xff" * 11):
        with pytest.raises(tf.errors.DataLossError):
            tf.train.Example.FromString(data)
        with pytest.raises(tf.errors.OpError):
            tf.io.parse_tensor(data, tf.float32)


def test_gfile(tmp_path):
    gfile = tf.io.gfile
    path = gfile.join(str(tmp_path), "a", "b.txt")
    gfile.makedirs(gfile.join(str(tmp_path), "a"))
    with gfile.GFile(path, "w") as file:
        file.write("hello")
    assert gfile.exists(path) and gfile.isdir(str(tmp_path))
    assert gfile.glob(str(tmp_path / "*" / "*.txt")) == [path]
    assert gfile.listdir(str(tmp_path)) == ["a"]
    assert tf.io.read_file(path).numpy() == b"hello"
    with pytest.raises(tf.errors.NotFoundError):
        gfile.GFile(str(tmp_path / "none"))
    with pytest.raises(tf.errors.NotFoundError):
        tf.io.read_file(str(tmp_path / "none"))


def test_tables_refuse_other_dtypes():
    table = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer([1, 2], ["a", "b"]), "?"
    )
    assert table.lookup(tf.constant([2, 9])).numpy().tolist() == [b"b", b"?"]
    assert int(table.size()) == 2
    with pytest.raises(TypeError, match="keys must be"):
        table.lookup(tf.constant(["a"]))


def test_boxes_that_a_seed_decides():
    """They are within their limits, the same in the engine, and many."""
    goal = np.array([0.25, 0.25, 0.75, 0.75], np.float32)

    def sample(seed):
        return tf.image.stateless_sample_distorted_bounding_box(
            [80, 60, 3],
            goal[None, None],
            tf.stack([seed, seed]),
            min_object_covered=0.3,
            aspect_ratio_range=[0.5, 2.0],
            area_range=[0.2, 0.9],
        )

    ds = tf.data.Dataset.range(60).map(sample)
    assert "runs as Python" not in ds.native.describe()
    found = list(ds.as_numpy_iterator())
    for seed, (begin, size, box) in enumerate(found):
        here = [x.numpy() for x in sample(tf.constant(seed, tf.int64))]
        np.testing.assert_array_equal(here[0], begin)
        np.testing.assert_array_equal(here[1], size)
        assert begin[2] == 0 and size[2] == -1
        (y, x), (h, w) = begin[:2], size[:2]
        assert y >= 0 and y + h <= 80 and x >= 0 and x + w <= 60
        assert 0.2 * 4800 <= h * w <= 0.9 * 4800
        assert 0.45 < w / h < 2.1
        edges = [y / 80, x / 60, (y + h) / 80, (x + w) / 60]
        np.testing.assert_allclose(box[0, 0], edges, rtol=1e-6)
        rows = min(y + h, 60) - max(y, 20)
        columns = min(x + w, 45) - max(x, 15)
        assert rows > 0 and columns > 0 and rows * columns >= 0.3 * 1200
    assert len({tuple(size) for _, size, _ in found}) > 50
