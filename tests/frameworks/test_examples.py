"""The examples with torch and TensorFlow: killed, and several at once."""

import importlib.util

import pytest
from killed import check_resumes_exactly, check_service_lineage
from trainers import check_rounds, check_trials


@pytest.mark.parametrize("name", ["torch", "tensorflow"])
def test_a_killed_training_goes_on(name, tmp_path):
    if importlib.util.find_spec(name) is None:
        pytest.skip(f"{name} is not installed")
    check_resumes_exactly(name, tmp_path)


def test_a_killed_reader_of_a_service_goes_on(tmp_path):
    pytest.importorskip("torch")
    check_service_lineage("torch", tmp_path)


def test_replicas_read_in_rounds(tmp_path):
    pytest.importorskip("torch")
    check_rounds("torch", tmp_path)


def test_trials_share(tmp_path):
    pytest.importorskip("torch")
    check_trials("torch", tmp_path)
