"""TensorFlow's names for input pipelines, without TensorFlow.

An input pipeline written for TensorFlow runs by changing its import:

    import penstock.compat.tf as tf

`docs/compatibility.md` lists what is offered, and what differs.

Example:
    >>> import penstock.compat.tf as tf
    >>> ds = tf.data.Dataset.from_tensor_slices([1.0, 2.0, 3.0])
    >>> ds = ds.map(lambda x: tf.square(x)).batch(2)
    >>> for batch in ds:
    ...     print(batch.numpy())
    [1. 4.]
    [9.]
"""

from __future__ import annotations

from typing import Any

from penstock.compat.tf import (
    audio,
    autograph,
    bitwise,
    config,
    data,
    debugging,
    dtypes,
    errors,
    image,
    io,
    lookup,
    math,
    nest,
    ragged,
    random,
    signal,
    sparse,
    strings,
    train,
)
from penstock.compat.tf._arrays import (
    boolean_mask,
    broadcast_to,
    cast,
    clip_by_value,
    concat,
    constant,
    convert_to_tensor,
    ensure_shape,
    expand_dims,
    fill,
    gather,
    identity,
    is_tensor,
    linspace,
    one_hot,
    ones,
    ones_like,
    range,
    rank,
    reshape,
    reverse,
    saturate_cast,
    shape,
    shape_n,
    size,
    split,
    squeeze,
    stack,
    transpose,
    unstack,
    where,
    zeros,
    zeros_like,
)
from penstock.compat.tf._arrays import slice_ as slice
from penstock.compat.tf._boundary import RaggedTensorSpec, SparseTensorSpec
from penstock.compat.tf._composites import RaggedTensor, SparseTensor
from penstock.compat.tf._control import (
    case,
    cond,
    control_dependencies,
    device,
    executing_eagerly,
    foldl,
    foldr,
    function,
    get_logger,
    get_static_value,
    group,
    identity_n,
    init_scope,
    map_fn,
    name_scope,
    no_op,
    numpy_function,
    py_function,
    scan,
    stop_gradient,
    switch_case,
    timestamp,
    vectorized_map,
    while_loop,
)
from penstock.compat.tf._control import print_ as print
from penstock.compat.tf._control import tuple_ as tuple
from penstock.compat.tf._filling import (
    eye,
    meshgrid,
    pad,
    repeat,
    roll,
    sequence_mask,
    tile,
)
from penstock.compat.tf._numbers import FUNCTIONS as _NUMBERS
from penstock.compat.tf._numbers import (
    atan2,
    clip_by_global_norm,
    clip_by_norm,
    realdiv,
    scalar_mul,
    truncatediv,
    truncatemod,
)
from penstock.compat.tf._numbers import complex_ as complex
from penstock.compat.tf._places import (
    gather_nd,
    norm,
    scatter_nd,
    tensor_scatter_nd_update,
)
from penstock.compat.tf._reductions import (
    FUNCTIONS as _FUNCTIONS,
)
from penstock.compat.tf._reductions import (
    add_n,
    argmax,
    argmin,
    cumsum,
    reduce_all,
    reduce_any,
    reduce_logsumexp,
    reduce_max,
    reduce_mean,
    reduce_min,
    reduce_prod,
    reduce_sum,
    round,
    sigmoid,
)
from penstock.compat.tf._segments import SCATTERS as _SCATTERS
from penstock.compat.tf._segments import (
    bitcast,
    dynamic_partition,
    dynamic_stitch,
    einsum,
    histogram_fixed_width,
    histogram_fixed_width_bins,
    reverse_sequence,
    unique_with_counts,
    unravel_index,
)
from penstock.compat.tf._tensor import Tensor
from penstock.compat.tf._types import (
    ALL as _DTYPES,
)
from penstock.compat.tf._types import (
    DType,
    TensorShape,
    TensorSpec,
    as_dtype,
)
from penstock.compat.tf._values import (
    argsort,
    matmul,
    searchsorted,
    sort,
    tensordot,
    unique,
)
from penstock.compat.tf.debugging import (
    Assert,
    assert_equal,
    assert_greater,
    assert_less,
    assert_rank,
)
from penstock.compat.tf.strings import as_string

newaxis = None

