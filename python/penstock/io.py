"""Records and what is in them: `ps.io`.

The names and results are those of `tf.io`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock import _record
from penstock._features import (
    FixedLenFeature,
    FixedLenSequenceFeature,
    RaggedFeature,
    SparseFeature,
    VarLenFeature,
    Wanted,
)

__all__ = [
    "FixedLenFeature",
    "FixedLenSequenceFeature",
    "RaggedFeature",
    "SparseFeature",
    "VarLenFeature",
    "parse_example",
    "parse_single_example",
]


def parse_single_example(
    serialized: Any, features: Mapping[str, Any]
) -> dict[str, Any]:
    """The features of one serialized `tf.train.Example`.

    Use it in `map`, before `batch`: the engine parses many at a time.

    Example:
        >>> record = bytes.fromhex("0a0d0a0b0a017812061a040a020305")
        >>> features = {"x": ps.io.FixedLenFeature([2], ps.int64)}
        >>> ps.io.parse_single_example(record, features)
        {'x': array([3, 5])}

    Args:
        serialized: A string.
        features: What is wanted, by key: `FixedLenFeature` and
            `FixedLenSequenceFeature` give dense tensors, `VarLenFeature` and
            `SparseFeature` a `ps.Sparse`, `RaggedFeature` a vector.

    Returns:
        A value by key. An Example that is damaged, lacks a feature that has no
        default, or has one of another type or number of values is an error of
        its element.
    """
    return _parse(serialized, features, is_batch=False)


def parse_example(
    serialized: Any, features: Mapping[str, Any]
) -> dict[str, Any]:
    """The features of a vector of serialized `tf.train.Example`s.

    `map(parse_single_example)` before `batch` is as fast and drops no more than
    the one element that is damaged.

    Example:
        >>> record = bytes.fromhex("0a0d0a0b0a017812061a040a020305")
        >>> features = {"x": ps.io.RaggedFeature(ps.int64)}
        >>> ps.io.parse_example([record, record], features)["x"].values
        array([3, 5, 3, 5])

    Args:
        serialized: A vector of strings.
        features: What is wanted, by key: `FixedLenFeature` and
            `FixedLenSequenceFeature` give dense tensors, `VarLenFeature` and
            `SparseFeature` a `ps.Sparse`, `RaggedFeature` a `ps.Ragged`, all
            with the batch as their first dimension.
    """
    return _parse(serialized, features, is_batch=True)


def _parse(
    serialized: Any, features: Mapping[str, Any], *, is_batch: bool
) -> dict[str, Any]:
    tensors = [serialized]
    wanted = Wanted(features, tensors, is_batch=is_batch)
    attrs = {
        "keys": wanted.keys,
        "features": wanted.lines,
        "is_batch": is_batch,
    }
    parts = _record.call_parts(
        "io.parse_example", tensors, attrs, count=wanted.count
    )
    return wanted.results(parts)
