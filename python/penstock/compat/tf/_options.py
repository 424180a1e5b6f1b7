"""`tf.data.Options`, with TensorFlow's attributes.

What decides results or memory is given to the engine: `deterministic`,
`autotune.ram_budget`, `dataset_name`. The rest tells TensorFlow's runtime how
to run, and is kept without a meaning here.
"""

from __future__ import annotations

import enum
from typing import Any

from penstock._options import Options as NativeOptions


class _Group:
    """Attributes of fixed names, None until they are set."""

    _names: tuple[str, ...] = ()

    def __init__(self) -> None:
        for name in self._names:
            object.__setattr__(self, name, None)

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._names and name not in self._groups():
            raise AttributeError(
                f"{type(self).__name__} has no attribute {name!r}; it has "
                f"{', '.join(sorted((*self._names, *self._groups())))}"
            )
        object.__setattr__(self, name, value)

    def _groups(self) -> dict[str, type[_Group]]:
        return {}

    def _merge(self, later: _Group) -> None:
        for name in self._names:
            value = getattr(later, name)
            if value is not None:
                object.__setattr__(self, name, value)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        given = {k: v for k, v in vars(self).items() if v is not None}
        return f"{type(self).__name__}({given})"


class AutotuneOptions(_Group):
    _names = (
        "enabled",
        "cpu_budget",
        "ram_budget",
        "autotune_algorithm",
        "initial_parallelism",
        "min_parallelism",
    )


class ThreadingOptions(_Group):
    _names = ("max_intra_op_parallelism", "private_threadpool_size")


class DistributeOptions(_Group):
    _names = ("auto_shard_policy", "num_devices")


class OptimizationOptions(_Group):
    _names = (
        "apply_default_optimizations",
        "filter_fusion",
        "filter_parallelization",
        "inject_prefetch",
        "map_and_batch_fusion",
        "map_and_filter_fusion",
        "map_fusion",
        "map_parallelization",
        "noop_elimination",
        "parallel_batch",
        "seq_interleave_prefetch",
        "shuffle_and_repeat_fusion",
    )


class ServiceOptions(_Group):
    _names = ("pinned",)


class AutoShardPolicy(enum.IntEnum):
    OFF = -1
    AUTO = 0
    FILE = 1
    DATA = 2
    HINT = 3


class ExternalStatePolicy(enum.Enum):
    WARN = 0
    IGNORE = 1
    FAIL = 2


class AutotuneAlgorithm(enum.Enum):
    DEFAULT = 0
    HILL_CLIMB = 1
    GRADIENT_DESCENT = 2
    MAX_PARALLELISM = 3
    STAGE_BASED = 4


class Options(_Group):
    """Settings of a pipeline.

    Example:
        >>> options = tf.data.Options()
        >>> options.deterministic = False
        >>> options.autotune.ram_budget = 1 << 30
        >>> ds = tf.data.Dataset.range(3).with_options(options)
        >>> ds.options().deterministic, ds.native.options().memory_budget
        (False, 1073741824)
    """

    _names = (
        "dataset_name",
        "deterministic",
        "experimental_deterministic",
        "experimental_external_state_policy",
        "experimental_slack",
        "experimental_symbolic_checkpoint",
        "experimental_warm_start",
        "framework_type",
    )

    autotune: AutotuneOptions
    experimental_distribute: DistributeOptions
    experimental_optimization: OptimizationOptions
    experimental_service: ServiceOptions
    threading: ThreadingOptions
    experimental_threading: ThreadingOptions
    deterministic: bool | None
    experimental_deterministic: bool | None
    dataset_name: str | None

    def __init__(self) -> None:
        super().__init__()
        for name, kind in self._groups().items():
            object.__setattr__(self, name, kind())

    def _groups(self) -> dict[str, type[_Group]]:
        return {
            "autotune": AutotuneOptions,
            "experimental_distribute": DistributeOptions,
            "experimental_optimization": OptimizationOptions,
            "experimental_service": ServiceOptions,
            "experimental_threading": ThreadingOptions,
            "threading": ThreadingOptions,
        }

    def merge(self, options: Options) -> Options:
        """These options with those of `options` that are set."""
        made = Options()
        for each in (self, options):
            made._merge(each)
            for name in self._groups():
                getattr(made, name)._merge(getattr(each, name))
        return made

    def to_native(self) -> NativeOptions:
        """What Penstock is told."""
        deterministic = self.deterministic
        if deterministic is None:
            deterministic = self.experimental_deterministic
        budget = vars(self.autotune)["ram_budget"]
        return NativeOptions(
            deterministic=deterministic,
            memory_budget=budget,
            name=self.dataset_name,
        )
