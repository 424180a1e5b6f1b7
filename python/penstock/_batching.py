"""Shapes and padding of batches, as users give them, as messages."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock import _dtypes, _recording, _spec
from penstock._errors import InvalidTypeError
from penstock._location import refused


def padded_shapes(element: Any, given: Any) -> list[dict[str, Any]]:
    """The shape of each component; None and -1 are the largest size."""
    specs = _spec.flatten(element)
    if given is None:
        shapes = [
            None if spec.shape is None else (None,) * len(spec.shape)
            for spec in specs
        ]
    elif _spec.is_leaf(element):
        shapes = [given]
    else:
        shapes = _spec.flatten_like(element, given)
    for shape in shapes:
        if shape is not None and not isinstance(
            shape, (tuple, list, np.ndarray)
        ):
            raise refused(
                InvalidTypeError,
                "padded_shapes must have a tuple of sizes for each component; "
                f"got {shape!r}",
            )
    return [_spec.shape_to_json(shape) for shape in shapes]


def padding(element: Any, given: Any) -> list[dict[str, Any]]:
    """The padding value of each component."""
    specs = _spec.flatten(element)
    if given is None or (_spec.is_leaf(given) and len(specs) != 1):
        values = [given] * len(specs)
    elif _spec.is_leaf(element):
        values = [given]
    else:
        values = _spec.flatten_like(element, given)
    return [
        _padding_value(spec.dtype, item)
        for spec, item in zip(specs, values, strict=True)
    ]


def _padding_value(dtype: _dtypes.DType, given: Any) -> dict[str, Any]:
    if given is None:
        given = b"" if dtype == _dtypes.string else 0
        if dtype == _dtypes.bool_:
            given = False
    if isinstance(given, (np.ndarray, np.generic, str, bytes)):
        return _recording.tensor_to_json(given)
    try:
        return _recording.tensor_to_json(given, dtype)
    except (TypeError, ValueError) as error:
        raise refused(InvalidTypeError, f"padding_values: {error}") from None
