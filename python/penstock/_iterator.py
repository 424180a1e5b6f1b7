"""Iterators: elements out of frames, exact state between any two of them."""

from __future__ import annotations

import atexit
import base64
import dataclasses
import json
import math
import operator
import os
import reprlib
import select
import socket
import struct
import threading
import time
import weakref
import zlib
from collections import deque
from collections.abc import Iterator as IteratorABC
from typing import TYPE_CHECKING, Any

from penstock import _engine, _errors, _options, _rewrites
from penstock._chunk import RowError
from penstock._engine import EngineGoneError
from penstock._errors import (
    DataLossError,
    EngineDiedError,
    FailedPreconditionError,
    InvalidArgumentError,
    PenstockError,
)
from penstock._frames import FrameReader
from penstock._location import refused, warn
from penstock._stats import IteratorStats, to_stats

if TYPE_CHECKING:
    from types import TracebackType

    from penstock._dataset import Dataset
    from penstock._explain import Explanation

# Engine to package: kind, segment, offset, bytes, rows, frame, state offset,
# state bytes, rows to skip after that state.
_EVENT = struct.Struct("<IIQQQQQQQ")
_ROWS = 4
_FRAME = 1
_END = 2
_FAILED = 3
# Package to engine: kind, microseconds since the frame before, value.
_WORD = struct.Struct("<IIQ")
_DEMAND = 1
_CONSUMED = 2
_RELEASED = 3
_WAITED = 4
_LEFT = 5
_MAX_GAP_US = (1 << 32) - 1
_RECEIVE_BYTES = 64 * _EVENT.size
# Words to the engine gather until it is waited for, or there are this many.
_FLUSH_BYTES = 16 * _WORD.size
_RETRY_MS = 10
# A Ctrl-C that comes between Python's look for one and the wait would otherwise
# be seen only when the next rows come.
_LOOK_MS = 1000

_STATE_VERSION = 1


@dataclasses.dataclass(frozen=True)
class Start:
    """What an iterator begins with, where it is not the engine's to choose."""

    epoch: int | None = None
    # What all that has no seed of its own is seeded from.
    seed: int | None = None


@dataclasses.dataclass(frozen=True)
class Position:
    """A frame's state, and how many of its rows were returned since."""

    state: bytes
    skip: int


