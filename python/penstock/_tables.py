"""Tables as datasets: Arrow's, pandas' and Hugging Face's.

Arrow's buffers are the engine's, but for offsets of 64 bits and shapes: columns
are copied once, as they are, and no row becomes an object of Python's.
"""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from penstock import _dtypes, _rows
from penstock._chunk import Array, FlatColumn
from penstock._composites import Ragged
from penstock._dtypes import DType
from penstock._errors import InvalidArgumentError, InvalidTypeError
from penstock._location import refused
from penstock._pipeline import append
from penstock._sources import Sources
from penstock._spec import TensorSpec

if TYPE_CHECKING:
    from penstock._dataset import Dataset

pa: Any = importlib.import_module("pyarrow")
_types: Any = pa.types

# Rows of a stream that are converted at a time.
_STREAM_ROWS = 256


class _Column(NamedTuple):
    """The items of a column, and how many of them each row has."""

    dtype: DType
    data: Any  # as FlatColumn has it
    starts: Array | None
    # Of each item; where rows are lists, of the items in them.
    shape: tuple[int, ...]
    # Where each row begins among the items, if rows are lists.
    splits: Array | None = None

    def spec(self) -> TensorSpec:
        shape = self.shape if self.splits is None else (None, *self.shape)
        return TensorSpec(shape, self.dtype)

    def flat(self) -> FlatColumn:
        dims: Array | None = None
        if self.splits is not None:
            lengths = np.diff(self.splits)[:, None]
            inner = np.broadcast_to(
                np.array(self.shape, np.uint64),
                (len(lengths), len(self.shape)),
            )
            dims = np.hstack([lengths.astype(np.uint64), inner])
        return FlatColumn(self.dtype, self.data, self.starts, dims, self.shape)

    def batch_spec(self) -> Any:
        """The spec of `batch()`."""
        items = TensorSpec((None, *self.shape), self.dtype)
        if self.splits is None:
            return items
        return Ragged(items, TensorSpec((None,), _dtypes.int64))

    def batch(self) -> Any:
        """All rows as one array, or as a ragged value."""
        items = self.data
        if self.starts is not None:
            ends = self.starts.tolist()
            data = memoryview(self.data)
            items = np.empty(len(ends) - 1, object)
            for i, (begin, end) in enumerate(itertools.pairwise(ends)):
                items[i] = bytes(data[begin:end])
        items = items.reshape(-1, *self.shape)
        return items if self.splits is None else Ragged(items, self.splits)


def from_arrow(data: Any) -> Dataset:
    """What `Dataset.from_arrow` gives."""
    return _from_table(_to_table(data), "from_arrow")


def from_pandas(frame: Any) -> Dataset:
    """What `Dataset.from_pandas` gives."""
    pandas: Any = importlib.import_module("pandas")
    if isinstance(frame, pandas.Series):
        frame = frame.to_frame(name=frame.name or "value")
    if not isinstance(frame, pandas.DataFrame):
        raise refused(
            InvalidTypeError,
            f"from_pandas takes a pandas.DataFrame; got {type(frame).__name__}",
        )
    for name in frame.columns:
        if not isinstance(name, str):
            raise refused(
                InvalidTypeError,
                f"names of columns must be strings; got {name!r}.\n"
                "  Use df.rename(columns=str), or names of your own.",
            )
    try:
        table = pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise refused(
            InvalidTypeError,
            "every column must hold values of one type; got "
            f"{' '.join(map(str, error.args))}",
        ) from None
    return _from_table(table, "from_pandas")


