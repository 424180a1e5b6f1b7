"""Where elements come from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from penstock import _captures, _dtypes, _rows, _spec
from penstock._dtypes import DType
from penstock._errors import InvalidTypeError
from penstock._location import refused
from penstock._pipeline import (
    Pipeline,
    append,
    file_names,
    flag,
    value,
)
from penstock._pipeline import (
    seed as seed_field,
)
from penstock._symbol import Symbol

if TYPE_CHECKING:
    from penstock._dataset import Dataset


# Of a list of lists that is an array; numpy's limit.
_MAX_DIMENSIONS = 64


class Sources(Pipeline):
    """The part of `Dataset` that makes datasets out of other things."""

    @staticmethod
    def range(
        *args: Any, output_type: Any = _dtypes.int64, name: Any = None
    ) -> Dataset:
        """Counts like Python's `range`: (stop), (start, stop[, step]).

        Example:
            >>> list(ps.Dataset.range(2, 9, 3))
            [np.int64(2), np.int64(5), np.int64(8)]
            >>> list(ps.Dataset.range(2, output_type=np.float32))
            [np.float32(0.0), np.float32(1.0)]
        """
        if not 1 <= len(args) <= 3:
            raise refused(
                InvalidTypeError,
                f"range takes 1 to 3 positions; got {len(args)}",
            )
        start, stop, step = (
            (0, args[0], 1) if len(args) == 1 else (*args, 1)[:3]
        )
        return append(
            "range",
            {
                "start": value("start", start),
                "stop": value("stop", stop),
                "step": value("step", step),
                "dtype": DType.of(output_type).wire_name,
            },
        )

    @staticmethod
    def counter(
        start: Any = 0,
        step: Any = 1,
        dtype: Any = _dtypes.int64,
        name: Any = None,
    ) -> Dataset:
        """Counts from `start` by `step`, without end.

        Example:
            >>> list(ps.Dataset.counter(5, 10).take(3))
            [np.int64(5), np.int64(15), np.int64(25)]
        """
        return append(
            "counter",
            {
                "start": value("start", start),
                "step": value("step", step),
                "dtype": DType.of(dtype).wire_name,
            },
        )

    @staticmethod
    def random(
        seed: int | None = None,
        rerandomize_each_iteration: bool | None = None,
        name: Any = None,
    ) -> Dataset:
        """Pseudo-random int64 values, without end.

        Example:
            >>> ds = ps.Dataset.random(seed=4).take(3)
            >>> list(ds) == list(ds)
            True

        Args:
            seed: The same seed gives the same values; drawn if left out.
            rerandomize_each_iteration: Gives other values to each iterator.
            name: Not used.
        """
        return append(
            "random",
            {
                **seed_field(seed),
                **flag(
                    "rerandomize_each_iteration", rerandomize_each_iteration
                ),
            },
        )

    @staticmethod
    def from_tensors(tensors: Any, name: Any = None) -> Dataset:
        """One element: the whole of `tensors`.

        Example:
            >>> list(ps.Dataset.from_tensors((1, [2.0, 3.0])))
            [(np.int64(1), array([2., 3.]))]
        """
        if _has_symbols(tensors):
            return _from_values(tensors, False)
        rows, captures = _rows.one_row(tensors)
        return _from_rows("from_tensors", rows, captures, tensors)

    @staticmethod
    def from_tensor_slices(tensors: Any, name: Any = None) -> Dataset:
        """The slices of arrays along their first dimension.

        Tuples, dicts, named tuples and dataclasses are structures; a list is an
        array. Arrays are copied once.

        Example:
            >>> columns = {"a": [1, 2], "b": ["u", "v"]}
            >>> list(ps.Dataset.from_tensor_slices(columns))
            [{'a': np.int64(1), 'b': b'u'}, {'a': np.int64(2), 'b': b'v'}]
        """
        if _has_symbols(tensors):
            return _from_values(tensors, True)
        if _spec.has_composite(tensors):
            # Ragged and sparse values are cut by what they mean.
            return Sources.from_tensors(tensors).unbatch()
        rows, captures = _rows.slices(tensors)
        return _from_rows("from_tensor_slices", rows, captures, tensors)

    @staticmethod
    def from_list(elements: Sequence[Any], name: Any = None) -> Dataset:
        """The items of a list, whose shapes may differ.

        Example:
            >>> list(ps.Dataset.from_list([[1], [2, 3]]))
            [array([1]), array([2, 3])]
        """
        rows, captures = _rows.each(elements)
        return _from_rows("from_list", rows, captures, elements[0])

    @staticmethod
    def from_generator(
        generator: Callable[..., Any],
        output_types: Any = None,
        output_shapes: Any = None,
        args: Sequence[Any] | None = None,
        output_signature: Any = None,
        name: Any = None,
    ) -> Dataset:
        """What a Python generator gives; each iterator runs one of its own.

        The generator runs in a thread of this process: a busy main thread
        leaves it little time. What it gives is converted to the signature's
        dtypes; what does not fit is an error at its position.

        Example:
            >>> def squares(n):
            ...     for i in range(n):
            ...         yield i * i
            >>> ds = ps.Dataset.from_generator(
            ...     squares, args=(3,),
            ...     output_signature=ps.TensorSpec((), np.int32))
            >>> list(ds)
            [np.int32(0), np.int32(1), np.int32(4)]

        Args:
            generator: Called with `args`; gives something to iterate over.
            output_types: As tf.data has it: dtypes in place of the signature.
            output_shapes: Shapes to go with them; unknown if left out.
            args: Arguments of `generator`; it gets them as arrays.
            output_signature: The elements' structure of `TensorSpec`.
            name: Not used.
        """
        if not callable(generator):
            raise refused(
                InvalidTypeError,
                f"generator must be callable; got {generator!r}",
            )
        structure = _signature(output_signature, output_types, output_shapes)
        capture = _captures.GeneratorCapture.make(generator, structure)
        body = {
            "capture": capture.id,
            "name": capture.name,
            "spec": _spec.to_json(structure),
            "args": [value("args", item) for item in args or ()],
        }
        return append(
            "generator",
            body,
            captures=[capture],
            types=_spec.types_of(structure),
        )

    @staticmethod
    def list_files(
        file_pattern: Any,
        shuffle: bool | None = None,
        seed: int | None = None,
        name: Any = None,
    ) -> Dataset:
        """The names of files that match one or several patterns.

        Example:
            >>> import pathlib, tempfile
            >>> folder = pathlib.Path(tempfile.mkdtemp())
            >>> for name in "ba": (folder / name).touch()
            >>> files = ps.Dataset.list_files(folder / "*", shuffle=False)
            >>> [name[-1:] for name in files]
            [b'a', b'b']

        Args:
            file_pattern: A pattern, or a list of them.
            shuffle: Gives the names in another order to each iterator (the
                default); otherwise they are sorted.
            seed: Of the shuffle.
            name: Not used.
        """
        return append(
            "list_files",
            {
                "patterns": file_names("file_pattern", file_pattern),
                "shuffle": True if shuffle is None else bool(shuffle),
                "reshuffle_each_iteration": True,
                **seed_field(seed),
            },
        )

    @staticmethod
    def zip(*args: Any, datasets: Any = None, name: Any = None) -> Dataset:
        """Elements of several datasets side by side; ends with the shortest.

        Example:
            >>> a, b = ps.Dataset.range(2), ps.Dataset.range(5, 9)
            >>> list(ps.Dataset.zip(a, b))
            [(np.int64(0), np.int64(5)), (np.int64(1), np.int64(6))]
            >>> list(ps.Dataset.zip({"a": a, "b": b}))[0]
            {'a': np.int64(0), 'b': np.int64(5)}
        """
        if bool(args) == (datasets is not None):
            raise refused(
                InvalidTypeError,
                "zip takes datasets either as arguments or as `datasets`; got "
                f"{'both' if args else 'neither'}",
            )
        if args:
            datasets = args[0] if len(args) == 1 else args
        inputs = _spec.flatten(datasets)
        for source in inputs:
            if not isinstance(source, Pipeline):
                raise refused(
                    InvalidTypeError,
                    "zip takes datasets, or a tuple or dict of them; got "
                    f"{type(source).__name__}.\n"
                    "  Use ps.Dataset.zip(a, b) or ps.Dataset.zip((a, b)).",
                )
        return append(
            "zip",
            {"structure": _spec.to_json(datasets)},
            inputs,
            types=_spec.types_of(datasets),
        )


def _has_symbols(tensors: Any) -> bool:
    def is_symbolic(leaf: Any, depth: int = 0) -> bool:
        if isinstance(leaf, (list, tuple)) and depth < _MAX_DIMENSIONS:
            return any(is_symbolic(item, depth + 1) for item in leaf)
        return isinstance(leaf, Symbol)

    return any(map(is_symbolic, _spec.flatten(tensors)))


def _from_rows(kind: str, rows: Any, captures: Any, structure: Any) -> Dataset:
    return append(
        "rows",
        {**rows, "kind": kind},
        captures=captures,
        types=_spec.types_of(structure),
    )


def _from_values(tensors: Any, is_sliced: bool) -> Dataset:
    from penstock import _recording
    from penstock._symbol import step_of

    recording = _recording.current()
    values = []
    for leaf in _spec.flatten(tensors):
        if isinstance(leaf, list) and recording is not None:
            leaf = Symbol(recording, step_of(recording, leaf))
        values.append(value("tensors", leaf))
    body = {
        "values": values,
        "structure": _spec.to_json(tensors),
        "slices": is_sliced,
    }
    return append("values", body, types=_spec.types_of(tensors))


def _signature(signature: Any, dtypes: Any, shapes: Any) -> Any:
    if (signature is None) == (dtypes is None):
        raise refused(
            InvalidTypeError,
            "from_generator takes either output_signature or output_types; got "
            f"{'neither' if signature is None else 'both'}",
        )
    if signature is not None:
        for leaf in _spec.flatten(signature):
            if not isinstance(leaf, _spec.TensorSpec):
                raise refused(
                    InvalidTypeError,
                    "output_signature must be a structure of ps.TensorSpec; "
                    f"got {leaf!r}",
                )
        return signature
    if shapes is None:
        return _spec.map_structure(
            lambda dtype: _spec.TensorSpec(None, dtype), dtypes
        )
    leaves = _spec.flatten(dtypes)
    flat = _shapes_like(dtypes, shapes)
    return _spec.pack(
        dtypes,
        [
            _spec.TensorSpec(shape, dtype)
            for shape, dtype in zip(flat, leaves, strict=True)
        ],
    )


def _shapes_like(structure: Any, shapes: Any) -> list[Any]:
    """Shapes where `structure` has leaves; a shape may be a list or tuple."""
    if _spec.is_leaf(structure):
        return [shapes]
    return _spec.flatten_like(structure, shapes)
