"""`tf.data.experimental`: datasets of CSV files, tables and records."""

from __future__ import annotations

import csv
import glob as _glob
import sqlite3
from typing import Any

import numpy as np

from penstock._errors import InvalidArgumentError
from penstock._formats import CsvDataset as NativeCsv
from penstock._location import refused
from penstock._pipeline import AUTOTUNE
from penstock.compat.tf import io
from penstock.compat.tf._boundary import plain
from penstock.compat.tf._dataset import Dataset
from penstock.compat.tf._types import TensorSpec, as_dtype


class CsvDataset(Dataset):
    """The records of comma-separated files, as tuples of fields."""

    def __init__(
        self, filenames: Any, record_defaults: Any,
        compression_type: Any = None, buffer_size: Any = None,
        header: bool = False, field_delim: str = ",",
        use_quote_delim: bool = True, na_value: str = "",
        select_cols: Any = None, exclude_cols: Any = None,
    ) -> None:  # fmt: skip
        if exclude_cols is not None:
            if select_cols is not None:
                raise ValueError(
                    "either select_cols or exclude_cols can be given; got both"
                )
            left_out = {int(i) for i in exclude_cols}
            count = len(record_defaults) + len(left_out)
            select_cols = [i for i in range(count) if i not in left_out]
        names = filenames
        if isinstance(names, Dataset):
            names = names._ds
        names = plain(names)
        if isinstance(names, np.ndarray):
            names = names.tolist()
        self._become(
            NativeCsv(
                names,
                [_default(value) for value in record_defaults],
                compression_type,
                buffer_size,
                header,
                field_delim,
                use_quote_delim,
                na_value,
                select_cols,
            )
        )


def _default(value: Any) -> Any:
    return io._csv_default(value)


class SqlDataset(Dataset):
    """The rows of a query, read by Python's sqlite3."""

    def __init__(
        self, driver_name: Any, data_source_name: Any, query: Any,
        output_types: Any, name: Any = None,
    ) -> None:  # fmt: skip
        if plain(driver_name) not in ("sqlite", b"sqlite"):
            raise refused(
                InvalidArgumentError,
                f"driver_name must be 'sqlite'; got {driver_name!r}",
            )
        source, text = (
            found.decode() if isinstance(found, bytes) else str(found)
            for found in map(plain, (data_source_name, query))
        )
        types = tuple(map(as_dtype, output_types))

        def rows() -> Any:
            with sqlite3.connect(source) as connection:
                for row in connection.execute(text):
                    yield tuple(
                        _sql_value(v, t)
                        for v, t in zip(row, types, strict=True)
                    )

        signature = tuple(TensorSpec((), dtype) for dtype in types)
        made = Dataset.from_generator(rows, output_signature=signature)
        self._become(made._ds)


def _sql_value(value: Any, dtype: Any) -> Any:
    if dtype.name == "string":
        return b"" if value is None else str(value)
    if value is None:
        return np.zeros((), dtype.dtype)[()]
    return dtype.dtype.type(value)


_SAMPLE_ROWS = 100


