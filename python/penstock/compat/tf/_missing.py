"""What is said of a name that is not there."""

from __future__ import annotations


def missing(module: str, name: str) -> AttributeError:
    full = f"tf.{module}.{name}" if module else f"tf.{name}"
    return AttributeError(
        f"penstock.compat.tf does not offer {full}; docs/compatibility.md "
        "lists what it offers"
    )
