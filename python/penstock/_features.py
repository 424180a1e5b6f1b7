"""What is wanted of serialized Examples, as users write it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from penstock import _dtypes
from penstock._composites import Ragged, Sparse
from penstock._dtypes import DType
from penstock._errors import InvalidArgumentError, InvalidTypeError
from penstock._location import refused


class FixedLenFeature(NamedTuple):
    """A feature that has one shape in every Example.

    Args:
        shape: Of the value; `()` is a scalar.
        dtype: float32, int64 or string.
        default_value: What a missing feature has, of `shape`; None: it must be
            there.
    """

    shape: int | Sequence[int]
    dtype: Any
    default_value: Any = None


class VarLenFeature(NamedTuple):
    """A feature of any number of values, as `ps.Sparse`."""

    dtype: Any


class RowSplits(NamedTuple):
    """Rows that begin and end where the values of `key` say."""

    key: str


class UniformRowLength(NamedTuple):
    """Rows of `length` values."""

    length: int


class RaggedFeature(NamedTuple):
    """A feature of any number of values.

    From one Example it is a vector, from a batch a `ps.Ragged`.

    Args:
        dtype: float32, int64 or string.
        value_key: The key, if it is not the name of the result.
        partitions: How the values of one Example are cut into rows, outermost
            first: `RaggedFeature.RowSplits(key)`, and last
            `RaggedFeature.UniformRowLength(length)`. For single Examples.
        row_splits_dtype: int32 or int64.
    """

    dtype: Any
    value_key: str | None = None
    partitions: Sequence[Any] = ()
    row_splits_dtype: Any = "int32"


RaggedFeature.RowSplits = RowSplits  # type: ignore[attr-defined]
RaggedFeature.UniformRowLength = UniformRowLength  # type: ignore[attr-defined]


class SparseFeature(NamedTuple):
    """Two features, one having the indices of the other's values: `ps.Sparse`.

    Args:
        index_key: The key of the indices, each from 0 to below `size`.
        value_key: The key of the values.
        dtype: float32, int64 or string.
        size: Of the dense vector.
        already_sorted: Taken for tf.data's sake: sorted indices are noticed.
    """

    index_key: str
    value_key: str
    dtype: Any
    size: int
    already_sorted: bool = False


class FixedLenSequenceFeature(NamedTuple):
    """A feature of any number of values of one shape, as a dense tensor.

    The result has one dimension more than `shape`. In a batch, shorter ones are
    filled up.

    Args:
        shape: Of one value.
        dtype: float32, int64 or string.
        allow_missing: Whether a missing one is empty. In Examples it must be
            True, as in tf.data.
        default_value: A scalar to fill up with; 0 or `b""` by default.
    """

    shape: int | Sequence[int]
    dtype: Any
    allow_missing: bool = False
    default_value: Any = None


Feature = (
    FixedLenFeature
    | VarLenFeature
    | RaggedFeature
    | SparseFeature
    | FixedLenSequenceFeature
)


class Wanted:
    """Features of one map, as the engine's attributes and back.

    Args:
        features: By the names of results.
        tensors: The arguments of the call; defaults are added.
        is_list: Whether they are lists of Features, as sequence examples have.
    """

    def __init__(
        self,
        features: Mapping[str, Any],
        tensors: list[Any],
        *,
        is_batch: bool,
        is_list: bool = False,
    ) -> None:
        self.keys: list[str] = []
        self.lines: list[str] = []
        self.parts: list[int] = []
        # Of feature lists in a batch: set by results().
        self.lengths: dict[str, Any] = {}
        self._features = dict(features)
        self._tensors = tensors
        self._is_batch = is_batch
        self._is_list = is_list
        for name, feature in self._features.items():
            if not isinstance(name, str):
                raise refused(
                    InvalidTypeError,
                    f"names of features must be strings; got {name!r}",
                )
            self._add(name, feature)

    @property
    def count(self) -> int:
        """How many tensors the engine gives."""
        return sum(self.parts)

    def results(self, tensors: Iterable[Any]) -> dict[str, Any]:
        """What users get, made of the engine's tensors."""
        rest = iter(tensors)
        counts = iter(self.parts)
        done: dict[str, Any] = {}
        for name, feature in self._features.items():
            own = [next(rest) for _ in range(next(counts))]
            if isinstance(feature, (VarLenFeature, SparseFeature)):
                done[name] = Sparse(*own)
            elif isinstance(feature, RaggedFeature):
                if feature.partitions:
                    splits = [
                        next(rest)
                        for part in feature.partitions
                        for _ in range(self._take(part, counts))
                    ]
                    done[name] = _partitioned(feature, own[0], splits)
                else:
                    done[name] = self._ragged(own)
            else:
                done[name] = own[0]
                if len(own) > 1:
                    self.lengths[name] = own[1]
        return done

    def _take(self, part: Any, counts: Any) -> int:
        return next(counts) if isinstance(part, RowSplits) else 0

    def _ragged(self, own: list[Any]) -> Any:
        value = own[0]
        for splits in own[1:]:
            value = Ragged(value, splits)
        return value

    def _place(self, key: str) -> int:
        if key not in self.keys:
            self.keys.append(key)
        return self.keys.index(key)

    def _line(self, key: str, kind: str, *words: Any, parts: int) -> None:
        place = self._place(key)
        self.lines.append(" ".join(map(str, (place, kind, *words))))
        self.parts.append(parts)

    def _add(self, name: str, feature: Any) -> None:
        if isinstance(feature, FixedLenFeature) and not self._is_list:
            dtype, shape = _dtype(name, feature), _shape(name, feature.shape)
            default = "-"
            if feature.default_value is not None:
                default = self._default(
                    name, feature.default_value, dtype, shape
                )
            self._line(
                name, "fixed", dtype.name, _text(shape), default, parts=1
            )
        elif isinstance(feature, FixedLenSequenceFeature):
            self._add_sequence(name, feature)
        elif isinstance(feature, VarLenFeature):
            self._line(name, "var", _dtype(name, feature).name, parts=3)
        elif isinstance(feature, RaggedFeature):
            self._add_ragged(name, feature)
        elif isinstance(feature, SparseFeature) and not self._is_list:
            if not isinstance(feature.index_key, str):
                raise refused(
                    InvalidTypeError,
                    f"index_key of feature {name!r} must be a string; got "
                    f"{feature.index_key!r}",
                )
            indices = self._place(feature.index_key)
            words = (_dtype(name, feature).name, indices, int(feature.size))
            self._line(feature.value_key, "sparse", *words, parts=3)
        else:
            kinds = (
                "FixedLenSequenceFeature, VarLenFeature or RaggedFeature"
                if self._is_list
                else "FixedLenFeature, VarLenFeature, RaggedFeature, "
                "SparseFeature or FixedLenSequenceFeature"
            )
            raise refused(
                InvalidTypeError,
                f"feature {name!r} must be a {kinds}; got {feature!r}",
            )

    def _add_sequence(
        self, name: str, feature: FixedLenSequenceFeature
    ) -> None:
        if not feature.allow_missing and not self._is_list:
            raise refused(
                InvalidArgumentError,
                f"FixedLenSequenceFeature {name!r} of an Example must have "
                "allow_missing=True; got False",
            )
        dtype, shape = _dtype(name, feature), _shape(name, feature.shape)
        default = "-"
        if feature.default_value is not None:
            default = self._default(name, feature.default_value, dtype, ())
        words: list[str] = [dtype.name, _text(shape), default]
        if feature.allow_missing:
            words.append("optional")
        # Of a batch of lists, their lengths come too.
        parts = 2 if self._is_list and self._is_batch else 1
        self._line(name, "sequence", *words, parts=parts)

    def _add_ragged(self, name: str, feature: RaggedFeature) -> None:
        splits = DType.of(feature.row_splits_dtype)
        if splits not in (_dtypes.int32, _dtypes.int64):
            raise refused(
                InvalidTypeError,
                f"row_splits_dtype of feature {name!r} must be int32 or int64; "
                f"got {splits}",
            )
        partitions = list(feature.partitions)
        if partitions and (self._is_batch or self._is_list):
            raise refused(
                InvalidArgumentError,
                f"partitions of feature {name!r} must be empty here; they are "
                "for parse_single_example",
            )
        parts = 1 + self._is_batch + self._is_list
        key = name if feature.value_key is None else feature.value_key
        dtype = _dtype(name, feature).name
        self._line(key, "ragged", dtype, splits.name, parts=parts)
        while partitions and isinstance(partitions[-1], UniformRowLength):
            partitions.pop()
        for part in partitions:
            if not isinstance(part, RowSplits):
                raise refused(
                    InvalidTypeError,
                    f"partitions of feature {name!r} must be RowSplits, and "
                    f"UniformRowLength after them; got {part!r}",
                )
            self._line(part.key, "ragged", "int64", splits.name, parts=1)

    def _default(
        self, name: str, value: Any, dtype: DType, shape: tuple[int, ...]
    ) -> str:
        try:
            array = _dtypes.to_array(value, dtype).reshape(shape)
        except (TypeError, ValueError):
            raise refused(
                InvalidArgumentError,
                f"the default_value of feature {name!r} must be {dtype.name} "
                f"of shape {shape}; got {value!r}",
            ) from None
        self._tensors.append(array)
        return str(len(self._tensors) - 1)


