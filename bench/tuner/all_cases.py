"""The cases, by number."""

from __future__ import annotations

import caching
import parallel
import reading
import rewriting
from case import Case

CASES = tuple(
    sorted(
        (
            *parallel.CASES,
            *reading.CASES,
            *caching.CASES,
            *rewriting.CASES,
        ),
        key=lambda case: case.number,
    )
)


def find(number: int) -> Case:
    for case in CASES:
        if case.number == number:
            return case
    raise ValueError(f"there is no case {number}")
