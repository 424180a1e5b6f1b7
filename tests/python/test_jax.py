"""to_jax: arrays, devices, prefetch, epochs and state; on four CPU devices."""

import gc
import itertools
import json
import os
import socket
import subprocess
import sys
import threading

import numpy as np
import pytest
from complaints import refuses
from killed import check_resumes_exactly, check_service_lineage

# Before JAX looks at its devices, which it does once.
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
os.environ["JAX_PLATFORMS"] = "cpu"
jax = pytest.importorskip("jax")

from jax.sharding import Mesh, NamedSharding, PartitionSpec  # noqa: E402

import penstock as ps  # noqa: E402


def numbers(n=40, batch=4):
    """Batches of shuffled numbers, without a seed."""
    return ps.Dataset.range(n).shuffle(n).batch(batch)


def items(batches):
    return [int(x) for batch in batches for x in np.asarray(batch).reshape(-1)]


# ---- Elements.


@pytest.mark.parametrize(
    "dtype",
    [
        ps.bool,
        ps.int8,
        ps.int16,
        ps.int32,
        ps.uint8,
        ps.uint16,
        ps.uint32,
        ps.float16,
        ps.bfloat16,
        ps.float32,
        ps.complex64,
    ],
    ids=lambda dtype: dtype.name,
)
@pytest.mark.parametrize("devices", [1, 4])
def test_dtypes(dtype, devices):
    ds = ps.Dataset.range(4).map(lambda x: ps.cast(x % 2, dtype)).batch(4)
    (found,) = ds.to_jax(jax.devices()[:devices])
    assert isinstance(found, jax.Array)
    assert found.dtype == jax.numpy.dtype(dtype.name)
    assert found.astype(np.complex64).real.tolist() == [0, 1, 0, 1]


def test_64_bits_follow_jax():
    (found,) = ps.Dataset.range(4).batch(4).to_jax()
    assert found.dtype == np.int32
    with jax.enable_x64(True):
        (found,) = ps.Dataset.range(4).batch(4).to_jax()
        assert found.dtype == np.int64


def test_structures_are_trees():
    ds = ps.Dataset.range(8).map(lambda x: {"a": (x, x * 2), "b": None})
    (found,) = ds.batch(8).to_jax()
    total = jax.jit(lambda tree: sum(x.sum() for x in tree["a"]))(found)
    assert int(total) == 28 * 3
    assert found["b"] is None


def test_batches_are_cut_over_all_devices():
    (found,) = ps.Dataset.range(8).batch(8).to_jax()
    assert [
        (shard.device.id, shard.data.tolist())
        for shard in found.addressable_shards
    ] == [(0, [0, 1]), (1, [2, 3]), (2, [4, 5]), (3, [6, 7])]


def test_scalars_are_on_every_device():
    ds = ps.Dataset.range(2).map(lambda x: (x, ps.zeros((4, 3))))
    scalar, matrix = next(iter(ds.to_jax()))
    assert scalar.sharding.is_fully_replicated
    assert len(scalar.sharding.device_set) == 4
    assert matrix.addressable_shards[0].data.shape == (1, 3)


def test_given_devices():
    two = jax.devices()[1:3]
    (found,) = ps.Dataset.range(8).batch(8).to_jax(two)
    assert found.sharding.device_set == set(two)
    (found,) = ps.Dataset.range(7).batch(7).to_jax(two[:1])
    assert found.sharding.device_set == set(two[:1])


def test_given_shardings():
    mesh = Mesh(np.array(jax.devices()).reshape(2, 2), ("x", "y"))
    rows = NamedSharding(mesh, PartitionSpec("x"))
    both = NamedSharding(mesh, PartitionSpec("x", "y"))
    ds = ps.Dataset.range(6).map(lambda x: {"a": x, "b": ps.zeros((4,))})
    ds = ds.batch(6)
    (found,) = ds.to_jax(sharding=rows)
    assert found["a"].sharding == rows and found["b"].sharding == rows
    (found,) = ds.to_jax(sharding={"a": rows, "b": both})
    assert found["a"].sharding == rows and found["b"].sharding == both


def test_batches_that_do_not_divide_are_refused_at_their_place():
    ds = ps.Dataset.range(10).batch(8)
    it = iter(ds.to_jax(prefetch=2))
    assert next(it).shape == (8,)
    with refuses(ps.InvalidArgumentError, "drop_remainder=True", "(2,)", "4"):
        next(it)
    with pytest.raises(StopIteration):
        next(it)
    assert (
        len(list(ps.Dataset.range(10).batch(8, drop_remainder=True).to_jax()))
        == 1
    )


