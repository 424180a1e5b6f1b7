"""Functions that compute with another library's values."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Adapted:
    """The user's `function`, seen through the values of `penstock.compat`.

    It is judged, named and placed as `function` itself, and called with symbols
    or arrays like any other.

    Attributes:
        function: The user's.
        enter: Makes of an argument what `function` expects.
        leave: Makes of its result what Penstock expects.
    """

    function: Callable[..., Any]
    enter: Callable[[Any], Any]
    leave: Callable[[Any], Any]

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.signature(self.function)

    def __call__(self, *arguments: Any) -> Any:
        return self.leave(self.function(*map(self.enter, arguments)))


def users_own(function: Any) -> Any:
    """What the user gave in place of `function`."""
    return function.function if isinstance(function, Adapted) else function
