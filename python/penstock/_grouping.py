"""Elements put together by place and by key."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from penstock import _dtypes, _python, _spec
from penstock._batching import padding as padding_field
from penstock._errors import InvalidTypeError
from penstock._location import refused
from penstock._pipeline import Pipeline, append, index, value
from penstock._record import Recorded, record

if TYPE_CHECKING:
    from penstock._dataset import Dataset


class Grouping(Pipeline):
    """The part of `Dataset` that puts elements into groups."""

    def window(
        self,
        size: Any,
        shift: Any = None,
        stride: Any = 1,
        drop_remainder: bool = False,
        name: Any = None,
    ) -> Dataset:
        """Datasets of consecutive elements, one every `shift` elements.

        An element of tuples or dicts gives tuples or dicts of datasets.

        Example:
            >>> for window in ps.Dataset.range(5).window(3, shift=2):
            ...     print([int(x) for x in window])
            [0, 1, 2]
            [2, 3, 4]
            [4]
            >>> ds = ps.Dataset.range(5).window(3, shift=1, drop_remainder=True)
            >>> list(ds.flat_map(lambda window: window.batch(3)))
            [array([0, 1, 2]), array([1, 2, 3]), array([2, 3, 4])]

        Args:
            size: Elements in a window.
            shift: Elements from one window's start to the next; `size` if left
                out.
            stride: Elements from one to the next within a window.
            drop_remainder: Leaves out windows with less than `size` elements.
            name: Not used.
        """
        body = {
            "size": value("size", size),
            "stride": value("stride", stride),
            "drop_remainder": bool(drop_remainder),
        }
        if shift is not None:
            body["shift"] = value("shift", shift)
        return append("window", body, [self])

    def group_by_window(
        self,
        key_func: Callable[..., Any],
        reduce_func: Callable[..., Any],
        window_size: Any = None,
        window_size_func: Callable[[Any], Any] | None = None,
        name: Any = None,
    ) -> Dataset:
        """Groups elements by a key; each full group becomes a dataset.

        A group goes on as soon as it has its elements; those left when the
        input ends follow by ascending key.

        Example:
            >>> ds = ps.Dataset.range(7).group_by_window(
            ...     key_func=lambda x: x % 2,
            ...     reduce_func=lambda key, group: group.batch(3),
            ...     window_size=3)
            >>> list(ds)
            [array([0, 2, 4]), array([1, 3, 5]), array([6])]

        Args:
            key_func: The group of an element, an integer.
            reduce_func: Makes a dataset of a key and the dataset of a group's
                elements. If it cannot be recorded it runs as Python, as in
                `flat_map`, with an engine of that process's own.
            window_size: Elements that a group has.
            window_size_func: The same by key, in place of `window_size`.
            name: Not used.
        """
        if (window_size is None) == (window_size_func is None):
            raise refused(
                InvalidTypeError,
                "group_by_window takes either window_size or "
                "window_size_func; got "
                f"{'neither' if window_size is None else 'both'}",
            )
        key = _spec.TensorSpec((), _dtypes.int64)
        group = _spec.DatasetSpec(self.element_spec)
        keys = _python.use(key_func, self, key)
        reduce = _python.record_datasets(reduce_func, [key, group])
        cause = None
        if not isinstance(reduce, Recorded):
            # Groups go on as they are, to a map that calls the function.
            cause = reduce
            text = _spec.TensorSpec((), _dtypes.string)
            reduce = record(_key_and_rows, [key, text])
        body = {"key": keys.message, "reduce": reduce.message}
        captures = [*keys.captures]
        if window_size_func is None:
            body["window_size"] = value("window_size", window_size)
        else:
            sizes = _python.use_key(window_size_func, key, key)
            body["window_size_function"] = sizes.message
            captures += sizes.captures
        groups = append(
            "group_by_window", body, [self], function=reduce, captures=captures
        )
        if cause is None:
            return groups
        rows, itself = _python.rows_of(
            reduce_func, groups, (key, group), cause, {}
        )
        return append(
            "flat_map", {"function": itself.message}, [rows], function=itself
        )

    # ---- Batches of sizes that differ.

    def ragged_batch(
        self,
        batch_size: Any,
        drop_remainder: bool = False,
        row_splits_dtype: Any = _dtypes.int64,
        name: Any = None,
    ) -> Dataset:
        """Groups elements of different sizes without padding.

        Dimensions that are not known before the value become ragged; a
        component whose shape is known is stacked as `batch` does.

        Example:
            >>> ds = ps.Dataset.from_list([[1], [2, 3]]).ragged_batch(2)
            >>> next(iter(ds))
            Ragged(values=array([1, 2, 3]), row_splits=array([0, 1, 3]))

        Args:
            batch_size: Elements per batch.
            drop_remainder: Leaves out a last batch that is not full.
            row_splits_dtype: int64 or int32.
            name: Not used.
        """
        return append(
            "ragged_batch",
            {
                "size": value("batch_size", batch_size),
                "drop_remainder": bool(drop_remainder),
                "row_splits_dtype": _dtypes.DType.of(
                    row_splits_dtype
                ).wire_name,
            },
            [self],
        )

    def sparse_batch(
        self, batch_size: Any, row_shape: Any, name: Any = None
    ) -> Dataset:
        """Groups elements of different sizes into sparse tensors.

        Example:
            >>> ds = ps.Dataset.from_list([[7], [8, 9]]).sparse_batch(2, (4,))
            >>> batch = next(iter(ds))
            >>> batch.indices.tolist(), batch.values, batch.dense_shape
            ([[0, 0], [1, 0], [1, 1]], array([7, 8, 9]), array([2, 4]))

        Args:
            batch_size: Elements per batch.
            row_shape: The shape of each row; None where it is the largest in
                the batch. An element that is larger is a `DataLossError`.
            name: Not used.
        """
        if row_shape is None or not isinstance(row_shape, (tuple, list)):
            raise refused(
                InvalidTypeError,
                f"row_shape must be a tuple of sizes; got {row_shape!r}",
            )
        return append(
            "sparse_batch",
            {
                "size": value("batch_size", batch_size),
                "row_shape": _spec.shape_to_json(row_shape),
            },
            [self],
        )

    def pack(
        self,
        length: int,
        open_rows: int | None = None,
        split: bool = False,
        padding_values: Any = None,
        drop_remainder: bool = False,
    ) -> Dataset:
        """Puts sequences together into rows of one length.

        Gives dicts: "values" has the structure of the elements, with rows of
        `length` items; "segment_ids" says which sequence of its row an item is
        of, from 1 on, and 0 for padding; "positions" its place in it.

        Example:
            >>> ds = ps.Dataset.from_list([[1, 2, 3], [4, 5], [6]]).pack(4)
            >>> for row in ds:
            ...     print(row["values"], row["segment_ids"], row["positions"])
            [1 2 3 6] [1 1 1 2] [0 1 2 0]
            [4 5 0 0] [1 1 0 0] [0 1 0 0]

        Args:
            length: Items per row.
            open_rows: Rows to look for room in, the oldest first; 16 if left
                out. When none has room, the oldest goes on as it is.
            split: Puts sequences one behind another instead, and cuts them
                where a row ends. Otherwise a sequence longer than `length` is
                an error in its place.
            padding_values: A scalar for each component; zero if left out.
            drop_remainder: Leaves out the rows that are open at the end.
        """
        body: dict[str, Any] = {
            "length": index("length", length),
            "split": bool(split),
            "padding": padding_field(self.element_spec, padding_values),
            "drop_remainder": bool(drop_remainder),
        }
        if open_rows is not None:
            # On the wire 0 means left out; the engine refuses -1 as well.
            body["open_rows"] = index("open_rows", open_rows) or -1
        return append("pack", body, [self])


def _key_and_rows(key: Any, rows: Any) -> Any:
    """A group as an element: its key, and its rows as they are encoded."""
    from penstock._dataset import Dataset

    return Dataset.from_tensors((key, rows))
