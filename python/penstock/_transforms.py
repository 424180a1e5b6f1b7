"""What is done to elements: each method gives a new dataset."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock import _batching, _dtypes, _python, _reading, _rows, _spec
from penstock._errors import (
    InvalidArgumentError,
    InvalidTypeError,
)
from penstock._location import refused
from penstock._options import Options
from penstock._packed import SCAN
from penstock._pipeline import (
    UNKNOWN_CARDINALITY,
    Pipeline,
    ShardHint,
    append,
    count,
    flag,
    index,
    integer,
    whole,
)
from penstock._pipeline import seed as seed_field

if TYPE_CHECKING:
    from penstock._dataset import Dataset

_BOOL = _spec.TensorSpec((), _dtypes.bool_)


class Transforms(Pipeline):
    """The part of `Dataset` that makes datasets out of datasets."""

    # ---- By a function.

    def map(
        self,
        map_func: Callable[..., Any],
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        name: Any = None,
    ) -> Dataset:
        """Puts each element through a function.

        The function is called once, with symbolic values, and what it does to
        them runs in the engine. It may use arithmetic, comparisons, indexing,
        Penstock's functions and numpy's functions of the same names. Arrays,
        lists and dicts that it captures are taken as they are now.

        Any other function runs as Python, in processes beside the engine. The
        sizes of what it returns are unknown unless `ps.python_function` or
        `ps.ensure_shape` says them.

        Example:
            >>> list(ps.Dataset.range(3).map(lambda x: x * x + 1))
            [np.int64(1), np.int64(2), np.int64(5)]
            >>> pairs = ps.Dataset.from_tensor_slices(([1, 2], [10, 20]))
            >>> list(pairs.map(lambda a, b: {"sum": a + b}))
            [{'sum': np.int64(11)}, {'sum': np.int64(22)}]

        Args:
            map_func: Gets a tuple's components as arguments of their own, and
                any other element as one. Returns tensors, or tuples, dicts,
                named tuples or dataclasses of them; or a dataset, which is then
                inside the element, as a whole.
            num_parallel_calls: Threads that run the function at most, each
                over many elements at a time; as many as there are if left out.
            deterministic: Whether order is kept; yes if left out, unless the
                options say otherwise.
            name: Not used.
        """
        if map_func is _reading.read_file:
            from penstock._files import whole_files

            return whole_files(self._self())
        function = _python.use(map_func, self)
        return append(
            "map",
            {
                "function": function.message,
                **_parallelism(num_parallel_calls),
                **flag("deterministic", deterministic),
            },
            [self],
            function=function,
        )

    def filter(
        self, predicate: Callable[..., Any], name: Any = None
    ) -> Dataset:
        """Keeps the elements for which `predicate` is true.

        Example:
            >>> list(ps.Dataset.range(6).filter(lambda x: x % 2 == 0))
            [np.int64(0), np.int64(2), np.int64(4)]
        """
        function = _python.use(predicate, self, _BOOL)
        return append(
            "filter",
            {"predicate": function.message},
            [self],
            function=function,
        )

    def take_while(
        self, predicate: Callable[..., Any], name: Any = None
    ) -> Dataset:
        """Ends for good at the first element for which `predicate` is false.

        Example:
            >>> list(ps.Dataset.range(10).take_while(lambda x: x < 2))
            [np.int64(0), np.int64(1)]
        """
        function = _python.use(predicate, self, _BOOL)
        return append(
            "take_while",
            {"predicate": function.message},
            [self],
            function=function,
        )

    def flat_map(
        self, map_func: Callable[..., Any], name: Any = None
    ) -> Dataset:
        """Reads, one after another, the datasets that a function makes.

        Example:
            >>> ds = ps.Dataset.range(1, 4).flat_map(
            ...     lambda n: ps.Dataset.range(n).map(lambda i: 10 * n + i))
            >>> [int(x) for x in ds]
            [10, 20, 21, 30, 31, 32]
            >>> def letters(word):
            ...     for letter in word.decode():
            ...         yield letter
            >>> words = ps.Dataset.from_tensor_slices(["ab", "c"])
            >>> list(words.flat_map(letters))
            [b'a', b'b', b'c']

        Args:
            map_func: Makes a dataset of an element. If it cannot be recorded it
                runs as Python, and gives a generator, a list or tuple of
                elements, an array or a dataset.
            name: Not used.
        """
        source, function = _python.datasets(map_func, self, {})
        return append(
            "flat_map",
            {"function": function.message},
            [source],
            function=function,
        )

    def interleave(
        self,
        map_func: Callable[..., Any],
        cycle_length: int | None = None,
        block_length: int | None = None,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        name: Any = None,
    ) -> Dataset:
        """Reads in turn the datasets that a function makes.

        Example:
            >>> ds = ps.Dataset.range(3).interleave(
            ...     lambda x: ps.Dataset.from_tensors(x).repeat(2),
            ...     cycle_length=2, block_length=1)
            >>> [int(x) for x in ds]
            [0, 1, 0, 1, 2, 2]

        Args:
            map_func: Makes a dataset of an element; as in `flat_map`.
            cycle_length: Datasets open at once; 8 if left out. Decides the
                order, so it is the same on every machine and never tuned.
            block_length: Elements taken from each in turn; 1 if left out.
            num_parallel_calls: Datasets read at once; one if left out.
            deterministic: As in `map`.
            name: Not used.
        """
        source, function = _python.datasets(
            map_func, self, _parallelism(num_parallel_calls)
        )
        return append(
            "interleave",
            {
                "function": function.message,
                **_at_least_one("cycle_length", cycle_length),
                **_at_least_one("block_length", block_length),
                **_parallelism(num_parallel_calls),
                **flag("deterministic", deterministic),
            },
            [source],
            function=function,
        )

    def scan(
        self,
        initial_state: Any,
        scan_func: Callable[[Any, Any], Any],
        name: Any = None,
    ) -> Dataset:
        """A map with a state: (state, element) -> (state, output).

        Example:
            >>> ds = ps.Dataset.range(1, 5).scan(
            ...     np.int64(0), lambda total, x: (total + x, total + x))
            >>> [int(x) for x in ds]
            [1, 3, 6, 10]
        """
        state, function, captures = _folding(
            self, initial_state, scan_func, SCAN
        )
        return append(
            "scan",
            {"initial_state": state, "function": function.message},
            [self],
            function=function,
            captures=captures,
            types=_spec.types_of(initial_state),
        )

    # ---- By number.

    def repeat(self, count: Any = None, name: Any = None) -> Dataset:
        """The dataset `count` times over; for ever if None or -1.

        Example:
            >>> [int(x) for x in ps.Dataset.range(2).repeat(2)]
            [0, 1, 0, 1]
        """
        return append("repeat", _count(count, "repeat for ever"), [self])

    def take(self, count: Any, name: Any = None) -> Dataset:
        """The first `count` elements; all of them if -1.

        Example:
            >>> [int(x) for x in ps.Dataset.range(9).take(2)]
            [0, 1]
        """
        return append("take", _count(count, "take all"), [self])

    def skip(self, count: Any, name: Any = None) -> Dataset:
        """All but the first `count` elements; none of them if -1.

        Those are not computed, so what is wrong with them is not raised.

        Example:
            >>> [int(x) for x in ps.Dataset.range(4).skip(2)]
            [2, 3]
        """
        return append("skip", _count(count, "skip all"), [self])

    def shard(self, num_shards: Any, index: Any, name: Any = None) -> Dataset:
        """Every `num_shards`-th element, from number `index` on.

        Example:
            >>> [int(x) for x in ps.Dataset.range(7).shard(3, 1)]
            [1, 4]

        Args:
            num_shards: How many there are; or `ps.SHARD_HINT`: as many as
                workers that the pipeline is distributed to.
            index: Which one; with the hint, the worker's, whatever is given.
            name: Not used.
        """
        if isinstance(num_shards, ShardHint) or isinstance(index, ShardHint):
            return append("shard", {"is_by_worker": True}, [self])
        return append(
            "shard",
            {
                "num_shards": whole("num_shards", num_shards),
                "index": whole("index", index),
            },
            [self],
        )

    def enumerate(self, start: Any = 0, name: Any = None) -> Dataset:
        """Pairs each element with its number.

        Example:
            >>> ds = ps.Dataset.from_tensor_slices(["a", "b"]).enumerate()
            >>> list(ds)
            [(np.int64(0), b'a'), (np.int64(1), b'b')]
        """
        return append("enumerate", {"start": whole("start", start)}, [self])

    def shuffle(
        self,
        buffer_size: Any = None,
        seed: int | None = None,
        reshuffle_each_iteration: bool | None = None,
        name: Any = None,
    ) -> Dataset:
        """Gives elements in random order, drawn from a buffer.

        Example:
            >>> ds = ps.Dataset.range(5).shuffle(5, seed=1)
            >>> sorted(int(x) for x in ds)
            [0, 1, 2, 3, 4]

        Args:
            buffer_size: Elements to draw from; all if left out or
                `ps.UNKNOWN_CARDINALITY`.
            seed: The same seed gives the same orders; drawn if left out.
            reshuffle_each_iteration: Another order for each iterator and each
                repetition; yes if left out.
            name: Not used.
        """
        return append(
            "shuffle",
            {
                **_window(buffer_size),
                **seed_field(seed),
                "reshuffle_each_iteration": (
                    True
                    if reshuffle_each_iteration is None
                    else bool(reshuffle_each_iteration)
                ),
            },
            [self],
        )

    def concatenate(self, dataset: Pipeline, name: Any = None) -> Dataset:
        """The elements of `dataset` after these.

        Example:
            >>> a, b = ps.Dataset.range(2), ps.Dataset.range(7, 9)
            >>> [int(x) for x in a.concatenate(b)]
            [0, 1, 7, 8]
        """
        if not isinstance(dataset, Pipeline):
            raise refused(
                InvalidTypeError,
                f"concatenate takes a dataset; got {type(dataset).__name__}",
            )
        return append("concatenate", {}, [self, dataset])

    # ---- Batches.

    def batch(
        self,
        batch_size: Any,
        drop_remainder: bool = False,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        name: Any = None,
    ) -> Dataset:
        """Groups consecutive elements into batches of `batch_size`.

        Example:
            >>> list(ps.Dataset.range(5).batch(2))
            [array([0, 1]), array([2, 3]), array([4])]

        Args:
            batch_size: Elements per batch; at least 1.
            drop_remainder: Leaves out a last batch smaller than `batch_size`.
            num_parallel_calls: Not used: a batch costs one copy at most.
            deterministic: Not used: order is always kept.
            name: Not used.
        """
        return append(
            "batch",
            {
                "size": whole("batch_size", batch_size),
                "drop_remainder": bool(drop_remainder),
                **_parallelism(num_parallel_calls),
                **flag("deterministic", deterministic),
            },
            [self],
        )

    def padded_batch(
        self,
        batch_size: Any,
        padded_shapes: Any = None,
        padding_values: Any = None,
        drop_remainder: bool = False,
        name: Any = None,
    ) -> Dataset:
        """Groups elements of different shapes, filled up to a common one.

        Example:
            >>> ds = ps.Dataset.from_list([[1], [2, 3]]).padded_batch(2)
            >>> list(ds)
            [array([[1, 0],
                    [2, 3]])]

        Args:
            batch_size: Elements per batch.
            padded_shapes: A shape for each component; None or -1, or no shapes
                at all: the largest size in the batch.
            padding_values: A scalar for each component, or one for all; zero
                and the empty string if left out.
            drop_remainder: As in `batch`.
            name: Not used.
        """
        return append(
            "padded_batch",
            {
                "size": whole("batch_size", batch_size),
                "shapes": _batching.padded_shapes(
                    self.element_spec, padded_shapes
                ),
                "padding": _batching.padding(self.element_spec, padding_values),
                "drop_remainder": bool(drop_remainder),
            },
            [self],
        )

    def unbatch(self, name: Any = None) -> Dataset:
        """Splits elements along their first dimension.

        Example:
            >>> ds = ps.Dataset.from_tensors([[1, 2], [3, 4]]).unbatch()
            >>> list(ds)
            [array([1, 2]), array([3, 4])]
        """
        return append("unbatch", {}, [self])

    def rebatch(
        self,
        batch_size: int | Sequence[int],
        drop_remainder: bool = False,
        name: Any = None,
    ) -> Dataset:
        """Regroups batches to another size, or to several in turn.

        Example:
            >>> list(ps.Dataset.range(6).batch(4).rebatch([1, 2]))
            [array([0]), array([1, 2]), array([3]), array([4, 5])]
        """
        is_one = not isinstance(batch_size, (list, tuple, np.ndarray))
        many: Any = [batch_size] if is_one else batch_size
        sizes = [index("batch_size", size) for size in np.ravel(many).tolist()]
        return append(
            "rebatch",
            {"sizes": sizes, "drop_remainder": bool(drop_remainder)},
            [self],
        )

    # ---- How it runs.

    def prefetch(
        self, buffer_size: int | None = None, name: Any = None
    ) -> Dataset:
        """Keeps elements ready before they are asked for.

        Example:
            >>> len(ps.Dataset.range(3).prefetch(2))
            3

        Args:
            buffer_size: How many, exactly; left out, the engine chooses.
            name: Not used.
        """
        return append(
            "prefetch",
            integer("buffer_size", "buffer_size", buffer_size),
            [self],
        )

    def cache(self, filename: Any = "", name: Any = None) -> Dataset:
        """Keeps the elements of the first whole pass for later ones.

        In memory, iterators of this dataset share them; two calls of `cache` do
        not. In a file, whoever names the file shares them, in this process or
        another, also when the input is gone.

        Example:
            >>> ds = ps.Dataset.range(3).cache()
            >>> list(ds) == list(ds)
            True

        Args:
            filename: Where to keep them, "NAME.penstock"; in memory if empty.
                A second iterator that would write the file at the same time
                gets an `AlreadyExistsError`. What an unfinished pass wrote is
                discarded.
            name: Not used.
        """
        if not isinstance(filename, (str, os.PathLike)):
            raise refused(
                InvalidTypeError,
                f"filename must be a path; got {type(filename).__name__}",
            )
        return append("cache", {"filename": os.fspath(filename)}, [self])

    def ignore_errors(
        self, log_warning: bool = False, name: Any = None
    ) -> Dataset:
        """Leaves out the elements that are errors.

        Example:
            >>> ds = ps.Dataset.from_generator(
            ...     lambda: iter([1, "two", 3]),
            ...     output_signature=ps.TensorSpec((), np.int64))
            >>> [int(x) for x in ds.ignore_errors()]
            [1, 3]
        """
        return append(
            "ignore_errors", {"log_warning": bool(log_warning)}, [self]
        )

    def with_options(self, options: Options, name: Any = None) -> Dataset:
        """Sets options of the pipeline; those set later win.

        Example:
            >>> ds = ps.Dataset.range(3).with_options(ps.Options(run_ahead=0))
            >>> ds.options().run_ahead
            0
        """
        if not isinstance(options, Options):
            raise refused(
                InvalidTypeError,
                f"with_options takes ps.Options; got {type(options).__name__}",
            )
        return append(
            "with_options",
            {"options": options.to_json()},
            [self],
            options=options,
        )


def _parallelism(given: Any) -> dict[str, Any]:
    return integer("num_parallel_calls", "parallelism", given)


def _at_least_one(name: str, given: Any) -> dict[str, Any]:
    field = integer(name, name, given)
    # On the wire 0 means left out; the engine refuses -1 as it would refuse 0.
    return {name: field[name] or -1} if field else {}


def _count(given: Any, if_minus_one: str) -> dict[str, Any]:
    if isinstance(given, (int, np.integer)) and given < -1:
        raise refused(
            InvalidArgumentError,
            f"count must be at least 0, or -1 to {if_minus_one}; got {given}",
        )
    return count("count", given)


def _window(given: Any) -> dict[str, Any]:
    fields = count("buffer_size", given, (None, UNKNOWN_CARDINALITY))
    return {"window": fields["buffer_size"]} if fields else {}


def _folding(
    self: Pipeline, initial_state: Any, function: Any, how: str
) -> Any:
    """Initial state and function of scan and reduce."""
    state, captures = _rows.one_row(initial_state)
    structure = _spec.from_json(state["spec"], _spec.types_of(initial_state))
    recorded = _python.fold(function, self, how, initial_state, structure)
    return state, recorded, captures
