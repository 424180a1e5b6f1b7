"""`tf.data.experimental`."""

from __future__ import annotations

import csv
import glob as _glob
import sqlite3
from collections.abc import Callable
from typing import Any

import numpy as np

from penstock._dataset import Dataset as Native
from penstock._errors import InvalidArgumentError
from penstock._formats import CsvDataset as NativeCsv
from penstock._location import refused
from penstock._pipeline import (
    AUTOTUNE,
    INFINITE_CARDINALITY,
    UNKNOWN_CARDINALITY,
)
from penstock.compat.tf import _arrays as arrays
from penstock.compat.tf import io, lookup
from penstock.compat.tf._boundary import enter, leave_element, plain
from penstock.compat.tf._dataset import Dataset
from penstock.compat.tf._iterator import Iterator, Optional
from penstock.compat.tf._options import (
    AutoShardPolicy,
    AutotuneAlgorithm,
    AutotuneOptions,
    DistributeOptions,
    ExternalStatePolicy,
    OptimizationOptions,
    ServiceOptions,
    ThreadingOptions,
)
from penstock.compat.tf._tensor import Tensor
from penstock.compat.tf._types import TensorSpec, as_dtype

__all__ = [
    "AUTOTUNE",
    "INFINITE_CARDINALITY",
    "UNKNOWN_CARDINALITY",
    "AutoShardPolicy",
    "AutotuneAlgorithm",
    "AutotuneOptions",
    "Counter",
    "CsvDataset",
    "DatasetInitializer",
    "DistributeOptions",
    "ExternalStatePolicy",
    "OptimizationOptions",
    "Optional",
    "RandomDataset",
    "ServiceOptions",
    "SqlDataset",
    "TFRecordWriter",
    "ThreadingOptions",
    "assert_cardinality",
    "at",
    "bucket_by_sequence_length",
    "cardinality",
    "choose_from_datasets",
    "dense_to_ragged_batch",
    "dense_to_sparse_batch",
    "enumerate_dataset",
    "from_list",
    "get_next_as_optional",
    "get_single_element",
    "get_structure",
    "group_by_window",
    "ignore_errors",
    "index_table_from_dataset",
    "load",
    "make_batched_features_dataset",
    "make_csv_dataset",
    "map_and_batch",
    "pad_to_cardinality",
    "parallel_interleave",
    "parse_example_dataset",
    "rejection_resample",
    "sample_from_datasets",
    "save",
    "scan",
    "shuffle_and_repeat",
    "snapshot",
    "table_from_dataset",
    "take_while",
    "unbatch",
    "unique",
]

Apply = Callable[[Dataset], Dataset]


def Counter(start: Any = 0, step: Any = 1, dtype: Any = "int64") -> Dataset:  # noqa: N802
    return Dataset.counter(start, step, dtype)


def RandomDataset(  # noqa: N802
    seed: Any = None,
    rerandomize_each_iteration: Any = None,
    name: Any = None,
) -> Dataset:
    return Dataset.random(seed, rerandomize_each_iteration)


# ---- Transformations for apply().


def assert_cardinality(expected_cardinality: Any) -> Apply:
    """States how many elements there are; checked as they are read.

    Example:
        >>> ds = tf.data.Dataset.range(9).filter(lambda x: x % 3 == 0)
        >>> len(ds.apply(tf.data.experimental.assert_cardinality(3)))
        3
    """
    count = int(plain(expected_cardinality))
    return lambda ds: ds._then(ds._ds.assert_cardinality(count))


def bucket_by_sequence_length(*args: Any, **kwargs: Any) -> Apply:
    return lambda ds: ds.bucket_by_sequence_length(*args, **kwargs)


def dense_to_ragged_batch(
    batch_size: Any, drop_remainder: bool = False,
    row_splits_dtype: Any = "int64",
) -> Apply:  # fmt: skip
    return lambda ds: ds.ragged_batch(
        batch_size, drop_remainder, row_splits_dtype
    )


def dense_to_sparse_batch(batch_size: Any, row_shape: Any) -> Apply:
    return lambda ds: ds.sparse_batch(batch_size, row_shape)


def enumerate_dataset(start: Any = 0) -> Apply:
    return lambda ds: ds.enumerate(start)


