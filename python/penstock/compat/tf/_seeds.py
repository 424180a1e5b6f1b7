"""`tf.random.set_seed`, and the numbers that eager functions draw."""

from __future__ import annotations

import itertools
import threading
from typing import Any

import numpy as np

_lock = threading.Lock()
_global: int | None = None
_calls = itertools.count()
_generator = np.random.default_rng()


def set_seed(seed: Any) -> None:
    """Makes what is random from here on the same in every run."""
    global _global, _calls, _generator
    with _lock:
        _global = None if seed is None else int(seed)
        _calls = itertools.count()
        _generator = np.random.default_rng(_global)


def of_pipeline(seed: Any) -> int | None:
    """The seed of a transformation: the user's, or by the global one."""
    if seed is not None:
        return int(seed)
    with _lock:
        if _global is None:
            return None
        drawn = np.random.SeedSequence([_global, next(_calls)])
        return int(drawn.generate_state(1, np.uint64)[0] >> np.uint64(1))


def generator(seed: Any) -> np.random.Generator:
    """What eager functions draw from."""
    return _generator if seed is None else _seeded(int(seed))


_by_seed: dict[int, np.random.Generator] = {}


def _seeded(seed: int) -> np.random.Generator:
    # As in TensorFlow, calls with one seed go on where the last one ended.
    with _lock:
        return _by_seed.setdefault(seed, np.random.default_rng(seed))