# `tf.math`'s functions that TensorFlow has in `tf` as well.
_IN_TF = (
    "abs", "add", "cos", "divide", "equal", "exp", "floor", "greater",
    "greater_equal", "less", "less_equal", "logical_and", "logical_not",
    "logical_or", "maximum", "minimum", "multiply", "negative", "not_equal",
    "pow", "sign", "sin", "sqrt", "square", "subtract", "tan", "tanh",
)  # fmt: skip
# Those that are made of others.
_MADE = (
    "acos", "acosh", "asin", "asinh", "atan", "atanh", "cosh", "sinh",
)  # fmt: skip
truediv = _FUNCTIONS["truediv"]
_DTYPE_WORDS = {"half": "float16", "double": "float64"}

__all__ = [
    "Assert",
    "DType",
    "RaggedTensor",
    "RaggedTensorSpec",
    "SparseTensor",
    "SparseTensorSpec",
    "Tensor",
    "TensorShape",
    "TensorSpec",
    "add_n",
    "argmax",
    "argmin",
    "argsort",
    "as_dtype",
    "as_string",
    "assert_equal",
    "assert_greater",
    "assert_less",
    "assert_rank",
    "atan2",
    "audio",
    "autograph",
    "bitcast",
    "bitwise",
    "boolean_mask",
    "broadcast_to",
    "case",
    "cast",
    "clip_by_global_norm",
    "clip_by_norm",
    "clip_by_value",
    "complex",
    "concat",
    "cond",
    "config",
    "constant",
    "control_dependencies",
    "convert_to_tensor",
    "cumsum",
    "data",
    "debugging",
    "device",
    "dtypes",
    "dynamic_partition",
    "dynamic_stitch",
    "einsum",
    "ensure_shape",
    "errors",
    "executing_eagerly",
    "expand_dims",
    "eye",
    "fill",
    "foldl",
    "foldr",
    "function",
    "gather",
    "gather_nd",
    "get_logger",
    "get_static_value",
    "group",
    "histogram_fixed_width",
    "histogram_fixed_width_bins",
    "identity",
    "identity_n",
    "image",
    "init_scope",
    "io",
    "is_tensor",
    "linspace",
    "lookup",
    "map_fn",
    "math",
    "matmul",
    "meshgrid",
    "name_scope",
    "nest",
    "newaxis",
    "no_op",
    "norm",
    "numpy_function",
    "one_hot",
    "ones",
    "ones_like",
    "pad",
    "print",
    "py_function",
    "ragged",
    "random",
    "range",
    "rank",
    "realdiv",
    "reduce_all",
    "reduce_any",
    "reduce_logsumexp",
    "reduce_max",
    "reduce_mean",
    "reduce_min",
    "reduce_prod",
    "reduce_sum",
    "repeat",
    "reshape",
    "reverse",
    "reverse_sequence",
    "roll",
    "round",
    "saturate_cast",
    "scalar_mul",
    "scan",
    "scatter_nd",
    "searchsorted",
    "sequence_mask",
    "shape",
    "shape_n",
    "sigmoid",
    "signal",
    "size",
    "slice",
    "sort",
    "sparse",
    "split",
    "squeeze",
    "stack",
    "stop_gradient",
    "strings",
    "switch_case",
    "tensor_scatter_nd_update",
    "tensordot",
    "tile",
    "timestamp",
    "train",
    "transpose",
    "truediv",
    "truncatediv",
    "truncatemod",
    "tuple",
    "unique",
    "unique_with_counts",
    "unravel_index",
    "unstack",
    "vectorized_map",
    "where",
    "while_loop",
    "zeros",
    "zeros_like",
    *_MADE,
    *_SCATTERS,
    *_IN_TF,
    *_DTYPES,
    *_DTYPE_WORDS,
]


def __getattr__(name: str) -> Any:
    if name in _IN_TF:
        return _FUNCTIONS[name]
    if name in _MADE:
        return _NUMBERS[name]
    if name in _SCATTERS:
        return _SCATTERS[name]
    if name in _DTYPES:
        return _DTYPES[name]
    if name in _DTYPE_WORDS:
        return _DTYPES[_DTYPE_WORDS[name]]
    from penstock.compat.tf._missing import missing

    raise missing("", name)
