"""What is asked of a dataset: its elements, its size, what it is made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock import _engine, _spec
from penstock._connection import Start
from penstock._errors import (
    InvalidArgumentError,
    InvalidTypeError,
    OutOfRangeError,
    UnimplementedError,
    UnsupportedFunctionError,
)
from penstock._iterator import Iterator
from penstock._location import refused
from penstock._options import Options
from penstock._packed import REDUCE
from penstock._pipeline import (
    INFINITE_CARDINALITY,
    UNKNOWN_CARDINALITY,
    Pipeline,
    append,
)
from penstock._pipeline import index as _index
from penstock._transforms import _folding

# Transformations that give each element a place known beforehand.
_WITH_PLACES = frozenset(
    {
        "batch", "cache", "concatenate", "enumerate", "from_arrow",
        "from_huggingface", "from_list", "from_pandas", "from_tensor_slices",
        "from_tensors", "map", "prefetch", "range", "repeat", "rows", "shard",
        "skip", "take", "with_options", "zip",
    }
)  # fmt: skip


def _length(cardinality: int) -> str:
    return f", {cardinality}" if cardinality >= 0 else ""


class Actions(Pipeline):
    """The part of `Dataset` that gives things that are no datasets."""

    def __iter__(self) -> Iterator:
        if self._recording is not None:
            raise refused(
                UnsupportedFunctionError,
                "a dataset inside a function has elements only when the "
                "pipeline runs; it cannot be iterated over or reduced here. "
                "Return it to flat_map, or use batch",
            )
        return Iterator(self._self(), Start(self._epoch))

    def as_numpy_iterator(self) -> Iterator:
        """An iterator, as `iter()` makes one: elements are numpy arrays.

        Example:
            >>> next(ps.Dataset.range(3).as_numpy_iterator())
            np.int64(0)
        """
        return iter(self)

    def reduce(
        self,
        initial_state: Any,
        reduce_func: Callable[[Any, Any], Any],
        name: Any = None,
    ) -> Any:
        """Folds all elements into one value: (state, element) -> state.

        Example:
            >>> ps.Dataset.range(5).reduce(np.int64(0), lambda s, x: s + x)
            np.int64(10)
        """
        state, function, captures = _folding(
            self, initial_state, reduce_func, REDUCE
        )
        folded = append(
            "reduce",
            {"initial_state": state, "function": function.message},
            [self],
            function=function,
            captures=captures,
            types=_spec.types_of(initial_state),
        )
        with iter(folded) as elements:
            return next(elements)

    def get_single_element(self, name: Any = None) -> Any:
        """The only element.

        Example:
            >>> ps.Dataset.from_tensors([1, 2]).get_single_element()
            array([1, 2])

        Raises:
            InvalidArgumentError: There is none, or more than one.
        """
        with iter(self) as elements:
            found = []
            for element in elements:
                found.append(element)
                if len(found) == 2:
                    break
        if len(found) != 1:
            got = "more than one" if found else "none"
            raise refused(
                InvalidArgumentError,
                f"get_single_element takes a dataset of one element; got {got}",
            )
        return found[0]

    def at(self, index: int) -> Any:
        """The element of that number.

        Elements before it are passed over, without being handed to Python. Only
        of pipelines whose elements have fixed places: without shuffles, filters
        and the like.

        Example:
            >>> ps.Dataset.range(10).map(lambda x: x * x).batch(4).at(1)
            array([16, 25, 36, 49])

        Raises:
            OutOfRangeError: There is none.
            UnimplementedError: Elements have no fixed places.
        """
        position = _index("index", index)
        for node in self._describe().get("nodes", []):
            name = str(node.get("name", ""))
            if name.rpartition("_")[0] not in _WITH_PLACES:
                raise refused(
                    UnimplementedError,
                    "at() needs a pipeline of "
                    f"{', '.join(sorted(_WITH_PLACES))}; got {name}",
                )
        if position >= 0:
            there = self._self().skip(position).take(1)
            with iter(there) as elements:
                for element in elements:
                    return element
        raise refused(
            OutOfRangeError,
            f"index must be at least 0 and less than the dataset's length"
            f"{_length(self._cardinality)}; got {position}",
        )

    def cardinality(self) -> int:
        """The number of elements, if that is known without reading them.

        Example:
            >>> ps.Dataset.range(9).batch(4).cardinality()
            3
            >>> ps.Dataset.counter().cardinality() == ps.INFINITE_CARDINALITY
            True

        Returns:
            The number, `ps.INFINITE_CARDINALITY` or `ps.UNKNOWN_CARDINALITY`.
        """
        return self._cardinality

    def __len__(self) -> int:
        if self._cardinality in (INFINITE_CARDINALITY, UNKNOWN_CARDINALITY):
            what = (
                "infinite"
                if self._cardinality == INFINITE_CARDINALITY
                else "not known before reading it"
            )
            raise refused(InvalidTypeError, f"the dataset's length is {what}")
        return self._cardinality

    def __bool__(self) -> bool:
        return True  # Not the length: that may be unknown.

    def options(self) -> Options:
        """The options set so far.

        Example:
            >>> ps.Dataset.range(3).options()
            Options(deterministic=None, run_ahead=None, memory_budget=None,
                    max_element_bytes=None, name=None, python=None,
                    autotune=None, kept_directory=None, rewrite=None)
        """
        return Options().merge(self._options)

    def apply(self, transformation_func: Callable[[Any], Any]) -> Any:
        """What a function of datasets makes of this one.

        Example:
            >>> ps.Dataset.range(4).apply(lambda ds: ds.batch(2)).cardinality()
            2
        """
        made = transformation_func(self)
        if not isinstance(made, Pipeline):
            raise refused(
                InvalidTypeError,
                "the function of apply must return a Dataset; got "
                f"{type(made).__name__}",
            )
        return made

    def set_epoch(self, epoch: int) -> None:
        """Sets the epoch of the iterators made from now on.

        Without it each iterator has the next one. Shuffles and random functions
        give the same in the same epoch.

        Example:
            >>> ds = ps.Dataset.range(9).shuffle(9, seed=1)
            >>> ds.set_epoch(3)
            >>> list(ds) == list(ds)
            True
        """
        found = _index("epoch", epoch)
        if found < 0:
            raise refused(
                InvalidArgumentError, f"epoch must be at least 0; got {found}"
            )
        self._epoch = found

    def fingerprint(self) -> str:
        """A name for what the pipeline computes: the same on every machine.

        Example:
            >>> a, b = ps.Dataset.range(3), ps.Dataset.range(3)
            >>> a.fingerprint() == b.fingerprint()
            True
        """
        if self._fingerprint is None:
            self._fingerprint = self._describe()["fingerprint"]
        return self._fingerprint

    def describe(self) -> str:
        """The pipeline as text, one line per transformation, the last first.

        Example:
            >>> "batch" in ps.Dataset.range(5).batch(2).describe()
            True
        """
        text: str = self._describe().get("text", "")
        return text.rstrip("\n")

    def _describe(self) -> dict[str, Any]:
        return _engine.call("describe", {"plan": self._plan})

    def __repr__(self) -> str:
        size = {
            INFINITE_CARDINALITY: "infinite",
            UNKNOWN_CARDINALITY: "unknown",
        }.get(self._cardinality, self._cardinality)
        name = type(self).__name__
        return f"<{name} element_spec={self.element_spec}, cardinality={size}>"

    def _repr_html_(self) -> str:
        import html

        rows = []
        for node in reversed(self._describe().get("nodes", [])):
            made_at = node.get("made_at", {})
            where = f"{made_at.get('file', '')}:{made_at.get('line', '')}"
            spec = _spec.from_json(node.get("output", {}), self._types)
            cells = (node.get("name"), node.get("detail", ""), spec, where)
            text = "".join(f"<td>{html.escape(str(c))}</td>" for c in cells)
            rows.append(f"<tr>{text}</tr>")
        heads = ("transformation", "detail", "element", "made at")
        head = "".join(f"<th>{text}</th>" for text in heads)
        return f"<table><tr>{head}</tr>{''.join(rows)}</table>"
