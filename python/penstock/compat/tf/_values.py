"""What only values can do: a function with one of these runs as Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from penstock import _dtypes
from penstock.compat.tf._arithmetic import refuse_dtype
from penstock.compat.tf._arrays import _has_symbols, python_only
from penstock.compat.tf._tensor import Tensor, convert, wrap_value
from penstock.compat.tf._types import as_dtype


def from_numpy(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of arrays; of symbols it is refused."""

    def call(*args: Any, **kwargs: Any) -> Any:
        tensors = [convert(a) if _is_value(a) else a for a in args]
        if tensors[0].dtype.is_bool or tensors[0].dtype == _dtypes.string:
            refuse_dtype(f"tf.{name}", tensors[0].dtype)
        if _has_symbols(*[t for t in tensors if isinstance(t, Tensor)]):
            python_only(f"tf.{name}")
        kwargs.pop("name", None)
        plain = [t._value if isinstance(t, Tensor) else t for t in tensors]
        found = function(*plain, **kwargs)
        if isinstance(found, tuple):
            return tuple(map(wrap_value, found))
        return wrap_value(found)

    call.__name__ = call.__qualname__ = name.rpartition(".")[2]
    return call


def _is_value(given: Any) -> bool:
    return not isinstance(given, (str, _dtypes.DType, type(None), bool))


def _sort(values: Any, axis: int = -1, direction: str = "ASCENDING") -> Any:
    found = np.sort(values, axis, kind="stable")
    is_down = direction == "DESCENDING"
    return np.flip(found, int(axis)) if is_down else found


def _argsort(
    values: Any, axis: int = -1, direction: str = "ASCENDING",
    stable: bool = False,
) -> Any:  # fmt: skip
    keys = -values if direction == "DESCENDING" else values
    return np.argsort(keys, axis, kind="stable").astype(np.int32)


def _unique(x: Any, out_idx: Any = "int32") -> Any:
    _, first, inverse = np.unique(x, return_index=True, return_inverse=True)
    order = np.argsort(first)
    places = np.empty_like(order)
    places[order] = np.arange(len(order))
    kept = x[np.sort(first)]
    return kept, places[inverse].astype(as_dtype(out_idx).dtype)


sort = from_numpy("sort", _sort)
argsort = from_numpy("argsort", _argsort)
unique = from_numpy("unique", _unique)
matmul = from_numpy("matmul", np.matmul)
tensordot = from_numpy("tensordot", np.tensordot)
searchsorted = from_numpy(
    "searchsorted",
    lambda a, v, side="left": np.searchsorted(a, v, side).astype(np.int32),
)
