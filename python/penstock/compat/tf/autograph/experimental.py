"""`tf.autograph.experimental`: what pipelines say to AutoGraph."""

from __future__ import annotations

from typing import Any

__all__ = ["do_not_convert", "set_loop_options"]


def do_not_convert(func: Any = None) -> Any:
    """The function itself.

    Example:
        >>> @tf.autograph.experimental.do_not_convert
        ... def double(x):
        ...     return x * 2
        >>> [int(x) for x in tf.data.Dataset.range(3).map(double)]
        [0, 2, 4]
    """
    return do_not_convert if func is None else func


def set_loop_options(
    parallel_iterations: Any = None, swap_memory: Any = None,
    maximum_iterations: Any = None, shape_invariants: Any = None,
) -> None:  # fmt: skip
    """Nothing: a loop over a tensor is Python's."""


def __getattr__(name: str) -> Any:
    from penstock.compat.tf._missing import missing

    raise missing("autograph.experimental", name)
