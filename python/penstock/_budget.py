"""What a pipeline may use, as users say it."""

from __future__ import annotations

import math
import re
from typing import Any

from penstock._errors import InvalidArgumentError, InvalidTypeError
from penstock._location import refused

_SIZE = re.compile(r"\s*([0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]+)?)\s*([A-Za-z]*)\s*")
_UNITS = {
    "": 1,
    "b": 1,
    **{
        word: 1000**power
        for power, letter in enumerate("kmgt", 1)
        for word in (letter, f"{letter}b")
    },
    **{
        f"{letter}i{b}": 1024**power
        for power, letter in enumerate("kmgt", 1)
        for b in ("", "b")
    },
}


def size(name: str, given: Any) -> float:
    """Bytes: a number, or text such as "2GB", "512 MiB", "1e9"."""
    found = given
    if isinstance(given, str):
        match = _SIZE.fullmatch(given)
        unit = _UNITS.get(match[2].lower()) if match else None
        if match is None or unit is None:
            raise refused(
                InvalidArgumentError,
                f'{name} must be a size such as 1000000, "2GB" or "512MiB"; '
                f"got {given!r}",
            )
        found = float(match[1]) * unit
    return _number(name, found, 'bytes, such as "2GB"')


def cores(name: str, given: Any) -> float:
    """A number of cores; parts of one are fine."""
    return _number(name, given, "a number of cores")


def seconds(name: str, given: Any) -> float:
    return _number(name, given, "a number of seconds")


def factor(name: str, given: Any) -> float:
    return _number(name, given, "a number")


def _number(name: str, given: Any, what: str) -> float:
    if isinstance(given, bool):
        found = None
    else:
        try:
            found = float(given)
        except (TypeError, ValueError, OverflowError):
            found = None
    if found is None:
        raise refused(InvalidTypeError, f"{name} must be {what}; got {given!r}")
    if not 0 < found < math.inf:
        raise refused(
            InvalidArgumentError,
            f"{name} must be {what}, more than 0; got {given!r}",
        )
    return found


def message(
    cpu: Any = None, memory: Any = None, disk: Any = None
) -> dict[str, Any]:
    """The engine's Budget message; what is None is all that there is."""
    fields: dict[str, Any] = {}
    if cpu is not None:
        fields["cores"] = cores("cpu", cpu)
    if memory is not None:
        fields["memory_bytes"] = size("memory", memory)
    if disk is not None:
        fields["disk_bytes"] = size("disk", disk)
    return fields
