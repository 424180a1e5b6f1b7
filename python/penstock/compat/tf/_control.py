"""`tf.cond`, `tf.function`, `tf.py_function` and their kind."""

from __future__ import annotations

import builtins
import contextlib
import logging
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from penstock import _recording
from penstock._symbol import Symbol
from penstock.compat.tf import _arrays as arrays
from penstock.compat.tf import nest, ragged
from penstock.compat.tf._branches import FOR_ALL, choose, what_may_fail
from penstock.compat.tf._composites import RaggedTensor, SparseTensor
from penstock.compat.tf._tensor import Tensor, convert
from penstock.compat.tf._types import as_dtype


def function(func: Any = None, *args: Any, **kwargs: Any) -> Any:
    """`@tf.function`: the function itself. Functions need no compiling here.

    Example:
        >>> @tf.function
        ... def double(x):
        ...     return x * 2
        >>> double(tf.constant(3)).numpy()
        np.int32(6)
    """
    if func is None:
        return lambda given: given
    return func


def cond(
    pred: Any, true_fn: Any = None, false_fn: Any = None, name: Any = None
) -> Any:
    """What one of two functions gives.

    In a recorded function both are computed and one result is taken, unless
    one of them may fail or their results differ in rank or dtype.

    Example:
        >>> def pick(x):
        ...     return tf.cond(x > 1, lambda: x * 10, lambda: x)
        >>> ds = tf.data.Dataset.range(3).map(pick)
        >>> [int(x) for x in ds]
        [0, 1, 20]
    """
    is_true = convert(pred)
    if not isinstance(is_true._value, Symbol):
        return true_fn() if bool(is_true) else false_fn()
    recording = _recording.current() or is_true._value._recording
    begin = len(recording.steps)
    one, two = true_fn(), false_fn()
    found = what_may_fail(recording, begin)
    if found is not None:
        arrays.python_only(f"tf.cond with {found} in a branch", FOR_ALL)
    nest.assert_same_structure(one, two)
    leaves = [
        _choose(is_true, a, b)
        for a, b in zip(nest.flatten(one), nest.flatten(two), strict=True)
    ]
    return nest.pack_sequence_as(one, leaves)


def _choose(is_true: Tensor, one: Any, two: Any) -> Tensor:
    if isinstance(one, (RaggedTensor, SparseTensor)):
        arrays.python_only("tf.cond with a ragged or sparse result")
    return choose(is_true, one, two)


def case(
    pred_fn_pairs: Any, default: Any = None, exclusive: bool = False,
    strict: bool = False, name: Any = None,
) -> Any:  # fmt: skip
    """What the first function gives whose condition holds."""
    pairs = list(pred_fn_pairs)
    last = default or pairs.pop()[1]
    for pred, then in reversed(pairs):
        last = _branch(pred, then, last)
    return last()


def _branch(pred: Any, then: Any, otherwise: Any) -> Callable[[], Any]:
    return lambda: cond(pred, then, otherwise)


def map_fn(
    fn: Any, elems: Any, dtype: Any = None, parallel_iterations: Any = None,
    back_prop: bool = True, swap_memory: bool = False,
    infer_shape: bool = True, name: Any = None,
    fn_output_signature: Any = None,
) -> Any:  # fmt: skip
    """`fn` of each part of tensors along their first dimension."""
    given = nest.flatten(elems)
    is_ragged = any(isinstance(leaf, RaggedTensor) for leaf in given)
    parts = [
        list(leaf) if isinstance(leaf, RaggedTensor) else arrays.unstack(leaf)
        for leaf in given
    ]
    results = [
        fn(nest.pack_sequence_as(elems, each))
        for each in zip(*parts, strict=True)
    ]
    if not results:
        arrays.python_only("tf.map_fn of nothing")
    stack = _stack_rows if is_ragged else arrays.stack
    leaves = [
        stack(list(each))
        for each in zip(*map(nest.flatten, results), strict=True)
    ]
    return nest.pack_sequence_as(results[0], leaves)


def _stack_rows(rows: list[Any]) -> Any:
    made = ragged.stack(rows)
    if isinstance(made, RaggedTensor):
        return made.with_row_splits_dtype("int64")
    return made


def while_loop(cond: Any, body: Any, loop_vars: Any, **_: Any) -> Any:
    """As long as `cond` holds, `body`; decides by values, so it is Python."""
    values = list(loop_vars)
    while bool(convert(cond(*values))):
        found = body(*values)
        values = list(found) if isinstance(found, (list, tuple)) else [found]
    return type(loop_vars)(values)


def foldl(fn: Any, elems: Any, initializer: Any = None, **_: Any) -> Any:
    """`fn(result so far, part)` over the first dimension of tensors."""
    parts = [arrays.unstack(leaf) for leaf in nest.flatten(elems)]
    rows = [
        nest.pack_sequence_as(elems, each) for each in zip(*parts, strict=True)
    ]
    if initializer is None:
        initializer, *rows = rows
    result = initializer
    for row in rows:
        result = fn(result, row)
    return result


def foldr(fn: Any, elems: Any, initializer: Any = None, **_: Any) -> Any:
    """As `foldl`, from the last part on."""
    leaves = [arrays.reverse(leaf, [0]) for leaf in nest.flatten(elems)]
    return foldl(fn, nest.pack_sequence_as(elems, leaves), initializer)


