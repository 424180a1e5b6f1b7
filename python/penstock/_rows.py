"""Arrays as the rows of a source: structures of values to Rows messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock import _captures, _chunk, _dtypes, _engine, _spec
from penstock._chunk import Array, Column, FlatColumn
from penstock._errors import InvalidArgumentError, InvalidTypeError
from penstock._location import refused

Json = dict[str, Any]
# A Rows message, and the capture that it names.
Rows = tuple[Json, tuple[_engine.Capture, ...]]


def one_row(structure: Any) -> Rows:
    """The whole structure as one element."""
    arrays = _to_arrays(_spec.flatten(structure))
    columns = [Column(_dtype(array), array[None]) for array in arrays]
    return message(
        columns, 1, _spec.pack(structure, map(_spec.spec_of, arrays))
    )


def slices(structure: Any) -> Rows:
    """The structure cut along the first dimension of its arrays."""
    arrays = _to_arrays(_spec.flatten(structure))
    if not arrays:
        raise refused(
            InvalidArgumentError,
            "from_tensor_slices needs at least one component; got none",
        )
    for i, array in enumerate(arrays):
        if array.ndim == 0:
            raise refused(
                InvalidArgumentError,
                "from_tensor_slices needs components of at least one "
                f"dimension; component {i} is a scalar",
            )
        if len(array) != len(arrays[0]):
            raise refused(
                InvalidArgumentError,
                "from_tensor_slices needs components of one first dimension; "
                f"got {len(arrays[0])} and, of component {i}, {len(array)}",
            )
    columns = [Column(_dtype(array), array) for array in arrays]
    specs = [_spec.TensorSpec(a.shape[1:], _dtype(a)) for a in arrays]
    return message(columns, len(arrays[0]), _spec.pack(structure, specs))


def each(elements: Sequence[Any]) -> Rows:
    """Each of `elements`, whose shapes may differ, as an element."""
    if not isinstance(elements, (list, tuple)):
        raise refused(
            InvalidTypeError,
            f"from_list takes a list; got {type(elements).__name__}",
        )
    if not elements:
        raise refused(
            InvalidArgumentError,
            "from_list needs at least one element; got none. Its spec could "
            "not be known: use from_tensor_slices with an empty array.",
        )
    first = elements[0]
    rows = []
    for element in elements:
        leaves = _spec.flatten_like(first, element)
        rows.append(_to_arrays(leaves, "Pad the lists inside an element."))
    columns = []
    specs = []
    for i, column in enumerate(zip(*rows, strict=True)):
        # An empty list has no dtype of its own.
        dtype = _dtype(next((a for a in column if a.size), column[0]))
        column = tuple(a if a.size else a.astype(dtype.dtype) for a in column)
        for array in column:
            if _dtype(array) != dtype:
                raise refused(
                    InvalidTypeError,
                    f"component {i} must be of one dtype; got {dtype.name} "
                    f"and {_dtype(array).name}",
                )
        columns.append(_chunk.gather(dtype, list(column)))
        specs.append(_spec.TensorSpec(_common_shape(column), dtype))
    return message(columns, len(rows), _spec.pack(first, specs))


def _common_shape(arrays: Sequence[Array]) -> tuple[int | None, ...]:
    sizes = zip(*(array.shape for array in arrays), strict=False)
    return tuple(
        size[0] if len(set(size)) == 1 else None for size in map(tuple, sizes)
    )


def message(
    columns: Sequence[Column | FlatColumn], rows: int, spec: Any
) -> Rows:
    """The Rows message of columns, and the capture that holds them."""
    encoded = _chunk.Encoded(columns, rows)
    body: Json = {"spec": _spec.to_json(spec), "rows": rows}
    if encoded.size <= _captures.INLINE_BYTES:
        body["chunk"] = _engine.to_base64(encoded.to_bytes())
        return body, ()
    capture = _captures.RowsCapture.make(encoded)
    body["capture"] = capture.id
    return body, (capture,)


def _to_arrays(
    leaves: list[Any],
    for_uneven: str = "Use ps.Dataset.from_list: its elements may differ.",
) -> list[Array]:
    """An array of each leaf; `for_uneven` says what to do with ragged lists."""
    try:
        return [_dtypes.to_array(leaf) for leaf in leaves]
    except InvalidTypeError:
        raise  # It says where.
    except TypeError as error:
        raise refused(InvalidTypeError, str(error)) from None
    except ValueError:
        raise refused(
            InvalidTypeError,
            "a list must be an array, its items of one shape; got items of "
            f"different shapes.\n  {for_uneven}",
        ) from None


def _dtype(array: Array) -> _dtypes.DType:
    return _dtypes.from_numpy(array.dtype)
