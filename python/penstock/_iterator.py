"""Iterators: elements out of frames, exact state between any two of them."""

from __future__ import annotations

import atexit
import base64
import dataclasses
import json
import operator
import os
import reprlib
import secrets
import threading
import weakref
import zlib
from collections.abc import Iterator as IteratorABC
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from penstock import _distributing, _engine, _errors, _options, _rewrites
from penstock._chunk import RowError
from penstock._connection import END, FAILED, Connection, Position, Start
from penstock._engine import EngineGoneError
from penstock._errors import (
    DataLossError,
    EngineDiedError,
    FailedPreconditionError,
    InvalidArgumentError,
    PenstockError,
)
from penstock._location import refused, warn
from penstock._stats import IteratorStats, to_stats

if TYPE_CHECKING:
    from types import TracebackType

    from penstock._dataset import Dataset
    from penstock._explain import Explanation

_STATE_VERSION = 1


_NOTHING: IteratorABC[Any] = iter(())


class _Loaded(NamedTuple):
    """A state, and what a service knows the reader by that goes on from it."""

    position: Position | list[Position]
    reader: int


class _Place(NamedTuple):
    """Where an iterator stands: rows at hand, and how to go on without them.

    One value, so that an interrupt finds the old one or the new one and never
    something between: what is not yet in it has not happened.
    """

    # The state that frames were last sent with, and rows since, up to the end
    # of those at hand.
    state: bytes
    frame_rows: int = 0
    # Of the current frame: what is left up to its next error, then the errors
    # from `part` on, each with the rows after it.
    rows: IteratorABC[Any] = _NOTHING
    parts: Sequence[tuple[RowError, list[Any]]] = ()
    part: int = 0
    parts_rows: int = 0  # errors included
    frames: int = 0  # that were taken
    has_ended: bool = False
    failure: PenstockError | None = None  # of all, to be raised yet
    fingerprint: str = ""
    rewriting: dict[str, Any] | None = None
    # Until a frame has come since, a service may not have heard of it yet.
    loaded: _Loaded | None = None


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
        self._defaults = _options.defaults().to_json()
        self._lock = threading.RLock()
        self._is_closed = False
        # Where the engine last died, as a count of frames and rows.
        self._died_at: tuple[int, int] | None = None
        # Those of _place, or none: found again there.
        self._rows: IteratorABC[Any] = _NOTHING
        self._connection: Connection | None = None
        try:
            connection = self._made(None, dataset._rewriting)
        except PenstockError as error:
            # Such as of the options around this line; others say where.
            if "\n  at " in str(error) or not self._defaults:
                raise
            raise refused(type(error), str(error)) from None
        # All else follows from it.
        self._place = _Place(
            state=connection.initial_state,
            fingerprint=connection.fingerprint,
            rewriting=connection.rewriting,
        )
        self._connection = connection
        _iterators.add(self)

    @property
    def _rewriting(self) -> dict[str, Any] | None:
        """What is run: the dataset's own, or that of a state."""
        return self._place.rewriting

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
                place = self._place
                rows = self._rows = place.rows
                for element in rows:
                    return element
                if place.part < len(place.parts):
                    error, later = place.parts[place.part]
                    failure = _errors.from_status(error.code, error.message)
                    self._place = place._replace(
                        rows=iter(later),
                        part=place.part + 1,
                        parts_rows=place.parts_rows - 1 - len(later),
                    )
                    raise failure
                if place.failure is not None:
                    self._place = place._replace(failure=None)
                    raise place.failure
                if place.has_ended:
                    raise StopIteration
                if self._is_closed:
                    raise _closed()
                self._take_frame()

    def _take_frame(self) -> None:
        """Makes the next frame the current one, whatever it takes."""
        connection = self._connection
        if connection is None or not connection.is_usable:
            connection = self._reconnect()
        try:
            event = connection.next_event()
            place = self._read(connection, event)
        except EngineGoneError:
            self._recover(connection)
            return
        except BaseException:
            if not connection.is_whole:
                self._disconnect()
            raise
        self._place = place
        connection.is_whole = True

    def _read(self, connection: Connection, event: tuple[int, ...]) -> _Place:
        """Where an event leads to."""
        (
            kind,
            segment,
            offset,
            size,
            rows,
            number,
            state_at,
            state_size,
            state_segment,
            skip,
        ) = event
        reader = connection.reader
        before = self._place
        if kind == FAILED:
            failure = reader.read_error(segment, offset, size)
            return before._replace(
                has_ended=True,
                failure=_errors.from_status(failure.code, failure.message),
            )
        state = b""
        if state_size:
            memory = reader.segment(state_segment)
            state = memory[state_at : state_at + state_size]
        elements: list[Any] = []
        errors: list[RowError] = []
        if kind == END:
            rows = 0
            connection.taken(number)
            connection.flush()
        else:
            elements, errors = reader.read(segment, offset, size, number)
            connection.taken(number)
        parts: list[tuple[RowError, list[Any]]] = []
        end = len(elements)
        for error in reversed(errors):
            parts.append((error, elements[error.row + 1 : end]))
            end = error.row
        parts.reverse()
        return _Place(
            rows=iter(elements[:end] if errors else elements),
            parts=parts,
            parts_rows=rows - end if errors else 0,
            # As if the frame began where its state does, with those rows
            # returned.
            frame_rows=skip + rows,
            state=state,
            frames=before.frames + 1,
            has_ended=kind == END,
            fingerprint=before.fingerprint,
            rewriting=before.rewriting,
        )

    def _position(self) -> Position:
        """After the last element returned; at next to no cost."""
        place = self._place
        left = operator.length_hint(place.rows) + place.parts_rows
        return Position(place.state, place.frame_rows - left)

    def _recover(self, connection: Connection) -> None:
        """Goes on with another engine at the last row that was returned."""
        here = (self._place.frames, self._position().skip)
        engine = connection.engine
        death = None
        if not engine.is_alive or self._died_at == here:
            death = engine.death()
        self._disconnect()
        if not engine.was_interrupted:
            if self._died_at == here:
                self._died_at = None
                raise EngineDiedError(
                    f"the engine died twice at the same element; {death}"
                ) from None
            self._died_at = here
        self._reconnect()

    def _made(
        self,
        position: Position | list[Position] | None,
        rewriting: dict[str, Any] | None,
        is_recovery: bool = False,
        reader: int = 0,
    ) -> Connection:
        return Connection(
            self._dataset,
            position,
            self._start,
            self._defaults,
            is_recovery,
            rewriting,
            reader,
        )

    def _reconnect(self) -> Connection:
        """Begins anew in the engine, after the last element returned."""
        self._disconnect()
        rewriting = self._place.rewriting
        loaded = self._place.loaded
        if loaded is None:
            made = self._made(self._position(), rewriting, is_recovery=True)
        else:
            made = self._made(loaded.position, rewriting, reader=loaded.reader)
        self._connection = made
        return made

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _go_to(self, place: _Place) -> None:
        """Forgets the rows at hand."""
        self._rows = _NOTHING
        self._place = place

    def _is_ready(self) -> bool:
        """Whether the next element, or the end, comes without a wait.

        Of a pipeline that computes only what is asked for, it is always true.
        """
        with self._lock:
            place = self._place
            if operator.length_hint(place.rows) or place.parts_rows:
                return True
            if place.has_ended or self._is_closed:
                return True
            connection = self._connection
            if connection is None or not connection.is_usable:
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
            loaded = self._place.loaded
            if loaded is None or isinstance(loaded.position, Position):
                return self._state_at(self._position())
            return {
                "version": _STATE_VERSION,
                "states": [self._state_at(each) for each in loaded.position],
                "resize": self._start.resize is not None,
            }

    def _state_at(self, position: Position) -> dict[str, Any]:
        """What `state_dict()` gave at `position`."""
        text = _engine.to_base64(position.state)
        state = {
            "version": _STATE_VERSION,
            "fingerprint": self._place.fingerprint,
            "state": text,
            "skip": position.skip,
            "crc32": _crc32(text, position.skip, self._rewriting),
        }
        if self._rewriting is not None:
            state["rewriting"] = self._rewriting
        return state

    def load_state_dict(
        self,
        state: dict[str, Any] | Sequence[dict[str, Any]],
        *,
        resize: bool = False,
    ) -> None:
        """Goes to where `state` was taken: the element after it comes next.

        A state of a pipeline that `tune` has rewritten fits that pipeline as it
        was written, too, and the other way round: it goes on as it was begun.

        Readers of a distributed job load their own states if there are as many
        of them as there were. If there are more or fewer, each of them loads
        the list of all states of the checkpoint.

        Consumers that read in rounds load their own states, too. If there are
        more or fewer of them than there were, each loads one or more of the
        states of one round with `resize=True`, and they go on with the next.

        Raises:
            DataLossError: The state is damaged.
            InvalidArgumentError: It is of another pipeline.
        """
        rewriting: dict[str, Any] | None = None
        position: Position | list[Position]
        if isinstance(state, dict) and "states" in state:
            # Nothing had come since it was loaded.
            resize = resize or state.get("resize") is True
            state = state["states"]
        elif resize and isinstance(state, dict):
            state = [state]
        if isinstance(state, (list, tuple)) and state:
            position = [_read_state(each)[0] for each in state]
        else:
            position, rewriting = _read_state(state)
        start = self._start
        if resize and start.resize is None:
            start = dataclasses.replace(start, resize={})
        self._load(position, rewriting, start)

    def _load(
        self,
        position: Position | list[Position],
        rewriting: dict[str, Any] | None,
        start: Start,
    ) -> None:
        with self._lock:
            if self._is_closed:
                raise _closed()
            loaded = _Loaded(position, secrets.randbits(48) | 1)
            before, self._start = self._start, start
            try:
                made = self._made(position, rewriting, reader=loaded.reader)
            except BaseException as error:
                self._start = before
                if not isinstance(error, PenstockError):
                    raise
                raise refused(type(error), str(error)) from None
            first = Position(made.initial_state, 0)
            if isinstance(position, Position):
                first = position
            self._disconnect()
            self._go_to(
                _Place(
                    state=first.state,
                    frame_rows=first.skip,
                    fingerprint=made.fingerprint,
                    rewriting=made.rewriting,
                    loaded=loaded,
                )
            )
            self._connection = made
            self._died_at = None
            self._say_if_other()

    def resize(
        self,
        num_consumers: int | None = None,
        consumer: int | str | None = None,
    ) -> None:
        """Goes on with another number of consumers that read in rounds.

        All of them call it after the same step; the next element is of the next
        round, in which there are as many as now. One that is no more among them
        closes its iterator instead, and a new one reads the pipeline with
        `from_round`. No element is lost or comes twice.

        Example:
            >>> def replica(i, n, **new):
            ...     return iter(
            ...         ps.Dataset.range(7).distribute(
            ...             service.address,
            ...             job="train",
            ...             consumer=i,
            ...             num_consumers=n,
            ...             **new,
            ...         )
            ...     )
            >>> with ps.LocalService(workers=1) as service:
            ...     replicas = [replica(i, 2) for i in range(2)]
            ...     print([int(next(it)) for it in replicas])
            ...     for it in replicas:
            ...         it.resize(3)
            ...     replicas.append(replica(2, 3, from_round=1))
            ...     print([int(next(it)) for it in replicas])
            [0, 1]
            [2, 3, 4]

        Args:
            num_consumers: How many there are now.
            consumer: Which of them this is; the same number as before if left
                out. "auto": as in `distribute`, and `num_consumers` is left
                out.

        Raises:
            FailedPreconditionError: The pipeline is not read in rounds.
            InvalidArgumentError: More than prefetch() follows distribute().
        """
        if consumer is None:
            message = _distributing.consumers(0, num_consumers)
            message.pop("consumer", None)
        else:
            message = _distributing.consumers(consumer, num_consumers)
        if "consumers" not in message:
            raise refused(
                InvalidArgumentError,
                'num_consumers must be given, or consumer="auto"; got neither',
            )
        with self._lock:
            start = dataclasses.replace(
                self._start, resize={**(self._start.resize or {}), **message}
            )
            loaded = self._place.loaded
            position = [self._position()]
            if loaded is not None and isinstance(loaded.position, list):
                position = loaded.position
            self._load(position, self._place.rewriting, start)

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
                    "closed; got one that is closed"
                    if self._is_closed
                    else "statistics are of the time since the iterator last "
                    "began; got one that was interrupted, and has not gone on\n"
                    "  Take another element first.",
                )
            try:
                return to_stats(self._connection.stats())
            except EngineGoneError:
                raise self._connection.engine.death() from None

    def explain(self, cpu: Any = None, memory: Any = None) -> Explanation:
        """What limits it, as its consumer uses it.

        The first call explains the time since elements began to come (or, in
        the first half second, since the iterator began), and has the engine
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
            self._disconnect()
            self._go_to(self._without_rows())

    def _without_rows(self) -> _Place:
        """The same place, to be read from again."""
        position = self._position()
        return self._place._replace(
            rows=_NOTHING,
            parts=[],
            part=0,
            parts_rows=0,
            frame_rows=position.skip,
        )

    def close(self) -> None:
        """Ends the iterator and frees what it holds in the engine.

        Arrays that were returned stay valid.
        """
        with self._lock:
            if self._connection is not None:
                self._connection.leave(self._position().skip)
            self._is_closed = True
            self._disconnect()
            self._go_to(self._without_rows())

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


def _read_state(
    state: Any,
) -> tuple[Position, dict[str, Any] | None]:
    """What `state_dict()` gave, if it is that and whole."""
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
    return Position(data, skip), rewriting


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
