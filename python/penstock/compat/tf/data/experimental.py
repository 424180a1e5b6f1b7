"""`tf.data.experimental`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from penstock import _spec
from penstock._dataset import Dataset as Native
from penstock._errors import InvalidArgumentError, InvalidTypeError
from penstock._location import refused
from penstock._pipeline import (
    AUTOTUNE,
    INFINITE_CARDINALITY,
    SHARD_HINT,
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
from penstock.compat.tf.data import service
from penstock.compat.tf.data._readers import (
    CsvDataset,
    SqlDataset,
    make_batched_features_dataset,
    make_csv_dataset,
)

__all__ = [
    "AUTOTUNE",
    "INFINITE_CARDINALITY",
    "SHARD_HINT",
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
    "Reducer",
    "ServiceOptions",
    "SqlDataset",
    "TFRecordWriter",
    "ThreadingOptions",
    "assert_cardinality",
    "at",
    "bucket_by_sequence_length",
    "cardinality",
    "choose_from_datasets",
    "copy_to_device",
    "dense_to_ragged_batch",
    "dense_to_sparse_batch",
    "enumerate_dataset",
    "from_list",
    "get_next_as_optional",
    "get_single_element",
    "get_structure",
    "group_by_reducer",
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
    "prefetch_to_device",
    "rejection_resample",
    "sample_from_datasets",
    "save",
    "scan",
    "service",
    "shuffle_and_repeat",
    "snapshot",
    "table_from_dataset",
    "take_while",
    "unbatch",
    "unique",
]

Apply = Callable[[Dataset], Dataset]

# No window is full before its input ends.
_ENDLESS = 1 << 62


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


class Reducer:
    """How the elements of a key become one: see `group_by_reducer`."""

    def __init__(
        self, init_func: Any, reduce_func: Any, finalize_func: Any
    ) -> None:
        self.init_func = init_func
        self.reduce_func = reduce_func
        self.finalize_func = finalize_func


def group_by_reducer(key_func: Any, reducer: Reducer) -> Apply:
    """For each key, in order, what a reducer makes of its elements.

    The elements are held until the end; functions of the reducer are Python.

    Example:
        >>> count = tf.data.experimental.Reducer(
        ...     init_func=lambda key: np.int64(0),
        ...     reduce_func=lambda count, x: count + 1,
        ...     finalize_func=lambda count: count)
        >>> ds = tf.data.Dataset.from_tensor_slices([7, 7, 3, 7])
        >>> ds = ds.apply(tf.data.experimental.group_by_reducer(
        ...     lambda x: tf.cast(x, tf.int64), count))
        >>> [int(x) for x in ds]
        [1, 3]
    """
    if not isinstance(reducer, Reducer):
        raise refused(
            InvalidTypeError, f"reducer must be a Reducer; got {reducer!r}"
        )

    def reduced(key: Any, window: Dataset) -> Dataset:
        first = reducer.init_func(key)
        state = window.reduce(first, reducer.reduce_func)
        if _spec.is_plain_tuple(state):
            return Dataset.from_tensors(reducer.finalize_func(*state))
        return Dataset.from_tensors(reducer.finalize_func(state))

    return lambda ds: ds.group_by_window(key_func, reduced, _ENDLESS)


def copy_to_device(target_device: Any, source_device: Any = "/cpu:0") -> Apply:
    """Nothing: elements are arrays of the host."""
    return lambda ds: ds


def prefetch_to_device(device: Any, buffer_size: Any = None) -> Apply:
    """`prefetch`: elements are arrays of the host."""
    return lambda ds: ds.prefetch(buffer_size)


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


def __getattr__(name: str) -> Any:
    from penstock.compat.tf._missing import missing

    raise missing("data.experimental", name)
