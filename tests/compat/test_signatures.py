"""Functions take TensorFlow's arguments by their names."""

import inspect
import types

import pytest

import penstock.compat.tf as compat

tensorflow = pytest.importorskip("tensorflow")

# Parameters that have no meaning in input pipelines, or are not offered.
LEFT_OUT = {
    "args",
    "bad_indices_policy",
    "checkpoint_args",
    "expand_composites",
    "layout",
    "kwargs",
    "name",
}
EXCUSED = {
    "tf.data.Dataset",  # made by its methods alone
    "tf.DType",
    "tf.RaggedTensor",
    "tf.RaggedTensorSpec",
    "tf.as_dtype",
    "tf.dtypes.DType",
    "tf.dtypes.as_dtype",
    "tf.eye",
    "tf.io.RaggedFeature",
    "tf.linspace",
    "tf.math.top_k",
    "tf.matmul",
    "tf.nest.is_nested",
    "tf.ragged.constant",
    "tf.random.Generator",
}


def parameters(thing):
    try:
        return inspect.signature(thing).parameters
    except (TypeError, ValueError):
        return {}


def pairs(mine, theirs, path):
    for name in mine.__all__:
        assert hasattr(theirs, name), f"TensorFlow has no {path}.{name}"
        one, two = getattr(mine, name), getattr(theirs, name)
        if isinstance(one, types.ModuleType):
            yield from pairs(one, two, f"{path}.{name}")
        elif callable(one) and not (
            isinstance(one, type) and issubclass(one, BaseException)
        ):
            yield f"{path}.{name}", one, two


def of_datasets():
    for name in dir(compat.data.Dataset):
        if not name.startswith("_") and name != "native":
            yield (
                f"Dataset.{name}",
                getattr(compat.data.Dataset, name),
                getattr(tensorflow.data.Dataset, name),
            )


def test_parameters_have_tensorflows_names():
    wrong = []
    everything = [*pairs(compat, tensorflow, "tf"), *of_datasets()]
    assert len(everything) > 350
    for path, mine, theirs in everything:
        ours = parameters(mine)
        takes_any = any(p.kind is p.VAR_KEYWORD for p in ours.values())
        missing = set(parameters(theirs)) - set(ours) - LEFT_OUT
        if missing and not takes_any and path not in EXCUSED:
            wrong.append((path, sorted(missing)))
    assert not wrong
