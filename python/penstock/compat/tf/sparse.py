"""`tf.sparse`."""

from __future__ import annotations

from typing import Any

from penstock.compat.tf._composites import SparseTensor, from_dense, to_dense
from penstock.compat.tf._sparse import (
    add,
    concat,
    expand_dims,
    eye,
    fill_empty_rows,
    map_values,
    maximum,
    minimum,
    reduce_max,
    reduce_sum,
    reorder,
    reset_shape,
    reshape,
    retain,
    sparse_dense_matmul,
    split,
    to_indicator,
    transpose,
)
from penstock.compat.tf._sparse import slice_ as slice

__all__ = [
    "SparseTensor",
    "add",
    "concat",
    "expand_dims",
    "eye",
    "fill_empty_rows",
    "from_dense",
    "map_values",
    "maximum",
    "minimum",
    "reduce_max",
    "reduce_sum",
    "reorder",
    "reset_shape",
    "reshape",
    "retain",
    "slice",
    "sparse_dense_matmul",
    "split",
    "to_dense",
    "to_indicator",
    "transpose",
]


def __getattr__(name: str) -> Any:
    from penstock.compat.tf._missing import missing

    raise missing("sparse", name)
