"""The steps of a function while it is being recorded.

A recording belongs to one function. Functions nest: the function of a
`flat_map` makes a dataset whose own functions are recorded inside it. A value
of the outer function that an inner one uses is *bound*: the inner plan gets it
as a numbered value when it starts, and the inner function reads it by that
number. Each level has its own numbers; values from further out are passed
through every level between.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from penstock import _captures, _chunk, _dtypes, _engine
from penstock._dtypes import DType
from penstock._errors import InvalidArgumentError
from penstock._location import refused, user_location
from penstock._spec import TensorSpec

Json = dict[str, Any]


class Recording:
    """A function's steps so far. Used by one thread."""

    def __init__(
        self,
        arguments: Sequence[TensorSpec],
        parent: Recording | None,
        is_eager: bool = False,
    ) -> None:
        self.parent = parent
        # Run at once, and no part of a plan.
        self.is_eager = is_eager
        self.steps: list[Json] = []
        # Steps that datasets made in this function use, by their number there.
        self.bound: list[int] = []
        # What its large constants are in.
        self.captures: list[_captures.RowsCapture] = []
        self._arguments = list(arguments)
        self._specs: dict[int, TensorSpec] = {}
        self._lifted: dict[tuple[int, int], int] = {}
        # While a function is called several times: says which steps are new.
        self.replay: Any = None
        # What makes of a size, which is an int64 scalar, what Python has.
        self.size_of: Any = None
        for i, spec in enumerate(arguments):
            self._specs[self._add({"argument": i})] = spec

    def _add(self, kind: Json) -> int:
        if self.replay is not None:
            step: int = self.replay.add(kind)
            return step
        return self.append(kind)

    def append(self, kind: Json) -> int:
        """The number of a new step."""
        self.steps.append({**kind, "made_at": user_location()})
        return len(self.steps) - 1

    def add_call(self, name: str, args: Sequence[int], attrs: Json) -> int:
        call: Json = {"function": name, "args": list(args)}
        if attrs:
            call["attrs"] = attrs
        return self._add({"call": call})

    def add_parts(
        self, name: str, args: Sequence[int], attrs: Json, count: int
    ) -> list[int]:
        """The steps of the `count` results of one call."""
        call = self.add_call(name, args, attrs)
        rest = [
            self._add({"part": {"call": call, "index": i}})
            for i in range(1, count)
        ]
        return [call, *rest]

    def add_constant(self, value: Any) -> int:
        if self.is_eager or not _is_surely_large(value):
            message = constant_to_json(value)
            if self.is_eager or _size(message) <= _captures.INLINE_BYTES:
                return self._add({"constant": message})
        return self._add({"constant": self._capture(value)})

    def _capture(self, value: Any) -> Json:
        array = _dtypes.to_array(value)
        dtype = _dtypes.from_numpy(array.dtype)
        column = _chunk.Column(dtype, array[np.newaxis])
        capture = _captures.RowsCapture.make(_chunk.Encoded([column], 1))
        self.captures.append(capture)
        spec = TensorSpec(array.shape, dtype)
        return {"spec": spec.to_json(), "capture": capture.id}

    def lift(self, recording: Recording, step: int) -> int:
        """The step that has here the value of `step` of an outer recording."""
        if recording is self:
            return step
        key = (id(recording), step)
        if key not in self._lifted:
            if self.parent is None:
                raise refused(
                    InvalidArgumentError,
                    "a symbolic value cannot be used outside of the function "
                    "that it belongs to; return it from that function instead",
                )
            outer = self.parent.lift(recording, step)
            number = self.parent.bind(outer)
            here = self.append({"bound": number})
            self._specs[here] = self.parent.spec(outer)
            self._lifted[key] = here
        return self._lifted[key]

    def bind(self, step: int) -> int:
        """The number of `step` among the values that inner plans start with."""
        if step not in self.bound:
            self.bound.append(step)
        return self.bound.index(step)

    def bound_specs(self) -> list[Json]:
        return [self.spec(step).to_json() for step in self.bound]

    def spec(self, step: int) -> TensorSpec:
        """What is known of a step's value; asked of the engine if need be."""
        if step not in self._specs:
            wanted = [i for i in range(step + 1) if i not in self._specs]
            outputs = self.infer(wanted)
            self._specs.update(zip(wanted, outputs, strict=True))
        return self._specs[step]

    def infer(self, outputs: Sequence[int]) -> list[TensorSpec]:
        body: Json = {
            "function": {
                "steps": self.steps[: max(outputs) + 1],
                "outputs": list(outputs),
            },
            "arguments": [spec.to_json() for spec in self._arguments],
        }
        if self.parent is not None:
            body["bound"] = self.parent.bound_specs()
        reply = _engine.call("infer", body)
        return [TensorSpec.from_json(x) for x in reply.get("outputs", ())]


_active = threading.local()


def current() -> Recording | None:
    """The innermost recording of this thread."""
    found: Recording | None = getattr(_active, "recording", None)
    return found


@contextmanager
def activate(recording: Recording) -> Iterator[None]:
    before = current()
    _active.recording = recording
    try:
        yield
    finally:
        _active.recording = before


# ---- Values as messages.


def _is_surely_large(value: Any) -> bool:
    """Whether `_size` need not be asked: a message takes half the bytes."""
    return (
        isinstance(value, np.ndarray)
        and value.nbytes > 2 * _captures.INLINE_BYTES
    )


def _size(constant: Json) -> int:
    """About the bytes that a constant takes in a plan."""
    tensor = constant["tensor"]
    return len(tensor.get("data", "")) + sum(
        len(item) + 4 for item in tensor.get("strings", ())
    )


def tensor_to_json(value: Any, dtype: DType | None = None) -> Json:
    """The Tensor message of anything that is an array."""
    array = _dtypes.to_array(value, dtype)
    found = dtype or _dtypes.from_numpy(array.dtype)
    message: Json = {"dtype": found.wire_name, "shape": list(array.shape)}
    if found == _dtypes.string:
        items = array.reshape(-1).tolist()
        message["strings"] = [_engine.to_base64(item) for item in items]
    else:
        message["data"] = _engine.to_base64(array.tobytes())
    return message


def constant_to_json(value: Any) -> Json:
    """The Constant message; Python's numbers are weak, arrays are not."""
    is_weak = isinstance(value, (bool, int, float, complex)) and not isinstance(
        value, np.generic
    )
    message: Json = {"tensor": tensor_to_json(value)}
    if is_weak:
        message["weak"] = True
    return message


def attr_to_json(value: Any) -> Json:
    """The Attr message of what is fixed when a call is recorded."""
    if value is None:
        return {"none": True}
    if isinstance(value, DType):
        return {"dtype": value.wire_name}
    if isinstance(value, (bool, np.bool_)):
        return {"flag": bool(value)}
    if isinstance(value, (int, np.integer)):
        return {"integer": int(value)}
    if isinstance(value, (float, np.floating)):
        return {"number": float(value)}
    if isinstance(value, str):
        return {"text": value}
    if any(isinstance(item, str) for item in value):
        return {"texts": {"values": list(value)}}
    if any(isinstance(item, (float, np.floating)) for item in value):
        return {"numbers": {"values": [float(item) for item in value]}}
    return {"integers": {"values": [int(item) for item in value]}}