def make_csv_dataset(
    file_pattern: Any, batch_size: int, column_names: Any = None,
    column_defaults: Any = None, label_name: str | None = None,
    select_columns: Any = None, field_delim: str = ",",
    use_quote_delim: bool = True, na_value: str = "", header: bool = True,
    num_epochs: int | None = None, shuffle: bool = True,
    shuffle_buffer_size: int = 10000, shuffle_seed: Any = None,
    prefetch_buffer_size: Any = None, num_parallel_reads: Any = None,
    sloppy: bool = False, num_rows_for_inference: int | None = 100,
    compression_type: Any = None, ignore_errors: bool = False,
    encoding: str = "utf-8",
) -> Dataset:  # fmt: skip
    """Batches of the columns of CSV files, by name.

    Names come from the first line, and dtypes (int32, int64, float32, float64
    or string) from the first rows.
    """
    patterns = (
        list(file_pattern)
        if isinstance(file_pattern, (list, tuple))
        else [file_pattern]
    )
    files = sorted({f for p in patterns for f in _glob.glob(str(p))})
    if not files:
        raise ValueError(f"no files match {file_pattern}")
    rows = _sample(
        files[0], field_delim, num_rows_for_inference or _SAMPLE_ROWS
    )
    names = list(column_names or rows[0])
    if header:
        rows = rows[1:]
    wanted = list(range(len(names)))
    if select_columns is not None:
        wanted = sorted(
            names.index(c) if isinstance(c, str) else int(c)
            for c in select_columns
        )
    if column_defaults is None:
        column_defaults = [
            _infer([row[i] for row in rows], na_value) for i in wanted
        ]
    kept = [names[i] for i in wanted]
    if label_name is not None and label_name not in kept:
        raise ValueError(
            f"`label_name` must be one of {kept}; got {label_name}"
        )
    source = Dataset.from_tensor_slices(files)
    if shuffle:
        source = source.shuffle(len(files), shuffle_seed)

    def records(file: Any) -> Dataset:
        return CsvDataset(
            Dataset.from_tensors(file), column_defaults, compression_type,
            None, header, field_delim, use_quote_delim, na_value,
            None if select_columns is None else wanted,
        )  # fmt: skip

    lines = _in_turn(source, records, num_parallel_reads, sloppy)
    if ignore_errors:
        lines = lines.ignore_errors()
    if shuffle:
        lines = lines.shuffle(shuffle_buffer_size, shuffle_seed)
    if num_epochs != 1:
        lines = lines.repeat(num_epochs)
    lines = lines.batch(batch_size, drop_remainder=num_epochs is None)

    def name_columns(*columns: Any) -> Any:
        features = dict(zip(kept, columns, strict=True))
        if label_name is None:
            return features
        label = features.pop(label_name)
        return features, label

    return lines.map(name_columns).prefetch(prefetch_buffer_size)


def _in_turn(
    files: Dataset, open_file: Any, count: Any, is_sloppy: bool
) -> Dataset:
    """The records of files, `count` of them in turn; one after another if 1."""
    number = plain(count)
    if number in (None, 1):
        return files.flat_map(open_file)
    cycle = None if number == AUTOTUNE else number
    return files.interleave(
        open_file, cycle, 1, number, deterministic=not is_sloppy
    )


def _sample(file: str, delimiter: str, count: int) -> list[list[str]]:
    rows = []
    with open(file, newline="") as lines:
        for row in csv.reader(lines, delimiter=delimiter):
            rows.append(row)
            if len(rows) > count:
                break
    return rows


def _infer(fields: list[str], na_value: str) -> Any:
    given = [f for f in fields if f not in ("", na_value)]
    kinds: list[tuple[Any, Any]] = [
        (np.int32, int),
        (np.int64, int),
        (np.float32, float),
        (np.float64, float),
    ]
    for kind, parse in kinds:
        try:
            numbers = [parse(f) for f in given]
        except ValueError:
            continue
        if parse is int:
            limits = np.iinfo(kind)
            if all(limits.min <= n <= limits.max for n in numbers):
                return np.zeros((), kind)
        elif all(np.isfinite(kind(n)) for n in numbers):
            return np.zeros((), kind)
    return b""


def make_batched_features_dataset(
    file_pattern: Any, batch_size: int, features: Any, reader: Any = None,
    label_key: str | None = None, reader_args: Any = None,
    num_epochs: int | None = None, shuffle: bool = True,
    shuffle_buffer_size: int = 10000, shuffle_seed: Any = None,
    prefetch_buffer_size: Any = None, reader_num_threads: Any = None,
    parser_num_threads: Any = None, sloppy_ordering: bool = False,
    drop_final_batch: bool = False,
) -> Dataset:  # fmt: skip
    """Batches of the features of record files, by name."""
    from penstock.compat.tf.data import TFRecordDataset

    open_file = reader or TFRecordDataset
    extra = list(reader_args or [])
    files = Dataset.list_files(file_pattern, shuffle, shuffle_seed)
    records = _in_turn(
        files,
        lambda name: open_file(name, *extra),
        reader_num_threads,
        sloppy_ordering,
    )
    if shuffle:
        records = records.shuffle(shuffle_buffer_size, shuffle_seed)
    if num_epochs != 1:
        records = records.repeat(num_epochs)
    drop = drop_final_batch or num_epochs is None
    batches = records.batch(batch_size, drop_remainder=drop)
    parsed = batches.map(
        lambda examples: io.parse_example(examples, features),
        parser_num_threads,
    )
    if label_key is not None:
        key = label_key
        parsed = parsed.map(
            lambda x: ({k: v for k, v in x.items() if k != key}, x[key])
        )
    return parsed.prefetch(prefetch_buffer_size)
