"""Published pipelines give under compat.tf what they give under TensorFlow."""

import importlib.util

import golden
import pytest
from comparing import (
    check_elements,
    check_ranges,
    collect,
    is_random,
    summary,
)
from inputs import make_inputs

import penstock.compat.tf as compat

HAS_TENSORFLOW = importlib.util.find_spec("tensorflow") is not None


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("inputs")
    make_inputs(made)
    return str(made)


def check(name, dataset, mine, theirs):
    how = golden.how_of(golden.module_of(name), dataset)
    where = f"{name}: {dataset}"
    if is_random(how):
        check_ranges(summary(mine, how), theirs, where)
    else:
        check_elements(mine, theirs, how, where)


@pytest.mark.parametrize("name", golden.NAMES)
def test_gives_what_tensorflow_gave(name, folder):
    theirs = golden.read(name)
    built = golden.module_of(name).build(compat, folder)
    assert sorted(built) == sorted(theirs)
    for dataset, made in built.items():
        check(name, dataset, collect(made), theirs[dataset])


@pytest.mark.skipif(not HAS_TENSORFLOW, reason="TensorFlow is not installed")
@pytest.mark.parametrize("name", golden.NAMES)
def test_gives_what_tensorflow_gives(name, folder):
    import tensorflow

    module = golden.module_of(name)
    theirs = module.build(tensorflow, folder)
    mine = module.build(compat, folder)
    assert sorted(mine) == sorted(theirs)
    for dataset in theirs:
        elements = collect(theirs[dataset])
        how = golden.how_of(module, dataset)
        if is_random(how):
            elements = summary(elements, how)
        check(name, dataset, collect(mine[dataset]), elements)


def test_there_are_enough_pipelines():
    assert len(golden.NAMES) >= 14


@pytest.mark.parametrize("name", golden.NAMES)
def test_runs_twice(name, folder):
    """A dataset can be iterated over again, from its beginning."""
    built = golden.module_of(name).build(compat, folder)
    for made in built.values():
        first, second = collect(made), collect(made)
        assert len(first) == len(second)
