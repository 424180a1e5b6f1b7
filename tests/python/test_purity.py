"""Which functions may be recorded, judged without calling them."""

import collections
import copy
import dataclasses
import functools
import math
import operator
import random
import time
from types import SimpleNamespace

import numpy as np
import pytest
from pipelines import Pair, Point

import penstock as ps
from penstock import _purity

NUMBER = 3
TABLE = np.arange(4)
WORDS = ["a", "b"]
FEATURES = {"x": ps.TensorSpec((), np.int64)}
SETTINGS = SimpleNamespace(size=4)
HANDLE = open(__file__)  # noqa: SIM115
GENERATOR = np.random.default_rng(1)
COUNTS = []


def add_number(x):
    return x + NUMBER


def calls_random(x):
    return x + random.random()


def count_up():
    count = 0

    def function(x):
        nonlocal count
        count += 1
        return x + count

    return function


def with_closure(value):
    return lambda x: (x, value)


class Scale:
    def __init__(self, factor):
        self.factor = factor

    def apply(self, x):
        return x * self.factor

    def through(self, x):
        return self.apply(x)

    def __call__(self, x):
        return self.apply(x)

    def remember(self, x):
        self.last = x
        return x

    @property
    def computed(self):
        return time.time()

    def uses_property(self, x):
        return x + self.computed


def set_global(x):
    global NUMBER
    NUMBER = 4
    return x


def imports_inside(x):
    import math as m

    return x * m.pi


def imports_random_inside(x):
    import random as r

    return x + r.random()


def imports_name_inside(x):
    from random import random as draw

    return x + draw()


def gives(x):
    yield x


def imports_for_another(x):
    import random

    return (lambda y: y + random.random())(x)


def imports_by_another_name(x):
    import urllib.request as r

    return x + len(r.urlopen("file:///dev/null").read())


@dataclasses.dataclass
class Noise:
    scale: float

    def __call__(self, x):
        return x + self.draw()

    def draw(self):
        return np.random.rand() * self.scale


class Drawing(collections.namedtuple("Drawing", ["scale"])):
    def draw(self):
        return random.random()


NOISE = Noise(2)


@functools.wraps(add_number)
def wrapped(x):
    return add_number(x)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x + 1,
        lambda x: x + NUMBER,
        lambda x: x + TABLE,
        lambda x: (x, WORDS),
        lambda x: (x, FEATURES["x"]),
        lambda x: x * SETTINGS.size,
        lambda x: add_number(add_number(x)),
        lambda x: np.where(x > 0, x, np.float32(0)),
        lambda x: x * math.pi,
        lambda x: operator.add(x, 1),
        lambda x: [abs(v) for v in (x, x)],
        lambda x: (lambda y: y + NUMBER)(x),
        lambda x, n=NUMBER: x + n,
        lambda x: Point(x, x),
        lambda x: Pair(left=x, right=x),
        lambda x: ps.cast(x, ps.float32),
        lambda x: ps.Dataset.range(x).map(lambda y: y + x),
        with_closure((1, "a", None)),
        with_closure(TABLE),
        with_closure(Pair(1, "a")),
        functools.partial(operator.mul, 3),
        functools.partial(add_number),
        Scale(2),
        Scale(2).apply,
        Scale(2).through,
        wrapped,
        imports_inside,
        np.negative,
        ps.TFRecordDataset,
        ps.cast,
    ],
)
def test_may_be_recorded(function):
    _purity.check(function)


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (lambda x: x + np.random.randn(), "np.random"),
        (lambda x: x + random.random(), "random"),
        (calls_random, "random"),
        (lambda x: calls_random(x), "random"),
        (lambda x: (lambda y: y + time.time())(x), "time"),
        (lambda x: x + GENERATOR.normal(), "GENERATOR"),
        (lambda x: HANDLE.read(), "HANDLE"),
        (lambda x: print(x), "print"),
        (lambda x: input(x), "input"),
        (lambda x: np.load("f"), "np.load"),
        (lambda x: np.empty(3) + x, "np.empty"),
        (with_closure(HANDLE), "value"),
        (with_closure(object()), "value"),
        (with_closure(Pair(1, HANDLE)), "value.right"),
        (count_up(), "count"),
        (set_global, "NUMBER"),
        (Scale(2).remember, "last"),
        (Scale(2).uses_property, "computed"),
        (Scale(random.Random()).apply, "factor"),
        (functools.partial(operator.add, HANDLE), "arguments"),
        (imports_random_inside, "random"),
        (imports_name_inside, "random"),
        (gives, "generators"),
        (lambda x, out=HANDLE: x, "default"),
        (lambda x: type(x), "type"),
        (lambda x: hasattr(x, "shape"), "hasattr"),
        (lambda x: getattr(np, "random").rand(), "getattr"),  # noqa: B009
        (imports_for_another, "random"),
        (imports_by_another_name, "request"),
        (Noise(2), "random"),
        (lambda x: x + Noise(2)(x), "random"),
        (lambda x: x + Noise(2).draw(), "random"),
        (lambda x: x + NOISE.draw(), "random"),
        (lambda x: x + Drawing(1).draw(), "random"),
    ],
)
def test_may_not_be_recorded(function, name):
    with pytest.raises(ps.UnsupportedFunctionError, match=name) as caught:
        _purity.check(function)
    assert "cannot be recorded" in str(caught.value)


