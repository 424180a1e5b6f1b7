"""What a trainer reads of a dataset, epoch after epoch, in another library's
arrays: its shard, its epochs and its state.

Ranks and workers must agree on the order of the elements that they share. So a
feed names the epoch of each iterator, and seeds what has no seed of its own,
instead of leaving both to an engine that knows of one process alone.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import secrets
import weakref
from collections import deque
from collections.abc import Callable, Mapping
from collections.abc import Iterator as IteratorABC
from typing import TYPE_CHECKING, Any, NamedTuple

from penstock import _iterator, _spec
from penstock._connection import Position, Start
from penstock._errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    InvalidTypeError,
    PenstockError,
)
from penstock._location import refused
from penstock._pipeline import (
    INFINITE_CARDINALITY,
    UNKNOWN_CARDINALITY,
    Pipeline,
    index,
)
from penstock._stats import IteratorStats
from penstock._worker_epochs import Origin, WorkerEpochs

if TYPE_CHECKING:
    from penstock._dataset import Dataset
    from penstock._explain import Explanation

Convert = Callable[[Any], Any]

_STATE_VERSION = 1
_MAX_EPOCH = 1 << 62


class Rank(NamedTuple):
    """One of several processes that share a dataset's elements."""

    number: int
    total: int

    @staticmethod
    def of(rank: Any, world_size: Any, otherwise: Rank) -> Rank:
        """That of a user's arguments; `otherwise` if there are none.

        Raises:
            InvalidArgumentError: There is one without the other, or no such
                rank.
        """
        if rank is None and world_size is None:
            return otherwise
        if rank is None or world_size is None:
            given = "world_size" if rank is None else "rank"
            raise refused(
                InvalidArgumentError,
                "rank and world_size must be given together; got "
                f"{given} alone",
            )
        found = Rank(index("rank", rank), index("world_size", world_size))
        if not 0 <= found.number < found.total:
            raise refused(
                InvalidArgumentError,
                "rank must be at least 0 and less than world_size, "
                f"{found.total}; got {found.number}",
            )
        return found


ALONE = Rank(0, 1)


class _Ready(NamedTuple):
    """An element made ready, or its error, and the position after it."""

    value: Any
    error: Exception | None
    position: Position