def group_by_window(
    key_func: Any, reduce_func: Any, window_size: Any = None,
    window_size_func: Any = None,
) -> Apply:  # fmt: skip
    return lambda ds: ds.group_by_window(
        key_func, reduce_func, window_size, window_size_func
    )


def ignore_errors(log_warning: bool = False) -> Apply:
    return lambda ds: ds.ignore_errors(log_warning)


def map_and_batch(
    map_func: Any, batch_size: Any, num_parallel_batches: Any = None,
    drop_remainder: bool = False, num_parallel_calls: Any = None,
) -> Apply:  # fmt: skip
    return lambda ds: ds.map(map_func, num_parallel_calls).batch(
        batch_size, drop_remainder
    )


def parallel_interleave(
    map_func: Any, cycle_length: Any, block_length: Any = 1,
    sloppy: bool | None = False, buffer_output_elements: Any = None,
    prefetch_input_elements: Any = None,
) -> Apply:  # fmt: skip
    return lambda ds: ds.interleave(
        map_func, cycle_length, block_length, cycle_length, not sloppy
    )


def parse_example_dataset(
    features: Any, num_parallel_calls: Any = 1, deterministic: Any = None
) -> Apply:
    return lambda ds: ds.map(
        lambda records: io.parse_example(records, features), num_parallel_calls
    )


def rejection_resample(
    class_func: Any, target_dist: Any, initial_dist: Any = None,
    seed: Any = None,
) -> Apply:  # fmt: skip
    return lambda ds: ds.rejection_resample(
        class_func, target_dist, initial_dist, seed
    )


def scan(initial_state: Any, scan_func: Any) -> Apply:
    return lambda ds: ds.scan(initial_state, scan_func)


def shuffle_and_repeat(
    buffer_size: Any, count: Any = None, seed: Any = None
) -> Apply:
    return lambda ds: ds.shuffle(buffer_size, seed).repeat(count)


def snapshot(
    path: Any, compression: Any = "AUTO", reader_func: Any = None,
    shard_func: Any = None,
) -> Apply:  # fmt: skip
    return lambda ds: ds.snapshot(path, compression, reader_func, shard_func)


def take_while(predicate: Any) -> Apply:
    return lambda ds: ds.take_while(predicate)


def unbatch() -> Apply:
    return lambda ds: ds.unbatch()


def unique() -> Apply:
    return lambda ds: ds.unique()


def pad_to_cardinality(cardinality: Any, mask_key: str = "valid") -> Apply:
    """Filler elements, of zeros, up to a number; a mask says which they are.

    Example:
        >>> ds = tf.data.Dataset.from_tensor_slices({"a": [1, 2]})
        >>> ds = ds.apply(tf.data.experimental.pad_to_cardinality(3))
        >>> [(int(x["a"]), bool(x["valid"])) for x in ds]
        [(1, True), (2, True), (0, False)]
    """
    wanted = int(plain(cardinality))

    def pad(ds: Dataset) -> Dataset:
        spec, length = ds.element_spec, ds._ds.cardinality()
        if not isinstance(spec, dict) or mask_key in spec:
            raise refused(
                InvalidArgumentError,
                "pad_to_cardinality needs elements that are dicts without a "
                f"{mask_key!r}; got {spec}",
            )
        if length < 0 or length > wanted:
            raise refused(
                InvalidArgumentError,
                "pad_to_cardinality needs a dataset of a known length of at "
                f"most {wanted}; got {length}",
            )
        filler: dict[str, Any] = {
            key: arrays.zeros(part.shape, part.dtype)
            for key, part in spec.items()
        }
        filler[mask_key] = Tensor(np.array(False))
        marked = ds.map(lambda x: {**x, mask_key: Tensor(np.array(True))})
        rest = Dataset.from_tensors(filler).repeat(wanted - length)
        return marked.concatenate(rest)

    return pad


# ---- Functions of datasets.


def at(dataset: Dataset, index: Any) -> Any:
    return enter(dataset._ds.at(int(plain(index))))


def cardinality(dataset: Dataset) -> Tensor:
    return dataset.cardinality()


