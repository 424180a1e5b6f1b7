"""What rewriting would bring, as something to do."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from penstock import _explain, _rewrites
from penstock._report import WORTH_IT, Fix, to_interval
from penstock._rewrites import Decision

if TYPE_CHECKING:
    from penstock._dataset import Dataset
    from penstock._explain import Explanation

Json = dict[str, Any]


def advised(
    dataset: Dataset, explanation: Explanation, budget: Json
) -> Explanation:
    """The explanation of a run just now, with what rewriting would bring."""
    if explanation._file is None:
        return explanation
    path = explanation._file.path

    def decide(may_hide_errors: bool) -> Decision:
        return _rewrites.decide(dataset, None, may_hide_errors, path, budget)

    safe = decide(False)
    declined = tuple(x for x in safe.rewrites if not x.is_applied)
    found = dataclasses.replace(explanation, rewrites=declined)
    found = _with(found, safe, "Dataset.tune() does it", False)
    if not declined:
        return found
    bold = decide(True)
    before = safe.rate_or(explanation.expected)
    if bold.rate_or(explanation.expected) <= WORTH_IT * before:
        return found
    why = (
        "errors of elements that are left out are then not seen: "
        "Dataset.tune(may_hide_errors=True) does it"
    )
    return _with(found, bold, why, True)


def _with(
    explanation: Explanation, decision: Decision, how: str, needs_the_user: bool
) -> Explanation:
    expected = to_interval(decision.expected.get("expected", {}))
    is_known = decision.rewriting == explanation._rewriting
    least = WORTH_IT * explanation.expected.middle
    if is_known or expected.middle <= least:
        return explanation
    fix = Fix(
        title="rewrite it: " + "; ".join(map(str, decision.applied())),
        why=f"with the best settings for that; {how}",
        expected=expected,
        settings=(),
        needs_the_user=needs_the_user,
    )
    return _explain.with_fix(explanation, fix)