def from_huggingface(dataset: Any) -> Dataset:
    """What `Dataset.from_huggingface` gives."""
    datasets: Any = importlib.import_module("datasets")
    if isinstance(
        dataset, (datasets.DatasetDict, datasets.IterableDatasetDict)
    ):
        raise refused(
            InvalidTypeError,
            f"from_huggingface takes one split; got {sorted(dataset)}.\n"
            "  Choose one, as in dataset['train'].",
        )
    if isinstance(dataset, datasets.IterableDataset):
        return _from_stream(dataset)
    if not isinstance(dataset, datasets.Dataset):
        raise refused(
            InvalidTypeError,
            "from_huggingface takes a datasets.Dataset or IterableDataset; "
            f"got {type(dataset).__name__}",
        )
    if not len(dataset):
        table = dataset.features.arrow_schema.empty_table()
    else:
        table = dataset.with_format("arrow")[:]  # by its indices
    return _from_table(
        _without_paths(table, dataset.features), "from_huggingface"
    )


def _from_table(table: Any, kind: str) -> Dataset:
    columns = _convert_table(table)
    flat = [column.flat() for column in _flatten(columns)]
    spec = _map(_Column.spec, columns)
    rows, captures = _rows.message(flat, table.num_rows, spec)
    return append("rows", {**rows, "kind": kind}, captures=captures)


# ---- Structures of columns: dicts, since a column is a tuple itself.


def _flatten(columns: Any) -> list[_Column]:
    """The columns in the order that plans have them in."""
    if isinstance(columns, dict):
        return [c for key in sorted(columns) for c in _flatten(columns[key])]
    return [columns]


def _map(function: Callable[[_Column], Any], columns: Any) -> Any:
    if isinstance(columns, dict):
        return {key: _map(function, part) for key, part in columns.items()}
    return function(columns)


# ---- Tables from what users have.


def _to_table(data: Any) -> Any:
    if isinstance(data, pa.Table):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    if isinstance(data, pa.RecordBatchReader):
        return data.read_all()
    if hasattr(data, "__arrow_c_stream__") or hasattr(
        data, "__arrow_c_array__"
    ):
        return pa.table(data)
    if isinstance(data, Iterable) and not isinstance(data, (str, bytes, dict)):
        batches = list(data)
        if batches and all(isinstance(b, pa.RecordBatch) for b in batches):
            return pa.Table.from_batches(batches)
        if batches and all(isinstance(b, pa.Table) for b in batches):
            return pa.concat_tables(batches)
    raise refused(
        InvalidTypeError,
        "from_arrow takes a pyarrow.Table, record batches, or what gives an "
        f"Arrow stream, with at least one batch; got {type(data).__name__}",
    )


def _convert_table(table: Any) -> dict[str, Any]:
    names = table.column_names
    if not names:
        raise refused(
            InvalidArgumentError,
            "a table must have at least one column; got none",
        )
    for name in names:
        if names.count(name) > 1:
            raise refused(
                InvalidArgumentError,
                f"columns must have names of their own; got {name!r} "
                f"{names.count(name)} times",
            )
    return {name: _convert(_whole(table.column(name)), name) for name in names}


def _whole(column: Any) -> Any:
    """A column of several chunks as one array."""
    if column.num_chunks == 1:
        return column.chunk(0)
    kind = _wide(column.type)
    chunks = [
        chunk if chunk.type == kind else chunk.cast(kind)
        for chunk in column.chunks
    ]
    if not chunks:
        return pa.array([], column.type)
    if _types.is_dictionary(column.type):
        chunks = [chunk.dictionary_decode() for chunk in chunks]
    return pa.concat_arrays(chunks)


def _wide(kind: Any) -> Any:
    """The type of strings whose offsets hold all chunks together."""
    if _types.is_string(kind) or _types.is_binary(kind):
        return pa.large_binary()
    return kind


# ---- Arrays to columns.


