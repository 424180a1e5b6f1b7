"""`tf.dtypes`: the dtypes, and casts."""

from __future__ import annotations

from typing import Any

from penstock.compat.tf._arrays import cast, saturate_cast
from penstock.compat.tf._numbers import complex_ as complex
from penstock.compat.tf._types import ALL, DType, as_dtype

double, half = ALL["float64"], ALL["float16"]

__all__ = [
    "DType",
    "as_dtype",
    "cast",
    "complex",
    "double",
    "half",
    "saturate_cast",
    *ALL,
]


def __getattr__(name: str) -> Any:
    if name in ALL:
        return ALL[name]
    from penstock.compat.tf._missing import missing

    raise missing("dtypes", name)
