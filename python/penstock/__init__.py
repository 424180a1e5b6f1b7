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

import importlib
from typing import TYPE_CHECKING, Any

from penstock import _functions, _names
from penstock._composites import Ragged, Sparse
from penstock._dataset import Dataset
from penstock._distributing import Credentials
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
    MissingPackageError,
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
from penstock._explain import Explanation, explain_trace
from penstock._files import (
    FixedLengthRecordDataset,
    TextLineDataset,
    TFRecordDataset,
)
from penstock._functions import *  # noqa: F403
from penstock._iterator import Iterator
from penstock._lengths import choose_boundaries
from penstock._local_service import LocalService
from penstock._options import Options, PythonOptions
from penstock._pipeline import (
    AUTOTUNE,
    INFINITE_CARDINALITY,
    SHARD_HINT,
    UNKNOWN_CARDINALITY,
)
from penstock._python import native, python_function
from penstock._registering import from_registered, register, unregister
from penstock._report import Prediction
from penstock._spec import DatasetSpec, TensorSpec
from penstock._stats import IteratorStats, NodeStats
from penstock._symbol import Symbol
from penstock._tuning import TuningDiff

__all__ = [
    "AUTOTUNE",
    "INFINITE_CARDINALITY",
    "SHARD_HINT",
    "UNKNOWN_CARDINALITY",
    "AbortedError",
    "AlreadyExistsError",
    "CancelledError",
    "Credentials",
    "DType",
    "DataLossError",
    "Dataset",
    "DatasetSpec",
    "DeadlineExceededError",
    "EngineDiedError",
    "Explanation",
    "FailedPreconditionError",
    "FixedLengthRecordDataset",
    "InternalError",
    "InvalidArgumentError",
    "InvalidTypeError",
    "Iterator",
    "IteratorStats",
    "LocalService",
    "MissingPackageError",
    "NodeStats",
    "NotFoundError",
    "Options",
    "OutOfRangeError",
    "PenstockError",
    "PermissionDeniedError",
    "Prediction",
    "PythonOptions",
    "Ragged",
    "ResourceExhaustedError",
    "Sparse",
    "Symbol",
    "TFRecordDataset",
    "TensorSpec",
    "TextLineDataset",
    "TuningDiff",
    "UnauthenticatedError",
    "UnavailableError",
    "UnimplementedError",
    "UnknownError",
    "UnsupportedFunctionError",
    "bfloat16",
    "bool",
    "choose_boundaries",
    "close",
    "complex64",
    "complex128",
    "explain_trace",
    "float16",
    "float32",
    "float64",
    "from_registered",
    "int8",
    "int16",
    "int32",
    "int64",
    "native",
    "python_function",
    "register",
    "string",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "unregister",
    *_functions.__all__,
]


# In tracebacks and reprs, things are called as users call them.
for _name in __all__:
    if getattr(globals()[_name], "__module__", "").startswith("penstock._"):
        globals()[_name].__module__ = "penstock"
del _name

# Parts of the package that are found by their names.
_MODULES = ("image", "io", "lookup", "strings", "text")
_FORMATS = (
    "CsvDataset",
    "ImageFolderDataset",
    "JsonLinesDataset",
    "NumpyDataset",
    "TarDataset",
)

if TYPE_CHECKING:
    from penstock import image as image
    from penstock import io as io
    from penstock import lookup as lookup
    from penstock import strings as strings
    from penstock import text as text
    from penstock._formats import CsvDataset as CsvDataset
    from penstock._formats import ImageFolderDataset as ImageFolderDataset
    from penstock._formats import JsonLinesDataset as JsonLinesDataset
    from penstock._formats import NumpyDataset as NumpyDataset
    from penstock._formats import TarDataset as TarDataset

    __version__: str
else:

    def __getattr__(name: str) -> Any:
        if name in _MODULES:
            # Imported when first used: starting is fast.
            return importlib.import_module(f"penstock.{name}")
        if name in _FORMATS:
            found = getattr(importlib.import_module("penstock._formats"), name)
            found.__module__ = "penstock"
            return found
        if name == "__version__":
            from penstock._version import version

            return version()
        names = (*globals(), *_MODULES, *_FORMATS)
        raise _names.unknown(f"module {__name__!r}", name, names)
