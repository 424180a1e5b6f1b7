"""`tf.math`."""

from __future__ import annotations

from typing import Any

from penstock.compat.tf._numbers import FUNCTIONS as _NUMBERS
from penstock.compat.tf._numbers import (
    accumulate_n,
    angle,
    atan2,
    conj,
    imag,
    in_top_k,
    is_non_decreasing,
    is_strictly_increasing,
    l2_normalize,
    log_sigmoid,
    log_softmax,
    polyval,
    real,
    reciprocal_no_nan,
    reduce_euclidean_norm,
    scalar_mul,
    softplus,
    softsign,
    xdivy,
    xlog1py,
    xlogy,
    zero_fraction,
)
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
from penstock.compat.tf._segments import FUNCTIONS as _SEGMENTS
from penstock.compat.tf._segments import (
    bincount,
    confusion_matrix,
    cumprod,
    invert_permutation,
)

__all__ = [
    *FUNCTIONS,
    *_NUMBERS,
    *_SEGMENTS,
    "accumulate_n",
    "angle",
    "atan2",
    "conj",
    "imag",
    "in_top_k",
    "is_non_decreasing",
    "is_strictly_increasing",
    "l2_normalize",
    "log_sigmoid",
    "log_softmax",
    "polyval",
    "real",
    "reciprocal_no_nan",
    "reduce_euclidean_norm",
    "scalar_mul",
    "softplus",
    "softsign",
    "xdivy",
    "xlog1py",
    "xlogy",
    "zero_fraction",
    "bincount",
    "confusion_matrix",
    "cumprod",
    "invert_permutation",
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
    for functions in (FUNCTIONS, _NUMBERS, _SEGMENTS):
        if name in functions:
            return functions[name]
    from penstock.compat.tf._missing import missing

    raise missing("math", name)
