"""Input pipelines for machine learning, run by a native engine.

A pipeline is described once, as a `Dataset`; an engine beside this process
runs it and hands over numpy arrays without a copy. Importing the package starts
nothing.

Example:
    >>> import penstock as ps
    >>> ds = ps.Dataset.range(10).map(lambda x: x * 2).batch(4)
    >>> next(iter(ds))
    array([0, 2, 4, 6])
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from penstock import _functions
from penstock._dataset import Dataset
from penstock._dtypes import (
    DType,
    bfloat16,
    complex64,
    complex128,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    string,
    uint8,
    uint16,
    uint32,
    uint64,
)
from penstock._dtypes import bool_ as bool
from penstock._engine import close
from penstock._errors import (
    AbortedError,
    AlreadyExistsError,
    CancelledError,
    DataLossError,
    DeadlineExceededError,
    EngineDiedError,
    FailedPreconditionError,
    InternalError,
    InvalidArgumentError,
    InvalidTypeError,
    NotFoundError,
    OutOfRangeError,
    PenstockError,
    PermissionDeniedError,
    ResourceExhaustedError,
    UnauthenticatedError,
    UnavailableError,
    UnimplementedError,
    UnknownError,
    UnsupportedFunctionError,
)
from penstock._files import (
    FixedLengthRecordDataset,
    TextLineDataset,
    TFRecordDataset,
)
from penstock._functions import *  # noqa: F403
from penstock._iterator import Iterator, IteratorStats, NodeStats
from penstock._options import Options
from penstock._pipeline import (
    AUTOTUNE,
    INFINITE_CARDINALITY,
    UNKNOWN_CARDINALITY,
)
from penstock._spec import TensorSpec
from penstock._symbol import Symbol

if TYPE_CHECKING:
    from penstock import image as image

__all__ = [
    "AUTOTUNE",
    "INFINITE_CARDINALITY",
    "UNKNOWN_CARDINALITY",
    "AbortedError",
    "AlreadyExistsError",
    "CancelledError",
    "DType",
    "DataLossError",
    "Dataset",
    "DeadlineExceededError",
    "EngineDiedError",
    "FailedPreconditionError",
    "FixedLengthRecordDataset",
    "InternalError",
    "InvalidArgumentError",
    "InvalidTypeError",
    "Iterator",
    "IteratorStats",
    "NodeStats",
    "NotFoundError",
    "Options",
    "OutOfRangeError",
    "PenstockError",
    "PermissionDeniedError",
    "ResourceExhaustedError",
    "Symbol",
    "TFRecordDataset",
    "TensorSpec",
    "TextLineDataset",
    "UnauthenticatedError",
    "UnavailableError",
    "UnimplementedError",
    "UnknownError",
    "UnsupportedFunctionError",
    "bfloat16",
    "bool",
    "close",
    "complex64",
    "complex128",
    "float16",
    "float32",
    "float64",
    "int8",
    "int16",
    "int32",
    "int64",
    "string",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    *_functions.__all__,
]

_MODULES = ("image",)

# In tracebacks and reprs, things are called as users call them.
for _name in __all__:
    if getattr(globals()[_name], "__module__", "").startswith("penstock._"):
        globals()[_name].__module__ = "penstock"
del _name


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from penstock._version import version

        return version()
    if name in _MODULES:  # imported when first used
        return import_module(f"penstock.{name}")
    raise AttributeError(f"module 'penstock' has no attribute {name!r}")
