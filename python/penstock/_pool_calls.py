"""A user's function in a process of the pool: rows in, rows out.

What is sent there is packed by the trainer and read once per process. A call
has the rows of a chunk; what comes of each is a row, and what it raises is that
row's error.
"""

from __future__ import annotations

import abc
import importlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from penstock import (
    _chunk,
    _dtypes,
    _errors,
    _spec,
)
from penstock._core_time import CoreClock
from penstock._packed import ROWS, SCAN, VALUES, Packed, read
from penstock._user_rows import (
    Convert,
    DenseRows,
    Rows,
    convert,
    converter,
    describe,
)

_INVALID_ARGUMENT = 3
_RESOURCE_EXHAUSTED = 8
_UNKNOWN = 2
# What a row costs besides its values.
_ROW_BYTES = 16

# Of the thread that makes all calls.
_CLOCK = CoreClock()

Errors = dict[int, BaseException | None]


def load(fd: int, size: int) -> Function:
    """The function in a file, ready to be called."""
    packed = read(fd, size)
    if packed.is_asked:
        return Asked(packed)
    if packed.use == ROWS:
        return RowsFunction(packed)
    if packed.use == VALUES:
        return ValueFunction(packed)
    return FoldFunction(packed)


class Call(NamedTuple):
    """Rows that a function is to be called with."""

    columns: list[list[Any]]
    rows: int
    seeds: list[Any] | None
    known: set[int]  # rows that are errors already
    progress: Any  # where to write which row it is at
    max_bytes: int  # that the rows of an element may take; 0: any
    out: memoryview | None  # where results may lie from the start


class Function(abc.ABC):
    """A function, and how rows become its arguments and results rows."""

    def __init__(self, packed: Packed) -> None:
        self.packed = packed
        self._function = packed.function
        self._is_unpacked = _spec.is_plain_tuple(packed.inputs) and (
            packed.use in (VALUES, ROWS)
        )
        self._assemble = _spec.assembler(packed.inputs)

    def run(
        self,
        data: memoryview,
        progress: Any,
        max_bytes: int,
        out: memoryview | None,
    ) -> tuple[_chunk.Encoded, int]:
        """The results of all rows, and the nanoseconds they took.

        What others had the cores for is not in them.

        What is to be written to `out` may lie there when it returns.
        """
        root = np.frombuffer(data, np.uint8)
        head = _chunk.head_size(_chunk.HEADER.unpack_from(data)[1])
        layout = _chunk.read_layout(bytes(data[:head]))
        rows = layout.rows
        if any(c.rank and c.dtype != _dtypes.string for c in layout.columns):
            root = root.copy()  # Functions may keep and change their arrays.
        columns = [_chunk.column_rows(root, c, rows) for c in layout.columns]
        call = Call(
            seeds=columns.pop() if self.packed.has_rng else None,
            columns=columns,
            rows=rows,
            known={each.row for each in _chunk.read_errors(data, layout)},
            progress=progress,
            max_bytes=max_bytes,
            out=out,
        )
        start = _CLOCK.now()
        encoded = self._run(call)
        return encoded, max(0, _CLOCK.now() - start)

    @abc.abstractmethod
    def _run(self, call: Call) -> _chunk.Encoded:
        """The results of all rows."""

    def _results(self, call: Call, out: Rows) -> Iterator[Any]:
        """What each row gives; errors go to `out` in their places."""
        for row, element in enumerate(self._assemble(call.columns, call.rows)):
            if row in call.known:
                _add_error(out, None)
                continue
            call.progress[1] = row
            seed = None if call.seeds is None else call.seeds[row]
            try:
                result = self._call(seed, *self._arguments(element))
            except BaseException as error:
                _add_error(out, error)
                continue
            yield result

    def _call(self, seed: Any, *arguments: Any) -> Any:
        if seed is None:
            return self._function(*arguments)
        rng = np.random.Generator(np.random.PCG64(int(seed)))
        return self._function(*arguments, rng=rng)

    def _arguments(self, element: Any) -> tuple[Any, ...]:
        if self._is_unpacked:
            arguments: tuple[Any, ...] = element
            return arguments
        return (element,)