def _convert(array: Any, name: str) -> Any:
    """The column of an array, or a dict of those of a struct."""
    array = _plain(array)
    kind = array.type
    if _types.is_struct(kind):
        if not kind.num_fields:
            raise _unsupported(name, kind, "Drop it.")
        # flatten() knows of the struct's own offset and nulls.
        return {
            kind.field(i).name: _convert(part, f"{name}.{kind.field(i).name}")
            for i, part in enumerate(array.flatten())
        }
    if _is_list(kind):
        _refuse_nulls(array, name)
        compute: Any = importlib.import_module("pyarrow.compute")
        lengths = compute.list_value_length(array).to_numpy()
        splits = np.zeros(len(array) + 1, np.int64)
        np.cumsum(lengths, out=splits[1:])
        return _convert_lists(_plain(array.flatten()), splits, name)
    return _convert_items(array, name)


def _convert_lists(values: Any, splits: Array, name: str) -> Any:
    kind = values.type
    if _types.is_struct(kind) and kind.num_fields:
        # A list of structs is a struct of lists.
        _refuse_nulls(values, name)
        return {
            kind.field(i).name: _convert_lists(
                _plain(part), splits, f"{name}.{kind.field(i).name}"
            )
            for i, part in enumerate(values.flatten())
        }
    if _is_list(kind):
        raise _unsupported(
            name,
            f"lists of {kind}",
            "Flatten them, or make them lists of a fixed size.",
        )
    return _convert_items(values, name)._replace(splits=splits)


def _convert_items(array: Any, name: str) -> _Column:
    """The column of an array whose values have one shape."""
    kind = array.type
    if isinstance(kind, pa.FixedShapeTensorType):
        _refuse_nulls(array, name)
        tensors = np.ascontiguousarray(array.to_numpy_ndarray())
        return _numbers(tensors, tensors.shape[1:])
    if isinstance(kind, pa.BaseExtensionType):
        return _convert_extension(array, name)
    if _types.is_fixed_size_list(kind):
        _refuse_nulls(array, name)
        inner = _convert_items(_plain(array.flatten()), name)
        return inner._replace(shape=(kind.list_size, *inner.shape))
    if (
        _types.is_string(kind)
        or _types.is_binary(kind)
        or _types.is_large_string(kind)
        or _types.is_large_binary(kind)
        or _types.is_fixed_size_binary(kind)
    ):
        return _strings(array, name)
    if _types.is_temporal(kind) and kind.bit_width in (32, 64):
        # As counts of its unit.
        array = array.view(pa.int32() if kind.bit_width == 32 else pa.int64())
    elif not (
        _types.is_integer(kind)
        or _types.is_floating(kind)
        or _types.is_boolean(kind)
    ):
        raise _unsupported(
            name, kind, "Drop it, or cast it to numbers or strings."
        )
    if array.null_count and _types.is_floating(kind):
        return _numbers(array.to_numpy(zero_copy_only=False), ())  # NaN
    _refuse_nulls(array, name)
    return _numbers(array.to_numpy(zero_copy_only=False), ())


def _convert_extension(array: Any, name: str) -> _Column:
    """Of a type that somebody made: what it is stored as.

    If it says a shape, lists in lists are an array of that shape.
    """
    shape = getattr(array.type, "shape", None)
    values = array.storage
    if not shape or any(size is None for size in shape):
        found = _convert(values, name)
        if not isinstance(found, _Column) or found.splits is not None:
            raise _unsupported(name, array.type, "Cast it to its storage.")
        return found
    rows = len(values)
    while _types.is_nested(values.type):
        _refuse_nulls(values, name)
        values = _plain(values.flatten())
    inner = _convert_items(values, name)
    if len(values) != rows * int(np.prod(shape)):
        raise _unsupported(name, array.type, "Cast it to its storage.")
    return inner._replace(shape=tuple(shape))


def _numbers(values: Array, shape: tuple[int, ...]) -> _Column:
    return _Column(_dtypes.from_numpy(values.dtype), values, None, shape)


