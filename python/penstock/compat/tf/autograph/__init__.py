"""`tf.autograph`: functions are not rewritten here, nothing is to be said."""

from __future__ import annotations

from typing import Any

from penstock.compat.tf.autograph import experimental

__all__ = ["experimental"]


def __getattr__(name: str) -> Any:
    from penstock.compat.tf._missing import missing

    raise missing("autograph", name)