class ValueFunction(Function):
    """One result for each row."""

    def __init__(self, packed: Packed) -> None:
        super().__init__(packed)
        outputs = packed.outputs
        self._specs = _spec.flatten(outputs)
        # Rows are copied as they are added.
        self._convert = converter(outputs, copies=False)
        # One number a row: gathered without looking at each.
        self._dtype = None
        if (
            isinstance(outputs, _spec.TensorSpec)
            and outputs.shape == ()
            and outputs.dtype != _dtypes.string
        ):
            self._dtype = outputs.dtype.dtype

    def _run(self, call: Call) -> _chunk.Encoded:
        if self._dtype is None:
            gathered = DenseRows(call.rows, call.out)
            # At once: the next call may change what this one returned.
            for result in self._results(call, gathered):
                _add(gathered, self._convert, result)
            return gathered.chunk(self._specs)
        function = self._function
        is_unpacked = self._is_unpacked
        seeds, progress = call.seeds, call.progress
        results: list[Any] = []
        errors: Errors = dict.fromkeys(call.known)
        for row, element in enumerate(self._assemble(call.columns, call.rows)):
            if row in errors:
                results.append(None)
                continue
            progress[1] = row
            try:
                if seeds is not None:
                    results.append(
                        self._call(seeds[row], *self._arguments(element))
                    )
                elif is_unpacked:
                    results.append(function(*element))
                else:
                    results.append(function(element))
            except BaseException as error:
                # All of them: sys.exit() in a function is no end of ours.
                results.append(None)
                errors[row] = error
        return self._encode_numbers(results, errors)

    def _encode_numbers(
        self, results: list[Any], errors: Errors
    ) -> _chunk.Encoded:
        if not errors:
            try:
                array = np.array(results)
            except ValueError:
                array = np.empty((0, 0))  # of different shapes
            if array.ndim == 1 and array.dtype == self._dtype:
                column = _chunk.Column(self._specs[0].dtype, array)
                return _chunk.Encoded([column], len(results))
        rows = DenseRows(len(results), None)
        for row, result in enumerate(results):
            if row in errors:
                _add_error(rows, errors[row])
            else:
                _add(rows, self._convert, result)
        return rows.chunk(self._specs)


class RowsFunction(Function):
    """Any number of rows for each row, as the string of a nested dataset."""

    def __init__(self, packed: Packed) -> None:
        super().__init__(packed)
        self._specs = _spec.flatten(packed.outputs)
        self._convert = converter(packed.outputs)

    def _run(self, call: Call) -> _chunk.Encoded:
        out = Rows()
        text = _spec.TensorSpec((), _dtypes.string)
        for result in self._results(call, out):
            try:
                nested = self._rows(iterate(result), call.max_bytes)
            except BaseException as error:
                _add_error(out, error)
                continue
            if nested is None:
                out.add_error(
                    _RESOURCE_EXHAUSTED,
                    "the rows of an element must take at most "
                    f"{call.max_bytes} bytes; got more\n  Give fewer rows for "
                    "an element, or raise Options(max_element_bytes=...).",
                )
            else:
                out.add(convert(text, nested.encode(self._specs)))
        return out.chunk([text])

    def _rows(self, given: Iterator[Any], max_bytes: int) -> Rows | None:
        """The rows of an element; None if they are too large."""
        from penstock._iterator import Iterator as OfDataset

        rows = Rows()
        before = f"in {self.packed.name}: "
        while True:
            try:
                result = next(given)
            except StopIteration:
                return rows
            except BaseException as error:
                _add_error(rows, error, before)
                # Only a dataset goes on after an error.
                if isinstance(given, OfDataset):
                    continue
                return rows
            _add(rows, self._convert, result, before)
            if max_bytes and rows.size + _ROW_BYTES * rows.count > max_bytes:
                return None


class FoldFunction(Function):
    """A result for each row and a state, which goes from row to row.

    A state is kept as arrays of its dtypes from each row to the next, so that
    it does not matter how rows are cut into calls. Functions get a copy: what
    they do to it before they fail is undone.
    """

    def __init__(self, packed: Packed) -> None:
        super().__init__(packed)
        self._is_scan = packed.use == SCAN
        self._state = packed.outputs[0] if self._is_scan else packed.outputs
        self._state_specs = _spec.flatten(self._state)
        self._make_state = _spec.assembler(self._state)
        self._output = packed.outputs[1] if self._is_scan else None
        self._specs = _spec.flatten(self._output)
        self._convert_state = converter(self._state)
        self._convert_output = converter(self._output)

    def _run(self, call: Call) -> _chunk.Encoded:
        given = call.columns.pop()[0]
        values = [
            _dtypes.to_array(column[0], spec.dtype)
            for column, spec in zip(
                _chunk.decode(given)[0], self._state_specs, strict=True
            )
        ]
        out = Rows()
        has_failed = False
        for row, element in enumerate(self._assemble(call.columns, call.rows)):
            if row in call.known or (has_failed and not self._is_scan):
                # A reduce gives its first error, and nothing else.
                has_failed = True
                _add_error(out, None)
                continue
            call.progress[1] = row
            copies = [[x.copy() if x.ndim else x[()]] for x in values]
            state = self._make_state(copies, 1)[0]
            seed = None if call.seeds is None else call.seeds[row]
            try:
                result = self._call(seed, state, element)
            except BaseException as error:
                has_failed = True
                _add_error(out, error)
                continue
            try:
                new, outputs = self._parts(result)
                _check_ranks(out, outputs)
            except Exception as error:
                has_failed = True
                out.add_error(_INVALID_ARGUMENT, f"what it returned: {error}")
                continue
            values = new
            out.add(outputs)
        states = np.full(call.rows, b"", object)
        states[-1] = self._encode(values)
        return _chunk.Encoded(
            [*out.columns(self._specs), _chunk.Column(_dtypes.string, states)],
            call.rows,
            out.errors,
        )

    def _parts(
        self, result: Any
    ) -> tuple[list[_chunk.Array], list[_chunk.Array]]:
        """The arrays of the new state and of the output."""
        if not self._is_scan:
            return self._convert_state(result), []
        new, output = two(result)
        return self._convert_state(new), self._convert_output(output)

    def _encode(self, values: list[_chunk.Array]) -> bytes:
        columns = [
            _chunk.gather(spec.dtype, [value])
            for spec, value in zip(self._state_specs, values, strict=True)
        ]
        return _chunk.Encoded(columns, 1).to_bytes()


