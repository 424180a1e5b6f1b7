"""The value inside a Dataset: a plan, and what it names.

A plan grows by sending it with a new node to the engine, which checks both and
answers with the larger plan, its element spec and its cardinality. Nothing of
that is known here.
"""

from __future__ import annotations

import copy
import operator
import os
import threading
import weakref
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from penstock import _engine, _inside, _recording, _spec
from penstock._errors import InvalidArgumentError, InvalidTypeError
from penstock._location import refused, user_frame, user_location
from penstock._options import Options
from penstock._record import Recorded
from penstock._recording import Recording
from penstock._symbol import Symbol

if TYPE_CHECKING:
    from penstock._dataset import Dataset

Json = dict[str, Any]

INFINITE_CARDINALITY = -1
UNKNOWN_CARDINALITY = -2
AUTOTUNE = -1


class ShardHint(int):
    """What stands for a number that each worker fills in."""

    def __repr__(self) -> str:
        return "SHARD_HINT"


# tf.data's number.
SHARD_HINT = ShardHint(-1)


class _Token:
    """Stands for a node that keeps something in the engine."""

    __slots__ = ("__weakref__", "last")

    def __init__(self) -> None:
        # Of the last iterator, as the engine told: its successor needs it.
        self.last: Json | None = None


_tokens: weakref.WeakValueDictionary[int, _Token] = (
    weakref.WeakValueDictionary()
)
_tokens_lock = threading.Lock()


def _after_fork_in_child() -> None:
    global _tokens_lock
    _tokens_lock = threading.Lock()  # Another thread may have held it.


os.register_at_fork(after_in_child=_after_fork_in_child)


def _token(instance: int) -> _Token:
    with _tokens_lock:
        token = _tokens.get(instance)
        if token is None:
            token = _tokens[instance] = _Token()
            weakref.finalize(token, _engine.drop_instance, instance)
        return token


class Pipeline:
    """An immutable plan with its captures. Pickles; captures go by value."""

    _plan: str  # base64, as the engine gave it
    _spec_message: Json
    _cardinality: int
    _captures: tuple[_engine.Capture, ...]
    _types: dict[str, type]
    _options: Options
    _tokens: tuple[_Token, ...]
    # The function that it is made in, and how many of that function's values
    # it starts with.
    _recording: Recording | None
    _bound: int
    _epoch: int | None = None
    # Knobs of a run, by node: the Knobs message, as `tune` chose them.
    _knobs: Json | None = None
    # How its plan is rewritten before it is run: the Rewriting message. Knobs
    # are then of what that makes.
    _rewriting: Json | None = None
    _element_spec: Any = None
    _fingerprint: str | None = None

    def _self(self) -> Dataset:
        from penstock._dataset import Dataset

        assert isinstance(self, Dataset)
        return self

    def _last_states(self) -> list[Json]:
        """What the last iterator had of each node that counts them."""
        return [token.last for token in self._tokens if token.last]

    def _remember(self, states: Iterable[Json]) -> None:
        for state in states:
            token = _tokens.get(int(state["instance"]))
            if token is not None:
                token.last = state

    def _num_bound(self, recording: Recording | None) -> int:
        """How many of the values of `recording` it starts with."""
        if self._recording is None:
            return 0
        if self._recording is not recording:
            raise refused(
                InvalidArgumentError,
                "a dataset made inside a function can only be used in that "
                "function; make it again where it is needed",
            )
        return self._bound

    def __getstate__(self) -> Json:
        if self._recording is not None:
            raise refused(
                InvalidArgumentError,
                "a dataset made inside a recorded function cannot be pickled",
            )
        return {
            "plan": self._plan,
            "spec": self._spec_message,
            "cardinality": self._cardinality,
            "captures": self._captures,
            "types": self._types,
            "options": self._options,
            "epoch": self._epoch,
            "knobs": self._knobs,
            "rewriting": self._rewriting,
        }

    def __setstate__(self, state: Json) -> None:
        self._plan = state["plan"]
        self._spec_message = state["spec"]
        self._cardinality = state["cardinality"]
        self._captures = state["captures"]
        self._types = state["types"]
        self._options = state["options"]
        self._epoch = state["epoch"]
        self._knobs = state.get("knobs")
        self._rewriting = state.get("rewriting")
        self._tokens = ()
        self._recording = None
        self._bound = 0

    @property
    def element_spec(self) -> Any:
        """The structure of an element, with a `TensorSpec` for each tensor.

        Example:
            >>> ps.Dataset.from_tensor_slices({"x": [1.0, 2.0]}).element_spec
            {'x': TensorSpec(shape=(), dtype=ps.float64)}
        """
        if self._element_spec is None:
            self._element_spec = _spec.from_json(
                self._spec_message, self._types
            )
        return self._element_spec


PipelineT = TypeVar("PipelineT", bound=Pipeline)


def sample_of(dataset: Pipeline) -> Dataset:
    """Its elements without what only delays, orders or repeats them."""
    return _sampled(dataset, {})


def without_cache(dataset: Pipeline, name: str) -> Dataset:
    """What the dataset computes without the cache of this name."""
    return _sampled(dataset, {"without_cache": name})


def _sampled(dataset: Pipeline, wanted: Json) -> Dataset:
    sample = copy.copy(dataset)
    body = {"plan": dataset._plan, **wanted}
    sample._plan = _engine.call("sample", body)["plan"]
    sample._tokens = ()
    sample._knobs = sample._rewriting = None
    return sample._self()


