"""Several datasets as one, and elements left out by what they are."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock import _functions, _python, _spec
from penstock._errors import InvalidArgumentError, InvalidTypeError
from penstock._location import refused
from penstock._pipeline import (
    INFINITE_CARDINALITY,
    UNKNOWN_CARDINALITY,
    Pipeline,
    append,
    index,
)
from penstock._pipeline import seed as seed_field

if TYPE_CHECKING:
    from penstock._dataset import Dataset

# Elements of each class that are taken for seen before the first.
_SMOOTHING = 10.0


class Mixing(Pipeline):
    """The part of `Dataset` that draws, chooses and rejects."""

    @staticmethod
    def sample_from_datasets(
        datasets: Sequence[Any],
        weights: Any = None,
        seed: int | None = None,
        stop_on_empty_dataset: bool = False,
        rerandomize_each_iteration: bool | None = None,
        name: Any = None,
    ) -> Dataset:
        """Draws the dataset that each element comes from.

        Example:
            >>> a, b = ps.Dataset.range(3), ps.Dataset.range(10, 13)
            >>> ds = ps.Dataset.sample_from_datasets([a, b], [0.5, 0.5], seed=1)
            >>> sorted(int(x) for x in ds)
            [0, 1, 2, 10, 11, 12]

        Args:
            datasets: With elements of the same structure and dtypes.
            weights: How likely each is, in any unit, as [3, 1]; or a dataset
                of vectors of floats, one for each draw. All alike if left out.
            seed: The same seed gives the same draws; drawn if left out.
            stop_on_empty_dataset: Ends with the first dataset that ends;
                otherwise goes on with the others.
            rerandomize_each_iteration: Other draws for each iterator and each
                repetition; no if left out.
            name: Not used.
        """
        inputs = _datasets("sample_from_datasets", datasets)
        if isinstance(weights, Pipeline):
            choices = _draws(
                weights, len(inputs), seed, bool(rerandomize_each_iteration)
            )
            return Mixing.choose_from_datasets(
                inputs, choices, stop_on_empty_dataset
            )
        return append(
            "sample_from_datasets",
            {
                "weights": _weights(weights, len(inputs)),
                **seed_field(seed),
                "rerandomize_each_iteration": bool(rerandomize_each_iteration),
                "stop_on_empty": bool(stop_on_empty_dataset),
            },
            inputs,
        )

    @staticmethod
    def choose_from_datasets(
        datasets: Sequence[Any],
        choice_dataset: Any,
        stop_on_empty_dataset: bool = True,
        name: Any = None,
    ) -> Dataset:
        """Takes each element from the dataset that another one names.

        Example:
            >>> a, b = ps.Dataset.range(3), ps.Dataset.range(10, 13)
            >>> choices = ps.Dataset.from_tensor_slices([0, 1, 1, 0])
            >>> ds = ps.Dataset.choose_from_datasets([a, b], choices)
            >>> [int(x) for x in ds]
            [0, 10, 11, 1]

        Args:
            datasets: With elements of the same structure and dtypes.
            choice_dataset: Their numbers, int64 scalars.
            stop_on_empty_dataset: Ends with the first dataset that has nothing
                when it is chosen; otherwise such choices are passed over.
            name: Not used.
        """
        inputs = _datasets("choose_from_datasets", datasets)
        if not isinstance(choice_dataset, Pipeline):
            raise refused(
                InvalidTypeError,
                "choice_dataset must be a dataset; got "
                f"{type(choice_dataset).__name__}",
            )
        return append(
            "choose_from_datasets",
            {"stop_on_empty": bool(stop_on_empty_dataset)},
            [choice_dataset, *inputs],
        )

    def unique(self, name: Any = None) -> Dataset:
        """The first of each element; later ones that are equal are left out.

        Example:
            >>> ds = ps.Dataset.from_tensor_slices([1, 37, 2, 37, 2, 1])
            >>> [int(x) for x in ds.unique()]
            [1, 37, 2]
        """
        return append("unique", {}, [self])

    def assert_cardinality(
        self, expected_cardinality: int, name: Any = None
    ) -> Dataset:
        """The same dataset with a known length, checked as it is read.

        If it has another number of elements, its last one is a
        `FailedPreconditionError`.

        Example:
            >>> ds = ps.Dataset.range(9).filter(lambda x: x % 3 == 0)
            >>> len(ds.assert_cardinality(3))
            3
        """
        given = index("expected_cardinality", expected_cardinality)
        expected: dict[str, Any] = {"finite": given}
        if given == INFINITE_CARDINALITY:
            expected = {"infinite": True}
        elif given == UNKNOWN_CARDINALITY:
            expected = {"unknown": True}
        return append("assert_cardinality", {"expected": expected}, [self])

    def rejection_resample(
        self,
        class_func: Callable[..., Any],
        target_dist: Any,
        initial_dist: Any = None,
        seed: int | None = None,
        name: Any = None,
    ) -> Dataset:
        """Leaves out elements so that classes have a wanted distribution.

        Gives pairs of an element's class and the element.

        Example:
            >>> ds = ps.Dataset.range(1000).rejection_resample(
            ...     lambda x: ps.cast(x % 10 == 0, ps.int64), [0.5, 0.5],
            ...     initial_dist=[0.9, 0.1], seed=1)
            >>> classes = [int(c) for c, _ in ds]
            >>> 0.35 < sum(classes) / len(classes) < 0.65
            True

        Args:
            class_func: The class of an element, an integer from 0 on.
            target_dist: How likely each class should be; floats.
            initial_dist: How likely each class is in the input; learnt as
                elements come if left out.
            seed: Of the draws.
            name: Not used.
        """
        from penstock._dataset import Dataset

        target = _distribution("target_dist", target_dist)
        is_tuple = _spec.is_plain_tuple(self.element_spec)

        assert isinstance(self, Dataset)
        # A partial, so that the user's function is judged as such.
        given = _python.plain(class_func)
        with_class = functools.partial(_with_class, given, is_tuple)
        pairs = self.map(_python.like(class_func, with_class))
        if initial_dist is not None:
            initial = _distribution("initial_dist", initial_dist)
            if len(initial) != len(target):
                raise refused(
                    InvalidArgumentError,
                    "initial_dist must have one entry per class, "
                    f"{len(target)}; got {len(initial)}",
                )
            accepted = _acceptance(target, initial)
            return pairs.filter(
                lambda kind, _: (
                    _functions.random_uniform((), dtype="float64", seed=seed)
                    < _functions.take(accepted, kind)
                )
            )
        classes = len(target)

        def learn(seen: Any, pair: Any) -> Any:
            kind = pair[0]
            seen = seen + _functions.one_hot(kind, classes, dtype="float64")
            ratio = target / seen
            accepted = ratio / _functions.max(ratio)
            draw = _functions.random_uniform((), dtype="float64", seed=seed)
            return seen, (pair, draw < _functions.take(accepted, kind))

        marked = pairs.scan(np.full(classes, _SMOOTHING), learn)
        kept = marked.filter(lambda _, is_kept: is_kept)
        return kept.map(lambda pair, _: pair)


def _with_class(
    class_func: Any, is_tuple: bool, *element: Any, **rng: Any
) -> Any:
    kind = class_func(*element, **rng)
    return kind, element if is_tuple else element[0]


def _datasets(what: str, given: Any) -> list[Any]:
    if not isinstance(given, (list, tuple)):
        raise refused(
            InvalidTypeError,
            f"{what} takes a list of datasets; got {type(given).__name__}",
        )
    if not given:
        raise refused(
            InvalidArgumentError,
            f"{what} needs at least one dataset; got none",
        )
    for item in given:
        if not isinstance(item, Pipeline):
            raise refused(
                InvalidTypeError,
                f"{what} takes a list of datasets; got a "
                f"{type(item).__name__} in it",
            )
    _check_alike(what, [item.element_spec for item in given])
    return list(given)


def _check_alike(what: str, specs: list[Any]) -> None:
    """Refuses datasets whose elements cannot be one another's."""
    first = dict(_leaves(specs[0], ""))
    for number, spec in enumerate(specs[1:], start=1):
        found = dict(_leaves(spec, ""))
        if list(found) != list(first):
            raise refused(
                InvalidTypeError,
                f"{what} takes datasets of one structure; dataset 0 has "
                f"{specs[0]}, and dataset {number} has {spec}.\n"
                "  Give their elements the same components with map().",
            )
        for path, leaf in found.items():
            if leaf == first[path]:
                continue
            where = f"component {path}" if path else "an element"
            advice = "Give their elements the same dtypes with map()."
            if "string" not in (leaf, first[path]):
                advice = (
                    "Use map() and ps.cast in one of them, as in "
                    f"ps.cast(x, ps.{first[path]})."
                )
            raise refused(
                InvalidTypeError,
                f"{what} takes datasets of the same dtypes; {where} of dataset "
                f"0 is {first[path]}, and of dataset {number} {leaf}.\n"
                f"  {advice}",
            )


