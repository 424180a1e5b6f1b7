"""What a user asks of a run as a whole."""

from __future__ import annotations

import dataclasses
from typing import Any


@dataclasses.dataclass
class Options:
    """Settings of a pipeline, given with `Dataset.with_options`.

    What is None is left to the engine. Later settings win, field by field.

    Example:
        >>> options = ps.Options(deterministic=False)
        >>> ds = ps.Dataset.range(3).with_options(options)
        >>> ds.options().deterministic
        False

    Attributes:
        deterministic: Whether order is kept where parallel work could change
            it. Transformations that say so themselves are not affected.
        run_ahead: Elements computed beyond those asked for; 0 computes only
            what `next()` asks for.
        cpu_budget: Cores that the pipeline may use.
        memory_budget: Bytes that it may hold.
        max_element_bytes: The largest element; a larger one is an error.
        name: Shown in statistics and messages.
    """

    deterministic: bool | None = None
    run_ahead: int | None = None
    cpu_budget: int | None = None
    memory_budget: int | None = None
    max_element_bytes: int | None = None
    name: str | None = None

    def merge(self, later: Options) -> Options:
        """These options with those of `later` that are set.

        Example:
            >>> a = ps.Options(cpu_budget=2, name="train")
            >>> a.merge(ps.Options(cpu_budget=4)).cpu_budget
            4
        """
        return dataclasses.replace(self, **later._set_fields())

    def _set_fields(self) -> dict[str, Any]:
        values = dataclasses.asdict(self)
        return {k: v for k, v in values.items() if v is not None}

    def to_json(self) -> dict[str, Any]:
        """The plan's Options message."""
        fields = self._set_fields()
        if "memory_budget" in fields:
            fields["memory_budget_bytes"] = fields.pop("memory_budget")
        return fields
