"""`tf.config`: there are no devices but the host's CPUs."""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = [
    "functions_run_eagerly",
    "list_logical_devices",
    "list_physical_devices",
    "run_functions_eagerly",
]


class _Device(NamedTuple):
    name: str
    device_type: str


def list_physical_devices(device_type: Any = None) -> list[_Device]:
    """The CPU, unless others are asked for.

    Example:
        >>> tf.config.list_physical_devices("GPU")
        []
    """
    if device_type not in (None, "CPU"):
        return []
    return [_Device("/physical_device:CPU:0", "CPU")]


def list_logical_devices(device_type: Any = None) -> list[_Device]:
    if device_type not in (None, "CPU"):
        return []
    return [_Device("/device:CPU:0", "CPU")]


def run_functions_eagerly(run_eagerly: bool) -> None:
    """Nothing: `tf.function` is the function itself."""


def functions_run_eagerly() -> bool:
    return True


def __getattr__(name: str) -> Any:
    from penstock.compat.tf._missing import missing

    raise missing("config", name)
