"""A run of elements as bytes: what goes to the engine and comes from it.

The layout is the engine's: little-endian, a header, a descriptor per column,
then buffers that start at multiples of 64 bytes.

  header   u32 magic "PSK1", u32 columns, u64 rows, u64 bytes in all,
           u64 offset of the errors (0: none), u64 number of errors
  column   u8 dtype, u8 layout (0 dense, 1 ragged), u8 rank, 5 zero bytes,
           u64 values offset, u64 values bytes,
           u64 offset of the string starts (0: not strings),
           u64 offset of the row dimensions (0: dense), 8 dimensions
  errors   each: u64 row, u32 code, u32 size, message, zeros to 8 bytes
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from penstock import _dtypes
from penstock._dtypes import DType
from penstock._errors import DataLossError, InvalidArgumentError
from penstock._location import refused

MAGIC = 0x314B5350
HEADER = struct.Struct("<IIQQQQ")
DESCRIPTOR = struct.Struct("<BBB5xQQQQ8Q")
ERROR = struct.Struct("<QII")
MAX_RANK = 8
_ALIGNMENT = 64

if TYPE_CHECKING:
    import numpy.typing as npt  # Slow to import, and only needed here.

    Array = npt.NDArray[Any]
else:
    Array = np.ndarray


class RowError(NamedTuple):
    """An element that is an error: it takes a position like any other."""

    row: int
    code: int
    message: str


class Column(NamedTuple):
    """One component of some rows.

    `values` is an array with the rows as first dimension or, where rows differ
    in shape, a list of arrays of one rank.
    """

    dtype: DType
    values: Array | list[Array]


class FlatColumn(NamedTuple):
    """One component of some rows as the buffers that the layout has."""

    dtype: DType
    # The items of all rows one after another; of strings, their bytes.
    data: Any
    # Of strings: where each begins in `data`, and the end of the last.
    starts: Array | None
    # The shape of each row, where rows differ in it; else the shape of all.
    dims: Array | None
    shape: tuple[int, ...]


def gather(dtype: DType, rows: list[Array]) -> Column:
    """The column of `rows`, dense if they have one shape."""
    shape = rows[0].shape
    if all(row.shape == shape for row in rows):
        if shape:
            return Column(dtype, np.stack(rows))
        flat = np.empty(len(rows), dtype.dtype)
        for i, row in enumerate(rows):
            flat[i] = row[()]
        return Column(dtype, flat)
    if any(row.ndim != len(shape) for row in rows):
        ranks = sorted({row.ndim for row in rows})
        raise refused(
            InvalidArgumentError,
            f"elements must have one rank; got ranks {ranks}",
        )
    return Column(dtype, rows)


def flatten(column: Column) -> FlatColumn:
    """The buffers of a column."""
    dtype, values = column
    dims: Array | None = None
    starts: Array | None = None
    if isinstance(values, list):
        data = np.concatenate([row.reshape(-1) for row in values])
        dims = np.array([row.shape for row in values], np.uint64)
        shape: tuple[int, ...] = ()
    else:
        data = values
        shape = values.shape[1:]
    if dtype != _dtypes.string:
        return FlatColumn(dtype, data, None, dims, shape)
    items: list[bytes] = data.reshape(-1).tolist()
    starts = np.zeros(len(items) + 1, np.uint64)
    np.cumsum([len(item) for item in items], out=starts[1:])
    return FlatColumn(dtype, b"".join(items), starts, dims, shape)


def dense_offsets(
    shapes: list[tuple[int, ...]], dtypes: list[np.dtype[Any]]
) -> tuple[list[int], int]:
    """Where `Encoded` puts dense columns of numbers, and where they end."""
    offsets = []
    end = HEADER.size + len(shapes) * DESCRIPTOR.size
    for shape, dtype in zip(shapes, dtypes, strict=True):
        offsets.append(_round_up(end, _ALIGNMENT))
        end = offsets[-1] + math.prod(shape) * dtype.itemsize
    return offsets, end


class _Buffer(NamedTuple):
    offset: int
    data: Any  # anything that numpy reads as bytes


class Encoded:
    """A chunk laid out: its size, and how to write it anywhere."""

    def __init__(
        self,
        columns: Sequence[Column | FlatColumn],
        rows: int,
        errors: Sequence[RowError] = (),
    ) -> None:
        self._buffers: list[_Buffer] = []
        self._end = HEADER.size + len(columns) * DESCRIPTOR.size
        descriptors = [self._lay_out(column) for column in columns]
        errors_offset = self._lay_out_errors(errors) if errors else 0
        self.size = _round_up(self._end, 8)
        header = HEADER.pack(
            MAGIC, len(columns), rows, self.size, errors_offset, len(errors)
        )
        self._head = header + b"".join(descriptors)

    def write(self, out: Any) -> None:
        """Writes to a buffer of `size` zero bytes.

        What lies in its place there already, as `dense_offsets` says, stays.
        """
        target = np.frombuffer(out, np.uint8)
        target[: len(self._head)] = np.frombuffer(self._head, np.uint8)
        start = target.__array_interface__["data"][0]
        for offset, data in self._buffers:
            source = _as_bytes(data)
            if source.__array_interface__["data"][0] != start + offset:
                target[offset : offset + source.size] = source

    def to_bytes(self) -> bytes:
        out = bytearray(self.size)
        self.write(out)
        return bytes(out)

    def _reserve(self, data: Any, size: int) -> int:
        offset = _round_up(self._end, _ALIGNMENT)
        self._end = offset + size
        self._buffers.append(_Buffer(offset, data))
        return offset

    def _lay_out(self, column: Column | FlatColumn) -> bytes:
        if isinstance(column, Column):
            column = flatten(column)
        dtype, data, starts, dims, shape = column
        rank = len(shape) if dims is None else dims.shape[1]
        if rank > MAX_RANK:
            raise refused(
                InvalidArgumentError,
                f"a tensor must have at most {MAX_RANK} dimensions; got {rank}",
            )
        size = data.nbytes if isinstance(data, np.ndarray) else len(data)
        values_offset = self._reserve(data, size)
        starts_offset = dims_offset = 0
        if starts is not None:
            starts_offset = self._reserve(starts, starts.nbytes)
        if dims is not None:
            shape = ()
            dims_offset = self._reserve(dims, dims.nbytes)
        return DESCRIPTOR.pack(
            dtype.code,
            0 if dims is None else 1,
            rank,
            values_offset,
            size,
            starts_offset,
            dims_offset,
            *shape,
            *(0,) * (MAX_RANK - len(shape)),
        )

    def _lay_out_errors(self, errors: Iterable[RowError]) -> int:
        out = bytearray()
        for row, code, message in errors:
            text = message.encode(errors="replace")
            out += ERROR.pack(row, code, len(text))
            out += text.ljust(_round_up(len(text), 8), b"\0")
        return self._reserve(bytes(out), len(out))


def _as_bytes(data: Any) -> npt.NDArray[np.uint8]:
    if isinstance(data, np.ndarray):
        return np.require(data, requirements="C").reshape(-1).view(np.uint8)
    return np.frombuffer(data, np.uint8)


def _round_up(size: int, to: int) -> int:
    return -(-size // to) * to


def placeholder(dtype: DType, shape: tuple[int | None, ...] | None) -> Array:
    """A meaningless value for an error's row."""
    fill = b"" if dtype == _dtypes.string else 0
    known = tuple(size or 0 for size in shape or ())
    return np.full(known, fill, dtype.dtype)


