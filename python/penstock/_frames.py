"""Frames: chunks in the engine's shared memory, as arrays that lie on them.

An array handed out is a view whose base is the frame's root, one array over the
frame's bytes. When the root goes, no array lies on the frame any more, and its
number is queued for the engine, which may then write over it.

Held arrays must not stop the engine, so the rows of some frames are copied
instead: of those that would make more than half of the mapped memory be held.
Small rows (under 64 KiB) that share a frame with more than seven others may
hold an eighth, since keeping one keeps them all. A program that drops its
batches as it goes holds a frame or two, and copies nothing.
"""

from __future__ import annotations

import mmap
import os
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from penstock import _chunk, _dtypes, _spec
from penstock._chunk import Array, RowError

_SMALL_ROW_BYTES = 1 << 16
_MANY_ROWS = 9
# Layouts remembered of one iterator; batches of one pipeline rarely have more.
_MAX_LAYOUTS = 256
# Segments from here on are workers'.
_FIRST_LENT = 1 << 31
_MAX_LENT = 32


class Frame(NamedTuple):
    """A frame taken: its elements and those among them that are errors."""

    elements: list[Any]
    errors: list[RowError]


class _Lease(weakref.ref[Any]):
    """Tells when a frame's root goes."""

    __slots__ = ("frame", "size")

    frame: int
    size: int


class _Ledger:
    """The frames on which arrays lie.

    Leases end in any thread and at any time, so that nothing of Python's runs
    then: an interrupt that came in the middle of it would be lost.
    """

    def __init__(self) -> None:
        self._leases: dict[int, _Lease] = {}
        self._ended: deque[_Lease] = deque()
        self._held_bytes = 0
        # Frames that may be overwritten, not yet told. A dict, so that to put
        # one there twice is to put it there once.
        self.released: dict[int, None] = {}

    def lend(self, root: Array, frame: int, size: int) -> None:
        lease = _Lease(root, self._ended.append)
        lease.frame = frame
        lease.size = size
        self._leases[frame] = lease
        self._held_bytes += size

    def settle(self) -> int:
        """Counts what has ended; gives the bytes that are still held."""
        ended = self._ended
        while ended:
            # An interrupt may come after any step; it is done again then.
            lease = ended[0]
            if lease.frame in self._leases:
                self.released[lease.frame] = None
                del self._leases[lease.frame]
                self._held_bytes -= lease.size
            ended.popleft()
        return self._held_bytes

    def retire(self) -> None:
        """Never releases the frames that are held now."""
        self.settle()
        self._leases.clear()


class _Prepared(NamedTuple):
    layout: _chunk.Layout
    has_arrays: bool
    # What arrays may hold of the mapped memory, as a power of a half.
    held_shift: int
    # A frame of one row whose one column is an array: the usual batch.
    single: tuple[tuple[int, ...], Any, int] | None


def _map(fd: int) -> mmap.mmap:
    """All of a segment; one that others read, too, cannot be written to."""
    try:
        return mmap.mmap(fd, 0)
    except PermissionError:
        return mmap.mmap(fd, 0, prot=mmap.PROT_READ)


