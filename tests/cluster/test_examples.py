"""The examples with several processes, in JAX."""

import pytest
from trainers import check_rounds, check_trials


def test_replicas_read_in_rounds(tmp_path):
    pytest.importorskip("jax")
    check_rounds("jax", tmp_path)


def test_trials_share(tmp_path):
    pytest.importorskip("jax")
    check_trials("jax", tmp_path)
