"""What is said of a name that is not there."""

from __future__ import annotations

from penstock._errors import UnsupportedFunctionError
from penstock._location import refused


class NotOfferedError(UnsupportedFunctionError, AttributeError):
    """A name of TensorFlow's that `penstock.compat.tf` does not have."""

    is_final = True  # It would not be there in Python either.


def missing(module: str, name: str) -> AttributeError:
    full = f"tf.{module}.{name}" if module else f"tf.{name}"
    if name.startswith("__"):
        return AttributeError(full)
    return refused(
        NotOfferedError,
        f"penstock.compat.tf does not offer {full}; docs/compatibility.md "
        "lists what it offers",
    )
