"""The training examples resume exactly after a kill."""

import importlib.util

import pytest
from killed import check_resumes_exactly


@pytest.mark.parametrize("name", ["torch", "tensorflow"])
def test_a_killed_training_goes_on(name, tmp_path):
    if importlib.util.find_spec(name) is None:
        pytest.skip(f"{name} is not installed")
    check_resumes_exactly(name, tmp_path)
