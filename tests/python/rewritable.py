"""Pipelines that can be rewritten, and what is to stay the same of them."""

import copy
import json

import numpy as np

import penstock as ps

PASSES = [
    "drop_no_ops",
    "push_filter",
    "project_early",
    "shuffle_before_decode",
    "vectorize_pairs",
    "growers_last",
    "fuse_maps",
]
MANY = np.ones(400, np.int64)
TABLE = np.arange(50)


def work(i, x):
    """Some tens of microseconds, and cannot fail."""
    y = ps.cast(x, ps.float32) * np.ones(2000, np.float32)
    for _ in range(3):
        y = ps.exp(ps.sin(y))
    return i, y


def numbers(count=200):
    return ps.Dataset.range(count)


def pairs(count=200):
    return numbers(count).enumerate()


def filtered(count=200):
    return pairs(count).map(work).filter(lambda i, y: i % 10 == 0).batch(4)


def seldom():
    """Without end, nearly, and few of what is computed comes out."""
    return pairs(10**8).map(work).filter(lambda i, y: i % 100 == 0)


def crawled(count=200):
    """A label and something costly by one function; few labels are wanted."""

    def decoded(x):
        label = ps.strings.to_number(ps.strings.as_string(x), ps.int64)
        many = ps.take(TABLE, x % 50) * np.ones(2000, np.float32)
        return {"label": label, "many": ps.exp(ps.sin(many))}

    return (
        numbers(count)
        .map(decoded)
        .shuffle(20, seed=3)
        .filter(lambda x: x["label"] % 20 == 0)
    )


# A pipeline that the pass helps, by its name.
PROFITING = {
    "drop_no_ops": lambda n: numbers(n).batch(2).unbatch().skip(0).batch(50),
    "push_filter": filtered,
    "project_early": lambda n: (
        pairs(n).map(work).shuffle(20, seed=1).map(lambda i, y: i).batch(10)
    ),
    "shuffle_before_decode": lambda n: (
        numbers(n).map(lambda x: x * MANY).shuffle(50, seed=1).batch(4)
    ),
    "vectorize_pairs": lambda n: (
        numbers(n).batch(4).map(lambda x: x * 2 + 1).unbatch().batch(50)
    ),
    "growers_last": lambda n: (
        numbers(n)
        .map(lambda x: ps.cast(ps.cast(x * MANY, ps.uint8), ps.float32) / 255)
        .shuffle(50, seed=1)
        .batch(4)
    ),
    "fuse_maps": lambda n: (
        numbers(n).map(lambda x: x + 1).map(lambda x: x * 3).batch(50)
    ),
}

PIPELINES = {
    **{f"profits_by_{name}": make for name, make in PROFITING.items()},
    "a_part_of_a_map": crawled,
    "nothing_to_do": lambda n: numbers(n).batch(7),
    "several": lambda n: (
        pairs(n)
        .skip(0)
        .map(lambda i, x: (i, x * 2))
        .map(lambda i, x: (i, x + 1))
        .filter(lambda i, x: i % 3 == 0)
        .shuffle(10)
        .repeat(2)
        .batch(4)
    ),
    "errors": lambda n: (
        pairs(n)
        .take(10**9)
        .map(lambda i, x: (i, ps.take(TABLE, x)))
        .filter(lambda i, x: i % 3 == 0)
    ),
    "errors_left_out": lambda n: (
        numbers(n)
        .map(lambda x: ps.take(TABLE, x % 60))
        .map(lambda x: x + 1)
        .ignore_errors()
        .batch(9)
    ),
    "random": lambda n: (
        numbers(n)
        .skip(0)
        .map(lambda x: x + 1)
        .map(lambda x: x * 1000 + ps.random_int((), 0, 999))
        .shuffle(30)
        .map(lambda x: x + 1)
        .map(lambda x: x * 2)
        .batch(8)
    ),
    "dicts": lambda n: (
        ps.Dataset.from_tensor_slices(
            {"a": np.arange(n), "b": np.arange(n) * 2, "c": np.arange(n) * 3}
        )
        .map(lambda x: {**x, "d": x["a"] * x["b"]})
        .filter(lambda x: x["a"] % 2 == 0)
        .shuffle(10, seed=4)
        .map(lambda x: {"sum": x["a"] + x["c"]})
    ),
    "text": lambda n: (
        ps.Dataset.from_list([f"line {i}" * (i % 7) for i in range(n)])
        .map(lambda x: ps.strings.join([x, x, x, x]))
        .shuffle(20, seed=2)
        .take(n)
    ),
    "inside": lambda n: numbers(n // 10).flat_map(
        lambda x: ps.Dataset.range(x).skip(0).map(lambda y: y + 1)
        .map(lambda y: y * x)
    ),
    "python": lambda n: (
        numbers(n)
        .map(lambda x: x + 1)
        .map(lambda x: x * 2)
        .map(ps.python_function(lambda x: x + 1, output_signature=
                                ps.TensorSpec((), ps.int64)))
        .batch(6)
    ),
    "two_sources": lambda n: (
        ps.Dataset.zip(numbers(n).skip(0), numbers(n).map(lambda x: x + 1)
                       .map(lambda x: x * 2))
        .filter(lambda x, y: y % 3 == 0)
    ),
    "prefetches": lambda n: (
        numbers(n).map(lambda x: x + 1).prefetch(2).prefetch(3).repeat(1)
    ),
}  # fmt: skip


