"""`tf.random`: shapes, ranges and dtypes are TensorFlow's, its values are not.

In a recorded function numbers are drawn by the pipeline's seed and the element,
so that they are the same wherever and in whatever order elements are computed.
Stateless functions give the same for the same seed, here and in the engine.
"""

from __future__ import annotations

import builtins
import math as _math
from typing import Any

import numpy as np

from penstock import _recording
from penstock._errors import InvalidArgumentError
from penstock._location import refused
from penstock._symbol import Symbol
from penstock.compat.tf import _arrays as arrays
from penstock.compat.tf import _seeds
from penstock.compat.tf._arithmetic import native, unary
from penstock.compat.tf._arrays import _has_symbols, _sizes
from penstock.compat.tf._seeds import set_seed
from penstock.compat.tf._tensor import Tensor, convert
from penstock.compat.tf._types import as_dtype

__all__ = [
    "Generator",
    "categorical",
    "fold_in",
    "get_global_generator",
    "normal",
    "set_seed",
    "shuffle",
    "split",
    "stateless_categorical",
    "stateless_normal",
    "stateless_truncated_normal",
    "stateless_uniform",
    "truncated_normal",
    "uniform",
]


def _is_eager(*values: Any) -> bool:
    return _recording.current() is None and not _has_symbols(*values)


def _range(minval: Any, maxval: Any, dtype: Any) -> tuple[Tensor, Tensor]:
    if maxval is None:
        if dtype.is_integer:
            raise ValueError(f"maxval must be given for {dtype}")
        maxval = 1
    return (
        arrays.cast(convert(minval, hint=dtype), dtype),
        arrays.cast(convert(maxval, hint=dtype), dtype),
    )


def uniform(
    shape: Any, minval: Any = 0, maxval: Any = None, dtype: Any = "float32",
    seed: Any = None, name: Any = None,
) -> Tensor:  # fmt: skip
    """Numbers from [minval, maxval), each as likely as any other.

    Example:
        >>> x = tf.random.uniform([2, 3], maxval=10, dtype=tf.int32)
        >>> x.shape, x.dtype, bool(tf.reduce_all(x < 10))
        (TensorShape([2, 3]), tf.int32, True)
    """
    wanted = as_dtype(dtype)
    low, high = _range(minval, maxval, wanted)
    sizes = _sizes(shape)
    if _is_eager(sizes, low, high):
        rng = _seeds.generator(seed)
        dims = tuple(np.atleast_1d(sizes))
        if wanted.is_integer:
            if not np.all(low._value < high._value):
                raise refused(
                    InvalidArgumentError,
                    f"minval must be less than maxval; got {minval}, {maxval}",
                )
            drawn = rng.integers(low._value, high._value, dims, np.int64)
            return Tensor(np.asarray(drawn).astype(wanted.dtype))
        unit = rng.random(dims, np.float32).astype(wanted.dtype)
        scaled = np.asarray(low._value + unit * (high._value - low._value))
        return Tensor(scaled.astype(wanted.dtype))
    name_ = "random_int" if wanted.is_integer else "random_uniform"
    return native(name_, sizes, low, high, dtype=wanted, seed=_own(seed))


def _own(seed: Any) -> int | None:
    return None if seed is None else int(seed)


def normal(
    shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = "float32",
    seed: Any = None, name: Any = None,
) -> Tensor:  # fmt: skip
    """Numbers from a normal distribution."""
    wanted = as_dtype(dtype)
    middle = arrays.cast(mean, wanted)
    spread = arrays.cast(stddev, wanted)
    sizes = _sizes(shape)
    if _is_eager(sizes, middle, spread):
        rng = _seeds.generator(seed)
        drawn = rng.standard_normal(tuple(np.atleast_1d(sizes)))
        scaled = spread._value * np.asarray(drawn, wanted.dtype)
        return Tensor(np.asarray(middle._value + scaled))
    return native(
        "random_normal", sizes, middle, spread, dtype=wanted, seed=_own(seed)
    )


# Draws of a truncated normal: that all are out of range has p = 2e-11.
_DRAWS = 8