def scan(
    fn: Any, elems: Any, initializer: Any = None,
    parallel_iterations: Any = 10, back_prop: bool = True,
    swap_memory: bool = False, infer_shape: bool = True,
    reverse: bool = False, name: Any = None,
) -> Any:  # fmt: skip
    """All results of `fn(result so far, part)` over the first dimension."""
    parts = [arrays.unstack(leaf) for leaf in nest.flatten(elems)]
    rows = [
        nest.pack_sequence_as(elems, each) for each in zip(*parts, strict=True)
    ]
    if reverse:
        rows.reverse()
    results = []
    state = initializer
    if state is None:
        state, *rows = rows
        results.append(state)
    for row in rows:
        state = fn(state, row)
        results.append(state)
    if not results:
        arrays.python_only("tf.scan of nothing")
    if reverse:
        results.reverse()
    leaves = [
        arrays.stack([convert(leaf) for leaf in each])
        for each in zip(*map(nest.flatten, results), strict=True)
    ]
    return nest.pack_sequence_as(results[0], leaves)


def vectorized_map(
    fn: Any, elems: Any, fallback_to_while_loop: bool = True,
    warn: bool = True,
) -> Any:  # fmt: skip
    """As `map_fn`."""
    return map_fn(fn, elems)


def switch_case(
    branch_index: Any, branch_fns: Any, default: Any = None, name: Any = None
) -> Any:
    """What the function of a number gives; the default's for other numbers."""
    given = branch_fns
    if isinstance(given, dict):
        given = sorted(given.items())
    pairs = [
        each if isinstance(each, tuple) else (i, each)
        for i, each in enumerate(given)
    ]
    if sorted(i for i, _ in pairs) != list(range(len(pairs))):
        raise ValueError(
            "switch_case needs a function for each number from 0 on; got "
            f"{[i for i, _ in pairs]}"
        )
    last = default or pairs[-1][1]
    number = convert(branch_index)
    chosen = [(number == i, then) for i, then in pairs]
    return case(chosen, last)


def identity_n(input: Any, name: Any = None) -> list[Any]:
    return [arrays.identity(each) for each in input]


def get_static_value(tensor: Any, partial: bool = False) -> Any:
    """The array of a tensor; None, if its value is known only later."""
    if not isinstance(tensor, Tensor) or isinstance(tensor._value, Symbol):
        return None
    return tensor.numpy()


def tuple_(tensors: Any, control_inputs: Any = None, name: Any = None) -> Any:
    """The tensors of a list."""
    return [arrays.identity(each) for each in tensors]


# ---- Python inside of functions.


def _call_python(
    name: str, func: Any, inp: Any, output: Any, is_numpy: bool
) -> Any:
    given = inp if isinstance(inp, (list, tuple)) else [inp]
    tensors = [convert(item) for item in given]
    if _recording.current() is not None or any(
        isinstance(t._value, Symbol) for t in tensors
    ):
        arrays.python_only(f"tf.{name}")
    arguments = [t.numpy() if is_numpy else t for t in tensors]
    result = func(*arguments)
    if not isinstance(output, (list, tuple)):
        return _as_dtype(result, output)
    many = result if isinstance(result, (list, tuple)) else [result]
    return [_as_dtype(r, o) for r, o in zip(many, output, strict=True)]


def _as_dtype(value: Any, dtype: Any) -> Tensor:
    wanted = as_dtype(getattr(dtype, "dtype", dtype))
    found = convert(value, hint=wanted)
    if found.dtype.is_floating and wanted.is_floating:
        made: Tensor = arrays.cast(found, wanted)
        return made
    return convert(found, wanted)


def py_function(
    func: Any = None,
    inp: Any = (),
    Tout: Any = None,  # noqa: N803
    name: Any = None,
) -> Any:
    """Calls a Python function with tensors; see `numpy_function`."""
    return _call_python("py_function", func, inp, Tout, False)


def numpy_function(
    func: Any = None, inp: Any = (), Tout: Any = None,  # noqa: N803
    stateful: bool = True, name: Any = None,
) -> Any:  # fmt: skip
    """Calls a Python function with arrays.

    The function that it is in runs as Python, in processes beside the engine.

    Example:
        >>> def add_one(x):
        ...     return x + 1
        >>> ds = tf.data.Dataset.range(2).map(
        ...     lambda x: tf.numpy_function(add_one, [x], tf.int64))
        >>> [int(x) for x in ds]
        [1, 2]
    """
    return _call_python("numpy_function", func, inp, Tout, True)


def print_(*inputs: Any, **kwargs: Any) -> None:
    """Prints values; a function that does runs as Python."""
    for leaf in nest.flatten(inputs):
        if isinstance(leaf, Tensor) and isinstance(leaf._value, Symbol):
            arrays.python_only("tf.print")
    kwargs = {k: v for k, v in kwargs.items() if k in ("sep", "end")}
    shown = [
        each.numpy() if isinstance(each, Tensor) else each for each in inputs
    ]
    builtins.print(*shown, **kwargs)


# ---- What has no meaning here.


def stop_gradient(input: Any, name: Any = None) -> Any:
    return arrays.identity(input)


def no_op(name: Any = None) -> None:
    """Nothing."""


def group(*inputs: Any, **kwargs: Any) -> None:
    """Nothing: what was computed was computed."""


@contextlib.contextmanager
def device(device_name: Any) -> Iterator[None]:
    """Everything is computed on CPUs."""
    yield


@contextlib.contextmanager
def name_scope(name: Any) -> Iterator[None]:
    yield


@contextlib.contextmanager
def init_scope() -> Iterator[None]:
    yield


def get_logger() -> logging.Logger:
    """The logger that TensorFlow's programs set the level of."""
    return logging.getLogger("tensorflow")


def timestamp(name: Any = None) -> Tensor:
    """Seconds since 1970, float64; a function with it runs as Python."""
    if _recording.current() is not None:
        arrays.python_only("tf.timestamp")
    return Tensor(np.array(time.time(), np.float64))


@contextlib.contextmanager
def control_dependencies(control_inputs: Any) -> Iterator[None]:
    yield


def executing_eagerly() -> bool:
    return _recording.current() is None
