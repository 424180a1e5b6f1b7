"""The training examples resume exactly after a kill."""

import importlib.util

import pytest
from killed import check_resumes_exactly, check_service_lineage


@pytest.mark.parametrize("name", ["torch", "tensorflow"])
def test_a_killed_training_goes_on(name, tmp_path):
    if importlib.util.find_spec(name) is None:
        pytest.skip(f"{name} is not installed")
    check_resumes_exactly(name, tmp_path)


def test_a_killed_reader_of_a_service_goes_on(tmp_path):
    pytest.importorskip("torch")
    check_service_lineage("torch", tmp_path)
