"""Dataset: what users import."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock import _names
from penstock._actions import Actions
from penstock._distributing import Distributing
from penstock._frameworks import Frameworks
from penstock._grouping import Grouping
from penstock._lengths import Lengths
from penstock._measuring import Measuring
from penstock._mixing import Mixing
from penstock._public import ClassOnly, publish
from penstock._sources import Sources
from penstock._storing import Storing
from penstock._transforms import Transforms


class Dataset(
    Sources,
    Transforms,
    Grouping,
    Lengths,
    Mixing,
    Storing,
    Distributing,
    Frameworks,
    Measuring,
    Actions,
    metaclass=_names.Named,
):
    """A description of an input pipeline.

    Immutable: each method gives a new dataset. Nothing is computed before it is
    iterated over, and each iterator begins anew. Datasets pickle, with what
    they have captured.

    Example:
        >>> ds = ps.Dataset.range(6).map(lambda x: x * 2).batch(4)
        >>> for batch in ds:
        ...     print(batch)
        [0 2 4 6]
        [ 8 10]
        >>> ds
        <Dataset element_spec=TensorSpec(shape=(None,), dtype=ps.int64),
         cardinality=2>
    """

    def __init__(self) -> None:
        raise TypeError(
            "datasets are made by functions such as ps.Dataset.range and "
            "ps.Dataset.from_tensor_slices"
        )

    if not TYPE_CHECKING:
        __getattr__ = _names.in_instance


for _part in (
    Sources,
    Transforms,
    Distributing,
    Frameworks,
    Measuring,
    Actions,
):
    publish(_part, "Dataset")
Sources.zip = ClassOnly(Sources.zip)  # type: ignore[method-assign]
del _part
