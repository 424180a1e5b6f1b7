"""Python functions that nobody has called pure: what keeping results brings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock import _explain
from penstock._report import WORTH_IT, Fix

if TYPE_CHECKING:
    from penstock._explain import Explanation


def advised(explanation: Explanation) -> Explanation:
    """The explanation, with what `pure=True` or a cache would bring."""
    for node in explanation.nodes:
        if not node.may_be_cached_if_pure:
            continue
        expected = explanation.what_if(cache=node.name).rate
        if expected.middle < WORTH_IT * explanation.rate:
            continue
        fix = Fix(
            title=f"keep what {node.name} ({node.made_at}) gives: .cache() "
            "after it, or ps.python_function(f, pure=True) and memory=",
            why="from the second epoch on, if the same element always has "
            "the same result: of Python, only you know that",
            expected=expected,
            settings=(),
            needs_the_user=True,
        )
        explanation = _explain.with_fix(explanation, fix)
    return explanation
