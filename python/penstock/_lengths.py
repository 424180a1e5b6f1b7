"""Batches of elements of different lengths, and boundaries between lengths."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock import _dtypes, _engine, _functions, _python, _recording, _spec
from penstock._batching import padded_shapes as shapes_field
from penstock._batching import padding as padding_field
from penstock._errors import InvalidArgumentError, InvalidTypeError
from penstock._location import refused
from penstock._pipeline import Pipeline, append, index, sample_of
from penstock._record import Recorded, record

if TYPE_CHECKING:
    from penstock._dataset import Dataset

_TOO_LONG = {
    "error": "TOO_LONG_IS_ERROR",
    "alone": "TOO_LONG_IS_ALONE",
    "drop": "TOO_LONG_IS_DROPPED",
}
_SAMPLE_ROWS = 10_000


class Lengths(Pipeline):
    """The part of `Dataset` that batches by length."""

    def bucket_by_sequence_length(
        self,
        element_length_func: Callable[..., Any] | None,
        bucket_boundaries: Iterable[int] | str,
        bucket_batch_sizes: Iterable[int] | int | None = None,
        padded_shapes: Any = None,
        padding_values: Any = None,
        pad_to_bucket_boundary: bool = False,
        no_padding: bool = False,
        drop_remainder: bool = False,
        name: Any = None,
        *,
        max_tokens: int | None = None,
        too_long: str = "error",
        shapes: int = 8,
        multiple_of: int = 1,
        sample_rows: int = _SAMPLE_ROWS,
    ) -> Dataset:
        """Batches elements of about one length, padded.

        Example:
            >>> ds = ps.Dataset.from_list([[1], [2, 3, 4], [5, 6], [7, 8, 9]])
            >>> list(ds.bucket_by_sequence_length(
            ...     lambda x: ps.size(x), [3], [2, 2]))
            [array([[1, 0],
                    [5, 6]]), array([[2, 3, 4],
                    [7, 8, 9]])]

            With a budget in place of sizes, and boundaries chosen by what is
            there:

            >>> ds = ps.Dataset.from_list([[1], [2, 3, 4], [5], [6, 7, 8]])
            >>> ds = ds.bucket_by_sequence_length(
            ...     len, "auto", max_tokens=6, shapes=2)
            >>> list(ds)
            [array([[2, 3, 4],
                    [6, 7, 8]]), array([[1],
                    [5]])]
            >>> "boundaries=[2, 4], batch_sizes=[6, 2, 1]" in ds.describe()
            True

        Args:
            element_length_func: The length of an element, an integer. `len` or
                None: its first dimension, as in `batch_by_tokens`.
            bucket_boundaries: Ascending; a bucket has lengths from one boundary
                (or 0) to the next, which is not in it. "auto": those that
                `ps.choose_boundaries` gives for the first elements. These are
                read now, once, without what shuffles, caches or repeats them,
                and the boundaries are then part of the pipeline as if you had
                written them.
            bucket_batch_sizes: Elements of a batch, for each bucket: one more
                than boundaries. A number: of all.
            padded_shapes: As in `padded_batch`.
            padding_values: As in `padded_batch`.
            pad_to_bucket_boundary: Pads unknown dimensions to the boundary less
                one, not to the largest in the batch. An element for which there
                is no boundary is then an error, in its batch's place.
            no_padding: Only groups: elements of a batch must have one shape.
            drop_remainder: Leaves out batches that are not full.
            name: Not used.
            max_tokens: In place of `bucket_batch_sizes`: what a batch may have,
                its elements times its longest. A bucket's batches have as many
                as fit if all are as long as the bucket allows; those of the
                last one, which allows any length, as many as fit.
            too_long: What becomes of an element longer than `max_tokens`:
                "error", "alone" (in a batch of its own) or "drop".
            shapes: Of "auto": boundaries, at most.
            multiple_of: Of "auto": what a boundary less one is a multiple of.
            sample_rows: Of "auto": how many elements are read.
        """
        length = _length(element_length_func, self)
        body: dict[str, Any] = {
            "length": length.message,
            "pad_to_boundary": bool(pad_to_bucket_boundary),
            "no_padding": bool(no_padding),
            "drop_remainder": bool(drop_remainder),
            "too_long": _too_long(too_long),
        }
        tokens = {}
        if max_tokens is not None:
            tokens["max_tokens"] = index("max_tokens", max_tokens)
        if isinstance(bucket_boundaries, str):
            if bucket_boundaries != "auto":
                raise refused(
                    InvalidArgumentError,
                    'bucket_boundaries must be integers or "auto"; got '
                    f"{bucket_boundaries!r}",
                )
            body["boundaries"] = _choose(
                _count(self, length, sample_rows),
                shapes,
                multiple_of,
                max_tokens,
            )
        else:
            body["boundaries"] = [
                index("bucket_boundaries", x) for x in bucket_boundaries
            ]
        body.update(tokens)
        if isinstance(bucket_batch_sizes, Iterable):
            body["batch_sizes"] = [
                index("bucket_batch_sizes", x) for x in bucket_batch_sizes
            ]
        elif bucket_batch_sizes is not None:
            size = index("bucket_batch_sizes", bucket_batch_sizes)
            body["batch_sizes"] = [size] * (len(body["boundaries"]) + 1)
        if not no_padding:
            body["shapes"] = shapes_field(self.element_spec, padded_shapes)
            body["padding"] = padding_field(self.element_spec, padding_values)
        return append(
            "bucket_by_sequence_length", body, [self], function=length
        )

    def batch_by_tokens(
        self,
        max_tokens: int,
        length_func: Callable[..., Any] | None = None,
        window: int | None = None,
        max_rows: int | None = None,
        padded_shapes: Any = None,
        padding_values: Any = None,
        too_long: str = "error",
        drop_remainder: bool = False,
    ) -> Dataset:
        """Padded batches of as many elements as fit `max_tokens`.

        What counts is what a batch has once it is padded: its elements times
        its longest.

        Example:
            >>> ds = ps.Dataset.from_list([[1], [2, 3], [4, 5, 6], [7], [8]])
            >>> list(ds.batch_by_tokens(4))
            [array([[1, 0],
                    [2, 3]]), array([[4, 5, 6]]), array([[7],
                    [8]])]

            With a window, elements of about one length come together:

            >>> list(ds.batch_by_tokens(4, window=5))
            [array([[1],
                    [7],
                    [8]]), array([[2, 3]]), array([[4, 5, 6]])]

        Args:
            max_tokens: At most so many in a batch; at least 1.
            length_func: The length of an element, an integer. `len` or None:
                its first dimension; of several components, the largest of those
                whose first dimension differs from element to element.
            window: Elements that are sorted by length before they are put
                together, window by window. A batch comes where its oldest
                element does. None: elements that follow one another.
            max_rows: Elements of a batch, at most.
            padded_shapes: As in `padded_batch`.
            padding_values: As in `padded_batch`.
            too_long: What becomes of an element longer than `max_tokens`:
                "error", "alone" (in a batch of its own) or "drop".
            drop_remainder: Leaves out a batch that has room left when the input
                ends.
        """
        length = _length(length_func, self)
        body: dict[str, Any] = {
            "length": length.message,
            "max_tokens": index("max_tokens", max_tokens),
            "too_long": _too_long(too_long),
            "shapes": shapes_field(self.element_spec, padded_shapes),
            "padding": padding_field(self.element_spec, padding_values),
            "drop_remainder": bool(drop_remainder),
        }
        if window is not None:
            body["window"] = index("window", window)
        if max_rows is not None:
            body["max_rows"] = index("max_rows", max_rows)
        return append("batch_by_tokens", body, [self], function=length)


def choose_boundaries(
    lengths: Any,
    length_func: Callable[..., Any] | None = None,
    *,
    shapes: int = 8,
    multiple_of: int = 1,
    max_tokens: int | None = None,
    sample_rows: int = _SAMPLE_ROWS,
) -> list[int]:
    """The bucket boundaries that waste least.

    They are the best there are for these lengths, by dynamic programming: what
    padding to a boundary less one comes to is least or, with `max_tokens`, the
    number of batches.

    Example:
        >>> ps.choose_boundaries([3, 4, 4, 5, 29, 31, 32], shapes=2)
        [6, 33]
        >>> ps.choose_boundaries({10: 500, 12: 100, 60: 3}, multiple_of=8)
        [17, 65]
        >>> ds = ps.Dataset.range(1, 100).map(lambda n: ps.arange(n))
        >>> ps.choose_boundaries(ds, shapes=3)
        [34, 67, 100]

    Args:
        lengths: Of elements: integers, or the number of elements by length; or
            a dataset, whose first elements are read, without what shuffles,
            caches or repeats them.
        length_func: Of a dataset: the length of an element, as in
            `batch_by_tokens`.
        shapes: Boundaries, at most.
        multiple_of: What a boundary less one is a multiple of, for hardware
            that is faster then.
        max_tokens: What a batch may have, its elements times what they are
            padded to. Longer elements are left out.
        sample_rows: Of a dataset: how many elements are read.
    """
    if isinstance(lengths, Pipeline):
        counts = _count(lengths, _length(length_func, lengths), sample_rows)
    elif isinstance(lengths, Mapping):
        counts = (
            [index("lengths", length) for length in lengths],
            [float(rows) for rows in lengths.values()],
        )
    else:
        counts = _unique(np.asarray(lengths))
    return _choose(counts, shapes, multiple_of, max_tokens)


def _too_long(given: Any) -> str:
    if isinstance(given, str) and given in _TOO_LONG:
        return _TOO_LONG[given]
    raise refused(
        InvalidArgumentError,
        f'too_long must be "error", "alone" or "drop"; got {given!r}',
    )


def _length(function: Any, dataset: Pipeline) -> Recorded:
    """The length of an element of `dataset`."""
    if function is not None and function is not len:
        integer = _spec.TensorSpec((), _dtypes.int64)
        return _python.use(function, dataset, integer)
    element = dataset.element_spec
    firsts = [
        (place, _first_of(leaf))
        for place, leaf in enumerate(_spec.flatten(element))
    ]
    places = tuple(place for place, first in firsts if first == "differs")
    if not places:  # all are of one length
        places = tuple(place for place, first in firsts if first == "known")
    if not places:
        raise refused(
            InvalidTypeError,
            "an element's length is its first dimension unless a function says "
            f"it; expected a component that has one, got {element}\n"
            "  Give a length function.",
        )

    def length(*parts: Any) -> Any:
        leaves = _spec.flatten(parts)
        longest = _functions.shape(leaves[places[0]])[0]
        for place in places[1:]:
            first = _functions.shape(leaves[place])[0]
            longest = _functions.maximum(longest, first)
        return longest

    return record(length, [element])


def _first_of(leaf: Any) -> str:
    """What is known of its first dimension before the value."""
    if not isinstance(leaf, _spec.TensorSpec) or leaf.shape == ():
        return "none"
    is_known = leaf.shape is not None and leaf.shape[0] is not None
    return "known" if is_known else "differs"


def _unique(lengths: np.ndarray[Any, Any]) -> tuple[list[int], list[float]]:
    if lengths.size > 0 and lengths.dtype.kind not in "iu":
        raise refused(
            InvalidTypeError,
            f"lengths must be integers; got {lengths.dtype}",
        )
    values, rows = np.unique(lengths, return_counts=True)
    return values.tolist(), rows.astype(float).tolist()


def _count(
    dataset: Pipeline, length: Recorded, sample_rows: Any
) -> tuple[list[int], list[float]]:
    """The lengths of the first elements, and how many elements have each."""
    if _recording.current() is not None:
        raise refused(
            InvalidArgumentError,
            "boundaries are chosen by reading elements, which a dataset made "
            "inside a function does not have yet; choose them before",
        )
    described = _engine.call("describe", {"plan": dataset._plan})
    if any(node["op"] == "received" for node in described["nodes"]):
        raise refused(
            InvalidArgumentError,
            "boundaries are chosen by reading elements, which a job's readers "
            "have once; choose them before distribute()",
        )
    body = {"function": length.message}
    first = sample_of(dataset).take(index("sample_rows", sample_rows))
    lengths = append("map", body, [first], function=length)
    # Those that fail do so again when they are read, where that is expected.
    found = [np.asarray(x) for x in lengths.ignore_errors().batch(1024)]
    if not found and next(iter(lengths), None) is None:
        raise refused(
            InvalidArgumentError,
            "boundaries are chosen from the lengths of elements; there is no "
            "element to read",
        )
    return _unique(np.concatenate(found))


def _choose(
    counts: tuple[list[int], list[float]],
    shapes: Any,
    multiple_of: Any,
    max_tokens: Any,
) -> list[int]:
    body: dict[str, Any] = {
        "lengths": counts[0],
        "rows": counts[1],
        "shapes": index("shapes", shapes),
        "multiple_of": index("multiple_of", multiple_of),
    }
    if max_tokens is not None:
        body["max_tokens"] = index("max_tokens", max_tokens)
    reply = _engine.call("choose_boundaries", body)
    return [int(boundary) for boundary in reply.get("boundaries", ())]