def _partitioned(feature: RaggedFeature, values: Any, splits: list[Any]) -> Any:
    from penstock import _functions

    inner = [
        part.length
        for part in feature.partitions
        if isinstance(part, UniformRowLength)
    ]
    if inner:
        values = _functions.reshape(values, (-1, *inner))
    for split in reversed(splits):
        values = Ragged(
            values, _functions.cast(split, feature.row_splits_dtype)
        )
    return values


def _dtype(name: str, feature: Any) -> DType:
    dtype = DType.of(feature.dtype)
    if dtype not in (_dtypes.float32, _dtypes.int64, _dtypes.string):
        raise refused(
            InvalidTypeError,
            f"feature {name!r} must be float32, int64 or string, which are "
            f"what an Example can hold; got {dtype}. Cast the result.",
        )
    return dtype


def _shape(name: str, shape: Any) -> tuple[int, ...]:
    try:
        dims = tuple(map(int, (shape,) if isinstance(shape, int) else shape))
    except (TypeError, ValueError):
        dims = (-1,)
    if any(dim < 0 for dim in dims):
        raise refused(
            InvalidArgumentError,
            f"the shape of feature {name!r} must be sizes that are known; got "
            f"{shape!r}",
        )
    return dims


def _text(shape: tuple[int, ...]) -> str:
    return ",".join(map(str, shape)) or "-"
