"""One iterator of the engine: its socket, and what is said over it."""

from __future__ import annotations

import dataclasses
import math
import os
import select
import socket
import struct
import time
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from penstock import _engine, _errors, _rewrites
from penstock._engine import EngineGoneError
from penstock._frames import FrameReader

if TYPE_CHECKING:
    from penstock._dataset import Dataset

# Engine to package: kind, segment, offset, bytes, rows, frame, state offset,
# state bytes, state segment, rows to skip after that state.
_EVENT = struct.Struct("<IIQQQQQIIQ")
_ROWS = 4
END = 2
FAILED = 3
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


@dataclasses.dataclass(frozen=True)
class Start:
    """What an iterator begins with, where it is not the engine's to choose."""

    epoch: int | None = None
    # What all that has no seed of its own is seeded from.
    seed: int | None = None
    # Of consumers in rounds: as resize() says, MakeIterator's message.
    resize: dict[str, int] | None = None


@dataclasses.dataclass(frozen=True)
class Position:
    """A frame's state, and how many of its rows were returned since."""

    state: bytes
    skip: int

    def to_json(self) -> dict[str, Any]:
        return {
            "state": _engine.to_base64(self.state),
            "skip_rows": self.skip,
        }


def working_directory() -> str:
    """Where relative file names start from; nothing if it was removed."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        return ""


class Connection:
    """One iterator of the engine: its socket, and frames from its segments.

    An interrupt may come between any two steps. It leaves the connection whole
    while it waits, and else so that `is_whole` is false: whoever uses it then
    makes another instead, from the last row that was returned.
    """

    def __init__(
        self,
        dataset: Dataset,
        position: Position | Sequence[Position] | None,
        start: Start,
        defaults: dict[str, Any],
        is_recovery: bool,
        rewriting: dict[str, Any] | None,
        reader: int = 0,
    ) -> None:
        near, far = socket.socketpair()
        try:
            with far:
                body = self._request(dataset, position, start, defaults)
                body["is_recovery"] = is_recovery
                body["reader"] = reader
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
        # Whether nothing is half done, so that it can be gone on with.
        self.is_whole = True
        # A wait that goes on past it is given up; of time.monotonic().
        self.deadline = math.inf
        self.is_traced = False
        engine, iterator = self.engine, self._iterator

        def get_segment(number: int) -> list[int]:
            body = {"iterator": iterator, "segment": number}
            return engine.call("get_segment", body)[1]

        self.reader = FrameReader(dataset.element_spec, get_segment)

    @staticmethod
    def _request(
        dataset: Dataset,
        position: Position | Sequence[Position] | None,
        start: Start,
        defaults: dict[str, Any],
    ) -> dict[str, Any]:
        body: dict[str, Any] = {
            "plan": dataset._plan,
            "working_directory": working_directory(),
            "defaults": defaults,
            "last": dataset._last_states(),
        }
        if isinstance(position, Position):
            body.update(position.to_json())
        elif position is not None:
            body["states"] = [each.to_json() for each in position]
        if start.epoch is not None:
            body["epoch"] = start.epoch
        if start.seed is not None:
            body["seed"] = start.seed
        if start.resize is not None:
            body["resize"] = start.resize
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

    @property
    def is_usable(self) -> bool:
        """Whether it is this process's, and whole."""
        return self.is_whole and self.owner == os.getpid()

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
        if kind == FAILED:
            failure = self.reader.read_error(segment, offset, size)
            raise _errors.from_status(failure.code, failure.message)
        if kind == END:
            return 0, True
        self.taken(frame)
        self.reader.released()[frame] = None
        self.is_whole = True
        return rows, False

    def next_event(self) -> tuple[int, ...]:
        """The next message; EngineGoneError if there will be none.

        Whoever has done with it what is to be done makes `is_whole` true.
        """
        self.is_whole = False
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
        while len(self._partial) < _EVENT.size:
            try:
                more = self._socket.recv(_RECEIVE_BYTES)
            except BlockingIOError:
                self.is_whole = True
                self._poll.poll(self._patience_ms())
                self.is_whole = False
                self.flush()
                continue
            except OSError:
                raise EngineGoneError from None
            if not more:
                raise EngineGoneError
            self._partial += more
        data = self._partial
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
        was_whole, self.is_whole = self.is_whole, False
        released = self.reader.released()
        while released:
            frame = released.popitem()[0]
            self._outgoing += _WORD.pack(_RELEASED, 0, frame)
        if self._outgoing:
            try:
                sent = self._socket.send(self._outgoing)
            except BlockingIOError:
                sent = 0
            except OSError:
                raise EngineGoneError from None
            self._outgoing = self._outgoing[sent:]
        self.is_whole = was_whole

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