def _leaves(spec: Any, path: str) -> Iterator[tuple[str, str]]:
    """The dtypes of a structure, by the way to each."""
    if isinstance(spec, _spec.TensorSpec):
        yield path, spec.dtype.name
    elif isinstance(spec, Mapping):
        for key in sorted(spec):
            yield from _leaves(spec[key], f"{path}[{key!r}]")
    elif isinstance(spec, (tuple, list)):
        for i, part in enumerate(spec):
            yield from _leaves(part, f"{path}[{i}]")
    # What else there is, the engine compares.


def _weights(given: Any, count: int) -> list[float]:
    if given is None:
        return []
    found = np.asarray(given)
    if found.dtype.kind not in "fiu":
        raise refused(
            InvalidTypeError,
            f"weights must be numbers; got {found.dtype.name}",
        )
    if found.shape != (count,):
        raise refused(
            InvalidArgumentError,
            f"there must be one weight per dataset, {count}; got shape "
            f"{found.shape}",
        )
    weights: list[float] = found.astype(np.float64).tolist()
    return weights


def _draws(
    weights: Any, count: int, seed: int | None, rerandomize: bool
) -> Dataset:
    """Numbers of datasets, each drawn by a vector of weights of its own."""
    from penstock._dataset import Dataset

    def draw(number: Any, vector: Any) -> Any:
        values = _functions.cast(vector, "float64")
        uniform = _functions.cast(number & ((1 << 53) - 1), "float64")
        at = uniform / float(1 << 53) * _functions.sum(values)
        reached = values[0]
        chosen = _functions.cast(reached * 0, "int64")
        for i in range(1, count):
            chosen = chosen + _functions.cast(at >= reached, "int64")
            reached = reached + values[i]
        return chosen

    numbers = Dataset.random(seed, rerandomize)
    return Dataset.zip(numbers, weights).map(draw)


def _distribution(name: str, given: Any) -> Any:
    found = np.asarray(given)
    if (
        found.ndim != 1
        or not found.size
        or not np.issubdtype(found.dtype, np.floating)
        or not np.all(found >= 0)
        or not np.sum(found) > 0
    ):
        raise refused(
            InvalidArgumentError,
            f"{name} must be a vector of floats of at least 0, not all 0; "
            f"got {given!r}",
        )
    wide = found.astype(np.float64)
    return wide / wide.sum()


def _acceptance(target: Any, initial: Any) -> Any:
    """How likely an element of each class is kept."""
    tiny = np.finfo(np.float64).tiny
    ratio = target / np.maximum(initial, tiny)
    # A class that is not there needs nothing.
    ratio[initial == 0] = 0
    return ratio / max(float(ratio.max()), tiny)