class ColumnLayout(NamedTuple):
    """Where a column lies in an encoded chunk."""

    dtype: DType
    is_dense: bool
    rank: int
    values_offset: int
    values_bytes: int
    starts_offset: int
    dims_offset: int
    shape: tuple[int, ...]  # dense only


class Layout(NamedTuple):
    rows: int
    columns: tuple[ColumnLayout, ...]
    errors_offset: int
    errors: int


def head_size(columns: int) -> int:
    """Bytes that `read_layout` needs."""
    return HEADER.size + columns * DESCRIPTOR.size


def read_layout(head: bytes) -> Layout:
    """The layout told by an encoded chunk's first bytes."""
    if len(head) < HEADER.size:
        raise DataLossError("damaged chunk: shorter than its header")
    magic, columns, rows, _, errors_offset, errors = HEADER.unpack_from(head)
    if magic != MAGIC or len(head) < head_size(columns):
        raise DataLossError("damaged chunk: no magic number or cut short")
    found = []
    for i in range(columns):
        at = HEADER.size + i * DESCRIPTOR.size
        code, layout, rank, *rest = DESCRIPTOR.unpack_from(head, at)
        offsets, dims = rest[:4], rest[4:]
        found.append(
            ColumnLayout(
                _dtypes.BY_CODE[code],
                layout == 0,
                rank,
                offsets[0],
                offsets[1],
                offsets[2],
                offsets[3],
                tuple(dims[:rank]),
            )
        )
    return Layout(rows, tuple(found), errors_offset, errors)