def test_the_line_is_named():
    with pytest.raises(ps.UnsupportedFunctionError) as caught:
        _purity.check(calls_random)
    line = calls_random.__code__.co_firstlineno + 1
    assert f"test_purity.py:{line}" in str(caught.value)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x + np.random.randn(),
        lambda x: x + random.random(),
        lambda x: x + GENERATOR.normal(),
        Scale(random.Random()).apply,
        with_closure(np.random.RandomState(1)),
        imports_name_inside,
    ],
)
def test_what_is_random_is_sent_to_random_functions(function):
    with pytest.raises(ps.UnsupportedFunctionError) as caught:
        _purity.check(function)
    for name in ("random_uniform", "random_normal", "random_int"):
        assert f"ps.{name}" in str(caught.value)
        assert hasattr(ps, name)
    assert "test_purity.py:" in str(caught.value)


def test_computed_attributes_say_of_what_they_are():
    with pytest.raises(ps.UnsupportedFunctionError, match=r"a .*\.Scale's"):
        _purity.check(Scale(2).uses_property)


def test_recursion_ends():
    def forever(x):
        return forever(x)

    _purity.check(forever)


def appends(what, x):
    what.append(x)
    return x


def counts(what, x):
    what["calls"] = what.get("calls", 0) + 1
    return x


def deletes(what, x):
    what.clear()
    return x


def adds(what, x):
    what.add(7)
    return x


def writes(what, x):
    what[0] += 1
    return x


def changes_and_fails(what, x):
    what.append(7)
    raise ValueError


@pytest.mark.parametrize(
    ("function", "what"),
    [
        (appends, [1]),
        (counts, {}),
        (counts, {"calls": 3, "b": 1}),
        (counts, collections.Counter(b=1)),
        (counts, collections.OrderedDict(calls=3, b=1)),
        (counts, collections.defaultdict(int, b=1)),
        (deletes, {"a": 1, "b": 2}),
        (deletes, ["a", "b"]),
        (adds, {1, 2}),
        (writes, [1, 2]),
        (writes, np.array([1, 2])),
        (changes_and_fails, [1]),
    ],
)
def test_what_a_recording_changes_is_put_back(function, what):
    before = copy.deepcopy(what)
    taken = functools.partial(function, what)
    with pytest.raises(ps.UnsupportedFunctionError):
        ps.Dataset.range(3).map(ps.native(taken))
    if isinstance(what, np.ndarray):
        assert what.tolist() == before.tolist()
    else:
        assert what == before
        assert list(what) == list(before)


def test_changes_are_named():
    def remember(x):
        COUNTS.append(x)
        return x

    with pytest.raises(ps.UnsupportedFunctionError, match="COUNTS"):
        ps.Dataset.range(3).map(ps.native(remember))
    assert [int(x) for x in ps.Dataset.range(3).map(remember)] == [0, 1, 2]
    assert COUNTS == []