class Asked(Function):
    """What the function returns is not the row, but how it is to be told."""

    def _run(self, call: Call) -> _chunk.Encoded:
        cloudpickle = importlib.import_module("cloudpickle")
        text = _spec.TensorSpec((), _dtypes.string)
        out = Rows()
        for result in self._results(call, out):
            try:
                spec = self._spec_of(result)
                out.add(convert(text, cloudpickle.dumps(spec)))
            except Exception as error:
                out.add_error(_INVALID_ARGUMENT, f"what it returned: {error}")
        return out.chunk([text])

    def _arguments(self, element: Any) -> tuple[Any, ...]:
        if self.packed.use == SCAN:
            return self.packed.state, element
        return super()._arguments(element)

    def _spec_of(self, result: Any) -> Any:
        use = self.packed.use
        if use == SCAN:
            state, output = two(result)
            convert(self.packed.outputs, state)
            return self.packed.outputs, spec_of(output)
        if use == ROWS:
            from penstock._pipeline import Pipeline

            if isinstance(result, Pipeline):
                return _spec.map_structure(_open_sizes, result.element_spec)
            for element in iterate(result):
                return spec_of(element)
            raise ValueError("expected at least one row; got none")
        if isinstance(result, list):
            result = tuple(result)
        return spec_of(result)


def two(result: Any) -> tuple[Any, Any]:
    """The state and the output that the function of a scan returned."""
    if isinstance(result, (tuple, list)) and len(result) == 2:
        return result[0], result[1]
    raise TypeError(
        "expected a tuple of the new state and the output; got "
        f"{_shown(result)}"
    )


def iterate(result: Any) -> Iterator[Any]:
    """The rows that a function gave for an element.

    A generator or another iterator, a list or tuple of elements, an array,
    whose first dimension is taken apart, or a dataset.
    """
    from penstock._pipeline import Pipeline

    is_rows = isinstance(result, (list, tuple, Iterator, Pipeline)) or (
        isinstance(result, np.ndarray) and result.ndim > 0
    )
    if not is_rows or _spec.is_namedtuple(result):
        raise TypeError(
            "expected a list, tuple, generator, array or dataset of elements; "
            f"got {_shown(result)}"
        )
    rows: Iterator[Any] = iter(result)
    return rows


def spec_of(value: Any) -> Any:
    """The structure of `value`, with sizes left open: others may differ."""

    def leaf(item: Any) -> Any:
        from penstock._pipeline import Pipeline

        if isinstance(item, Pipeline):
            raise TypeError(
                "expected tensors; got a dataset (a Python function may give "
                "datasets in flat_map and interleave)"
            )
        return _open_sizes(_spec.spec_of(_dtypes.to_array(item)))

    _spec.flatten(value)  # refuses what is nested too deep
    return _spec.map_structure(leaf, value)


def _open_sizes(spec: Any) -> Any:
    if not isinstance(spec, _spec.TensorSpec) or spec.shape is None:
        return spec
    return _spec.TensorSpec((None,) * len(spec.shape), spec.dtype)


def with_open_sizes(structure: Any) -> Any:
    """`structure` of specs, of which only dtypes and ranks are kept."""
    return _spec.map_structure(_open_sizes, structure)


def _shown(value: Any) -> str:
    import reprlib

    return f"{reprlib.repr(value)} of type {type(value).__name__}"


def _check_ranks(rows: Rows, values: list[_chunk.Array]) -> None:
    if not rows.fits(values):
        raise ValueError(
            "expected values of the ranks of the rows before it; got shapes "
            f"{[value.shape for value in values]}"
        )


def _add(rows: Rows, to_arrays: Convert, result: Any, before: str = "") -> None:
    """Adds what a function returned, or the error that it is none."""
    try:
        values = to_arrays(result)
        _check_ranks(rows, values)
        rows.add(values)
    except Exception as error:
        rows.add_error(_INVALID_ARGUMENT, f"{before}what it returned: {error}")


def _add_error(
    rows: Rows, error: BaseException | None, before: str = ""
) -> None:
    if error is None:  # The engine knows it already.
        rows.add_error(_UNKNOWN, "")
    else:
        rows.add_error(_errors.code_of(error), before + describe(error))