def read_errors(data: memoryview, layout: Layout) -> list[RowError]:
    """The error rows of an encoded chunk, ascending."""
    found = []
    at = layout.errors_offset
    for _ in range(layout.errors):
        row, code, size = ERROR.unpack_from(data, at)
        at += ERROR.size
        text = bytes(data[at : at + size]).decode(errors="replace")
        found.append(RowError(row, code, text))
        at += _round_up(size, 8)
    return found


def column_rows(root: Array, column: ColumnLayout, rows: int) -> list[Any]:
    """The rows of a column; arrays among them are views of `root`."""
    dtype = column.dtype
    if column.is_dense:
        if dtype == _dtypes.string:
            return _dense_strings(root, column, rows)
        if rows == 1 and column.rank:
            return [
                np.ndarray(
                    column.shape, dtype.dtype, root, column.values_offset
                )
            ]
        return list(
            np.ndarray(
                (rows, *column.shape), dtype.dtype, root, column.values_offset
            )
        )
    shapes = np.ndarray(
        (rows, column.rank), np.uint64, root, column.dims_offset
    ).tolist()
    if dtype == _dtypes.string:
        return _ragged_strings(root, column, shapes)
    out: list[Any] = []
    at = column.values_offset
    for shape in shapes:
        array = np.ndarray(shape, dtype.dtype, root, at)
        at += array.nbytes
        out.append(array)
    return out


def _strings(root: Array, column: ColumnLayout, items: int) -> Array:
    """All strings of a column as bytes, in one array of objects."""
    starts = np.ndarray((items + 1,), np.int64, root, column.starts_offset)
    sizes = np.diff(starts)
    size = int(sizes[0]) if items else 0
    if size and bool((sizes == size).all()):
        # Records of one size: numpy makes them several times as fast.
        same = np.ndarray((items,), f"V{size}", root, column.values_offset)
        objects: Array = same.astype(object)
        return objects
    out = np.empty(items, object)
    texts = struct.Struct("%ds" * items % tuple(sizes.tolist()))
    out[:] = texts.unpack_from(root.data, column.values_offset)
    return out


def _dense_strings(root: Array, column: ColumnLayout, rows: int) -> list[Any]:
    size = 1
    for dim in column.shape:
        size *= dim
    items = _strings(root, column, rows * size)
    if not column.rank:
        scalars: list[Any] = items.tolist()
        return scalars
    return list(items.reshape(rows, *column.shape))


def _ragged_strings(
    root: Array, column: ColumnLayout, shapes: list[list[int]]
) -> list[Any]:
    sizes = [int(np.prod(shape)) for shape in shapes]
    items = _strings(root, column, sum(sizes))
    out: list[Any] = []
    at = 0
    for shape, size in zip(shapes, sizes, strict=True):
        out.append(items[at : at + size].reshape(shape))
        at += size
    return out


def decode(data: bytes) -> tuple[list[list[Any]], int, list[RowError]]:
    """Columns of rows, number of rows, and errors of an encoded chunk."""
    root = np.frombuffer(bytearray(data), np.uint8)
    layout = read_layout(data)
    columns = [column_rows(root, c, layout.rows) for c in layout.columns]
    return columns, layout.rows, read_errors(memoryview(data), layout)
