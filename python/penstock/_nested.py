"""Datasets inside elements: what `window` gives, in functions and outside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from penstock import _captures, _chunk, _engine, _spec
from penstock._pipeline import append
from penstock._recording import Recording

if TYPE_CHECKING:
    from penstock._dataset import Dataset


class _Bytes:
    """An encoded chunk as it came: what captures are made of."""

    def __init__(self, data: bytes) -> None:
        self.size = len(data)
        self._data = data

    def write(self, out: Any) -> None:
        np.frombuffer(out, np.uint8)[:] = np.frombuffer(self._data, np.uint8)


def dataset_of(rows: bytes, element: Any) -> Dataset | None:
    """The dataset of an element that holds it; None in an error's place."""
    if not rows:
        return None
    layout = _chunk.read_layout(rows)
    message: dict[str, Any] = {
        "spec": _spec.to_json(element),
        "rows": layout.rows,
    }
    captures: list[_engine.Capture] = []
    if len(rows) <= _captures.INLINE_BYTES:
        message["chunk"] = _engine.to_base64(rows)
    else:
        capture = _captures.RowsCapture.make(_Bytes(rows))
        message["capture"] = capture.id
        captures.append(capture)
    return append(
        "rows", message, captures=captures, types=_spec.types_of(element)
    )


def read_records(records: Dataset, element: Any) -> Dataset:
    """The rows in a dataset of encoded chunks."""
    from penstock._symbol import Symbol

    def rows(record: Symbol) -> Dataset:
        return argument(record._recording, record._step, element)

    return records.flat_map(rows)


def argument(recording: Recording, step: int, element: Any) -> Dataset:
    """The dataset that a recorded function is called with."""
    return append(
        "nested_rows",
        {
            "rows": {"bound": recording.bind(step)},
            "spec": _spec.to_json(element),
        },
        types=_spec.types_of(element),
    )