class FrameReader:
    """Maps the segments of one iterator and reads frames from them.

    Not thread-safe, but for the release of frames, which may happen anywhere.
    """

    def __init__(
        self, structure: Any, get_segment: Callable[[int], list[int]]
    ) -> None:
        self._assemble = _spec.assembler(structure)
        self._is_single = isinstance(structure, _spec.TensorSpec)
        self._head_size = _chunk.head_size(len(_spec.flatten(structure)))
        self._get_segment = get_segment
        self._segments: dict[int, mmap.mmap] = {}
        self._layouts: dict[bytes, _Prepared] = {}
        self._mapped_bytes = 0
        self._ledger = _Ledger()
        self._released = self._ledger.released
        _readers.add(self)

    def released(self) -> dict[int, None]:
        """The frames that may be overwritten, to be taken from here."""
        self._ledger.settle()
        return self._released

    def segment(self, number: int) -> mmap.mmap:
        """The memory of a segment, mapped when first asked for."""
        memory = self._segments.get(number)
        if memory is None:
            fds = self._get_segment(number)
            try:
                memory = _map(fds[0])
                # A worker's comes with a connection, which stays open as long
                # as any array lies on it: until then the worker does not write
                # over it, even if the engine is gone.
                if len(fds) > 1:
                    weakref.finalize(memory, os.close, fds[1]).atexit = False
            except BaseException:
                for fd in fds[1:]:
                    os.close(fd)
                raise
            finally:
                os.close(fds[0])
            self._segments[number] = memory
            self._mapped_bytes += len(memory)
            if number >= _FIRST_LENT:
                self._forget_lent()
        return memory

    def _forget_lent(self) -> None:
        """Keeps few of the workers' segments: those of most may be gone."""
        lent = [number for number in self._segments if number >= _FIRST_LENT]
        for number in lent[:-_MAX_LENT]:
            self._mapped_bytes -= len(self._segments.pop(number))

    def read(self, segment: int, offset: int, size: int, frame: int) -> Frame:
        """The frame that lies at `offset` of `segment`."""
        memory = self._segments.get(segment) or self.segment(segment)
        head = memory[offset : offset + self._head_size]
        prepared = self._layouts.get(head) or self._prepare(head)
        root = np.frombuffer(memory, np.uint8, size, offset)
        if not prepared.has_arrays:
            result = self._take(root, prepared, False)
            self._released[frame] = None
            return result
        held = self._ledger.settle() + size
        if held > self._mapped_bytes >> prepared.held_shift:
            result = self._take(root, prepared, True)
            self._released[frame] = None
            return result
        self._ledger.lend(root, frame, size)
        if prepared.single is not None:
            shape, dtype, at = prepared.single
            return Frame([np.ndarray(shape, dtype, root, at)], [])
        return self._take(root, prepared, False)

    def read_error(self, segment: int, offset: int, size: int) -> RowError:
        """The error in a chunk that holds nothing else."""
        data = self.segment(segment)[offset : offset + size]
        layout = _chunk.read_layout(data)
        return _chunk.read_errors(memoryview(data), layout)[0]

    def retire(self) -> None:
        """Never releases the frames that are held now.

        A forked child sees the same memory: were they released here, the
        child's arrays would change under it.
        """
        self._ledger.retire()

    def _take(self, root: Array, prepared: _Prepared, is_copy: bool) -> Frame:
        layout = prepared.layout
        rows = layout.rows
        columns = [_chunk.column_rows(root, c, rows) for c in layout.columns]
        if is_copy:
            columns = [
                [row.copy() for row in column]
                if c.rank and c.dtype is not _dtypes.string
                else column
                for c, column in zip(layout.columns, columns, strict=True)
            ]
        errors: list[RowError] = []
        if layout.errors:
            errors = _chunk.read_errors(memoryview(root.data), layout)
        return Frame(self._assemble(columns, rows), errors)

    def _prepare(self, head: bytes) -> _Prepared:
        layout = _chunk.read_layout(head)
        arrays = [
            c
            for c in layout.columns
            if c.rank and c.dtype is not _dtypes.string
        ]
        row_bytes = sum(c.values_bytes for c in arrays) / max(1, layout.rows)
        single = None
        if (
            self._is_single
            and layout.rows == 1
            and not layout.errors
            and arrays
            and arrays[0].is_dense
        ):
            c = arrays[0]
            single = (c.shape, c.dtype.dtype, c.values_offset)
        has_small_rows = (
            layout.rows >= _MANY_ROWS and row_bytes < _SMALL_ROW_BYTES
        )
        held_shift = 3 if has_small_rows else 1
        prepared = _Prepared(layout, bool(arrays), held_shift, single)
        if len(self._layouts) >= _MAX_LAYOUTS:
            self._layouts.clear()
        self._layouts[head] = prepared
        return prepared


_readers: weakref.WeakSet[FrameReader] = weakref.WeakSet()


def _before_fork() -> None:
    for reader in list(_readers):
        reader.retire()


os.register_at_fork(before=_before_fork)
