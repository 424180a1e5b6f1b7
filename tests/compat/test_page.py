"""docs/compatibility.md lists what the module offers, and all of tf.data."""

import importlib.util
import re
import types
from pathlib import Path

import pytest

import penstock.compat.tf as tf

PAGE = Path(__file__).resolve().parents[2] / "docs" / "compatibility.md"
VERDICTS = {"same", "better", "different", "not offered yet"}
OWN = {"native"}  # What TensorFlow's datasets do not have.
HAS_TENSORFLOW = importlib.util.find_spec("tensorflow") is not None


def sections():
    text = PAGE.read_text()
    parts = re.split(r"^#+ (.*)$", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def table(section):
    """Verdicts by name."""
    rows = re.findall(
        r"^\| `(\w+)` \| ([^|]+) \|", sections()[section], re.MULTILINE
    )
    found = {name: verdict.strip() for name, verdict in rows}
    assert len(found) == len(rows)
    assert set(found.values()) <= VERDICTS
    return found


def offered(section):
    return {
        name
        for name, verdict in table(section).items()
        if verdict != "not offered yet"
    }


def public(thing):
    return {name for name in dir(thing) if not name.startswith("_")}


def test_datasets():
    assert offered("tf.data.Dataset") == public(tf.data.Dataset) - OWN


def test_data():
    assert offered("tf.data") == set(tf.data.__all__)


def test_experimental():
    page = offered("tf.data.experimental")
    assert page == set(tf.data.experimental.__all__)


def test_service():
    page = offered("tf.data.experimental.service")
    assert page == set(tf.data.experimental.service.__all__)


def test_options():
    page = offered("tf.data.Options")
    assert page == public(tf.data.Options()) - {"to_native"}


MODULES = {
    "tf": tf,
    "tf.audio": tf.audio,
    "tf.autograph.experimental": tf.autograph.experimental,
    "tf.bitwise": tf.bitwise,
    "tf.config": tf.config,
    "tf.debugging": tf.debugging,
    "tf.dtypes": tf.dtypes,
    "tf.errors": tf.errors,
    "tf.image": tf.image,
    "tf.io": tf.io,
    "tf.io.gfile": tf.io.gfile,
    "tf.lookup": tf.lookup,
    "tf.math": tf.math,
    "tf.nest": tf.nest,
    "tf.ragged": tf.ragged,
    "tf.random": tf.random,
    "tf.signal": tf.signal,
    "tf.sparse": tf.sparse,
    "tf.strings": tf.strings,
    "tf.train": tf.train,
}


@pytest.mark.parametrize("section", MODULES)
def test_functions(section):
    module = MODULES[section]
    listed = re.findall(r"`(\w+)`", sections()[section])
    names = {
        name
        for name in module.__all__
        if not isinstance(getattr(module, name), types.ModuleType)
    }
    assert len(listed) == len(set(listed))
    assert set(listed) == names


def test_every_module_is_on_the_page():
    modules = {
        f"tf.{name}"
        for name in tf.__all__
        if isinstance(getattr(tf, name), types.ModuleType)
    }
    # Of this one, all is in a module of its own.
    assert modules - {"tf.autograph"} <= set(sections())


@pytest.mark.skipif(not HAS_TENSORFLOW, reason="TensorFlow is not installed")
def test_every_name_of_tensorflows_data_is_on_the_page():
    import tensorflow

    data = tensorflow.data
    for section, thing in (
        ("tf.data.Dataset", data.Dataset),
        ("tf.data", data),
        ("tf.data.experimental", data.experimental),
        ("tf.data.experimental.service", data.experimental.service),
        ("tf.data.Options", data.Options()),
    ):
        assert set(table(section)) == public(thing), section
