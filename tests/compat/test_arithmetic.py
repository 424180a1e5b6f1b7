"""Every operator, literal and reduction, by TensorFlow's table."""

import importlib.util
import json
import re

import arithmetic
import numpy as np
import pytest

import penstock.compat.tf as tf

HAS_TENSORFLOW = importlib.util.find_spec("tensorflow") is not None
GOLDEN = json.loads(arithmetic.GOLDEN.read_text())
# Where TensorFlow takes what is no value of the tensor's dtype, and changes it
# without a word, it is refused here.
REFUSED = re.compile(
    r"bool (/|==|&) np\..*"
    r"|np\..* (==|&) bool"
    r"|u?int\d+ \S+ np\.(float\d+\(.*|array\(\[2\.5.*)"
    r"|np\.(float\d+\(.*|array\(\[2\.5.*) \S+ u?int\d+"
    r"|bool \* \w+|\w+ \* bool"
)
# And what TensorFlow does not have for some dtypes, the engine has.
MORE = re.compile(
    r"True \S+ uint8|uint8 \S+ True"
    r"|uint\d+ \*\* uint\d+"
    r"|uint16: tf\.(tile|repeat).*"
    r"|uint\d+: tf\.saturate_cast.*"
    r"|string: tf\.meshgrid.*"
)


def is_excused(name, got, want):
    if want is None:
        return MORE.fullmatch(name) is not None
    return got is None and REFUSED.fullmatch(name) is not None


def differs(name, got, want):
    return not is_same(got, want) and not is_excused(name, got, want)


def is_same(got, want):
    if got is None or want is None:
        return got is want
    if (got["dtype"], got["shape"]) != (want["dtype"], want["shape"]):
        return False
    if want["dtype"] in ("float16", "float32", "float64", "python f"):
        slack = {"float16": 2e-3, "float64": 1e-12}.get(want["dtype"], 2e-6)
        return np.allclose(
            got["values"], want["values"], rtol=slack, atol=0, equal_nan=True
        )
    return got["values"] == want["values"]


GROUPS = sorted({name.split(":")[0].split(" ")[0] for name in GOLDEN})


def of_group(group):
    return [
        case
        for case in arithmetic.cases()
        if case[0].split(":")[0].split(" ")[0] == group
    ]


@pytest.mark.parametrize("group", GROUPS)
def test_values(group):
    wrong = []
    for name, *rest in of_group(group):
        got, want = arithmetic.run(tf, *rest), GOLDEN[name]
        if differs(name, got, want):
            wrong.append((name, got, want))
    assert not wrong, "\n".join(map(str, wrong))


def recorded(expression, x, y):
    """What a recorded function gives for an expression of x and y."""
    names = {"tf": tf, "np": np}
    first = eval(x, names)
    second = None if y is None else eval(y, names)
    parts = (first, second) if isinstance(second, tf.Tensor) else (first,)

    def function(x, y=second):
        return eval(expression, {"tf": tf, "np": np, "x": x, "y": y})

    from penstock import _recording
    from penstock._symbol import Symbol

    # Not through map(): a function with eval() in it would run as Python.
    specs = [tf.TensorSpec.from_tensor(part) for part in parts]
    from penstock.compat.tf._types import native_spec

    recording = _recording.Recording(list(map(native_spec, specs)), None)
    with _recording.activate(recording):
        tensors = [tf.Tensor(Symbol(recording, i)) for i in range(len(parts))]
        result = function(*tensors)
    return recording, result, parts


@pytest.mark.parametrize("group", GROUPS)
def test_recorded_dtypes(group):
    """Symbols have the dtypes, and the refusals, that values have."""
    wrong = []
    for name, expression, x, y in of_group(group):
        want = GOLDEN[name]
        if x is None:
            continue
        try:
            _, result, _ = recorded(expression, x, y)
            got = result.dtype.name
        except tf.errors.OpError as error:
            if "cannot be recorded" in str(error):
                continue  # It runs as Python, which test_values is about.
            got = None
        except (TypeError, ValueError, NotImplementedError):
            got = None
        if got != (want and want["dtype"]) and not is_excused(name, got, want):
            wrong.append((name, got, want))
    assert not wrong, "\n".join(map(str, wrong))


OPERATORS = [
    case
    for case in arithmetic.cases()
    if case[2] and case[1][0] in "xy" and GOLDEN[case[0]] and "[" not in case[1]
]


@pytest.mark.parametrize("kind", sorted(arithmetic.VALUES))
def test_recorded_values(kind):
    """Operators give in the engine what they give here."""
    wrong = []
    for name, expression, x, y in OPERATORS:
        if not name.startswith(kind + " "):
            continue
        if REFUSED.fullmatch(name):
            continue
        parts = [eval(x, {"tf": tf, "np": np})]
        other = eval(y, {"tf": tf, "np": np})
        symbol = expression.split(" ")[1]
        operate = arithmetic.OPERATORS[symbol]
        if isinstance(other, tf.Tensor):
            ds = tf.data.Dataset.from_tensors((parts[0], other))
            ds = ds.map(lambda a, b, f=operate: f(a, b))
        else:
            ds = tf.data.Dataset.from_tensors(parts[0])
            ds = ds.map(lambda a, b=other, f=operate: f(a, b))
        got = arithmetic.describe(ds.get_single_element())
        if not is_same(got, GOLDEN[name]):
            wrong.append((name, got, GOLDEN[name]))
    assert not wrong, "\n".join(map(str, wrong))


@pytest.mark.skipif(not HAS_TENSORFLOW, reason="TensorFlow is not installed")
def test_the_table_is_tensorflows():
    import tensorflow

    for name, *rest in arithmetic.cases():
        got = arithmetic.run(tensorflow, *rest)
        assert is_same(got, GOLDEN[name]), name