STEPS = [
    lambda ds: ds.skip(0),
    lambda ds: ds.take(10**6),
    lambda ds: ds.batch(3).unbatch(),
    lambda ds: ds.batch(4).map(lambda i, x: (i + 1, x * 2)).unbatch(),
    lambda ds: ds.map(lambda i, x: (i, x + 1)),
    lambda ds: ds.map(lambda i, x: (x, i)),
    lambda ds: ds.map(lambda i, x: (i, ps.take(TABLE, ps.abs(x) % 53))),
    lambda ds: ds.map(lambda i, x: (i, x + ps.random_int((), 0, 9))),
    lambda ds: ds.filter(lambda i, x: i % 3 != 1),
    lambda ds: ds.filter(lambda i, x: x % 5 != 2),
    lambda ds: ds.shuffle(6),
    lambda ds: ds.shuffle(9, seed=2),
    lambda ds: ds.cache(),
    lambda ds: ds.prefetch(2),
    lambda ds: ds.repeat(2),
    lambda ds: ds.repeat(1),
    lambda ds: ds.ignore_errors(),
    lambda ds: ds.enumerate().map(lambda n, x: (x[0] + n, x[1])),
    lambda ds: ds.map(lambda i, x: (i, ps.sum(x * MANY))),
    lambda ds: ds.flat_map(
        lambda i, x: ps.Dataset.range(ps.abs(i) % 3)
        .skip(0).map(lambda n: (n, n + 1)).filter(lambda n, m: n < 2)
    ),
    lambda ds: ds.with_options(ps.Options(name="x")),
    lambda ds: (
        ds.map(lambda i, x: (i, x * MANY)).shuffle(5, seed=1)
        .map(lambda i, x: (i, ps.sum(x)))
    ),
    lambda ds: (
        ds.map(lambda i, x: (i, ps.cast(ps.cast(x * MANY, ps.uint8), ps.int64)))
        .shuffle(4).map(lambda i, x: (i, ps.sum(x)))
    ),
    lambda ds: (
        ds.map(lambda i, x: (i, x, i * x)).shuffle(5, seed=3)
        .map(lambda i, x, y: (i, x))
    ),
]  # fmt: skip


def plain(value):
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, tuple):
        return tuple(map(plain, value))
    if isinstance(value, np.ndarray):
        return (str(value.dtype), value.shape, value.tobytes())
    return value


def rest(iterator):
    """All that is left, with what was raised at its place."""
    found = []
    while True:
        try:
            found.append(plain(next(iterator)))
        except StopIteration:
            return found
        except ps.PenstockError as error:
            found.append(f"{type(error).__name__}: {error}")


def rows(ds, epoch=0):
    """All of an epoch."""
    ds = copy.copy(ds)
    ds.set_epoch(epoch)
    return rest(iter(ds))


def resumed(ds, state):
    iterator = iter(ds)
    iterator.load_state_dict(json.loads(json.dumps(state)))
    return rest(iterator)


def after(ds, count):
    """The state after so many elements, and what comes then."""
    iterator = iter(ds)
    for _ in range(count):
        next(iterator)
    state = iterator.state_dict()
    return state, rest(iterator)


def names(ds):
    """The transformations that are run."""
    with iter(ds) as iterator:
        return [node.name for node in iterator.stats().nodes]