def append(
    op: str,
    body: Json,
    inputs: Iterable[Pipeline] = (),
    *,
    function: Recorded | None = None,
    captures: Iterable[_engine.Capture] = (),
    types: dict[str, type] | None = None,
    options: Options | None = None,
) -> Dataset:
    """The dataset of a new node over `inputs`."""
    from penstock._dataset import Dataset

    return grow(
        Dataset.__new__(Dataset),
        op,
        body,
        inputs,
        function=function,
        captures=captures,
        types=types,
        options=options,
    )


def grow(
    into: PipelineT,
    op: str,
    body: Json,
    inputs: Iterable[Pipeline] = (),
    *,
    function: Recorded | None = None,
    captures: Iterable[_engine.Capture] = (),
    types: dict[str, type] | None = None,
    options: Options | None = None,
) -> PipelineT:
    """Makes `into` the dataset of a new node over `inputs`."""
    inputs = list(inputs)
    _inside.note_builders(user_frame())
    recording = _recording.current()
    request: Json = {
        "plans": [source._plan for source in inputs],
        "node": {op: body, "made_at": user_location()},
    }
    parts: list[Pipeline] = list(inputs)
    if function is not None and function.dataset is not None:
        # Its plan is bytes here, so it travels beside the node.
        request["dataset"] = function.dataset._plan
        parts.append(function.dataset)
    for source in inputs:
        source._num_bound(recording)
    if recording is not None:
        request["bound"] = recording.bound_specs()
    reply = _engine.call("append", request)
    into._plan = reply["plan"]
    into._spec_message = reply.get("spec", {})
    into._cardinality = _cardinality(reply.get("cardinality", {}))
    into._recording = recording
    into._bound = 0 if recording is None else len(recording.bound)
    into._types = dict(types or {})
    if function is not None:
        into._types.update(function.types)
    merged: dict[str, _engine.Capture] = {c.id: c for c in captures}
    if function is not None:
        merged.update((c.id, c) for c in function.captures)
    into._options = Options()
    for part in parts:
        into._types.update(part._types)
        merged.update((c.id, c) for c in part._captures)
        into._options = into._options.merge(part._options)
    if options is not None:
        into._options = into._options.merge(options)
    into._captures = tuple(merged.values())
    into._tokens = tuple(_token(int(i)) for i in reply.get("instances", ()))
    if any(part._knobs or part._rewriting for part in parts):
        from penstock import _tuning

        _tuning.hand_on(op, inputs, parts[len(inputs) :], into)
    return into


def _cardinality(message: Json) -> int:
    if message.get("infinite"):
        return INFINITE_CARDINALITY
    if "finite" in message:
        return int(message["finite"])
    return UNKNOWN_CARDINALITY


# ---- Parameters as messages.


def value(name: str, given: Any) -> Json:
    """The Value message of a parameter: a constant or a symbolic value."""
    if isinstance(given, Symbol):
        recording = _recording.current()
        if recording is None:
            raise refused(
                InvalidArgumentError,
                f"{name} is a symbolic value outside of its function",
            )
        step = recording.lift(given._recording, given._step)
        return {"bound": recording.bind(step)}
    try:
        return {"constant": _recording.tensor_to_json(given)}
    except (TypeError, ValueError, OverflowError) as error:
        raise refused(
            InvalidTypeError,
            f"{name} must be a number of at most 64 bits, a string or an "
            f"array of these; got {_short(given)} ({error})",
        ) from None


def _short(given: Any) -> str:
    """`given` as it is shown in a message: not more than a line of it."""
    import reprlib

    return reprlib.repr(given)


def whole(name: str, given: Any) -> Json:
    """The Value message of a parameter that is an integer."""
    if isinstance(given, (float, np.floating)):
        raise refused(
            InvalidTypeError, f"{name} must be an integer; got {given}"
        )
    return value(name, given)


def count(name: str, given: Any, unset: tuple[Any, ...] = (None, -1)) -> Json:
    """The field `count` of a message, left out for tf.data's words for that."""
    if not isinstance(given, Symbol) and any(
        given is word or (isinstance(given, int) and given == word)
        for word in unset
    ):
        return {}
    return {name: whole(name, given)}


def integer(name: str, field: str, given: Any) -> Json:
    """An optional integer field; None and AUTOTUNE leave it out."""
    if given is None or (isinstance(given, int) and given == AUTOTUNE):
        return {}
    return {field: index(name, given)}


def index(name: str, given: Any, bits: int = 64) -> int:
    """`given` as an integer of at most `bits` bits."""
    try:
        found = operator.index(given)
    except TypeError:
        raise refused(
            InvalidTypeError,
            f"{name} must be an integer; got {_short(given)}",
        ) from None
    if not -1 << (bits - 1) <= found < 1 << (bits - 1):
        raise refused(
            InvalidArgumentError,
            f"{name} must be an integer of {min(bits, 64)} bits; "
            f"got {_short(given)}",
        )
    return found


def flag(field: str, given: bool | None) -> Json:
    """An optional bool field."""
    return {} if given is None else {field: bool(given)}


def seed(given: Any) -> Json:
    """An optional seed; negative ones count as 64-bit words."""
    if given is None:
        return {}
    return {"seed": index("seed", given, 65) & 0xFFFF_FFFF_FFFF_FFFF}


def file_name(given: Any) -> Any:
    """A path or a name as its bytes; anything else as it is.

    Names need not be UTF-8: what `os.listdir` gives is taken back as it is.
    """
    if isinstance(given, (str, os.PathLike)):
        return os.fsencode(given)
    return given


def file_names(name: str, given: Any) -> Json:
    """The Value message of one or several file names or patterns."""
    if isinstance(given, (str, os.PathLike)):
        given = file_name(given)
    elif isinstance(given, (list, tuple)):
        given = [file_name(item) for item in given]
        if not given:
            return {
                "constant": {"dtype": "STRING", "shape": [0], "strings": []}
            }
    return value(name, given)
