"""Elements kept in files: cache(filename), save, load, snapshot, at."""

import os
import pickle
import warnings

import numpy as np
import pytest
from pipelines import Point, assert_equal, ints, lists

import penstock as ps


def test_a_file_replays_whatever_the_input_is_now(tmp_path):
    file = tmp_path / "numbers"
    assert ints(ps.Dataset.range(10).cache(file)) == list(range(10))
    assert os.listdir(tmp_path) == ["numbers.penstock"]
    assert ints(ps.Dataset.range(0).cache(file)) == list(range(10))
    assert ints(ps.Dataset.range(10).cache(file).repeat(2)) == [
        *range(10),
        *range(10),
    ]


def test_a_second_writer_is_refused(tmp_path):
    ds = ps.Dataset.range(100_000).cache(tmp_path / "x")
    counted = ps.Dataset.counter().cache(tmp_path / "x")
    first = iter(counted)
    next(first)
    with pytest.raises(ps.AlreadyExistsError, match="one writer"):
        next(iter(ds))
    first.close()


def test_an_unfinished_pass_leaves_nothing(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ds = ps.Dataset.range(5).filter(lambda x: x >= 0).cache(tmp_path / "x")
        it = iter(ds)
        next(it)
        it.close()
        assert ints(ds) == [0, 1, 2, 3, 4]
    assert os.path.exists(tmp_path / "x.penstock")


def test_structures_come_back(tmp_path):
    data = {
        "a": Point(np.arange(6).reshape(3, 2), ["u", "v", ""]),
        "b": np.array([1.5, 2.5, 3.5], np.float32),
    }
    ds = ps.Dataset.from_tensor_slices(data)
    ds.save(tmp_path / "saved")
    loaded = ps.Dataset.load(tmp_path / "saved")
    assert loaded.element_spec == ds.element_spec
    assert len(loaded) == 3
    assert_equal(list(loaded), list(ds))
    assert_equal(list(pickle.loads(pickle.dumps(loaded))), list(ds))
    ragged = ps.Dataset.from_list([[1], [2, 3]]).ragged_batch(2)
    ragged.save(tmp_path / "ragged")
    assert_equal(list(ps.Dataset.load(tmp_path / "ragged")), list(ragged))


def test_a_loaded_dataset_resumes(tmp_path):
    ps.Dataset.range(5000).save(tmp_path)
    ds = ps.Dataset.load(tmp_path).batch(7)
    it = iter(ds)
    for _ in range(300):
        next(it)
    state = it.state_dict()
    rest = lists(it)
    it.load_state_dict(state)
    assert lists(it) == rest


def test_save_and_load_refuse(tmp_path):
    ps.Dataset.range(3).save(tmp_path / "a")
    with pytest.raises(ps.AlreadyExistsError, match="which has one"):
        ps.Dataset.range(3).save(tmp_path / "a")
    with pytest.raises(ps.NotFoundError, match="that save wrote"):
        ps.Dataset.load(tmp_path / "b")
    with pytest.raises(ps.InvalidTypeError, match="element_spec"):
        ps.Dataset.load(tmp_path / "a", ps.TensorSpec((), np.float32))
    with pytest.raises(ps.InvalidTypeError, match="path"):
        ps.Dataset.load(3)
    (tmp_path / "a" / "dataset.json").write_text("{}")
    with pytest.raises(ps.DataLossError, match=r"dataset\.json"):
        ps.Dataset.load(tmp_path / "a")


def test_damage_is_found(tmp_path):
    ps.Dataset.range(300).save(tmp_path)
    file = tmp_path / "elements.penstock"
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    with pytest.raises(ps.DataLossError):
        list(ps.Dataset.load(tmp_path))


def python_shard(x):
    return len(str(x))


SHARD_FUNCS = {
    "native": lambda x: x % 3,
    "python": python_shard,
    "said": ps.python_function(python_shard),
    "one": lambda x: 0,
    "none": None,
}


@pytest.mark.parametrize("compression", [None, "GZIP", "ZSTD"])
@pytest.mark.parametrize("how", SHARD_FUNCS)
def test_shards_come_back_in_order(tmp_path, how, compression):
    ds = ps.Dataset.range(300)
    ds.save(tmp_path, compression=compression, shard_func=SHARD_FUNCS[how])
    loaded = ps.Dataset.load(tmp_path)
    assert len(loaded) == 300
    assert [int(x) for x in loaded] == list(range(300))
    it = iter(loaded)
    head = [int(next(it)) for _ in range(123)]
    resumed = iter(loaded)
    resumed.load_state_dict(it.state_dict())
    assert head + [int(x) for x in resumed] == list(range(300))


def test_shards_are_files(tmp_path):
    ds = ps.Dataset.from_tensor_slices(
        {"x": np.arange(10), "name": [str(i) for i in range(10)]}
    )
    ds.save(tmp_path, shard_func=lambda e: e["x"] // 4)
    assert len(list(tmp_path.glob("shard_*"))) == 3
    loaded = ps.Dataset.load(tmp_path)
    assert loaded.element_spec == ds.element_spec
    assert [(int(e["x"]), e["name"]) for e in loaded] == [
        (i, str(i).encode()) for i in range(10)
    ]

    def reader(shards):
        return shards.interleave(lambda shard: shard, cycle_length=3)

    found = ps.Dataset.load(tmp_path, reader_func=reader)
    assert [int(e["x"]) for e in found] == [0, 4, 8, 1, 5, 9, 2, 6, 3, 7]
    taken = ps.Dataset.load(
        tmp_path, reader_func=lambda s: s.skip(1).flat_map(lambda d: d)
    )
    assert [int(e["x"]) for e in taken] == [4, 5, 6, 7, 8, 9]


def test_tuples_are_arguments_of_shard_func(tmp_path):
    ds = ps.Dataset.zip(ps.Dataset.range(6), ps.Dataset.range(6, 12))
    ds.save(tmp_path, shard_func=lambda a, b: (a + b) % 2)
    assert list(ps.Dataset.load(tmp_path)) == list(ds)
    nothing = tmp_path / "nothing"
    ds.take(0).save(nothing, shard_func=lambda a, b: a)
    assert list(ps.Dataset.load(nothing)) == []
    assert ps.Dataset.load(nothing).element_spec == ds.element_spec


def test_reader_of_one_file(tmp_path):
    ps.Dataset.range(5).save(tmp_path)
    loaded = ps.Dataset.load(
        tmp_path, reader_func=lambda s: s.flat_map(lambda d: d.skip(2))
    )
    assert [int(x) for x in loaded] == [2, 3, 4]


def test_shards_refuse(tmp_path):
    with pytest.raises(ps.InvalidArgumentError, match="from 0 to"):
        ps.Dataset.range(3).save(tmp_path / "a", shard_func=lambda x: x - 5)
    with pytest.raises(ps.ResourceExhaustedError, match="1000 files"):
        ps.Dataset.range(1100).save(tmp_path / "b", shard_func=lambda x: x)
    with pytest.raises(ps.InvalidArgumentError, match="ZSTD"):
        ps.Dataset.range(3).save(tmp_path / "c", compression="LZ4")
    with pytest.raises(ps.NotFoundError):
        ps.Dataset.load(tmp_path / "a")
    ps.Dataset.range(3).save(tmp_path / "d", shard_func=lambda x: x)
    for reader in (lambda s: s, lambda s: 3):
        with pytest.raises(ps.InvalidTypeError, match="reader_func"):
            ps.Dataset.load(tmp_path / "d", reader_func=reader)
    with pytest.raises(ps.UnimplementedError, match="wait"):
        ps.Dataset.load(tmp_path / "d", wait=True)
    (tmp_path / "d" / "order.npy").write_bytes(b"nonsense")
    with pytest.raises(ps.DataLossError, match="what save wrote"):
        ps.Dataset.load(tmp_path / "d")


def test_snapshots_are_by_what_is_computed(tmp_path):
    def make(n):
        return ps.Dataset.range(5).map(lambda x: x + n).snapshot(tmp_path)

    for n in (0, 1, 1):
        assert ints(make(n)) == [x + n for x in range(5)]
    assert len(os.listdir(tmp_path)) == 2


def one_by_one(shards):
    return shards.flat_map(lambda shard: shard)


def test_snapshots_are_read_in_shards(tmp_path):
    def by_value(x):
        return np.int64(int(str(int(x))) % 3)  # runs as Python

    for shard_func in (lambda x: x % 3, by_value):
        ds = ps.Dataset.range(10).snapshot(tmp_path, one_by_one, shard_func)
        for _ in range(2):
            assert ints(ds) == [0, 3, 6, 9, 1, 4, 7, 2, 5, 8]
        assert ds.element_spec == ps.TensorSpec((), ps.int64)
        it = iter(ds)
        for _ in range(5):
            next(it)
        state = it.state_dict()
        again = iter(ds)
        again.load_state_dict(state)
        assert ints(again) == [4, 7, 2, 5, 8]


def test_shards_of_snapshots_are_drawn_once(tmp_path):
    def make():
        return ps.Dataset.range(50).snapshot(
            tmp_path, one_by_one, lambda x: ps.random_int((), 0, 4)
        )

    first = ints(make())
    assert sorted(first) == list(range(50))
    assert ints(make()) == first


def test_snapshots_without_a_shard_func(tmp_path):
    ds = ps.Dataset.range(2500).snapshot(
        tmp_path, lambda shards: shards.interleave(lambda s: s, cycle_length=3)
    )
    assert ints(ds)[:4] == [0, 1000, 2000, 1]
    plain = ps.Dataset.range(9).snapshot(tmp_path, shard_func=lambda x: x % 2)
    assert ints(plain) == list(range(9))
    nothing = ps.Dataset.range(0).snapshot(tmp_path, one_by_one, lambda x: x)
    assert ints(nothing) == []


def test_snapshots_refuse(tmp_path):
    ds = ps.Dataset.range(3)
    for shard_func in (lambda x: (x, x), lambda x: x / 2):
        with pytest.raises(ps.InvalidTypeError, match="one number"):
            ds.snapshot(tmp_path, one_by_one, shard_func)
    with pytest.raises(ps.InvalidTypeError, match="reader_func"):
        ds.snapshot(tmp_path, lambda shards: shards)


@pytest.mark.parametrize(
    "make",
    [
        lambda: ps.Dataset.range(20),
        lambda: ps.Dataset.from_tensor_slices(np.arange(20) * 3),
        lambda: ps.Dataset.range(20).map(lambda x: x * x).cache(),
        lambda: ps.Dataset.range(90).batch(7).skip(2).take(9),
        lambda: ps.Dataset.range(20).shard(3, 1).enumerate(),
        lambda: ps.Dataset.zip(ps.Dataset.range(5), ps.Dataset.range(7)),
        lambda: ps.Dataset.range(3).concatenate(ps.Dataset.range(4)).repeat(2),
    ],
)
def test_at(make):
    ds = make()
    for place, element in enumerate(list(ds)):
        assert_equal(ds.at(place), element)
    for bad in (-1, len(ds), 10**12):
        with pytest.raises(ps.OutOfRangeError, match="less than"):
            ds.at(bad)


def test_at_needs_places():
    for ds in (
        ps.Dataset.range(5).shuffle(3),
        ps.Dataset.range(5).filter(lambda x: x > 1),
        ps.Dataset.range(5).flat_map(ps.Dataset.range),
    ):
        with pytest.raises(ps.UnimplementedError, match=r"at\(\)"):
            ds.at(0)