def test_what_jax_has_no_arrays_for_is_refused():
    strings = ps.Dataset.from_tensor_slices(["a"])
    with refuses(ps.InvalidTypeError, "strings", "map()"):
        strings.to_jax()
    with refuses(ps.InvalidTypeError, "flat_map"):
        ps.Dataset.range(4).window(2).to_jax()
    ragged = ps.Dataset.from_list([[1], [2, 3]]).ragged_batch(2)
    with refuses(ps.InvalidTypeError, "padded_batch"):
        ragged.to_jax()
    (found,) = ragged.to_jax(jax.devices()[:1])
    assert type(found) is ps.Ragged
    assert found.values.tolist() == [1, 2, 3]
    assert found.row_splits.tolist() == [0, 1, 3]


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        ({"prefetch": -1}, ps.InvalidArgumentError),
        ({"prefetch": 1.5}, ps.InvalidTypeError),
        ({"devices": []}, ps.InvalidTypeError),
        ({"devices": [3]}, ps.InvalidTypeError),
        ({"sharding": 3}, ps.InvalidTypeError),
        ({"rank": 1}, ps.InvalidArgumentError),
    ],
    ids=str,
)
def test_wrong_arguments_are_refused(arguments, kind):
    with refuses(kind):
        ps.Dataset.range(4).to_jax(**arguments)
    one = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    with refuses(ps.InvalidArgumentError, "both"):
        ps.Dataset.range(4).to_jax(devices=jax.devices(), sharding=one)