def _working_directory() -> str:
    """Where relative file names start from; nothing if it was removed."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        return ""


class _Connection:
    """One iterator of the engine: its socket, and frames from its segments."""

    def __init__(
        self,
        dataset: Dataset,
        position: Position | None,
        start: Start,
        defaults: dict[str, Any],
        is_recovery: bool,
        rewriting: dict[str, Any] | None,
    ) -> None:
        near, far = socket.socketpair()
        try:
            with far:
                body = self._request(dataset, position, start, defaults)
                body["is_recovery"] = is_recovery
                if rewriting is not None:
                    body["rewriting"] = rewriting
                if dataset._knobs and rewriting == dataset._rewriting:
                    body["knobs"] = dataset._knobs
                info = self._make(dataset, body, far)
        except BaseException:
            near.close()
            raise
        near.setblocking(False)
        self.owner = os.getpid()
        self.initial_state = _engine.from_base64(info.get("state", ""))
        self.is_row_exact = bool(info.get("is_row_exact", False))
        self.fingerprint: str = info.get("fingerprint", "")
        # What is run: as it was asked for, or as the engine decided.
        self.rewriting = rewriting
        if "rewriting" in info:
            self.rewriting = _rewrites.checked(info["rewriting"])
        self._iterator = info.get("iterator", 0)
        self._socket = near
        self._poll = select.poll()
        self._poll.register(near, select.POLLIN)
        self._partial = b""
        self._events: deque[tuple[int, ...]] = deque()
        self._outgoing = b""
        # Rows to ask for next: the first starts the iterator. In row-exact mode
        # those that were returned since are asked for anew.
        self._due = 1
        # When the last frame was handed over, and how long until the next one
        # was asked for.
        self._given_at = time.perf_counter_ns()
        self._gap_us = 0
        # Whether an exception would find nothing half done.
        self.is_waiting = False
        # A wait that goes on past it is given up; of time.monotonic().
        self.deadline = math.inf
        self.is_traced = False
        engine, iterator = self.engine, self._iterator

        def get_segment(number: int) -> int:
            body = {"iterator": iterator, "segment": number}
            return engine.call("get_segment", body)[1][0]

        self.reader = FrameReader(dataset.element_spec, get_segment)

    @staticmethod
    def _request(
        dataset: Dataset,
        position: Position | None,
        start: Start,
        defaults: dict[str, Any],
    ) -> dict[str, Any]:
        body: dict[str, Any] = {
            "plan": dataset._plan,
            "working_directory": _working_directory(),
            "defaults": defaults,
            "last": dataset._last_states(),
        }
        if position is not None:
            body["state"] = _engine.to_base64(position.state)
            body["skip_rows"] = position.skip
        if start.epoch is not None:
            body["epoch"] = start.epoch
        if start.seed is not None:
            body["seed"] = start.seed
        return body

    def _make(
        self, dataset: Dataset, body: dict[str, Any], far: socket.socket
    ) -> dict[str, Any]:
        def ask(engine: _engine.Engine) -> dict[str, Any]:
            engine.add_captures(dataset._captures)
            self.engine = engine
            return engine.call("make_iterator", body, [far.fileno()])[0]

        info: dict[str, Any] = _engine.with_engine(ask)
        dataset._remember(info.get("random", ()))
        return info

    def stats(self) -> dict[str, Any]:
        return self.engine.call("get_stats", {"iterator": self._iterator})[0]

    def trace(self, every_ms: int, path: str = "") -> None:
        """Has the engine measure from now on, and note it in a file."""
        body = {"iterator": self._iterator, "every_ms": every_ms, "path": path}
        self.engine.call("trace", body)
        self.is_traced = True

    def explain(self, budget: dict[str, Any], save: str) -> dict[str, Any]:
        """The report of what was measured, which goes to `save` as well."""
        body = {"iterator": self._iterator, "budget": budget, "save": save}
        return self.engine.call("explain", body)[0]

    def discard(self) -> tuple[int, bool]:
        """Takes the next frame and looks at none of its rows.

        Returns:
            The number of its rows, and whether it was the end.
        """
        kind, segment, offset, size, rows, frame, *_ = self.next_event()
        if kind == _FAILED:
            failure = self.reader.read_error(segment, offset, size)
            raise _errors.from_status(failure.code, failure.message)
        if kind == _END:
            return 0, True
        self.taken(frame)
        self.reader.released().append(frame)
        return rows, False

    def next_event(self) -> tuple[int, ...]:
        """The next message; EngineGoneError if there will be none."""
        if self._due:
            self._outgoing += _WORD.pack(_DEMAND, 0, self._due)
            self._due = 0
            self.flush()
        now = time.perf_counter_ns()
        self._gap_us = (now - self._given_at) // 1000
        events = self._events
        if not events:
            self._receive()
            waited = time.perf_counter_ns() - now
            self._outgoing += _WORD.pack(_WAITED, 0, waited)
            now += waited
        self._given_at = now
        event = events.popleft()
        if self.is_row_exact:
            self._due = event[_ROWS]
        return event

    def _receive(self) -> None:
        self.flush()
        data = self._partial
        while len(data) < _EVENT.size:
            try:
                more = self._socket.recv(_RECEIVE_BYTES)
            except BlockingIOError:
                self.is_waiting = True
                self._poll.poll(self._patience_ms())
                self.is_waiting = False
                self.flush()
                continue
            except OSError:
                raise EngineGoneError from None
            if not more:
                raise EngineGoneError
            data += more
        whole = len(data) // _EVENT.size * _EVENT.size
        self._partial = data[whole:]
        self._events.extend(_EVENT.iter_unpack(data[:whole]))

    def _patience_ms(self) -> int:
        most = _RETRY_MS if self._outgoing else _LOOK_MS
        if self.deadline == math.inf:
            return most
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return min(most, int(left * 1000) + 1)

    def is_ready(self) -> bool:
        """Whether `next_event` would not wait, or never come before asked."""
        if self._events or self.is_row_exact:
            return True
        self.flush()  # The engine may wait for what is due.
        return bool(self._poll.poll(0))

    def taken(self, frame: int) -> None:
        """Tells the engine, soon, that `frame` was taken."""
        gap = min(self._gap_us, _MAX_GAP_US)
        self._outgoing += _WORD.pack(_CONSUMED, gap, frame)
        if len(self._outgoing) >= _FLUSH_BYTES:
            self.flush()

    def flush(self) -> None:
        """Sends what is due; never waits for the engine to read it."""
        released = self.reader.released()
        while released:
            self._outgoing += _WORD.pack(_RELEASED, 0, released.popleft())
        if self._outgoing:
            try:
                sent = self._socket.send(self._outgoing)
            except BlockingIOError:
                return
            except OSError:
                raise EngineGoneError from None
            self._outgoing = self._outgoing[sent:]

    def leave(self, rows: int) -> None:
        """Says that no more is wanted, `rows` rows after the last state."""
        if self.owner != os.getpid():
            return
        self._outgoing += _WORD.pack(_LEFT, 0, rows)
        try:
            self.flush()
        except EngineGoneError:
            pass  # Then nobody is there to hear it.

    def close(self) -> None:
        self._socket.close()


class Iterator(IteratorABC[Any]):
    """Gives the elements of a dataset, one by one.

    Made by `iter(dataset)`. An element that is an error raises at its position,
    and iteration goes on after it. Several threads may share an iterator: each
    element goes to one of them. If the engine dies, the iterator goes on at the
    next element with another engine.

    Example:
        >>> it = iter(ps.Dataset.range(4))
        >>> next(it)
        np.int64(0)
        >>> state = it.state_dict()
        >>> next(it), next(it)
        (np.int64(1), np.int64(2))
        >>> it.load_state_dict(state)
        >>> list(it)
        [np.int64(1), np.int64(2), np.int64(3)]
    """

    def __init__(self, dataset: Dataset, start: Start | None = None) -> None:
        self._dataset = dataset
        self._start = start or Start()
        # What is run: the dataset's own, or that of a state.
        self._rewriting = dataset._rewriting
        self._defaults = _options.defaults().to_json()
        self._lock = threading.RLock()
        self._is_closed = False
        # The part of the current frame up to its next error.
        self._rows: IteratorABC[Any] = iter(())
        # Then the errors, each with the rows after it.
        self._parts: deque[tuple[RowError, list[Any]]] = deque()
        self._state = b""
        self._frame_rows = 0  # of the current frame, all of it
        self._parts_rows = 0  # in _parts, errors included
        self._has_ended = False
        # Where the engine last died, as a count of frames and rows.
        self._frames_taken = 0
        self._died_at: tuple[int, int] | None = None
        self._connection: _Connection | None = None
        try:
            self._connect(None)
        except PenstockError as error:
            # Such as of the options around this line; others say where.
            if "\n  at " in str(error) or not self._defaults:
                raise
            raise refused(type(error), str(error)) from None
        _iterators.add(self)

    def __iter__(self) -> Iterator:
        return self

    def __next__(self) -> Any:
        # The list iterator's step is atomic, so only the way to the next frame
        # needs the lock.
        for element in self._rows:
            return element
        return self._advance()

    def _advance(self) -> Any:
        with self._lock:
            while True:
                for element in self._rows:
                    return element
                if self._parts:
                    error, rows = self._parts.popleft()
                    self._parts_rows -= 1 + len(rows)
                    self._rows = iter(rows)
                    raise _errors.from_status(error.code, error.message)
                if self._has_ended:
                    raise StopIteration
                if self._is_closed:
                    raise _closed()
                self._take_frame()

    def _take_frame(self) -> None:
        """Makes the next frame the current one, whatever it takes."""
        connection = self._connection
        if connection is None or connection.owner != os.getpid():
            connection = self._connect(self._position(), is_recovery=True)
        failure = None
        try:
            event = connection.next_event()
            failure = self._read(connection, event)
        except EngineGoneError:
            self._recover(connection)
        except BaseException:
            if not connection.is_waiting:
                # Interrupted with something half done: begin again where the
                # last element was returned.
                self._disconnect()
            connection.is_waiting = False
            raise
        if failure is not None:
            raise _errors.from_status(failure.code, failure.message)

    def _read(
        self, connection: _Connection, event: tuple[int, ...]
    ) -> RowError | None:
        """Makes an event's rows the current ones; gives its failure, if any."""
        (
            kind,
            segment,
            offset,
            size,
            rows,
            number,
            state_at,
            state_size,
            skip,
        ) = event
        reader = connection.reader
        state = b""
        if state_size:
            memory = reader.segment(segment)
            state = memory[state_at : state_at + state_size]
        if kind == _END:
            self._become([], [], state, 0, skip)
            self._has_ended = True
            connection.taken(number)
            connection.flush()
            return None
        if kind == _FAILED:
            self._has_ended = True
            return reader.read_error(segment, offset, size)
        frame = reader.read(segment, offset, size, number)
        connection.taken(number)
        self._become(frame.elements, frame.errors, state, rows, skip)
        self._frames_taken += 1
        return None

    def _become(
        self,
        elements: list[Any],
        errors: list[RowError],
        state: bytes,
        rows: int,
        skip: int,
    ) -> None:
        parts: deque[tuple[RowError, list[Any]]] = deque()
        end = len(elements)
        for error in reversed(errors):
            parts.appendleft((error, elements[error.row + 1 : end]))
            end = error.row
        self._parts = parts
        self._parts_rows = rows - end
        # As if the frame began where its state does, with those rows returned.
        self._frame_rows = skip + rows
        self._state = state
        self._rows = iter(elements[:end] if errors else elements)

    def _position(self) -> Position:
        """After the last element returned; at next to no cost."""
        left = operator.length_hint(self._rows) + self._parts_rows
        return Position(self._state, self._frame_rows - left)

    def _recover(self, connection: _Connection) -> None:
        """Goes on with another engine at the last row that was returned."""
        position = self._position()
        here = (self._frames_taken, position.skip)
        death = None
        if not connection.engine.is_alive or self._died_at == here:
            death = connection.engine.death()
        self._disconnect()
        if self._died_at == here:
            self._died_at = None
            raise EngineDiedError(
                f"the engine died twice at the same element; {death}"
            ) from None
        self._died_at = here
        self._connect(position, is_recovery=True)

    def _connect(
        self, position: Position | None, is_recovery: bool = False
    ) -> _Connection:
        self._disconnect()
        connection = _Connection(
            self._dataset,
            position,
            self._start,
            self._defaults,
            is_recovery,
            self._rewriting,
        )
        self._connection = connection
        self._fingerprint = connection.fingerprint
        self._rewriting = connection.rewriting
        if position is None:
            self._state = connection.initial_state
            self._frame_rows = 0
        else:
            self._state = position.state
            self._frame_rows = position.skip
        self._rows = iter(())
        self._parts = deque()
        self._parts_rows = 0
        return connection

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _is_ready(self) -> bool:
        """Whether the next element, or the end, comes without a wait.

        Of a pipeline that computes only what is asked for, it is always true.
        """
        with self._lock:
            if operator.length_hint(self._rows) or self._parts:
                return True
            if self._has_ended or self._is_closed:
                return True
            connection = self._connection
            if connection is None or connection.owner != os.getpid():
                return False
            try:
                return connection.is_ready()
            except EngineGoneError:
                return True  # The next element finds another engine.

    def state_dict(self) -> dict[str, Any]:
        """The position after the last element returned; fit for JSON.

        Small, and needs no engine: it can be taken after an interrupt or an
        error, before the first element and after the last.
        """
        with self._lock:
            return self._state_at(self._position())

    def _state_at(self, position: Position) -> dict[str, Any]:
        """What `state_dict()` gave at `position`."""
        text = _engine.to_base64(position.state)
        state = {
            "version": _STATE_VERSION,
            "fingerprint": self._fingerprint,
            "state": text,
            "skip": position.skip,
            "crc32": _crc32(text, position.skip, self._rewriting),
        }
        if self._rewriting is not None:
            state["rewriting"] = self._rewriting
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes to where `state` was taken: the element after it comes next.

        A state of a pipeline that `tune` has rewritten fits that pipeline as it
        was written, too, and the other way round: it goes on as it was begun.

        Raises:
            DataLossError: The state is damaged.
            InvalidArgumentError: It is of another pipeline.
        """
        try:
            text, skip = state["state"], state["skip"]
            if type(skip) is not int or not 0 <= skip < 1 << 63:
                raise ValueError
            rewriting = state.get("rewriting")
            is_whole = state["crc32"] == _crc32(text, skip, rewriting)
            if rewriting is not None and is_whole:
                rewriting = _rewrites.checked(rewriting)
            data = base64.b64decode(text, validate=True)
            is_known = state["version"] == _STATE_VERSION
        except (KeyError, TypeError, ValueError, AttributeError):
            raise refused(
                DataLossError,
                "a state must be a dict as state_dict() gave it; got "
                f"{reprlib.repr(state)}: it is damaged, or something else.\n"
                "  Use an earlier checkpoint.",
            ) from None
        if not is_known:
            raise refused(
                InvalidArgumentError,
                f"a state must be of version {_STATE_VERSION}; got version "
                f"{state['version']!r}.\n  Load it with the version of "
                "penstock that saved it.",
            )
        if not is_whole:
            raise refused(
                DataLossError,
                "a state must have the checksum "
                f"{_crc32(text, skip, rewriting)}; got "
                f"{state['crc32']!r}: it is damaged.\n"
                "  Use an earlier checkpoint.",
            )
        with self._lock:
            if self._is_closed:
                raise _closed()
            before = self._connection, self._rewriting
            self._connection, self._rewriting = None, rewriting
            try:
                self._connect(Position(data, skip))
            except PenstockError as error:
                self._connection, self._rewriting = before
                raise refused(type(error), str(error)) from None
            except BaseException:
                self._connection, self._rewriting = before
                raise
            self._say_if_other()
            if before[0] is not None:
                before[0].close()
            self._has_ended = False
            self._died_at = None

    def _say_if_other(self) -> None:
        """Warns if it goes on otherwise than its dataset would begin."""
        tuned = self._dataset._rewriting
        if tuned is None or self._rewriting == tuned:
            return
        how = "as it was written"
        if self._rewriting is not None:
            how = "rewritten in another way"
        warn(
            f"this state was saved by the pipeline {how}, and goes on so until "
            "it ends: without what tune() has rewritten and set since. "
            "Iterators that begin anew have it.",
        )

    def stats(self) -> IteratorStats:
        """What the iterator has done so far, in all and by transformation."""
        with self._lock:
            if self._connection is None:
                raise refused(
                    FailedPreconditionError,
                    "statistics must be asked for before the iterator is "
                    "closed; got one that is closed",
                )
            try:
                return to_stats(self._connection.stats())
            except EngineGoneError:
                raise self._connection.engine.death() from None

    def explain(self, cpu: Any = None, memory: Any = None) -> Explanation:
        """What limits it, as its consumer uses it.

        The first call explains all since the iterator began, and has the engine
        measure in more detail from then on; later ones explain the time since
        the first.

        Example:
            >>> it = iter(ps.Dataset.range(10**6).batch(100))
            >>> for batch, _ in zip(it, range(1000)):
            ...     pass
            >>> it.explain().rate > 0
            True

        Args:
            cpu: Cores that may be used; all if None.
            memory: Bytes that may be used, or text such as "2GB"; all if None.

        Raises:
            FailedPreconditionError: It is closed, or nothing was taken yet.
        """
        from penstock import _explain

        with self._lock:
            return _explain.of_iterator(self, cpu, memory)

    def _save_trace(self, path: str) -> None:
        """Writes what was measured up to now to a file, if it is open."""
        with self._lock:
            if self._connection is not None:
                self._connection.flush()
                self._connection.explain({}, path)

    def _release(self) -> None:
        """Frees what it holds in the engine until it is gone on with.

        Nothing else changes: arrays stay valid, and so does the position.
        """
        with self._lock:
            position = self._position()
            self._disconnect()
            self._rows = iter(())
            self._parts.clear()
            self._parts_rows = 0
            self._state, self._frame_rows = position.state, position.skip

    def close(self) -> None:
        """Ends the iterator and frees what it holds in the engine.

        Arrays that were returned stay valid.
        """
        with self._lock:
            if self._connection is not None:
                self._connection.leave(self._position().skip)
            self._is_closed = True
            self._disconnect()
            self._rows = iter(())
            self._parts.clear()

    def __del__(self) -> None:
        connection = getattr(self, "_connection", None)
        if connection is not None:
            connection.leave(self._position().skip)
            connection.close()

    def __enter__(self) -> Iterator:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Iterator over {self._dataset!r}>"


def _closed() -> FailedPreconditionError:
    return refused(
        FailedPreconditionError,
        "elements must be taken before the iterator is closed; got one that is "
        "closed.\n  Make another with iter(dataset).",
    )


def _crc32(
    state: str, skip: int, rewriting: dict[str, Any] | None = None
) -> int:
    text = f"{state}/{skip}"
    if rewriting is not None:
        text += json.dumps(rewriting, sort_keys=True)
    return zlib.crc32(text.encode())


_iterators: weakref.WeakSet[Iterator] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for iterator in list(_iterators):
        iterator._lock = threading.RLock()


def _leave_all() -> None:
    """A trainer that ends wants no more; one that is killed may come back."""
    for iterator in list(_iterators):
        connection = iterator._connection
        if connection is not None:
            connection.leave(iterator._position().skip)


os.register_at_fork(after_in_child=_after_fork_in_child)
atexit.register(_leave_all)