class FeedIterator(IteratorABC[Any]):
    """The elements of one epoch, with the exact position of what was seen.

    Like `ps.Iterator`, an element that is an error raises at its position, and
    iteration goes on after it. Of one thread at a time.
    """

    def __init__(
        self,
        feed: Feed,
        source: _iterator.Iterator,
        shard: Rank,
        start: Start,
        convert: Convert,
    ) -> None:
        self._feed = weakref.ref(feed)
        self._source = source
        self._shard = shard
        self._start = start
        self._convert = convert
        self._ahead = feed.prefetch
        self._ready: deque[_Ready] = deque()
        # Taken and not yet converted: an interrupt must not lose it.
        self._taken: tuple[Any, Position] | None = None
        self._has_ended = False
        self._is_closed = False
        self._is_over = False  # and its consumer knows
        self._stats: IteratorStats | None = None
        self._seen = source._position()

    def __iter__(self) -> FeedIterator:
        return self

    def __next__(self) -> Any:
        ready = self._ready
        while len(ready) <= self._ahead and not self._has_ended:
            if ready and not self._source._is_ready():
                break  # Nobody waits for what comes after.
            self._take()
        if not ready:
            self._is_over |= not self._is_closed
            raise StopIteration
        value, error, self._seen = ready.popleft()
        if error is not None:
            raise error
        return value

    def _take(self) -> None:
        """Makes the next element ready; an error is one of them."""
        if self._taken is None:
            try:
                self._taken = next(self._source), self._source._position()
            except StopIteration:
                self._has_ended = True
                # An engine that is gone has none; stats() will say so.
                with contextlib.suppress(PenstockError):
                    self._stats = self._source.stats()
                self._source._release()
                return
            except Exception as error:
                found = _Ready(None, error, self._source._position())
                self._ready.append(found)
                return
        element, position = self._taken
        try:
            found = _Ready(self._convert(element), None, position)
        except Exception as error:
            found = _Ready(None, error, position)
        self._ready.append(found)
        self._taken = None

    def state_dict(self) -> dict[str, Any]:
        """The position after the last element returned; fit for JSON."""
        return {
            "version": _STATE_VERSION,
            "epoch": self._start.epoch,
            "seed": self._start.seed,
            "shard": list(self._shard),
            "input": self._source._state_at(self._seen),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes to where `state` was taken: the element after it comes next.

        Raises:
            DataLossError: The state is damaged.
            InvalidArgumentError: It is of another pipeline or another shard.
        """
        start = _start_of(state, self._shard)
        if state["input"] is None:
            raise refused(
                InvalidArgumentError,
                "an iterator's state must be one of an iterator; got a "
                "dataset's, taken before the first.\n"
                "  Load it into the dataset.",
            )
        self._source.load_state_dict(state["input"])
        self._ready.clear()
        self._taken = None
        self._has_ended = self._is_over = False
        self._stats = None
        self._seen = self._source._position()
        self._start = start
        feed = self._feed()
        if feed is not None:
            feed._resume_after(start)

    def stats(self) -> IteratorStats:
        """What was done so far, in all and by transformation.

        The engine works ahead of what was returned; at the end, and after it,
        the numbers are those of the whole epoch.
        """
        return self._source.stats() if self._stats is None else self._stats

    def explain(self, cpu: Any = None, memory: Any = None) -> Explanation:
        """What limits it, as its consumer uses it: as `ps.Iterator.explain`.

        Before the end of the epoch: after it, nothing is left to look at.
        """
        return self._source.explain(cpu, memory)

    def close(self) -> None:
        """Ends the iterator and frees what it holds in the engine."""
        self._has_ended = self._is_closed = True
        self._ready.clear()
        self._source.close()


class Feed:
    """The elements of a dataset that one rank reads, in epochs.

    Pickles, without its position: that is an iterator's.
    """

    def __init__(
        self,
        dataset: Dataset,
        rank: Rank,
        drop_uneven: bool,
        seed: Any,
        prefetch: int = 0,
    ) -> None:
        self._dataset = dataset
        self._rank = rank
        self._drop_uneven = bool(drop_uneven)
        self.prefetch = prefetch
        if seed is not None:
            self._seed = index("seed", seed, 65) & 0xFFFF_FFFF_FFFF_FFFF
        elif rank.total > 1:
            # The same in every rank, without a word between them.
            self._seed = int(dataset.fingerprint()[:16], 16)
        else:
            self._seed = secrets.randbits(64)
        # The epoch that was named, and the iterators made since.
        self._named = dataset._epoch
        self._count = 0
        self._pending: dict[str, Any] | None = None
        self._iterator: FeedIterator | None = None
        self._epochs = WorkerEpochs()
        # Those of workers up to here are no news.
        self._mark = 0
        # In a worker, what all workers of its iteration have in common.
        self._worker_seed: int | None = None
        # In a copy, where the one that it was made of has its epochs, and
        # its mark there.
        self._origin: tuple[Origin, int] | None = None

    def __getstate__(self) -> dict[str, Any]:
        count = self._epochs.count
        state = {
            **self.__dict__,
            "_iterator": None,
            "_epochs": None,
            "_mark": 0,
            "_worker_seed": None,
            "_origin": (self._epochs.origin, count),
        }
        if count > self._mark and self._worker_seed is None:
            state["_named"], state["_count"] = self._next_epoch() - 1, 1
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._epochs = WorkerEpochs()
        if self._origin is not None and self._origin[0].pid == os.getpid():
            self._origin = None  # A copy beside it, with epochs of its own.

    @property
    def rank(self) -> Rank:
        return self._rank

    @property
    def element_spec(self) -> Any:
        return self._dataset.element_spec

    def set_epoch(self, epoch: int) -> None:
        """Makes the next iterator that of `epoch`, the one after it the next.

        A position loaded and not yet gone on from is forgotten, unless it is of
        that epoch.
        """
        found = index("epoch", epoch)
        if not 0 <= found < _MAX_EPOCH:
            raise refused(
                InvalidArgumentError,
                f"epoch must be at least 0 and less than 2**62; got {found}",
            )
        self._named, self._count = found, 0
        if self._epochs.count > self._mark:
            self._iterator = None  # Workers went on after it.
            self._mark = self._epochs.count
        if self._pending is not None and self._pending["epoch"] != found:
            self._pending = None

    def __len__(self) -> int:
        length = len(self._dataset)
        rank, ranks = self._rank
        if self._drop_uneven:
            return length // ranks
        return max(0, -(-(length - rank) // ranks))

    def iterate(
        self,
        convert: Convert,
        worker: Rank = ALONE,
        worker_seed: int | None = None,
    ) -> FeedIterator:
        """An iterator over the next epoch, or from where a state says.

        Args:
            convert: Makes elements of numpy arrays those that are given.
            worker: Which of the processes that read for this rank asks.
            worker_seed: If one of a DataLoader's workers asks, what all of
                them have in common, and those of no other epoch.
        """
        if worker_seed is not None and self._worker_seed is None:
            self._become_worker(worker_seed)
        start = Start(self._next_epoch() % _MAX_EPOCH, self._seed)
        self._named, self._count = start.epoch, 1
        self._mark = self._epochs.count
        self._iterator = None  # If nobody else has it, its memory goes first.
        shard = self._shard(worker)
        source = _iterator.Iterator(self._sharded(worker), start)
        self._iterator = FeedIterator(self, source, shard, start, convert)
        pending, self._pending = self._pending, None
        if pending is not None:
            self._iterator.load_state_dict(pending)
        return self._iterator

    def _next_epoch(self) -> int:
        """That of the next iterator, after those of workers, if any."""
        by_workers = None
        if self._worker_seed is None:
            by_workers = self._epochs.last_after(self._mark)
        if by_workers is not None:
            return by_workers + 1
        return (self._named or 0) + self._count

    def _become_worker(self, seed: int) -> None:
        """Takes the epoch that this worker and those beside it begin with."""
        is_named = self._named is not None and self._count == 0
        origin, mark = self._origin or (None, 0)
        try:
            found = WorkerEpochs.of_parent(origin)
        except OSError:
            # Nothing else tells one epoch from the next, but several ranks
            # do not have it in common.
            if self._rank.total == 1 and not is_named:
                self._named, self._count = seed & 0xFFFF_FFFF, 0
        else:
            if found is not None:
                self._epochs, self._mark = found, mark
            self._named = self._epochs.begin(seed, self._next_epoch)
            self._count = 0
        self._worker_seed = seed

    def _shard(self, worker: Rank) -> Rank:
        # A rank's elements go to its workers in turn, which is how a
        # DataLoader asks them.
        rank, ranks = self._rank
        return Rank(rank + ranks * worker.number, ranks * worker.total)

    def _sharded(self, worker: Rank) -> Dataset:
        dataset = self._dataset
        rank, ranks = self._rank
        if self._drop_uneven and ranks > 1:
            cardinality = dataset.cardinality()
            if cardinality == UNKNOWN_CARDINALITY:
                dataset = _nth_of_each(dataset, rank, ranks)
                if worker.total > 1:
                    dataset = dataset.shard(worker.total, worker.number)
                return dataset
            if cardinality != INFINITE_CARDINALITY:
                dataset = dataset.take(cardinality - cardinality % ranks)
        shard = self._shard(worker)
        if shard.total > 1:
            dataset = dataset.shard(shard.total, shard.number)
        return dataset

    def _resume_after(self, start: Start) -> None:
        assert start.seed is not None
        self._seed = start.seed
        self._named, self._count = start.epoch, 1
        self._note(start)

    def _note(self, start: Start) -> None:
        """Lets epochs follow that of a state that was loaded."""
        if self._worker_seed is not None:
            assert start.epoch is not None
            self._epochs.note(self._worker_seed, start.epoch)
        self._mark = self._epochs.count

    def state_dict(self) -> dict[str, Any]:
        """The position in the last iterator made, or before the next one.

        Raises:
            FailedPreconditionError: Workers of a DataLoader have read since.
        """
        if self._worker_seed is None and self._epochs.count > self._mark:
            raise refused(
                FailedPreconditionError,
                "a position must be taken where elements are read; got "
                "state_dict() in the trainer, and a DataLoader whose workers "
                "read.\n"
                "  Use torchdata's StatefulDataLoader(feed, batch_size=None, "
                "num_workers=n) and its own state_dict(), or num_workers=0.",
            )
        if self._pending is not None:
            return self._pending
        # Whoever has seen the end of an epoch goes on with the next. torchdata,
        # which asks workers, does so by itself.
        last = self._iterator
        is_worker = self._worker_seed is not None
        if last is not None and (is_worker or not last._is_over):
            return last.state_dict()
        return {
            "version": _STATE_VERSION,
            "epoch": self._next_epoch(),
            "seed": self._seed,
            "shard": list(self._rank),
            "input": None,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Makes the next iterator go on where `state` was taken."""
        start = _start_of(state)
        assert start.seed is not None
        self._seed = start.seed
        self._named, self._count = start.epoch, 0
        self._pending = state if state["input"] is not None else None
        self._iterator = None
        self._note(start)


def check_not_sharded(dataset: Dataset, rank: Rank) -> None:
    """Refuses to share by ranks that nobody named what is so shared already.

    Raises:
        InvalidArgumentError: The pipeline has a shard for each rank.
    """
    if rank.total == 1:
        return
    for node in dataset._describe().get("nodes", []):
        shards = str(node.get("detail", "")).partition(",")[0]
        if node.get("op") == "shard" and shards == f"num_shards={rank.total}":
            raise refused(
                InvalidArgumentError,
                f"elements must be shared between the {rank.total} ranks once; "
                f"got a pipeline with {node.get('name')}({node['detail']}).\n"
                "  Say rank=0, world_size=1 if those are the shares of the "
                "ranks; otherwise name the rank and world_size yourself.",
            )


def _nth_of_each(dataset: Dataset, n: int, size: int) -> Dataset:
    """The n-th element of each whole group of `size`."""

    def pick(*parts: Any) -> Any:
        group: Any = parts if len(parts) > 1 else parts[0]
        if not isinstance(group, Pipeline):
            from penstock._dataset import Dataset

            group = Dataset.zip(datasets=group)
        return group.skip(n).take(1)

    return dataset.window(size, drop_remainder=True).flat_map(pick)


def _start_of(state: Any, shard: Rank | None = None) -> Start:
    """What an iterator of `state` began with; refuses what is no state."""
    try:
        version, found = state["version"], Rank(*state["shard"])
        start = Start(index("epoch", state["epoch"]), int(state["seed"]))
        is_input = state["input"] is None or isinstance(state["input"], Mapping)
    except (KeyError, TypeError, ValueError):
        version, is_input = None, False
    if version != _STATE_VERSION or not is_input:
        import reprlib

        raise refused(
            InvalidTypeError,
            f"a state must be a dict of version {_STATE_VERSION} as "
            f"state_dict() gave it; got {reprlib.repr(state)}",
        )
    if shard is not None and found != shard:
        raise refused(
            InvalidArgumentError,
            f"a state must be of this shard, {shard.number} of {shard.total}; "
            f"got one of {found.number} of {found.total}.\n"
            "  Each rank and worker loads the state that it has saved, with as "
            "many ranks and workers.",
        )
    return start


def check_leaves(
    element_spec: Any, check: Callable[[_spec.TensorSpec], str | None]
) -> None:
    """Refuses a spec with datasets inside, or with what `check` names.

    Args:
        element_spec: A structure of specs.
        check: Says what is wrong with a leaf, and what to do; None if nothing.
    """
    for leaf in _spec.flatten(element_spec):
        if isinstance(leaf, _spec.DatasetSpec):
            problem: str | None = (
                "elements must not hold datasets; got {}.\n"
                "  Put them together with flat_map() and batch() first."
            )
        else:
            problem = check(leaf)
        if problem is not None:
            raise refused(InvalidTypeError, problem.format(element_spec))


def converter(spec: Any, of: Callable[[Any], Convert | None]) -> Convert:
    """What makes elements of `spec` those of another library.

    Args:
        spec: A structure of specs.
        of: What converts the values of a spec, or of a structure that is one
            value (ragged, sparse); None to go on with the structure's parts.
    """
    found = of(spec)
    if found is not None:
        return found
    if spec is None:
        return lambda _: None
    if isinstance(spec, Mapping):
        by_key = {key: converter(part, of) for key, part in spec.items()}
        return lambda x: {key: by_key[key](x[key]) for key in by_key}
    if _spec.is_dataclass(spec):
        by_name = {
            field.name: converter(getattr(spec, field.name), of)
            for field in dataclasses.fields(spec)
            if field.init
        }
        return lambda x: type(x)(
            **{name: by_name[name](getattr(x, name)) for name in by_name}
        )
    parts = [converter(part, of) for part in spec]
    if _spec.is_namedtuple(spec):
        return lambda x: type(x)(
            *(part(item) for part, item in zip(parts, x, strict=True))
        )
    return lambda x: tuple(
        [part(item) for part, item in zip(parts, x, strict=True)]
    )