def truncated_normal(
    shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = "float32",
    seed: Any = None, name: Any = None,
) -> Tensor:  # fmt: skip
    """Numbers from a normal distribution, none beyond two deviations."""
    drawn = normal(shape, 0.0, 1.0, dtype, seed)
    for _ in builtins.range(_DRAWS):
        again = normal(shape, 0.0, 1.0, dtype, seed)
        drawn = arrays.where(native("abs", drawn) > 2.0, again, drawn)
    drawn = arrays.clip_by_value(drawn, -2.0, 2.0)
    made: Tensor = arrays.cast(mean, dtype) + arrays.cast(stddev, dtype) * drawn
    return made


def shuffle(value: Any, seed: Any = None, name: Any = None) -> Tensor:
    """`value` in a random order along its first dimension."""
    x = convert(value)
    if not _is_eager(x):
        arrays.python_only("tf.random.shuffle")
    return Tensor(_seeds.generator(seed).permutation(x._value))


def categorical(
    logits: Any, num_samples: int, dtype: Any = "int64", seed: Any = None,
    name: Any = None,
) -> Tensor:  # fmt: skip
    """Classes drawn by their log-probabilities: (batch, num_samples)."""
    x = convert(logits)
    draws = uniform(
        [arrays.shape(x)[0], num_samples, arrays.shape(x)[1]],
        1e-30,
        1.0,
        x.dtype,
        seed,
    )
    noise = -unary("log", -unary("log", draws, "float"), "float")
    scored = arrays.expand_dims(x, 1) + noise
    made: Tensor = arrays.cast(
        native("argmax", scored, axis=2), dtype or "int64"
    )
    return made


def stateless_categorical(
    logits: Any, num_samples: Any, seed: Any, dtype: Any = "int64",
    name: Any = None,
) -> Tensor:  # fmt: skip
    """As `categorical`; `seed` alone decides."""
    x = convert(logits)
    sizes = [arrays.shape(x)[0], num_samples, arrays.shape(x)[1]]
    draws = stateless_uniform(sizes, seed, 1e-30, 1.0, x.dtype)
    noise = -unary("log", -unary("log", draws, "float"), "float")
    scored = arrays.expand_dims(x, 1) + noise
    made: Tensor = arrays.cast(native("argmax", scored, axis=2), dtype)
    return made


# ---- Stateless: a hash of the seed and of each place.


def _words(sizes: Any, seed: Any, salt: int) -> Tensor:
    """A word of 64 random bits for each place (SplitMix64)."""
    pair = arrays.cast(convert(seed), "int64")
    if pair.shape.rank == 0:
        pair = arrays.stack([pair, pair])
    pair = arrays.cast(pair, "uint64")
    count = arrays.reduce_prod(
        arrays.concat(
            [Tensor(np.ones(1, np.int64)), Tensor(_as_vector(sizes))], 0
        )
    )
    places = arrays.cast(arrays.range(count), "uint64")
    word = _mix(pair[0] + _constant(salt * 0x9E3779B97F4A7C15))
    word = _mix(word ^ pair[1])
    words = _mix(word + (places + _constant(1)) * _constant(0x9E3779B97F4A7C15))
    return native("reshape", words, sizes)


def _as_vector(sizes: Any) -> Any:
    if isinstance(sizes, Symbol):
        return arrays.cast(Tensor(sizes), "int64")._value
    return np.atleast_1d(sizes).astype(np.int64)


def _constant(value: int) -> Tensor:
    return Tensor(np.array(value & ((1 << 64) - 1), np.uint64))


def _shift(word: Tensor, bits: int) -> Tensor:
    return native("right_shift", word, _constant(bits))


def _mix(word: Tensor) -> Tensor:
    word = (word ^ _shift(word, 30)) * _constant(0xBF58476D1CE4E5B9)
    word = (word ^ _shift(word, 27)) * _constant(0x94D049BB133111EB)
    return word ^ _shift(word, 31)


def _units(words: Tensor, dtype: Any) -> Tensor:
    """Words as numbers from [0, 1)."""
    bits = 53 if dtype.name == "float64" else 24
    top = arrays.cast(_shift(words, 64 - bits), "float64") * 2.0**-bits
    made: Tensor = arrays.cast(top, dtype)
    return made


