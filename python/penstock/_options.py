"""What a user asks of a run as a whole."""

from __future__ import annotations

import contextvars
import dataclasses
from typing import TYPE_CHECKING, Any

from penstock._errors import InvalidTypeError
from penstock._location import refused

if TYPE_CHECKING:
    from types import TracebackType


@dataclasses.dataclass
class PythonOptions:
    """How the Python functions of a pipeline are run.

    Example:
        >>> python = ps.PythonOptions(deadline=30.0)
        >>> options = ps.Options(python=python)

    Attributes:
        processes: At most this many; as many as there are cores if None.
        deadline: Seconds for one element. Past it the process is ended, and
            the element is a `DeadlineExceededError`.
        memory: Bytes. A process that holds more is replaced after its call.
    """

    processes: int | None = None
    deadline: float | None = None
    memory: int | None = None

    def merge(self, later: PythonOptions) -> PythonOptions:
        """These settings with those of `later` that are set."""
        values = dataclasses.asdict(later)
        given = {k: v for k, v in values.items() if v is not None}
        return dataclasses.replace(self, **given)

    def to_json(self) -> dict[str, Any]:
        """The plan's message."""
        from penstock._pipeline import index

        fields: dict[str, Any] = {}
        if self.processes is not None:
            fields["processes"] = index("python.processes", self.processes)
        if self.memory is not None:
            fields["memory_bytes"] = index("python.memory", self.memory)
        if self.deadline is not None:
            if isinstance(self.deadline, bool) or not isinstance(
                self.deadline, (int, float)
            ):
                raise refused(
                    InvalidTypeError,
                    "python.deadline must be a number of seconds; got "
                    f"{self.deadline!r}",
                )
            fields["deadline_seconds"] = float(self.deadline)
        return fields


@dataclasses.dataclass
class Options:
    """Settings of a pipeline, given with `Dataset.with_options`.

    What is None is left to the engine. Later settings win, field by field.

    In a `with` statement they are the defaults of all iterators that are made
    inside it, in this thread or task; a dataset's own options win over them,
    and those of an inner statement over those of an outer one.

    Example:
        >>> options = ps.Options(deterministic=False)
        >>> ds = ps.Dataset.range(3).with_options(options)
        >>> ds.options().deterministic
        False
        >>> with ps.Options(max_element_bytes=100):
        ...     first = next(iter(ps.Dataset.range(3)))

    Attributes:
        deterministic: Whether order is kept where parallel work could change
            it. Transformations that say so themselves are not affected.
        run_ahead: Elements that may be computed beyond those asked for, where
            a generator would show it; 0 computes only what `next()` asks for.
        memory_budget: Bytes, or a size such as "4GB", that the shuffles and
            caches of one iterator may hold. What they leave may be used to
            keep elements that are the same in every epoch, where that makes
            the next one faster.
        max_element_bytes: The largest element; a larger one is an error.
        name: Shown in statistics and messages.
        python: How Python functions are run.
        autotune: Whether settings that the program leaves open are chosen while
            it runs; True if None. Elements and their order do not depend on it.
        rewrite: Whether transformations are put in a better order where nobody
            can tell, as far as that can be known without measuring; False if
            None. `Dataset.tune` knows more.
        kept_directory: Where elements that are the same in every epoch may be
            kept, if that makes it faster, so that the next run of the program
            starts with them. It is made if need be, for this user alone.
    """

    deterministic: bool | None = None
    run_ahead: int | None = None
    memory_budget: int | str | None = None
    max_element_bytes: int | str | None = None
    name: str | None = None
    python: PythonOptions | None = None
    autotune: bool | None = None
    kept_directory: str | None = None
    rewrite: bool | None = None

    def merge(self, later: Options) -> Options:
        """These options with those of `later` that are set.

        Example:
            >>> a = ps.Options(run_ahead=2, name="train")
            >>> a.merge(ps.Options(run_ahead=4)).run_ahead
            4
        """
        fields = later._set_fields()
        if self.python is not None and later.python is not None:
            fields["python"] = self.python.merge(later.python)
        return dataclasses.replace(self, **fields)

    def __enter__(self) -> Options:
        self.to_json()  # What cannot be right is refused here.
        _stack.set((*_stack.get(), self))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _stack.set(_stack.get()[:-1])

    def _set_fields(self) -> dict[str, Any]:
        values = {
            field.name: getattr(self, field.name)
            for field in dataclasses.fields(self)
        }
        return {k: v for k, v in values.items() if v is not None}

    def to_json(self) -> dict[str, Any]:
        """The plan's Options message."""
        from penstock._budget import size
        from penstock._pipeline import index

        fields = self._set_fields()
        for name, found in fields.items():
            if name in ("memory_budget", "max_element_bytes"):
                is_text = isinstance(found, str)
                fields[name] = index(
                    name, int(size(name, found)) if is_text else found
                )
                continue
            if name == "run_ahead":
                fields[name] = index(name, found)
                continue
            if name == "python" and isinstance(found, PythonOptions):
                fields[name] = found.to_json()
                continue
            kinds = {
                "autotune": bool,
                "deterministic": bool,
                "python": PythonOptions,
                "rewrite": bool,
            }
            want = kinds.get(name, str)
            if not isinstance(found, want):
                raise refused(
                    InvalidTypeError,
                    f"{name} must be a {want.__name__}; got {found!r}",
                )
        if "memory_budget" in fields:
            fields["memory_budget_bytes"] = fields.pop("memory_budget")
        return fields


_stack: contextvars.ContextVar[tuple[Options, ...]] = contextvars.ContextVar(
    "penstock_options", default=()
)


def defaults() -> Options:
    """Those of the `with` statements around the caller."""
    merged = Options()
    for options in _stack.get():
        merged = merged.merge(options)
    return merged
