"""`tf.nest`: structures of tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from penstock import _spec

__all__ = [
    "assert_same_structure",
    "flatten",
    "is_nested",
    "map_structure",
    "pack_sequence_as",
]


def is_nested(structure: Any) -> bool:
    return isinstance(structure, (list, tuple, Mapping)) or _spec.is_dataclass(
        structure
    )


def flatten(structure: Any) -> list[Any]:
    """The leaves; those of a dict by the order of its keys."""
    if isinstance(structure, Mapping):
        parts = [structure[key] for key in sorted(structure)]
    elif isinstance(structure, (list, tuple)):
        parts = list(structure)
    else:
        return [structure]
    return [leaf for part in parts for leaf in flatten(part)]


def pack_sequence_as(structure: Any, flat_sequence: Any) -> Any:
    remaining = iter(flat_sequence)
    return _pack(structure, lambda: next(remaining))


def _pack(structure: Any, take: Callable[[], Any]) -> Any:
    if isinstance(structure, Mapping):
        done = {key: _pack(structure[key], take) for key in sorted(structure)}
        return {key: done[key] for key in structure}
    if _spec.is_namedtuple(structure):
        return type(structure)(*(_pack(part, take) for part in structure))
    if isinstance(structure, (list, tuple)):
        return type(structure)(_pack(part, take) for part in structure)
    return take()


def map_structure(func: Any, *structure: Any, **kwargs: Any) -> Any:
    """`func` of the leaves of one or several structures.

    Example:
        >>> tf.nest.map_structure(lambda x: x + 1, {"a": 1, "b": (2, 3)})
        {'a': 2, 'b': (3, 4)}
    """
    leaves = zip(*map(flatten, structure), strict=True)
    return pack_sequence_as(structure[0], [func(*each) for each in leaves])


def assert_same_structure(nest1: Any, nest2: Any, **_: Any) -> None:
    one, two = (map_structure(lambda _: 0, each) for each in (nest1, nest2))
    if one != two:
        raise ValueError(f"structures differ: {one} and {two}")