def choose_from_datasets(
    datasets: Any, choice_dataset: Any, stop_on_empty_dataset: bool = False
) -> Dataset:
    return Dataset.choose_from_datasets(
        datasets, choice_dataset, stop_on_empty_dataset
    )


def sample_from_datasets(
    datasets: Any, weights: Any = None, seed: Any = None,
    stop_on_empty_dataset: bool = False,
) -> Dataset:  # fmt: skip
    return Dataset.sample_from_datasets(
        datasets, weights, seed, stop_on_empty_dataset
    )


def from_list(elements: Any, name: Any = None) -> Dataset:
    return Dataset._of(
        Native.from_list([leave_element(item) for item in elements])
    )


def get_single_element(dataset: Dataset) -> Any:
    return dataset.get_single_element()


def get_structure(dataset_or_iterator: Any) -> Any:
    return dataset_or_iterator.element_spec


def get_next_as_optional(iterator: Iterator) -> Optional:
    return iterator.get_next_as_optional()


def save(
    dataset: Dataset,
    path: Any,
    compression: Any = None,
    shard_func: Any = None,
    checkpoint_args: Any = None,
) -> None:
    dataset.save(path, compression, shard_func, checkpoint_args)


load = Dataset.load


class TFRecordWriter:
    """Writes a dataset of strings to a TFRecord file."""

    def __init__(self, filename: Any, compression_type: Any = None) -> None:
        self._filename = filename
        self._compression = compression_type

    def write(self, dataset: Dataset) -> None:
        with io.TFRecordWriter(self._filename, self._compression) as writer:
            for record in dataset.as_numpy_iterator():
                writer.write(record)


# ---- Tables.


class DatasetInitializer(lookup.KeyValueTensorInitializer):
    """Keys and values of a dataset of pairs, all read when it is made."""

    def __init__(self, dataset: Dataset) -> None:
        pairs = list(dataset.as_numpy_iterator())
        keys, values = ([pair[i] for pair in pairs] for i in (0, 1))
        self.keys = _vector(keys)
        self.values = _vector(values)


def _vector(items: list[Any]) -> Any:
    if items and isinstance(items[0], bytes):
        made = np.empty(len(items), object)
        made[:] = items
        return made
    return np.array(items)


def table_from_dataset(
    dataset: Dataset, num_oov_buckets: int = 0, vocab_size: Any = None,
    default_value: Any = None, hasher_spec: Any = None, key_dtype: Any = None,
    name: Any = None,
) -> Any:  # fmt: skip
    pairs = DatasetInitializer(
        dataset if vocab_size is None else dataset.take(vocab_size)
    )
    if num_oov_buckets:
        return lookup.StaticVocabularyTable(pairs, num_oov_buckets)
    return lookup.StaticHashTable(
        pairs, -1 if default_value is None else default_value
    )


def index_table_from_dataset(
    dataset: Dataset, num_oov_buckets: int = 0, vocab_size: Any = None,
    default_value: Any = -1, hasher_spec: Any = None, key_dtype: Any = None,
    name: Any = None,
) -> Any:  # fmt: skip
    pairs = dataset.enumerate().map(lambda i, key: (key, i))
    return table_from_dataset(pairs, num_oov_buckets, vocab_size, default_value)


# ---- Files.


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
    ds = CsvDataset(
        source, column_defaults, compression_type, None, header, field_delim,
        use_quote_delim, na_value,
        None if select_columns is None else wanted,
    )  # fmt: skip
    lines: Dataset = ds
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
    records = files.flat_map(lambda name: open_file(name, *extra))
    if shuffle:
        records = records.shuffle(shuffle_buffer_size, shuffle_seed)
    if num_epochs != 1:
        records = records.repeat(num_epochs)
    drop = drop_final_batch or num_epochs is None
    batches = records.batch(batch_size, drop_remainder=drop)
    parsed: Dataset = batches.apply(parse_example_dataset(features))
    if label_key is not None:
        key = label_key
        parsed = parsed.map(
            lambda x: ({k: v for k, v in x.items() if k != key}, x[key])
        )
    return parsed.prefetch(prefetch_buffer_size)


def __getattr__(name: str) -> Any:
    from penstock.compat.tf._missing import missing

    raise missing("data.experimental", name)
