"""Structures of elements: tuples, dicts, named types, with tensors as leaves.

Three forms of one thing: Python's (nested tuples, dicts, named tuples,
dataclasses and None, a `TensorSpec` at each leaf), the plan's ElementSpec
message, and the flat list of columns that the engine works on.
"""

from __future__ import annotations

import dataclasses
import importlib
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from penstock import _composites, _dtypes
from penstock._dtypes import DType
from penstock._errors import InvalidArgumentError, InvalidTypeError
from penstock._location import refused

Json = dict[str, Any]
# Classes of named tuples and dataclasses by the name they have in plans.
Types = Mapping[str, type]
NO_TYPES: Types = {}
# As deep as plans go.
MAX_DEPTH = 16
# Structures that are one value each: plans know them by these names.


class TensorSpec:
    """The shape and dtype of one component of elements.

    Example:
        >>> ps.Dataset.range(4).batch(2).element_spec
        TensorSpec(shape=(None,), dtype=ps.int64)

    Args:
        shape: A tuple of sizes; None where a size is not known before the
            value. None in place of the tuple: not even the rank is known.
        dtype: Anything that `DType.of` takes.
    """

    __slots__ = ("dtype", "name", "shape")

    shape: tuple[int | None, ...] | None
    dtype: DType

    def __init__(
        self,
        shape: Iterable[int | None] | int | None = (),
        dtype: Any = _dtypes.float32,
        name: str | None = None,
    ) -> None:
        if isinstance(shape, int):
            shape = (shape,)
        self.shape = None if shape is None else tuple(map(_dim, shape))
        self.dtype = DType.of(dtype)
        self.name = name

    def __repr__(self) -> str:
        return f"TensorSpec(shape={self.shape}, dtype={self.dtype})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TensorSpec):
            return NotImplemented
        return self.shape == other.shape and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype))

    def accepts(self, shape: tuple[int, ...]) -> bool:
        """Whether a value of `shape` is one of this spec."""
        if self.shape is None:
            return True
        return len(shape) == len(self.shape) and all(
            want is None or want == got
            for want, got in zip(self.shape, shape, strict=True)
        )

    def to_json(self) -> Json:
        """The plan's TensorSpec message."""
        return {
            "dtype": self.dtype.wire_name,
            "shape": shape_to_json(self.shape),
        }

    @staticmethod
    def from_json(message: Json) -> TensorSpec:
        """The spec of a TensorSpec message."""
        spec = TensorSpec.__new__(TensorSpec)
        shape = message.get("shape", {})
        spec.shape = (
            None
            if shape.get("unknown_rank")
            else tuple(
                int(dim["size"]) if "size" in dim else None
                for dim in shape.get("dims", ())
            )
        )
        spec.dtype = _dtypes.BY_WIRE_NAME[message["dtype"]]
        spec.name = None
        return spec


class DatasetSpec:
    """A dataset inside an element: what `window` makes.

    Example:
        >>> ps.Dataset.range(4).window(2).element_spec
        DatasetSpec(TensorSpec(shape=(), dtype=ps.int64))
    """

    __slots__ = ("element_spec",)

    element_spec: Any

    def __init__(self, element_spec: Any) -> None:
        self.element_spec = element_spec

    def __repr__(self) -> str:
        return f"DatasetSpec({self.element_spec!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DatasetSpec):
            return NotImplemented
        return bool(self.element_spec == other.element_spec)

    def __hash__(self) -> int:
        return hash(("DatasetSpec", repr(self.element_spec)))


def has_composite(structure: Any) -> bool:
    """Whether a ragged or sparse value is in `structure`."""
    names = types_of(structure)
    return any(name in names for name in _composites.TYPES)


def tensor_spec(leaf: Any) -> TensorSpec:
    """The spec of a leaf's column."""
    if isinstance(leaf, DatasetSpec):
        return TensorSpec((), _dtypes.string)
    assert isinstance(leaf, TensorSpec)
    return leaf


def _dim(value: Any) -> int | None:
    if value is None or value == -1:
        return None
    try:
        return operator.index(value)
    except TypeError:
        raise refused(
            InvalidTypeError,
            f"a dimension must be an integer or None; got {value!r}",
        ) from None


def shape_to_json(shape: Iterable[int | None] | None) -> Json:
    """The PartialShape message; sizes of None or -1 are unknown."""
    if shape is None:
        return {"unknown_rank": True}
    sizes = map(_dim, shape)
    return {"dims": [{} if size is None else {"size": size} for size in sizes]}


# ---- Structures in Python.


def is_namedtuple(value: Any) -> bool:
    return isinstance(value, tuple) and hasattr(value, "_fields")


def is_dataclass(value: Any) -> bool:
    return dataclasses.is_dataclass(value) and not isinstance(value, type)


def is_leaf(value: Any) -> bool:
    """Whether `value` stands for one tensor (lists do)."""
    return not (
        value is None
        or isinstance(value, (tuple, Mapping))
        or is_dataclass(value)
    )


