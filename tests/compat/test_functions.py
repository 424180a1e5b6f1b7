"""Functions of tensors give what TensorFlow's give, by values and in map."""

import copy
import importlib.util
import json

import functions
import numpy as np
import pytest

import penstock.compat.tf as tf

HAS_TENSORFLOW = importlib.util.find_spec("tensorflow") is not None
GOLDEN = json.loads(functions.GOLDEN.read_text())


def is_same_tensor(got, want):
    if (got["dtype"], got["shape"]) != (want["dtype"], want["shape"]):
        return False
    slack = {"float16": 2e-3, "float64": 1e-9}.get(want["dtype"], 1e-5)
    if want["dtype"].startswith(("float", "complex", "python f")):
        return np.allclose(
            got["values"], want["values"], slack, slack / 5, equal_nan=True
        )
    return got["values"] == want["values"]


def is_same(got, want):
    if got is None or want is None:
        return got is want
    if "dtype" in want:
        return "dtype" in got and is_same_tensor(got, want)
    if set(got) != set(want):
        return False
    return all(
        len(got[key]) == len(want[key])
        and all(map(is_same, got[key], want[key]))
        if isinstance(want[key], list)
        else is_same(got[key], want[key])
        for key in want
    )


def of_group(group):
    for function, *arguments in functions.GROUPS[group]:
        name = " | ".join((function, *arguments))
        yield name, function, arguments


def check(group, run, splits=None):
    wrong = []
    for name, function, arguments in of_group(group):
        got, want = run(function, arguments), copy.deepcopy(GOLDEN[name])
        for each in (want or {}).get("splits", ()):
            each["dtype"] = splits or each["dtype"]
        if not is_same(got, want):
            wrong.append((name, got, want))
    assert not wrong, "\n".join(map(str, wrong))


@pytest.mark.parametrize("group", functions.GROUPS)
def test_values(group):
    check(group, lambda *case: functions.run(tf, *case))


def spec_of(value, is_open):
    """The spec of an element; if it is open, no size is known."""
    if isinstance(value, tf.RaggedTensor):
        return tf.RaggedTensorSpec(
            [None] * value.shape.rank,
            value.dtype,
            value.ragged_rank,
            value.row_splits.dtype,
        )
    shape = [None] * value.shape.rank if is_open else value.shape
    return tf.TensorSpec(shape, value.dtype)


def mapped(function, arguments, is_open):
    """What a function gives in map."""
    names = {"tf": tf, "np": np}
    try:
        given = [eval(text, names) for text in arguments]
        given = tuple(
            x if isinstance(x, tf.RaggedTensor) else tf.convert_to_tensor(x)
            for x in given
        )
        ds = tf.data.Dataset.from_generator(
            lambda: iter([given]),
            output_signature=tuple(spec_of(x, is_open) for x in given),
        )
        found = ds.map(eval(function, names)).get_single_element()
        return functions.describe(found)
    except (
        tf.errors.OpError,
        TypeError,
        ValueError,
        LookupError,
        NotImplementedError,
    ):
        return None


@pytest.mark.parametrize("group", functions.GROUPS)
def test_in_map(group):
    # Ragged elements have splits of int64.
    check(group, lambda *case: mapped(*case, True), "int64")


@pytest.mark.parametrize(
    "group", ["frames", "images", "parsed", "places", "sparse"]
)
def test_in_map_with_known_sizes(group):
    """Where sizes are known, some functions are recorded in another way."""
    check(group, lambda *case: mapped(*case, False), "int64")


@pytest.mark.skipif(not HAS_TENSORFLOW, reason="TensorFlow is not installed")
def test_the_table_is_tensorflows():
    import tensorflow

    for name, *rest in functions.cases():
        assert is_same(functions.run(tensorflow, *rest), GOLDEN[name]), name