def stateless_uniform(
    shape: Any, seed: Any, minval: Any = 0, maxval: Any = None,
    dtype: Any = "float32", name: Any = None, alg: Any = None,
) -> Tensor:  # fmt: skip
    """Numbers from [minval, maxval) that `seed` alone decides.

    Example:
        >>> x = tf.random.stateless_uniform([2], seed=[1, 2])
        >>> y = tf.random.stateless_uniform([2], seed=[1, 2])
        >>> bool(tf.reduce_all(x == y))
        True
    """
    wanted = as_dtype(dtype)
    words = _words(_sizes(shape), seed, 1)
    if wanted.is_integer:
        if minval is None and maxval is None:
            whole: Tensor = arrays.cast(words, wanted)
            return whole
        low, high = _range(minval, maxval, wanted)
        span = arrays.cast(high - low, "uint64")
        offset = _shift(words, 1) % span
        drawn: Tensor = low + arrays.cast(offset, wanted)
        return drawn
    low, high = _range(minval, maxval, wanted)
    return low + _units(words, wanted) * (high - low)


def stateless_normal(
    shape: Any, seed: Any, mean: Any = 0.0, stddev: Any = 1.0,
    dtype: Any = "float32", name: Any = None, alg: Any = None,
) -> Tensor:  # fmt: skip
    """Numbers from a normal distribution that `seed` alone decides."""
    wanted = as_dtype(dtype)
    drawn: Tensor = arrays.cast(_gauss(_sizes(shape), seed, 2), wanted)
    made: Tensor = (
        arrays.cast(mean, wanted) + arrays.cast(stddev, wanted) * drawn
    )
    return made


def _gauss(sizes: Any, seed: Any, salt: int) -> Tensor:
    wide = as_dtype("float64")
    one = 1.0 - _units(_words(sizes, seed, salt), wide)
    two = _units(_words(sizes, seed, salt + 100), wide)
    radius = unary("sqrt", -2.0 * unary("log", one, "float"), "float")
    return radius * unary("cos", 2.0 * _math.pi * two, "float")


def stateless_truncated_normal(
    shape: Any, seed: Any, mean: Any = 0.0, stddev: Any = 1.0,
    dtype: Any = "float32", name: Any = None, alg: Any = None,
) -> Tensor:  # fmt: skip
    wanted = as_dtype(dtype)
    sizes = _sizes(shape)
    drawn = _gauss(sizes, seed, 3)
    for i in builtins.range(_DRAWS):
        again = _gauss(sizes, seed, 4 + i)
        drawn = arrays.where(native("abs", drawn) > 2.0, again, drawn)
    drawn = arrays.cast(arrays.clip_by_value(drawn, -2.0, 2.0), wanted)
    made: Tensor = (
        arrays.cast(mean, wanted) + arrays.cast(stddev, wanted) * drawn
    )
    return made


def split(seed: Any, num: int = 2, alg: Any = None) -> Tensor:
    """`num` seeds out of one: (num, 2)."""
    made: Tensor = arrays.cast(
        _shift(_words(np.array([num, 2]), seed, 20), 1), "int64"
    )
    return made


def fold_in(seed: Any, data: Any, alg: Any = None) -> Tensor:
    """A seed out of a seed and a number."""
    pair = arrays.cast(convert(seed), "int64")
    number = arrays.cast(convert(data), "int64")
    return split(arrays.stack([pair[0], pair[1] ^ number]), 1)[0]


class Generator:
    """Draws numbers; in a recorded function, others for each element.

    Example:
        >>> rng = tf.random.Generator.from_seed(1)
        >>> ds = tf.data.Dataset.range(3).map(lambda x: rng.make_seeds(2)[0])
        >>> len({tuple(seed.numpy()) for seed in ds})
        3
    """

    def __init__(self, seed: int | None = None) -> None:
        self._seed = seed

    @staticmethod
    def from_seed(seed: Any, alg: Any = None) -> Generator:
        return Generator(int(seed))

    @staticmethod
    def from_non_deterministic_state(alg: Any = None) -> Generator:
        return Generator()

    def make_seeds(self, count: int = 1) -> Tensor:
        """Seeds for stateless functions, one in each column: (2, count)."""
        most = (1 << 63) - 1
        return uniform([2, count], 0, most, "int64", self._seed)

    def uniform(
        self,
        shape: Any,
        minval: Any = 0,
        maxval: Any = None,
        dtype: Any = "float32",
        name: Any = None,
    ) -> Tensor:
        return uniform(shape, minval, maxval, dtype, self._seed)

    def normal(
        self,
        shape: Any,
        mean: Any = 0.0,
        stddev: Any = 1.0,
        dtype: Any = "float32",
        name: Any = None,
    ) -> Tensor:
        return normal(shape, mean, stddev, dtype, self._seed)


_global_generator = Generator()


def get_global_generator() -> Generator:
    return _global_generator
