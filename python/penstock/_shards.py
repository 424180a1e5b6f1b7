"""Saved datasets of several files, and snapshots read in shards.

A file of records, each some rows of one shard as an encoded chunk, with the
number that a row has in the whole; and, for all, the shard of every row in
order.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock import _chunk, _dtypes, _functions, _python, _spec
from penstock._errors import (
    DataLossError,
    InvalidArgumentError,
    InvalidTypeError,
    ResourceExhaustedError,
)
from penstock._location import refused
from penstock._pipeline import Pipeline, append, value
from penstock._record import record
from penstock._writers import TFRecordWriter

if TYPE_CHECKING:
    from penstock._dataset import Dataset

Json = dict[str, Any]

# Rows of a record.
_ROWS = 64
_MAX_SHARDS = 1000
# Elements of a snapshot's shard, if no function says where they go.
_RUN = 1000
# No window of shards' numbers is full before its input ends.
_ENDLESS = 1 << 62
_ORDER = "order.npy"
_NUMBER = _spec.TensorSpec((), _dtypes.int64)
_TEXT = _spec.TensorSpec((), _dtypes.string)


def write(
    dataset: Dataset,
    folder: str,
    compression: str | None,
    shard_func: Callable[..., Any] | None,
) -> Json:
    """Writes the files; what their directory is to say of them."""
    pieces = _pieces(dataset, shard_func)
    writers: dict[int, TFRecordWriter] = {}
    order = np.zeros(0, np.int16)
    elements = 0
    with ExitStack() as stack:
        for shard, rows in pieces:
            writer = writers.get(int(shard))
            if writer is None:
                _check_shard(int(shard), len(writers))
                writer = stack.enter_context(
                    TFRecordWriter(_file(folder, int(shard)), compression)
                )
                writers[int(shard)] = writer
            writer.write(rows)
            numbers = _numbers(rows)
            elements += len(numbers)
            last = int(numbers.max())
            if last >= len(order):
                grown = np.zeros(2 * last + _ROWS, np.int16)
                grown[: len(order)] = order
                order = grown
            order[numbers] = int(shard)
    np.save(os.path.join(folder, _ORDER), order[:elements])
    return {
        "elements": elements,
        "shards": sorted(writers),
        "compression": compression,
    }


def _check_shard(shard: int, known: int) -> None:
    if not 0 <= shard < 1 << 15:
        raise refused(
            InvalidArgumentError,
            f"shard_func must give numbers from 0 to {(1 << 15) - 1}; got "
            f"{shard}",
        )
    if known == _MAX_SHARDS:
        raise refused(
            ResourceExhaustedError,
            f"a saved dataset may have {_MAX_SHARDS} files; shard_func gives "
            f"more. Take its numbers modulo {_MAX_SHARDS} or less.",
        )


def _pieces(dataset: Dataset, shard_func: Callable[..., Any] | None) -> Dataset:
    """Pairs of a shard and some rows of it, encoded."""
    from penstock._dataset import Dataset as Maker

    numbered = dataset.enumerate()
    is_tuple = _spec.is_plain_tuple(dataset.element_spec)
    given = _python.plain(shard_func)

    def shard(_: Any, element: Any, **rng: Any) -> Any:
        if given is None:
            return np.int64(0)
        return given(*element, **rng) if is_tuple else given(element, **rng)

    keys = _python.use(_python.like(shard_func, shard), numbered, _NUMBER)
    pairs = record(
        lambda key, rows: Maker.from_tensors((key, rows)), [_NUMBER, _TEXT]
    )
    return append(
        "group_by_window",
        {
            "key": keys.message,
            "reduce": pairs.message,
            "window_size": value("window_size", _ROWS),
        },
        [numbered],
        function=pairs,
        captures=keys.captures,
    )


def _numbers(rows: bytes) -> Any:
    """The numbers of encoded rows in the whole: their first component."""
    layout = _chunk.read_layout(rows)
    root = np.frombuffer(rows, np.uint8)
    return np.array(_chunk.column_rows(root, layout.columns[0], layout.rows))


def read(
    folder: str,
    message: Json,
    element: Any,
    reader_func: Callable[[Any], Any] | None,
) -> Dataset:
    """The dataset that `write` wrote and `message` tells of."""
    from penstock._dataset import Dataset as Maker

    try:
        shards = [int(shard) for shard in message["shards"]]
        compression = message["compression"]
        elements = int(message["elements"])
        order = np.load(os.path.join(folder, _ORDER))
        if len(order) != elements or not np.isin(order, shards).all():
            raise ValueError("another order")
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise refused(
            DataLossError, f"{folder} must be what save wrote; got {error}"
        ) from None
    files = [_file(folder, shard) for shard in shards]
    if not files:
        return _nothing(element)
    if reader_func is not None:
        names = Maker.from_tensor_slices(files)
        return _through(
            reader_func,
            names.map(lambda file: _rows(file, compression, element)),
            element,
        )
    choices = np.searchsorted(shards, order).astype(np.int64)
    return Maker.choose_from_datasets(
        [_rows(file, compression, element) for file in files],
        Maker.from_tensor_slices(choices),
    ).assert_cardinality(elements)


def read_one(
    file: str, element: Any, reader_func: Callable[[Any], Any]
) -> Dataset:
    """What `reader_func` makes of the only file of a saved dataset."""
    from penstock._dataset import Dataset as Maker
    from penstock._files import TFRecordDataset
    from penstock._nested import read_records

    names = Maker.from_tensor_slices([file])
    return _through(
        reader_func,
        names.map(lambda name: read_records(TFRecordDataset(name), element)),
        element,
    )


def read_kept(
    kept: Dataset,
    folder: str,
    reader_func: Callable[[Any], Any] | None,
    shard_func: Callable[..., Any] | None,
) -> Dataset:
    """What `reader_func` makes of the shards of a dataset kept in a file.

    The file is read once for each shard. Where elements belong is kept beside
    it: a function that draws numbers draws them once.
    """
    from penstock._dataset import Dataset as Maker

    element = kept.element_spec
    if shard_func is None:
        assert reader_func is not None
        return _through(reader_func, kept.window(_RUN), element)
    numbers = kept.map(shard_func)
    found = numbers.element_spec
    if (
        not isinstance(found, _spec.TensorSpec)
        or found.dtype not in (_dtypes.int32, _dtypes.int64)
        or found.shape not in ((), None)
    ):
        raise refused(
            InvalidTypeError,
            f"shard_func must return one number, int64; got {found}",
        )
    if reader_func is None:
        return kept
    numbers = numbers.map(
        lambda n: _functions.ensure_shape(_functions.cast(n, _dtypes.int64), [])
    )
    numbers = numbers.cache(
        os.path.join(folder, f"shards_{numbers.fingerprint()}")
    )
    # Windows that are left over come in the order of their keys, and only when
    # all is written: then it can be read.
    known = numbers.unique().group_by_window(
        lambda n: n, lambda _, window: window, _ENDLESS
    )
    pairs = Maker.zip(numbers, kept)

    def shard(number: Any) -> Dataset:
        return pairs.filter(lambda n, _: n == number).map(lambda _, x: x)

    return _through(reader_func, known.map(shard), element)


def _through(
    reader_func: Callable[[Any], Any], shards: Dataset, element: Any
) -> Dataset:
    made = reader_func(shards)
    if not isinstance(made, Pipeline) or made.element_spec != element:
        got = made.element_spec if isinstance(made, Pipeline) else made
        raise refused(
            InvalidTypeError,
            f"reader_func must return a dataset of what was saved, {element}; "
            f"got {got!r}",
        )
    return made  # type: ignore[return-value]


def _rows(file: Any, compression: str | None, element: Any) -> Dataset:
    from penstock._files import TFRecordDataset
    from penstock._nested import read_records

    records = TFRecordDataset(file, compression)
    return read_records(records, (_NUMBER, element)).map(
        lambda _, element: element
    )


def _nothing(element: Any) -> Dataset:
    """No element of the structure `element`."""
    leaves = [_spec.tensor_spec(leaf) for leaf in _spec.flatten(element)]
    columns = [
        _chunk.Column(
            leaf.dtype, _chunk.placeholder(leaf.dtype, leaf.shape)[None][:0]
        )
        for leaf in leaves
    ]
    from penstock._engine import to_base64

    chunk = _chunk.Encoded(columns, 0).to_bytes()
    return append(
        "rows",
        {
            "spec": _spec.to_json(element),
            "rows": 0,
            "chunk": to_base64(chunk),
        },
        types=_spec.types_of(element),
    )


def _file(folder: str, shard: int) -> str:
    return os.path.join(folder, f"shard_{shard:05d}.tfrecord")