@pytest.mark.parametrize("devices", [1, 4])
def test_kept_arrays_keep_their_values(devices):
    # More than the engine's memory for this iterator.
    rows, size = 300, 100_000
    ds = ps.Dataset.range(rows).map(
        lambda i: ps.fill((4, size // 4), ps.cast(i, ps.float32))
    )
    kept = list(ds.to_jax(jax.devices()[:devices]))
    gc.collect()
    for i, array in enumerate(kept):
        assert array[0, 0] == i and array[-1, -1] == i


def test_memory_comes_back():
    size = 1 << 20
    ds = ps.Dataset.range(3000).map(lambda i: ps.fill((4, size // 16), i))
    it = iter(ds.to_jax(jax.devices()[:1]))
    reader = it._source._connection.reader
    for i, array in enumerate(it):
        assert array[0, 0] == i and array[-1, -1] == i
        del array
    assert 0 < reader._mapped_bytes < 200 * size


def test_donated_arrays_change_no_other():
    ds = ps.Dataset.range(64 * 4096).batch(4096)
    clear = jax.jit(lambda x: x * 0 - 1, donate_argnums=0)
    seen = []
    for batch in ds.to_jax(jax.devices()[:1]):
        seen.append(np.array(batch))
        clear(batch)
    assert np.array_equal(np.concatenate(seen), np.arange(64 * 4096))


# ---- Prefetch and state.


@pytest.mark.parametrize("prefetch", [0, 1, 2, 50])
@pytest.mark.parametrize("steps", [0, 1, 7, 10])
def test_state_is_of_what_was_seen(prefetch, steps):
    it = iter(numbers().to_jax(prefetch=prefetch))
    seen = items(next(it) for _ in range(steps))
    state = json.loads(json.dumps(it.state_dict()))
    rest = items(it)
    assert sorted(seen + rest) == list(range(40))
    other = iter(numbers().to_jax(prefetch=prefetch))
    other.load_state_dict(state)
    assert other.state_dict() == state
    assert items(other) == rest


def test_elements_are_made_ready_ahead():
    taken = []

    def count():
        for i in range(10):
            taken.append(i)
            yield i

    signature = ps.TensorSpec((), np.int32)
    ds = ps.Dataset.from_generator(count, output_signature=signature)
    with ps.Options(run_ahead=0):
        it = iter(ds.to_jax(prefetch=3))
        next(it)
    assert len(taken) == 4


def test_nobody_waits_for_what_comes_later():
    is_asked = threading.Event()

    def slow():
        yield 1
        is_asked.wait()
        yield from range(2, 9)

    signature = ps.TensorSpec((), np.int32)
    ds = ps.Dataset.from_generator(slow, output_signature=signature)
    it = iter(ds.to_jax(prefetch=4))
    assert next(it) == 1
    is_asked.set()
    assert [int(x) for x in it] == [*range(2, 9)]


def test_errors_raise_at_their_places():
    table = np.array([10, 20, 30])
    ds = ps.Dataset.from_tensor_slices([0, 7, 2])
    it = iter(ds.map(lambda i: ps.take(table, i)).to_jax(prefetch=2))
    assert next(it) == 10
    state = it.state_dict()
    with pytest.raises(ps.PenstockError):
        next(it)
    assert [int(x) for x in it] == [30]
    it.load_state_dict(state)
    with pytest.raises(ps.PenstockError):
        next(it)
    assert [int(x) for x in it] == [30]


def test_state_goes_over_epochs():
    feed = numbers().to_jax()
    first = items(feed)
    it = iter(feed)
    next(it)
    state = json.loads(json.dumps(feed.state_dict()))
    expected = [items(it), items(feed)]
    assert sorted(expected[1]) == sorted(first) and expected[1] != first
    other = numbers().to_jax()
    other.load_state_dict(state)
    assert [items(other), items(other)] == expected


def test_a_state_after_the_end_goes_on_with_the_next_epoch():
    feed = numbers().to_jax()
    items(feed)
    state = json.loads(json.dumps(feed.state_dict()))
    expected = [items(feed), items(feed)]
    other = numbers().to_jax()
    other.load_state_dict(state)
    assert [items(other), items(other)] == expected
    # Before the end is seen, there is still an end to come.
    it = iter(feed)
    for _ in range(len(feed)):
        next(it)
    other.load_state_dict(feed.state_dict())
    assert items(other) == []


@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_state_after_close_goes_on_where_that_was(count):
    feed, whole, other = (numbers().to_jax() for _ in range(3))
    whole.load_state_dict(feed.state_dict())
    it = iter(feed)
    had = items(itertools.islice(it, count))
    it.close()
    assert list(it) == []
    other.load_state_dict(json.loads(json.dumps(feed.state_dict())))
    assert had + items(other) == items(whole)
    assert items(other) == items(whole)


def test_epochs_can_be_named():
    feed = numbers().to_jax()
    orders = [items(feed) for _ in range(3)]
    feed.set_epoch(1)
    assert [items(feed), items(feed)] == orders[1:]
    with refuses(ps.InvalidArgumentError, "epoch"):
        feed.set_epoch(-1)


def test_ranks_share_the_elements():
    parts = [items(numbers(44).to_jax(rank=r, world_size=3)) for r in range(3)]
    assert sorted(sum(parts, [])) == list(range(44))  # noqa: RUF017
    even = [
        len(list(numbers(44).to_jax(rank=r, world_size=3, drop_uneven=True)))
        for r in range(3)
    ]
    assert even == [3, 3, 3]
    assert len(numbers(44).to_jax(rank=0, world_size=3, drop_uneven=True)) == 3


PROCESS = """
import sys
import jax
import numpy as np
import penstock as ps

rank, port = int(sys.argv[1]), sys.argv[2]
jax.config.update("jax_cpu_collectives_implementation", "gloo")
jax.distributed.initialize(f"127.0.0.1:{port}", 2, rank)
feed = ps.Dataset.range(42).shuffle(42).batch(4).to_jax(drop_uneven=True)
total = jax.jit(lambda batch: batch.sum())
for batch in feed:
    assert batch.shape == (8,), batch.shape
    mine = [s.data.tolist() for s in batch.addressable_shards]
    print("step", int(total(batch)), *sum(mine, []), flush=True)
"""


def test_processes_share_arrays():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    environment = {
        **os.environ,
        "XLA_FLAGS": "--xla_force_host_platform_device_count=2",
    }
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", PROCESS, str(rank), port],
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        for rank in range(2)
    ]
    said = [process.communicate(timeout=200)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], said
    steps = [
        [
            list(map(int, line.split()[1:]))
            for line in text.splitlines()
            if line.startswith("step")
        ]
        for text in said
    ]
    assert len(steps[0]) == len(steps[1]) == 5
    seen = []
    for (total, *a), (same, *b) in zip(*steps, strict=True):
        assert total == same == sum(a) + sum(b)
        seen += a + b
    assert len(set(seen)) == len(seen) == 40


def test_a_killed_training_goes_on(tmp_path):
    check_resumes_exactly("jax", tmp_path)


def test_a_killed_reader_of_a_service_goes_on(tmp_path):
    check_service_lineage("jax", tmp_path)


def test_importing_penstock_imports_no_framework():
    code = (
        "import sys, penstock as ps; list(ps.Dataset.range(3));"
        "print([m for m in ('jax', 'torch', 'tensorflow', 'pandas',"
        " 'pyarrow', 'datasets') if m in sys.modules])"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert found.stdout == "[]\n"


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "penstock._torch", raising=False)
    with refuses(ps.MissingPackageError, "pip install torch") as caught:
        ps.Dataset.range(3).to_torch()
    assert isinstance(caught.value, ImportError)