def _strings(array: Any, name: str) -> _Column:
    _refuse_nulls(array, name)
    if _types.is_fixed_size_binary(array.type):
        array = array.cast(pa.binary())
    array = array.cast(pa.large_binary())
    _, offsets, data = array.buffers()
    ends = np.frombuffer(offsets, np.int64, len(array) + 1, array.offset * 8)
    begin, end = int(ends[0]), int(ends[-1])
    content = b"" if data is None else memoryview(data)[begin:end]
    starts = (ends - begin).astype(np.uint64)
    return _Column(_dtypes.string, content, starts, ())


def _is_list(kind: Any) -> bool:
    return bool(
        _types.is_list(kind)
        or _types.is_large_list(kind)
        or _types.is_list_view(kind)
        or _types.is_large_list_view(kind)
    )


def _plain(array: Any) -> Any:
    """The array without what is only another way to store it."""
    kind = array.type
    if _types.is_dictionary(kind):
        return _plain(array.dictionary_decode())
    if _types.is_run_end_encoded(kind):
        compute: Any = importlib.import_module("pyarrow.compute")
        return _plain(compute.run_end_decode(array))
    if _types.is_string_view(kind) or _types.is_binary_view(kind):
        return array.cast(pa.large_binary())
    return array


def _refuse_nulls(array: Any, name: str) -> None:
    if array.null_count:
        raise refused(
            InvalidArgumentError,
            f"columns must have no nulls, since elements have none; got "
            f"{array.null_count} of {len(array)} in column {name!r}.\n"
            "  Fill them (fillna, fill_null), drop their rows (dropna, "
            "drop_null, filter), or drop the column.",
        )


def _unsupported(name: str, kind: Any, what_to_do: str) -> InvalidTypeError:
    return refused(
        InvalidTypeError,
        "columns must hold numbers, bools, strings, times, lists or structs of "
        f"these; got {kind} in column {name!r}.\n  {what_to_do}",
    )


# ---- Hugging Face.


def _without_paths(table: Any, features: Any) -> Any:
    """Encoded images and sounds as their bytes alone, without file names."""
    for i, (name, feature) in enumerate((features or {}).items()):
        if type(feature).__name__ not in ("Image", "Audio", "Video", "Pdf"):
            continue
        column = table.column(name)
        kind = column.type
        if isinstance(kind, pa.BaseExtensionType):
            kind = kind.storage_type
            column = column.cast(kind)
        if not _types.is_struct(kind) or kind.get_field_index("bytes") < 0:
            continue
        compute: Any = importlib.import_module("pyarrow.compute")
        data = compute.struct_field(column, "bytes")
        if data.null_count:
            raise refused(
                InvalidArgumentError,
                f"column {name!r} must hold the bytes of its files; got "
                f"{data.null_count} of {len(data)} as names of files.\n"
                "  Use ps.ImageFolderDataset, or read the files in the "
                "pipeline.",
            )
        table = table.set_column(i, name, data)
    return table


def _from_stream(dataset: Any) -> Dataset:
    """A dataset that is read as it goes, in tables of some rows."""
    features = dataset.features
    schema = None if features is None else features.arrow_schema

    def tables() -> Iterator[Any]:
        if schema is not None:
            for table in dataset.with_format("arrow").iter(_STREAM_ROWS):
                yield table.cast(schema)
            return
        # Rows must tell the types: the first ones do, as in datasets itself.
        found = None
        for rows in dataset.with_format(None).iter(_STREAM_ROWS):
            table = pa.Table.from_pydict(rows, schema=found)
            found = table.schema
            yield table

    if schema is None:
        first = next(tables(), None)
        if first is None:
            raise refused(
                InvalidArgumentError,
                "a stream must have features or at least one row; got neither",
            )
        empty = first.slice(0, 0)
    else:
        empty = schema.empty_table()
    empty = _without_paths(empty, features)

    def batches() -> Iterator[Any]:
        for table in tables():
            plain = _without_paths(table, features)
            yield _map(_Column.batch, _convert_table(plain))

    return Sources.from_generator(
        batches,
        output_signature=_map(_Column.batch_spec, _convert_table(empty)),
    ).unbatch()