def is_plain_tuple(structure: Any) -> bool:
    """Whether functions get the structure's parts as arguments of their own."""
    return isinstance(structure, tuple) and not is_namedtuple(structure)


def _fields(value: Any) -> tuple[str, ...]:
    if is_namedtuple(value):
        names: tuple[str, ...] = value._fields
        return names
    return tuple(f.name for f in dataclasses.fields(value) if f.init)


def _sorted_keys(value: Mapping[Any, Any]) -> list[str]:
    for key in value:
        if not isinstance(key, str):
            raise refused(
                InvalidTypeError,
                f"keys of an element must be strings; got {key!r}",
            )
    return sorted(value)


def flatten(structure: Any) -> list[Any]:
    """The leaves of `structure`, columns' order.

    Raises:
        InvalidTypeError: It has keys that are no strings.
        InvalidArgumentError: It is nested too deep, or holds itself.
    """
    return list(_leaves(structure, 0))


def _leaves(structure: Any, depth: int) -> Iterator[Any]:
    if structure is None:
        return
    parts: Iterable[Any]
    if isinstance(structure, Mapping):
        parts = (structure[key] for key in _sorted_keys(structure))
    elif isinstance(structure, tuple):
        parts = structure
    elif is_dataclass(structure):
        parts = (getattr(structure, name) for name in _fields(structure))
    else:
        yield structure
        return
    if depth == MAX_DEPTH:
        raise refused(
            InvalidArgumentError,
            f"structures must be nested at most {MAX_DEPTH} deep; got more",
        )
    for part in parts:
        yield from _leaves(part, depth + 1)


def map_structure(function: Callable[[Any], Any], structure: Any) -> Any:
    """`structure` with each leaf put through `function`, left to right."""
    if structure is None:
        return None
    if isinstance(structure, Mapping):
        done = {
            key: map_structure(function, structure[key])
            for key in _sorted_keys(structure)
        }
        return {key: done[key] for key in structure}
    if is_namedtuple(structure):
        return type(structure)(*(map_structure(function, x) for x in structure))
    if isinstance(structure, tuple):
        return tuple(map_structure(function, x) for x in structure)
    if is_dataclass(structure):
        parts = {
            name: map_structure(function, getattr(structure, name))
            for name in _fields(structure)
        }
        return type(structure)(**parts)
    return function(structure)


def pack(structure: Any, leaves: Iterable[Any]) -> Any:
    """`structure` with other leaves, in `flatten`'s order."""
    remaining = iter(leaves)
    return map_structure(lambda _: next(remaining), structure)


def flatten_like(structure: Any, value: Any) -> list[Any]:
    """The parts of `value` that stand where `structure` has leaves.

    Raises:
        InvalidTypeError: They do not have the same structure.
    """
    if structure is None:
        if value is not None:
            raise refused(InvalidTypeError, f"expected None; got {value!r}")
        return []
    if isinstance(structure, Mapping):
        if not isinstance(value, Mapping) or set(value) != set(structure):
            got = f"keys {list(value)}" if isinstance(value, Mapping) else value
            raise refused(
                InvalidTypeError,
                f"expected a dict with keys {list(structure)}; got {got!r}",
            )
        keys = _sorted_keys(structure)
        pairs = [(structure[key], value[key]) for key in keys]
    elif isinstance(structure, tuple):
        if not isinstance(value, (tuple, list)) or len(value) != len(structure):
            raise refused(
                InvalidTypeError,
                f"expected a tuple of {len(structure)} components; "
                f"got {value!r}",
            )
        pairs = list(zip(structure, value, strict=True))
    elif is_dataclass(structure):
        if type(value) is not type(structure):
            raise refused(
                InvalidTypeError,
                f"expected a {type(structure).__name__}; got {value!r}",
            )
        pairs = [
            (getattr(structure, name), getattr(value, name))
            for name in _fields(structure)
        ]
    else:
        return [value]
    return [leaf for s, v in pairs for leaf in flatten_like(s, v)]


# ---- To and from the plan's message.


def type_name(cls: type) -> str:
    reserved = _composites.NAMES.get(cls)
    return reserved or f"{cls.__module__}:{cls.__qualname__}"


def types_of(structure: Any) -> dict[str, type]:
    """The classes of named tuples and dataclasses inside `structure`."""
    found: dict[str, type] = {}

    def visit(node: Any) -> None:
        if isinstance(node, Mapping):
            parts: Iterable[Any] = node.values()
        elif is_dataclass(node) or is_namedtuple(node):
            found[type_name(type(node))] = type(node)
            parts = (getattr(node, name) for name in _fields(node))
        elif isinstance(node, tuple):
            parts = node
        elif isinstance(node, DatasetSpec):
            parts = (node.element_spec,)
        else:
            return
        for part in parts:
            visit(part)

    visit(structure)
    return found


