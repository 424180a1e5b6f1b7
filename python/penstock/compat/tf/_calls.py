"""Penstock's functions, called with tensors."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from penstock import _dtypes
from penstock._composites import Ragged, Sparse
from penstock._symbol import Symbol
from penstock.compat.tf._arithmetic import refuse_unknown_ranks
from penstock.compat.tf._composites import (
    RaggedTensor,
    SparseTensor,
    unwrap_composite,
    wrap_composite,
)
from penstock.compat.tf._tensor import (
    Tensor,
    convert,
    first_tensor,
    wrap_value,
)


def bare(value: Any) -> Any:
    """What Penstock takes in the place of a tensor."""
    if isinstance(value, Tensor):
        return value._value
    if isinstance(value, (RaggedTensor, SparseTensor)):
        return unwrap_composite(value)
    if isinstance(value, (list, tuple)) and first_tensor(value) is not None:
        return convert(value)._value
    return value


def dressed(value: Any) -> Any:
    """Tensors in the place of what Penstock gave."""
    if isinstance(value, (Ragged, Sparse)):
        return wrap_composite(value)
    if isinstance(value, (tuple, list)):
        return type(value)(map(dressed, value))
    if isinstance(value, dict):
        return {key: dressed(item) for key, item in value.items()}
    if isinstance(value, (Symbol, np.ndarray, np.generic, bytes)):
        return wrap_value(value)
    return value


def lifted(function: Callable[..., Any], **renamed: str) -> Callable[..., Any]:
    """`function` with tensors as arguments and results.

    TensorFlow's functions all take a `name`, which means nothing here.

    Args:
        function: Penstock's.
        renamed: TensorFlow's names of parameters that have others here.
    """

    def call(*args: Any, name: Any = None, **kwargs: Any) -> Any:
        given = {renamed.get(k, k): bare(item) for k, item in kwargs.items()}
        if not args:
            return dressed(function(**given))
        first, *rest = args
        if isinstance(first, RaggedTensor):
            # Functions of strings: item by item.
            values = call(first.values, *rest, **kwargs)
            return first.with_values(values)
        if not isinstance(first, (Tensor, SparseTensor)):
            first = _array(first)
        if is_image:
            refuse_unknown_ranks([first])
        return dressed(function(bare(first), *map(bare, rest), **given))

    is_image = "image" in function.__module__
    theirs = {ours: word for word, ours in renamed.items()}
    signature = inspect.signature(function)
    parameters = [
        each.replace(name=theirs.get(each.name, each.name))
        for each in signature.parameters.values()
    ]
    call.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=parameters
    )
    call.__name__ = function.__name__
    call.__qualname__ = function.__name__
    call.__doc__ = (
        f"As TensorFlow's; see `help({function.__module__}."
        f"{function.__name__})`."
    )
    call.__module__ = "penstock.compat.tf"
    return call


def _array(value: Any) -> Any:
    if isinstance(value, (str, bytes, _dtypes.DType, Symbol, type(None))):
        return value
    return convert(value)
