"""`tf.math`."""

from __future__ import annotations

from typing import Any

from penstock.compat.tf._reductions import (
    FUNCTIONS,
    add_n,
    argmax,
    argmin,
    count_nonzero,
    cumsum,
    divide_no_nan,
    multiply_no_nan,
    reduce_all,
    reduce_any,
    reduce_logsumexp,
    reduce_max,
    reduce_mean,
    reduce_min,
    reduce_prod,
    reduce_std,
    reduce_sum,
    reduce_variance,
    round,
    rsqrt,
    sigmoid,
    softmax,
    squared_difference,
    top_k,
)

__all__ = [
    *FUNCTIONS,
    "add_n",
    "argmax",
    "argmin",
    "count_nonzero",
    "cumsum",
    "divide_no_nan",
    "multiply_no_nan",
    "reduce_all",
    "reduce_any",
    "reduce_logsumexp",
    "reduce_max",
    "reduce_mean",
    "reduce_min",
    "reduce_prod",
    "reduce_std",
    "reduce_sum",
    "reduce_variance",
    "round",
    "rsqrt",
    "sigmoid",
    "softmax",
    "squared_difference",
    "top_k",
]


def __getattr__(name: str) -> Any:
    if name in FUNCTIONS:
        return FUNCTIONS[name]
    from penstock.compat.tf._missing import missing

    raise missing("math", name)