def to_json(structure: Any, leaf: Callable[[Any], Json] | None = None) -> Json:
    """The ElementSpec message of `structure`.

    Args:
        structure: TensorSpecs, or anything, at the leaves.
        leaf: Gives the TensorSpec message of a leaf; by default the leaf's
            own, or a meaningless one where only the structure counts.
    """
    if structure is None:
        return {"none": {}}
    if isinstance(structure, Mapping):
        keys = _sorted_keys(structure)
        return {
            "dict": {
                "keys": keys,
                "values": [to_json(structure[key], leaf) for key in keys],
                "order": [keys.index(key) for key in structure],
            }
        }
    if is_namedtuple(structure) or is_dataclass(structure):
        fields = _fields(structure)
        return {
            "named": {
                "type_name": type_name(type(structure)),
                "fields": list(fields),
                "values": [
                    to_json(getattr(structure, f), leaf) for f in fields
                ],
            }
        }
    if isinstance(structure, tuple):
        return {"tuple": {"items": [to_json(x, leaf) for x in structure]}}
    if leaf is not None:
        return {"tensor": leaf(structure)}
    if isinstance(structure, TensorSpec):
        return {"tensor": structure.to_json()}
    if isinstance(structure, DatasetSpec):
        return {"dataset": {"element": to_json(structure.element_spec)}}
    # Only the structure counts; the engine wants some dtype nevertheless.
    return {"tensor": {"dtype": "BOOL"}}


def from_json(message: Json, types: Types = NO_TYPES) -> Any:
    """The Python structure of an ElementSpec message."""
    if "tensor" in message:
        return TensorSpec.from_json(message["tensor"])
    if "dict" in message:
        body = message["dict"]
        keys = body.get("keys", [])
        values = [from_json(v, types) for v in body.get("values", [])]
        order = body.get("order") or range(len(keys))
        return {keys[i]: values[i] for i in order}
    if "named" in message:
        body = message["named"]
        cls = find_type(body["type_name"], types)
        values = [from_json(v, types) for v in body.get("values", [])]
        return cls(**dict(zip(body.get("fields", []), values, strict=True)))
    if "none" in message:
        return None
    if "dataset" in message:
        return DatasetSpec(from_json(message["dataset"]["element"], types))
    items = message.get("tuple", {}).get("items", [])
    return tuple(from_json(item, types) for item in items)


def find_type(name: str, types: Types) -> type:
    """The class that a plan calls `name`."""
    if name in _composites.TYPES:
        return _composites.TYPES[name]
    if name in types:
        return types[name]
    module, _, qualname = name.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for part in qualname.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError):
        raise refused(
            InvalidTypeError,
            f"elements are of class {name}, which cannot be imported here; "
            "define it at the top level of its module",
        ) from None
    assert isinstance(found, type)
    return found


# ---- Rows of columns put together.

Rows = list[Any]


def assembler(structure: Any) -> Callable[[Sequence[Rows], int], Rows]:
    """What turns columns (lists of their rows) into a list of elements."""
    if structure is None:
        return lambda columns, rows: [None] * rows
    if isinstance(structure, DatasetSpec):
        from penstock._nested import dataset_of

        inner = structure.element_spec
        return lambda columns, rows: [dataset_of(x, inner) for x in columns[0]]
    if is_leaf(structure):
        return lambda columns, rows: columns[0]
    parts, build = _parts(structure)
    if all(isinstance(part, TensorSpec) for part in parts):
        # The usual case: every part is the next column.
        return lambda columns, rows: build(columns, rows)
    begin = 0
    slots: list[tuple[int, int, Callable[[Sequence[Rows], int], Rows]]] = []
    for part in parts:
        end = begin + len(flatten(part))
        slots.append((begin, end, assembler(part)))
        begin = end

    def assemble(columns: Sequence[Rows], rows: int) -> Rows:
        done = [make(columns[b:e], rows) for b, e, make in slots]
        return build(done, rows)

    return assemble


def _parts(
    structure: Any,
) -> tuple[list[Any], Callable[[Sequence[Rows], int], Rows]]:
    """The parts of a node in columns' order, and how they become elements."""
    if isinstance(structure, Mapping):
        keys = _sorted_keys(structure)
        shown = list(structure)
        picks = [keys.index(key) for key in shown]

        def dicts(parts: Sequence[Rows], rows: int) -> Rows:
            if not shown:
                return [{} for _ in range(rows)]
            ordered = [parts[i] for i in picks]
            return [
                dict(zip(shown, values, strict=True))
                for values in zip(*ordered, strict=True)
            ]

        return [structure[key] for key in keys], dicts
    if is_namedtuple(structure) or is_dataclass(structure):
        cls = type(structure)
        fields = _fields(structure)

        def named(parts: Sequence[Rows], rows: int) -> Rows:
            if not fields:
                return [cls() for _ in range(rows)]
            return [
                cls(**dict(zip(fields, values, strict=True)))
                for values in zip(*parts, strict=True)
            ]

        return [getattr(structure, name) for name in fields], named

    def tuples(parts: Sequence[Rows], rows: int) -> Rows:
        return list(zip(*parts, strict=True)) if parts else [()] * rows

    return list(structure), tuples


def spec_of(array: Any) -> TensorSpec:
    """The spec of one array."""
    array = np.asarray(array)
    return TensorSpec(array.shape, _dtypes.from_numpy(array.dtype))
