"""`tf.data.Dataset`: a Penstock dataset whose values are tensors."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from penstock import _spec
from penstock._dataset import Dataset as Native
from penstock._errors import InvalidTypeError
from penstock._iterator import Iterator as NativeIterator
from penstock._location import refused
from penstock._options import Options as NativeOptions
from penstock._public import publish
from penstock._symbol import Symbol
from penstock.compat.tf import _arrays as arrays
from penstock.compat.tf import _reading, _seeds
from penstock.compat.tf._boundary import (
    RaggedTensorSpec,
    SparseTensorSpec,
    _map,
    adapt,
    enter,
    enter_spec,
    leave_element,
    leave_spec,
    plain,
)
from penstock.compat.tf._iterator import Iterator
from penstock.compat.tf._options import Options
from penstock.compat.tf._tensor import Tensor
from penstock.compat.tf._types import TensorShape, as_dtype


def _shapes(given: Any) -> Any:
    """Shapes with lists of sizes in place of TensorShapes."""
    return _map(
        given,
        lambda s: isinstance(s, (TensorShape, Tensor, list)),
        lambda s: (
            s.dims
            if isinstance(s, TensorShape)
            else (np.asarray(s).tolist() if isinstance(s, Tensor) else s)
        ),
    )


class Dataset:
    """An input pipeline with `tf.data.Dataset`'s methods.

    Example:
        >>> ds = tf.data.Dataset.from_tensor_slices([1, 2, 3])
        >>> ds = ds.map(lambda x: x / 2).batch(2)
        >>> for batch in ds:
        ...     print(batch)
        tf.Tensor([0.5 1. ], shape=(2,), dtype=float64)
        tf.Tensor([1.5], shape=(1,), dtype=float64)
    """

    _ds: Native
    _options: Options

    def __init__(self) -> None:
        raise TypeError(
            "datasets are made by functions such as "
            "tf.data.Dataset.from_tensor_slices"
        )

    @staticmethod
    def _of(native: Any, *inputs: Dataset) -> Dataset:
        made = Dataset.__new__(Dataset)
        made._become(native, inputs)
        return made

    def _become(self, native: Any, inputs: Iterable[Dataset] = ()) -> None:
        self._ds = native
        self._options = Options()
        for each in inputs:
            self._options = self._options.merge(each._options)

    def _then(self, native: Any) -> Dataset:
        return Dataset._of(native, self)

    @property
    def native(self) -> Native:
        """The same pipeline as a `ps.Dataset`: its elements are arrays."""
        return self._ds

    # ---- Sources.

    @staticmethod
    def from_tensors(tensors: Any, name: Any = None) -> Dataset:
        return Dataset._of(Native.from_tensors(leave_element(tensors)))

    @staticmethod
    def from_tensor_slices(tensors: Any, name: Any = None) -> Dataset:
        return Dataset._of(Native.from_tensor_slices(leave_element(tensors)))

    @staticmethod
    def from_generator(
        generator: Callable[..., Any], output_types: Any = None,
        output_shapes: Any = None, args: Any = None,
        output_signature: Any = None, name: Any = None,
    ) -> Dataset:  # fmt: skip
        signature = output_signature
        return Dataset._of(
            Native.from_generator(
                _leaving(generator) if _has_composite(signature) else generator,
                output_types,
                _shapes(output_shapes),
                None if args is None else tuple(map(plain, args)),
                None if signature is None else leave_spec(signature),
            )
        )

    @staticmethod
    def range(*args: Any, output_type: Any = "int64", **_: Any) -> Dataset:
        made = Native.range(*map(plain, args), output_type=output_type)
        return Dataset._of(made)

    @staticmethod
    def counter(
        start: Any = 0, step: Any = 1, dtype: Any = "int64", name: Any = None
    ) -> Dataset:
        made = Native.counter(plain(start), plain(step), as_dtype(dtype))
        return Dataset._of(made)

    @staticmethod
    def random(
        seed: Any = None, rerandomize_each_iteration: Any = None,
        name: Any = None,
    ) -> Dataset:  # fmt: skip
        made = Native.random(_seed(seed), rerandomize_each_iteration)
        return Dataset._of(made)

    @staticmethod
    def list_files(
        file_pattern: Any, shuffle: Any = None, seed: Any = None,
        name: Any = None,
    ) -> Dataset:  # fmt: skip
        """The names of files; they are looked for here and now, as by tf."""
        patterns = plain(file_pattern)
        if isinstance(patterns, Symbol):
            made = Native.list_files(patterns, shuffle, _seed(seed))
            return Dataset._of(made)
        names = np.array(list(Native.list_files(patterns, False)), object)
        made = Native.from_tensor_slices(names)
        if shuffle is None or shuffle:
            made = made.shuffle(len(names), _seed(seed))
        return Dataset._of(made)

    @staticmethod
    def zip(*args: Any, datasets: Any = None, name: Any = None) -> Dataset:
        def native(structure: Any) -> Any:
            return _map(structure, lambda _: False, _native)

        given = args if datasets is None else (datasets,)
        inputs = [d for d in _spec.flatten(given) if isinstance(d, Dataset)]
        if datasets is not None:
            made = Native.zip(*map(native, args), datasets=native(datasets))
        else:
            made = Native.zip(*map(native, args))
        return Dataset._of(made, *inputs)

    @staticmethod
    def sample_from_datasets(
        datasets: Any, weights: Any = None, seed: Any = None,
        stop_on_empty_dataset: bool = False,
        rerandomize_each_iteration: Any = None,
    ) -> Dataset:  # fmt: skip
        inputs = list(datasets)
        if isinstance(weights, Dataset):
            weights = weights._ds
        return Dataset._of(
            Native.sample_from_datasets(
                list(map(_native, inputs)),
                plain(weights),
                _seed(seed),
                stop_on_empty_dataset,
                rerandomize_each_iteration,
            ),
            *inputs,
        )

    @staticmethod
    def choose_from_datasets(
        datasets: Any, choice_dataset: Any, stop_on_empty_dataset: bool = True
    ) -> Dataset:
        inputs = list(datasets)
        made = Native.choose_from_datasets(
            list(map(_native, inputs)),
            _native(choice_dataset),
            stop_on_empty_dataset,
        )
        return Dataset._of(made, *inputs)

    @staticmethod
    def load(
        path: Any, element_spec: Any = None, compression: Any = None,
        reader_func: Any = None, wait: bool = False,
    ) -> Dataset:  # fmt: skip
        spec = None if element_spec is None else leave_spec(element_spec)
        _compression(compression)
        reader = None if reader_func is None else adapt(reader_func)
        return Dataset._of(Native.load(_path(path), spec, reader_func=reader))

    # ---- By a function.

    def map(
        self, map_func: Any, num_parallel_calls: Any = None,
        deterministic: Any = None, synchronous: Any = None,
        use_unbounded_threadpool: bool = False, name: Any = None,
    ) -> Dataset:  # fmt: skip
        """Puts each element through a function.

        One that decides by a tensor's value, or uses other libraries, runs as
        Python, in processes beside the engine.

        Example:
            >>> def halve(x):
            ...     if x % 2 == 0:
            ...         return x // 2
            ...     return x
            >>> ds = tf.data.Dataset.range(4).map(halve)
            >>> list(ds.as_numpy_iterator())
            [np.int64(0), np.int64(1), np.int64(1), np.int64(3)]
        """
        parallel = plain(num_parallel_calls)
        return self._then(
            _reading.map_with_files(self._ds, map_func, parallel, deterministic)
        )

    def filter(self, predicate: Any, name: Any = None) -> Dataset:
        return self._then(self._ds.filter(adapt(predicate)))

    def take_while(self, predicate: Any, name: Any = None) -> Dataset:
        return self._then(self._ds.take_while(adapt(predicate)))

    def flat_map(self, map_func: Any, name: Any = None) -> Dataset:
        return self._then(self._ds.flat_map(adapt(map_func)))

    def interleave(
        self, map_func: Any, cycle_length: Any = None,
        block_length: Any = None, num_parallel_calls: Any = None,
        deterministic: Any = None, name: Any = None,
    ) -> Dataset:  # fmt: skip
        return self._then(
            self._ds.interleave(
                adapt(map_func),
                plain(cycle_length),
                plain(block_length),
                plain(num_parallel_calls),
                deterministic,
            )
        )

    def scan(
        self, initial_state: Any, scan_func: Any, name: Any = None
    ) -> Dataset:
        state = leave_element(initial_state)
        return self._then(self._ds.scan(state, adapt(scan_func)))

    def reduce(
        self, initial_state: Any, reduce_func: Any, name: Any = None
    ) -> Any:
        self._check_is_ready("reduce")
        state = leave_element(initial_state)
        return enter(self._ds.reduce(state, adapt(reduce_func)))

    def group_by_window(
        self, key_func: Any, reduce_func: Any, window_size: Any = None,
        window_size_func: Any = None, name: Any = None,
    ) -> Dataset:  # fmt: skip
        sizes = None if window_size_func is None else adapt(window_size_func)
        return self._then(
            self._ds.group_by_window(
                adapt(key_func), adapt(reduce_func), plain(window_size), sizes
            )
        )

    def bucket_by_sequence_length(
        self, element_length_func: Any, bucket_boundaries: Any,
        bucket_batch_sizes: Any, padded_shapes: Any = None,
        padding_values: Any = None, pad_to_bucket_boundary: bool = False,
        no_padding: bool = False, drop_remainder: bool = False,
        name: Any = None,
    ) -> Dataset:  # fmt: skip
        return self._then(
            self._ds.bucket_by_sequence_length(
                adapt(element_length_func),
                bucket_boundaries,
                bucket_batch_sizes,
                _shapes(padded_shapes),
                _paddings(padding_values),
                pad_to_bucket_boundary,
                no_padding,
                drop_remainder,
            )
        )

    def rejection_resample(
        self, class_func: Any, target_dist: Any, initial_dist: Any = None,
        seed: Any = None, name: Any = None,
    ) -> Dataset:  # fmt: skip
        return self._then(
            self._ds.rejection_resample(
                adapt(class_func),
                np.asarray(target_dist, np.float64),
                None
                if initial_dist is None
                else np.asarray(initial_dist, np.float64),
                _seed(seed),
            )
        )

    def apply(self, transformation_func: Any) -> Any:
        made = transformation_func(self)
        if not isinstance(made, Dataset):
            raise refused(
                InvalidTypeError,
                "the function of apply must return a Dataset; got "
                f"{type(made).__name__}",
            )
        return made

    # ---- By number.

    def repeat(self, count: Any = None, name: Any = None) -> Dataset:
        return self._then(self._ds.repeat(plain(count)))

    def take(self, count: Any, name: Any = None) -> Dataset:
        return self._then(self._ds.take(plain(count)))

    def skip(self, count: Any, name: Any = None) -> Dataset:
        return self._then(self._ds.skip(plain(count)))

    def shard(self, num_shards: Any, index: Any, name: Any = None) -> Dataset:
        return self._then(self._ds.shard(plain(num_shards), plain(index)))

    def enumerate(self, start: Any = 0, name: Any = None) -> Dataset:
        return self._then(self._ds.enumerate(plain(start)))

    def shuffle(
        self, buffer_size: Any, seed: Any = None,
        reshuffle_each_iteration: Any = True, name: Any = None,
    ) -> Dataset:  # fmt: skip
        return self._then(
            self._ds.shuffle(
                plain(buffer_size), _seed(seed), reshuffle_each_iteration
            )
        )

    def concatenate(self, dataset: Any, name: Any = None) -> Dataset:
        made = self._ds.concatenate(_native(dataset))
        return Dataset._of(made, self, dataset)

    def unique(self, name: Any = None) -> Dataset:
        return self._then(self._ds.unique())

    # ---- Batches.

    def batch(
        self, batch_size: Any, drop_remainder: bool = False,
        num_parallel_calls: Any = None, deterministic: Any = None,
        name: Any = None,
    ) -> Dataset:  # fmt: skip
        return self._then(
            self._ds.batch(
                plain(batch_size),
                bool(plain(drop_remainder)),
                plain(num_parallel_calls),
                deterministic,
            )
        )

    def padded_batch(
        self, batch_size: Any, padded_shapes: Any = None,
        padding_values: Any = None, drop_remainder: bool = False,
        name: Any = None,
    ) -> Dataset:  # fmt: skip
        return self._then(
            self._ds.padded_batch(
                plain(batch_size),
                _shapes(padded_shapes),
                _paddings(padding_values),
                bool(plain(drop_remainder)),
            )
        )

    def unbatch(self, name: Any = None) -> Dataset:
        return self._then(self._ds.unbatch())

    def rebatch(
        self, batch_size: Any, drop_remainder: bool = False, name: Any = None
    ) -> Dataset:
        return self._then(self._ds.rebatch(plain(batch_size), drop_remainder))

    def ragged_batch(
        self, batch_size: Any, drop_remainder: bool = False,
        row_splits_dtype: Any = "int64", name: Any = None,
    ) -> Dataset:  # fmt: skip
        return self._then(
            self._ds.ragged_batch(
                plain(batch_size), drop_remainder, as_dtype(row_splits_dtype)
            )
        )

    def sparse_batch(
        self, batch_size: Any, row_shape: Any, name: Any = None
    ) -> Dataset:
        shape = tuple(TensorShape(row_shape))
        return self._then(self._ds.sparse_batch(plain(batch_size), shape))

    def window(
        self, size: Any, shift: Any = None, stride: Any = 1,
        drop_remainder: bool = False, name: Any = None,
    ) -> Dataset:  # fmt: skip
        return self._then(
            self._ds.window(
                plain(size), plain(shift), plain(stride), drop_remainder
            )
        )

    # ---- How it runs, and where it is kept.

    def prefetch(self, buffer_size: Any = None, name: Any = None) -> Dataset:
        return self._then(self._ds.prefetch(plain(buffer_size)))

    def cache(self, filename: Any = "", name: Any = None) -> Dataset:
        return self._then(self._ds.cache(_path(filename)))

    def ignore_errors(
        self, log_warning: bool = False, name: Any = None
    ) -> Dataset:
        return self._then(self._ds.ignore_errors(log_warning))

    def save(
        self, path: Any, compression: Any = None, shard_func: Any = None,
        checkpoint_args: Any = None,
    ) -> None:  # fmt: skip
        if checkpoint_args is not None:
            raise NotImplementedError(
                "save: checkpoint_args is not offered; a save that was "
                "stopped begins again"
            )
        shard = None if shard_func is None else adapt(shard_func)
        self._ds.save(_path(path), _compression(compression), shard)

    def snapshot(
        self, path: Any, compression: Any = "AUTO", reader_func: Any = None,
        shard_func: Any = None, name: Any = None,
    ) -> Dataset:  # fmt: skip
        _compression(compression)
        reader = None if reader_func is None else adapt(reader_func)
        shard = None if shard_func is None else adapt(shard_func)
        return self._then(self._ds.snapshot(_path(path), reader, shard))

    def with_options(self, options: Options, name: Any = None) -> Dataset:
        if not isinstance(options, Options):
            raise refused(
                InvalidTypeError,
                f"with_options takes tf.data.Options; got {options!r}",
            )
        given = options.to_native()
        made = self._ds
        if given != NativeOptions():
            made = made.with_options(given)
        new = self._then(made)
        new._options = self._options.merge(options)
        return new

    def options(self) -> Options:
        return Options().merge(self._options)

    # ---- What is asked of it.

    def _check_is_ready(self, what: str) -> None:
        """Refuses a dataset that has elements only when a function has."""
        if self._ds._recording is not None:
            arrays.python_only(what, "there are elements only when it runs")

    def __iter__(self) -> Iterator:
        self._check_is_ready("iteration over a dataset")
        return Iterator(iter(self._ds), self.element_spec)

    def as_numpy_iterator(self) -> NativeIterator:
        return iter(self._ds)

    @property
    def element_spec(self) -> Any:
        return enter_spec(self._ds.element_spec)

    def cardinality(self, name: Any = None) -> Tensor:
        return Tensor(np.array(self._ds.cardinality(), np.int64))

    def get_single_element(self, name: Any = None) -> Any:
        self._check_is_ready("get_single_element")
        return enter(self._ds.get_single_element())

    def fingerprint(self) -> Tensor:
        """A name for what the pipeline computes, as a string."""
        return Tensor(np.array(self._ds.fingerprint().encode(), object))

    def __len__(self) -> int:
        return len(self._ds)

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"<Dataset element_spec={self.element_spec}>"


publish(Dataset, "Dataset")


def _has_composite(signature: Any) -> bool:
    return any(
        isinstance(leaf, (RaggedTensorSpec, SparseTensorSpec))
        for leaf in _spec.flatten(signature)
    )


def _leaving(generator: Callable[..., Any]) -> Callable[..., Any]:
    """A generator whose ragged and sparse tensors Penstock takes."""

    @functools.wraps(generator)
    def elements(*args: Any) -> Any:
        for element in generator(*args):
            yield leave_element(element)

    return elements


def _native(dataset: Any) -> Any:
    return dataset._ds if isinstance(dataset, Dataset) else dataset


def _path(given: Any) -> Any:
    path = plain(given)
    return path.decode() if isinstance(path, bytes) else path


def _compression(given: Any) -> str | None:
    """What Penstock calls the compression of saved elements."""
    names = {None: None, "": None, "NONE": None, "AUTO": None, "SNAPPY": None}
    word = plain(given)
    found = word.decode() if isinstance(word, bytes) else word
    return names.get(found, found)


def _seed(seed: Any) -> Any:
    return _seeds.of_pipeline(plain(seed))


def _paddings(given: Any) -> Any:
    return _map(given, lambda v: isinstance(v, Tensor), plain)
