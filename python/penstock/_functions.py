"""The native functions.

Made from the engine's list by `penstock functions --python`; not edited.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock import _record
from penstock._dtypes import DType

__all__ = [
    "abs",
    "add",
    "all",
    "any",
    "arange",
    "arctan",
    "argmax",
    "argmin",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "boolean_mask",
    "cast",
    "ceil",
    "check_numerics",
    "clip",
    "concat",
    "cos",
    "ensure_shape",
    "equal",
    "exp",
    "expand_dims",
    "expm1",
    "fill",
    "floor",
    "floor_divide",
    "full_like",
    "getitem",
    "greater",
    "greater_equal",
    "invert",
    "isfinite",
    "isinf",
    "isnan",
    "left_shift",
    "less",
    "less_equal",
    "log",
    "log10",
    "log1p",
    "log2",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "max",
    "maximum",
    "mean",
    "min",
    "minimum",
    "mod",
    "multiply",
    "negative",
    "not_equal",
    "one_hot",
    "ones",
    "ones_like",
    "positive",
    "power",
    "prod",
    "random_int",
    "random_normal",
    "random_uniform",
    "rank",
    "reciprocal",
    "reshape",
    "right_shift",
    "round",
    "scatter",
    "shape",
    "sign",
    "sin",
    "size",
    "sqrt",
    "square",
    "squeeze",
    "stack",
    "subtract",
    "sum",
    "take",
    "tan",
    "tanh",
    "transpose",
    "true_divide",
    "trunc",
    "where",
    "zeros",
    "zeros_like",
]


def abs(x: Any) -> Any:
    """The absolute value; of complex numbers a float.

    Example:
        >>> ps.abs(np.array([1, -2]))
        array([1, 2])

    Args:
        x: The values.
    """
    return _record.call("abs", (x,))


def add(x: Any, y: Any) -> Any:
    """x + y. Integers wrap around; bools: or; strings are joined.

    Example:
        >>> ps.add(np.array([1, 2]), 10)
        array([11, 12])

    Args:
        x: First operand.
        y: Second operand.
    """
    return _record.call("add", (x, y))


def all(
    x: Any,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
) -> Any:
    """Whether all values are nonzero.

    Example:
        >>> ps.all(np.array([[1, 1], [0, 1]]), axis=1)
        array([ True, False])

    Args:
        x: The values.
        axis: Which axes; None means all.
        keepdims: Leaves the axes in the result, with size 1.
    """
    return _record.call("all", (x,), {"axis": axis, "keepdims": keepdims})


def any(
    x: Any,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
) -> Any:
    """Whether any value is nonzero.

    Example:
        >>> ps.any(np.array([[0, 1], [0, 0]]), axis=1)
        array([ True, False])

    Args:
        x: The values.
        axis: Which axes; None means all.
        keepdims: Leaves the axes in the result, with size 1.
    """
    return _record.call("any", (x,), {"axis": axis, "keepdims": keepdims})


def arange(start: Any, stop: Any = None, step: Any = None) -> Any:
    """Evenly spaced values.

    Example:
        >>> ps.arange(2, 8, 3)
        array([2, 5])

    Args:
        start: The first value; alone, the end, and 0 is the first.
        stop: The end, which is left out.
        step: From one value to the next; None means 1.
    """
    return _record.call("arange", (start, stop, step))


def arctan(x: Any) -> Any:
    """The angle in radians whose tangent is x.

    Example:
        >>> ps.arctan(np.array([0.0]))
        array([0.])

    Args:
        x: The values.
    """
    return _record.call("arctan", (x,))


def argmax(
    x: Any,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
) -> Any:
    """Where the greatest value is: the first, or the first NaN.

    Example:
        >>> ps.argmax(np.array([[3, 1], [3, 4]]), axis=1)
        array([0, 1])

    Args:
        x: The values.
        axis: Which axis; None means all, counted as one.
        keepdims: Leaves the axes in the result, with size 1.
    """
    return _record.call("argmax", (x,), {"axis": axis, "keepdims": keepdims})


def argmin(
    x: Any,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
) -> Any:
    """Where the least value is: the first, or the first NaN.

    Example:
        >>> ps.argmin(np.array([[3, 1], [3, 4]]), axis=1)
        array([1, 0])

    Args:
        x: The values.
        axis: Which axis; None means all, counted as one.
        keepdims: Leaves the axes in the result, with size 1.
    """
    return _record.call("argmin", (x,), {"axis": axis, "keepdims": keepdims})


def bitwise_and(x: Any, y: Any) -> Any:
    """x & y, of integers or bools.

    Example:
        >>> ps.bitwise_and(np.array([5, 6]), 3)
        array([1, 2])

    Args:
        x: First operand.
        y: Second operand.
    """
    return _record.call("bitwise_and", (x, y))


def bitwise_or(x: Any, y: Any) -> Any:
    """x | y, of integers or bools.

    Example:
        >>> ps.bitwise_or(np.array([5, 6]), 3)
        array([7, 7])

    Args:
        x: First operand.
        y: Second operand.
    """
    return _record.call("bitwise_or", (x, y))


def bitwise_xor(x: Any, y: Any) -> Any:
    """x ^ y, of integers or bools.

    Example:
        >>> ps.bitwise_xor(np.array([5, 6]), 3)
        array([6, 5])

    Args:
        x: First operand.
        y: Second operand.
    """
    return _record.call("bitwise_xor", (x, y))


def boolean_mask(x: Any, mask: Any) -> Any:
    """Entries of x where the mask holds: x[mask].

    Example:
        >>> ps.boolean_mask(np.array([1, 2]), np.array([False, True]))
        array([2])

    Args:
        x: The values.
        mask: Bools in the shape of x's first dimensions.
    """
    return _record.call("boolean_mask", (x, mask))


def cast(x: Any, dtype: Any) -> Any:
    """x in another dtype, as numpy's astype.

    Example:
        >>> ps.cast(np.array([1.7, -1.7]), np.int32)
        array([ 1, -1], dtype=int32)

    Args:
        x: The values.
        dtype: What they become.
    """
    return _record.call("cast", (x,), {"dtype": DType.of(dtype)})


def ceil(x: Any) -> Any:
    """The smallest integer not below x; integers stay.

    Example:
        >>> ps.ceil(np.array([-1.5, 1.5]))
        array([-1.,  2.])

    Args:
        x: The values.
    """
    return _record.call("ceil", (x,))


def check_numerics(x: Any, message: str) -> Any:
    """x itself; an element with an infinite item, or one that is no number, is an error.

    Example:
        >>> ps.check_numerics(np.array([1.0, 2.0]), "loss")
        array([1., 2.])

    Args:
        x: Floats.
        message: What the error begins with.
    """
    return _record.call("check_numerics", (x,), {"message": message})


def clip(x: Any, min: Any, max: Any) -> Any:
    """x, but not below min, and then not above max.

    Example:
        >>> ps.clip(np.array([1, 5, 9]), 2, 6)
        array([2, 5, 6])

    Args:
        x: The values.
        min: The least result.
        max: The greatest result.
    """
    return _record.call("clip", (x, min, max))


def concat(values: Sequence[Any], axis: int = 0) -> Any:
    """Joins values along an axis that they have.

    Example:
        >>> ps.concat([np.array([1, 2]), np.array([3])])
        array([1, 2, 3])

    Args:
        values: Values that differ along the axis only.
        axis: Along which to join.
    """
    return _record.call("concat", (*values,), {"axis": axis})


def cos(x: Any) -> Any:
    """The cosine of an angle in radians.

    Example:
        >>> ps.cos(np.array([0.0]))
        array([1.])

    Args:
        x: The values.
    """
    return _record.call("cos", (x,))


def ensure_shape(x: Any, shape: int | Sequence[int]) -> Any:
    """x itself, whose shape is known from here on; an element of another shape is an error.

    Example:
        >>> ps.ensure_shape(np.array([[1, 2]]), (-1, 2))
        array([[1, 2]])

    Args:
        x: Any value.
        shape: The sizes; -1 where any will do.
    """
    return _record.call("ensure_shape", (x,), {"shape": shape})


def equal(x: Any, y: Any) -> Any:
    """x == y. Strings are compared by their bytes.

    Example:
        >>> ps.equal(np.array([1, 2]), 2)
        array([False,  True])

    Args:
        x: First operand.
        y: Second operand.
    """
    return _record.call("equal", (x, y))


def exp(x: Any) -> Any:
    """e to the power x.

    Example:
        >>> ps.exp(np.array([0.0, -np.inf]))
        array([1., 0.])

    Args:
        x: The values.
    """
    return _record.call("exp", (x,))


def expand_dims(x: Any, axis: int) -> Any:
    """x with one more dimension, of size 1.

    Example:
        >>> ps.expand_dims(np.array([1, 2]), 1)
        array([[1],
               [2]])

    Args:
        x: The values.
        axis: Where the new one stands.
    """
    return _record.call("expand_dims", (x,), {"axis": axis})


def expm1(x: Any) -> Any:
    """exp(x) - 1, exact for small x.

    Example:
        >>> ps.expm1(np.array([0.0, 1e-20]))
        array([0.e+00, 1.e-20])

    Args:
        x: The values.
    """
    return _record.call("expm1", (x,))


def fill(dims: Any, value: Any) -> Any:
    """An array of the given dimensions with one value everywhere.

    Example:
        >>> ps.fill([3], 7)
        array([7, 7, 7])

    Args:
        dims: The dimensions.
        value: A scalar.
    """
    return _record.call("fill", (dims, value))


def floor(x: Any) -> Any:
    """The largest integer not above x; integers stay.

    Example:
        >>> ps.floor(np.array([-1.5, 1.5]))
        array([-2.,  1.])

    Args:
        x: The values.
    """
    return _record.call("floor", (x,))


def floor_divide(x: Any, y: Any) -> Any:
    """x // y, rounded down. An integer divided by zero gives 0.

    Example:
        >>> ps.floor_divide(np.array([-7, 7]), 2)
        array([-4,  3])

    Args:
        x: First operand.
        y: Second operand.
    """
    return _record.call("floor_divide", (x, y))


def full_like(x: Any, value: Any, dtype: Any = None) -> Any:
    """One value in the shape of x.

    Example:
        >>> ps.full_like(np.array([1, 2]), 7)
        array([7, 7])

    Args:
        x: Whose shape is taken.
        value: A scalar.
        dtype: That of the result; None means that of x.
    """
    return _record.call(
        "full_like",
        (x, value),
        {
            "dtype": None if dtype is None else DType.of(dtype),
        },
    )


def getitem(values: Sequence[Any], spec: str) -> Any:
    """Indexing and slicing, as numpy's: x[...].

    Example:
        >>> ps.getitem([np.arange(6), 1, 2], 'sac')
        array([1, 3, 5])

    Args:
        values: The array, then the numbers that the spec asks for.
        spec: One entry per index: i an index, s a slice (followed by a, b,
            c if it has a start, a stop, a step), e an ellipsis, n a new axis.
            Each i, a, b and c takes the next value.
    """
    return _record.call("getitem", (*values,), {"spec": spec})


def greater(x: Any, y: Any) -> Any:
    """x > y; false if either is NaN.

    Example:
        >>> ps.greater(np.array([1, 2, 3]), 2)
        array([False, False,  True])

    Args:
        x: First operand.
        y: Second operand.
    """
    return _record.call("greater", (x, y))


def greater_equal(x: Any, y: Any) -> Any:
    """x >= y; false if either is NaN.

    Example:
        >>> ps.greater_equal(np.array([1, 2, 3]), 2)
        array([False,  True,  True])

    Args:
        x: First operand.
        y: Second operand.
    """
    return _record.call("greater_equal", (x, y))


def invert(x: Any) -> Any:
    """~x: every bit turned; logical not of bools.

    Example:
        >>> ps.invert(np.array([0, 5]))
        array([-1, -6])

    Args:
        x: Integers or bools.
    """
    return _record.call("invert", (x,))


def isfinite(x: Any) -> Any:
    """Whether x is neither NaN nor infinite.

    Example:
        >>> ps.isfinite(np.array([1.0, np.nan]))
        array([ True, False])

    Args:
        x: The values.
    """
    return _record.call("isfinite", (x,))


def isinf(x: Any) -> Any:
    """Whether x is infinite.

    Example:
        >>> ps.isinf(np.array([1.0, -np.inf]))
        array([False,  True])

    Args:
        x: The values.
    """
    return _record.call("isinf", (x,))


def isnan(x: Any) -> Any:
    """Whether x is NaN.

    Example:
        >>> ps.isnan(np.array([1.0, np.nan]))
        array([False,  True])

    Args:
        x: The values.
    """
    return _record.call("isnan", (x,))


def left_shift(x: Any, y: Any) -> Any:
    """x << y; 0 if y is negative or all bits leave.

    Example:
        >>> ps.left_shift(np.array([1, 2]), 3)
        array([ 8, 16])

    Args:
        x: First operand.
        y: Second operand.
    """
    return _record.call("left_shift", (x, y))


def less(x: Any, y: Any) -> Any:
    """x < y; false if either is NaN.

    Example:
        >>> ps.less(np.array([1, 2]), 2)
        array([ True, False])

    Args:
        x: First operand.
        y: Second operand.
    """
    return _record.call("less", (x, y))


def less_equal(x: Any, y: Any) -> Any:
    """x <= y; false if either is NaN.

    Example:
        >>> ps.less_equal(np.array([1, 2, 3]), 2)
        array([ True,  True, False])

    Args:
        x: First operand.
        y: Second operand.
    """
    return _record.call("less_equal", (x, y))


def log(x: Any) -> Any:
    """The natural logarithm.

    Example:
        >>> ps.log(np.array([1.0, np.inf]))
        array([ 0., inf])

    Args:
        x: The values.
    """
    return _record.call("log", (x,))


def log10(x: Any) -> Any:
    """The logarithm to base 10.

    Example:
        >>> ps.log10(np.array([1, 100]))
        array([0., 2.])

    Args:
        x: The values.
    """
    return _record.call("log10", (x,))


def log1p(x: Any) -> Any:
    """log(1 + x), exact for small x.

    Example:
        >>> ps.log1p(np.array([0.0, 1e-20]))
        array([0.e+00, 1.e-20])

    Args:
        x: The values.
    """
    return _record.call("log1p", (x,))


def log2(x: Any) -> Any:
    """The logarithm to base 2.

    Example:
        >>> ps.log2(np.array([1, 8]))
        array([0., 3.])

    Args:
        x: The values.
    """
    return _record.call("log2", (x,))


def logical_and(x: Any, y: Any) -> Any:
    """Whether both x and y are nonzero.

    Example:
        >>> ps.logical_and(np.array([0, 1]), True)
        array([False,  True])

    Args:
        x: First operand.
        y: Second operand.
    """
    return _record.call("logical_and", (x, y))


def logical_not(x: Any) -> Any:
    """Whether x is zero.

    Example:
        >>> ps.logical_not(np.array([0, 1]))
        array([ True, False])

    Args:
        x: What to look at.
    """
    return _record.call("logical_not", (x,))


def logical_or(x: Any, y: Any) -> Any:
    """Whether x or y is nonzero.

    Example:
        >>> ps.logical_or(np.array([0, 1]), False)
        array([False,  True])

    Args:
        x: First operand.
        y: Second operand.
    """
    return _record.call("logical_or", (x, y))


def logical_xor(x: Any, y: Any) -> Any:
    """Whether exactly one of x and y is nonzero.

    Example:
        >>> ps.logical_xor(np.array([0, 1]), True)
        array([ True, False])

    Args:
        x: First operand.
        y: Second operand.
    """
    return _record.call("logical_xor", (x, y))


def max(
    x: Any,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
) -> Any:
    """The greatest value; NaN if any is. Of nothing it is an error.

    Example:
        >>> ps.max(np.array([[1, 2], [3, 4]]), axis=0)
        array([3, 4])

    Args:
        x: The values.
        axis: Which axes; None means all.
        keepdims: Leaves the axes in the result, with size 1.
    """
    return _record.call("max", (x,), {"axis": axis, "keepdims": keepdims})


def maximum(x: Any, y: Any) -> Any:
    """The larger of x and y; NaN if either is.

    Example:
        >>> ps.maximum(np.array([1, 5]), 3)
        array([3, 5])

    Args:
        x: First operand.
        y: Second operand.
    """
    return _record.call("maximum", (x, y))


def mean(
    x: Any,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
) -> Any:
    """The mean; of integers as float64. NaN of nothing.

    Example:
        >>> ps.mean(np.array([[1, 2], [3, 4]]), axis=1)
        array([1.5, 3.5])

    Args:
        x: The values.
        axis: Which axes; None means all.
        keepdims: Leaves the axes in the result, with size 1.
    """
    return _record.call("mean", (x,), {"axis": axis, "keepdims": keepdims})


def min(
    x: Any,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
) -> Any:
    """The least value; NaN if any is. Of nothing it is an error.

    Example:
        >>> ps.min(np.array([[1, 2], [3, 4]]), axis=0)
        array([1, 2])

    Args:
        x: The values.
        axis: Which axes; None means all.
        keepdims: Leaves the axes in the result, with size 1.
    """
    return _record.call("min", (x,), {"axis": axis, "keepdims": keepdims})


def minimum(x: Any, y: Any) -> Any:
    """The smaller of x and y; NaN if either is.

    Example:
        >>> ps.minimum(np.array([1, 5]), 3)
        array([1, 3])

    Args:
        x: First operand.
        y: Second operand.
    """
    return _record.call("minimum", (x, y))


def mod(x: Any, y: Any) -> Any:
    """x % y, with the sign of y. An integer modulo zero gives 0.

    Example:
        >>> ps.mod(np.array([-7, 7]), 2)
        array([1, 1])

    Args:
        x: First operand.
        y: Second operand.
    """
    return _record.call("mod", (x, y))


def multiply(x: Any, y: Any) -> Any:
    """x * y. Integers wrap around; of two bools, logical and.

    Example:
        >>> ps.multiply(np.array([1, 2]), 10)
        array([10, 20])

    Args:
        x: First operand.
        y: Second operand.
    """
    return _record.call("multiply", (x, y))


def negative(x: Any) -> Any:
    """-x. Integers wrap around.

    Example:
        >>> ps.negative(np.array([1, -2]))
        array([-1,  2])

    Args:
        x: The values.
    """
    return _record.call("negative", (x,))


def not_equal(x: Any, y: Any) -> Any:
    """x != y. Strings are compared by their bytes.

    Example:
        >>> ps.not_equal(np.array([1, 2]), 2)
        array([ True, False])

    Args:
        x: First operand.
        y: Second operand.
    """
    return _record.call("not_equal", (x, y))


def one_hot(
    indices: Any,
    depth: int,
    on_value: float = 1,
    off_value: float = 0,
    axis: int = -1,
    dtype: Any = "float32",
) -> Any:
    """Vectors with one value at an index and another elsewhere; an index outside gives the other everywhere.

    Example:
        >>> ps.one_hot(np.array([1, 0]), 2)
        array([[0., 1.],
               [1., 0.]], dtype=float32)

    Args:
        indices: Integers.
        depth: Size of the new axis.
        on_value: At the index.
        off_value: Elsewhere.
        axis: Where the new one stands.
        dtype: That of the result.
    """
    return _record.call(
        "one_hot",
        (indices,),
        {
            "depth": depth,
            "on_value": on_value,
            "off_value": off_value,
            "axis": axis,
            "dtype": DType.of(dtype),
        },
    )


def ones(shape: Any, dtype: Any = "float64") -> Any:
    """An array of ones.

    Example:
        >>> ps.ones((2,), np.int64)
        array([1, 1])

    Args:
        shape: The dimensions.
        dtype: That of the result.
    """
    return _record.call("ones", (shape,), {"dtype": DType.of(dtype)})


def ones_like(x: Any, dtype: Any = None) -> Any:
    """Ones in the shape of x.

    Example:
        >>> ps.ones_like(np.array([1, 2]))
        array([1, 1])

    Args:
        x: Whose shape is taken.
        dtype: That of the result; None means that of x.
    """
    return _record.call(
        "ones_like",
        (x,),
        {
            "dtype": None if dtype is None else DType.of(dtype),
        },
    )


def positive(x: Any) -> Any:
    """+x.

    Example:
        >>> ps.positive(np.array([1, -2]))
        array([ 1, -2])

    Args:
        x: The values.
    """
    return _record.call("positive", (x,))


def power(x: Any, y: Any) -> Any:
    """x ** y. Integers wrap around; a negative integer power of an integer is an error.

    Example:
        >>> ps.power(np.array([2, 3]), 2)
        array([4, 9])

    Args:
        x: First operand.
        y: Second operand.
    """
    return _record.call("power", (x, y))


def prod(
    x: Any,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
) -> Any:
    """The product; of integers as int64 or uint64, wrapping around.

    Example:
        >>> ps.prod(np.array([[1, 2], [3, 4]]), axis=0)
        array([3, 8])

    Args:
        x: The values.
        axis: Which axes; None means all.
        keepdims: Leaves the axes in the result, with size 1.
    """
    return _record.call("prod", (x,), {"axis": axis, "keepdims": keepdims})


def random_int(
    shape: Any,
    minval: Any,
    maxval: Any,
    dtype: Any = "int64",
    seed: int | None = None,
) -> Any:
    """Integers from [minval, maxval), each as likely as any other.

    Example:
        >>> ps.random_int((2, 3), 0, 10).shape
        (2, 3)

    Args:
        shape: The dimensions.
        minval: The least value.
        maxval: The end, which is never reached.
        dtype: That of the result.
        seed: If every random call of a function has one, all runs of a
            program are equal; left out, one is drawn for each dataset.
    """
    return _record.call(
        "random_int",
        (shape, minval, maxval),
        {
            "dtype": DType.of(dtype),
            "seed": seed,
        },
    )


def random_normal(
    shape: Any = (),
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = "float32",
    seed: int | None = None,
) -> Any:
    """Floats from a normal distribution.

    Example:
        >>> ps.random_normal((2, 3)).shape
        (2, 3)

    Args:
        shape: The dimensions.
        mean: The mean.
        stddev: The standard deviation.
        dtype: That of the result.
        seed: If every random call of a function has one, all runs of a
            program are equal; left out, one is drawn for each dataset.
    """
    return _record.call(
        "random_normal",
        (shape, mean, stddev),
        {
            "dtype": DType.of(dtype),
            "seed": seed,
        },
    )


def random_uniform(
    shape: Any = (),
    minval: Any = 0.0,
    maxval: Any = 1.0,
    dtype: Any = "float32",
    seed: int | None = None,
) -> Any:
    """Floats from [minval, maxval), each as likely as any other.

    Example:
        >>> ps.random_uniform((2, 3)).shape
        (2, 3)

    Args:
        shape: The dimensions.
        minval: The least value.
        maxval: The end, which is never reached.
        dtype: That of the result.
        seed: If every random call of a function has one, all runs of a
            program are equal; left out, one is drawn for each dataset.
    """
    return _record.call(
        "random_uniform",
        (shape, minval, maxval),
        {
            "dtype": DType.of(dtype),
            "seed": seed,
        },
    )


def rank(x: Any) -> Any:
    """The number of dimensions of x, as int64.

    Example:
        >>> int(ps.rank(np.zeros((2, 3))))
        2

    Args:
        x: The values.
    """
    return _record.call("rank", (x,))


def reciprocal(x: Any) -> Any:
    """1 / x in x's dtype: of integers, mostly 0.

    Example:
        >>> ps.reciprocal(np.array([2.0, 4.0]))
        array([0.5 , 0.25])

    Args:
        x: The values.
    """
    return _record.call("reciprocal", (x,))


def reshape(x: Any, shape: Any) -> Any:
    """The same items with other dimensions.

    Example:
        >>> ps.reshape(np.arange(4), (2, -1))
        array([[0, 1],
               [2, 3]])

    Args:
        x: The values.
        shape: The new dimensions; one may be -1: what is left.
    """
    return _record.call("reshape", (x, shape))


def right_shift(x: Any, y: Any) -> Any:
    """x >> y, keeping the sign.

    Example:
        >>> ps.right_shift(np.array([-8, 8]), 2)
        array([-2,  2])

    Args:
        x: First operand.
        y: Second operand.
    """
    return _record.call("right_shift", (x, y))


def round(x: Any) -> Any:
    """The nearest integer, halves to the even one.

    Example:
        >>> ps.round(np.array([0.5, 1.5]))
        array([0., 2.])

    Args:
        x: The values.
    """
    return _record.call("round", (x,))


def scatter(indices: Any, values: Any, size: Any, filler: Any) -> Any:
    """A vector with values at their places; of two for one place, the last.

    Example:
        >>> ps.scatter(np.array([2, 0]), np.array([7, 8]), 4, np.int64(0))
        array([8, 0, 7, 0])

    Args:
        indices: A vector of integers from 0 on, below the size.
        values: As many values.
        size: Of the result.
        filler: What the other places hold, of the same dtype.
    """
    return _record.call("scatter", (indices, values, size, filler))


def shape(x: Any) -> Any:
    """The dimensions of x, as int64.

    Example:
        >>> ps.shape(np.zeros((2, 3)))
        array([2, 3])

    Args:
        x: The values.
    """
    return _record.call("shape", (x,))


def sign(x: Any) -> Any:
    """-1, 0 or 1; x / |x| of complex numbers.

    Example:
        >>> ps.sign(np.array([5, 0, -5]))
        array([ 1,  0, -1])

    Args:
        x: The values.
    """
    return _record.call("sign", (x,))


def sin(x: Any) -> Any:
    """The sine of an angle in radians.

    Example:
        >>> ps.sin(np.array([0.0]))
        array([0.])

    Args:
        x: The values.
    """
    return _record.call("sin", (x,))


def size(x: Any) -> Any:
    """The number of items of x, as int64.

    Example:
        >>> int(ps.size(np.zeros((2, 3))))
        6

    Args:
        x: The values.
    """
    return _record.call("size", (x,))


def sqrt(x: Any) -> Any:
    """The square root; NaN of negative numbers.

    Example:
        >>> ps.sqrt(np.array([4, 9]))
        array([2., 3.])

    Args:
        x: The values.
    """
    return _record.call("sqrt", (x,))


def square(x: Any) -> Any:
    """x * x. Integers wrap around.

    Example:
        >>> ps.square(np.array([2, -3]))
        array([4, 9])

    Args:
        x: The values.
    """
    return _record.call("square", (x,))


def squeeze(x: Any, axis: int | Sequence[int] | None = None) -> Any:
    """x without dimensions of size 1.

    Example:
        >>> ps.squeeze(np.array([[1, 2]]))
        array([1, 2])

    Args:
        x: The values.
        axis: Which to take away; None means all of size 1.
    """
    return _record.call("squeeze", (x,), {"axis": axis})


def stack(values: Sequence[Any], axis: int = 0) -> Any:
    """Joins values of one shape along a new axis.

    Example:
        >>> ps.stack([np.array([1, 2]), np.array([3, 4])])
        array([[1, 2],
               [3, 4]])

    Args:
        values: Values of one shape.
        axis: Where the new one stands.
    """
    return _record.call("stack", (*values,), {"axis": axis})


def subtract(x: Any, y: Any) -> Any:
    """x - y. Integers wrap around.

    Example:
        >>> ps.subtract(np.array([1, 2]), 10)
        array([-9, -8])

    Args:
        x: First operand.
        y: Second operand.
    """
    return _record.call("subtract", (x, y))


def sum(
    x: Any,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
) -> Any:
    """The sum; of integers as int64 or uint64, wrapping around.

    Example:
        >>> ps.sum(np.array([[1, 2], [3, 4]]), axis=0)
        array([4, 6])

    Args:
        x: The values.
        axis: Which axes; None means all.
        keepdims: Leaves the axes in the result, with size 1.
    """
    return _record.call("sum", (x,), {"axis": axis, "keepdims": keepdims})


def take(x: Any, indices: Any, axis: int = 0) -> Any:
    """Entries of x by number: x[indices] along an axis.

    Example:
        >>> ps.take(np.array([10, 20, 30]), np.array([2, 0]))
        array([30, 10])

    Args:
        x: The values.
        indices: Integers; negative ones count from the end.
        axis: Along which they count.
    """
    return _record.call("take", (x, indices), {"axis": axis})


def tan(x: Any) -> Any:
    """The tangent of an angle in radians.

    Example:
        >>> ps.tan(np.array([0.0]))
        array([0.])

    Args:
        x: The values.
    """
    return _record.call("tan", (x,))


def tanh(x: Any) -> Any:
    """The hyperbolic tangent.

    Example:
        >>> ps.tanh(np.array([0.0, np.inf]))
        array([0., 1.])

    Args:
        x: The values.
    """
    return _record.call("tanh", (x,))


def transpose(x: Any, axes: int | Sequence[int] | None = None) -> Any:
    """x with its dimensions in another order.

    Example:
        >>> ps.transpose(np.array([[1, 2], [3, 4]]))
        array([[1, 3],
               [2, 4]])

    Args:
        x: The values.
        axes: The axes in their new order; None means reversed.
    """
    return _record.call("transpose", (x,), {"axes": axes})


def true_divide(x: Any, y: Any) -> Any:
    """x / y, as floats: two integers give float64.

    Example:
        >>> ps.true_divide(np.array([1, 2]), 2)
        array([0.5, 1. ])

    Args:
        x: First operand.
        y: Second operand.
    """
    return _record.call("true_divide", (x, y))


def trunc(x: Any) -> Any:
    """x without its fraction; integers stay.

    Example:
        >>> ps.trunc(np.array([-1.5, 1.5]))
        array([-1.,  1.])

    Args:
        x: The values.
    """
    return _record.call("trunc", (x,))


def where(condition: Any, x: Any, y: Any) -> Any:
    """Items of x where the condition holds, else of y.

    Example:
        >>> ps.where(np.array([True, False]), np.array([1, 2]), 0)
        array([1, 0])

    Args:
        condition: Which to take.
        x: Taken where it is nonzero.
        y: Taken where it is zero.
    """
    return _record.call("where", (condition, x, y))


def zeros(shape: Any, dtype: Any = "float64") -> Any:
    """An array of zeros (of empty strings).

    Example:
        >>> ps.zeros((2,), np.int64)
        array([0, 0])

    Args:
        shape: The dimensions.
        dtype: That of the result.
    """
    return _record.call("zeros", (shape,), {"dtype": DType.of(dtype)})


def zeros_like(x: Any, dtype: Any = None) -> Any:
    """Zeros in the shape of x.

    Example:
        >>> ps.zeros_like(np.array([1, 2]))
        array([0, 0])

    Args:
        x: Whose shape is taken.
        dtype: That of the result; None means that of x.
    """
    return _record.call(
        "zeros_like",
        (x,),
        {
            "dtype": None if dtype is None else DType.of(dtype),
        },
    )
