"""Datasets for JAX. Imported when first asked for, as JAX is."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock import _dtypes, _feed, _spec
from penstock._errors import InvalidArgumentError, InvalidTypeError
from penstock._feed import Convert, Feed, FeedIterator, Rank
from penstock._location import refused
from penstock._pipeline import index

jax: Any = importlib.import_module("jax")
_sharding: Any = importlib.import_module("jax.sharding")

if TYPE_CHECKING:
    from penstock._dataset import Dataset

# Of the mesh that is made where none is given.
_AXIS = "batch"


class JaxDataset:
    """A dataset's elements as structures of `jax.Array`.

    Made by `Dataset.to_jax`.
    """

    def __init__(self, feed: Feed, sharding: Any) -> None:
        self._feed = feed
        # A sharding, or a structure of them.
        self._sharding = sharding

    def __iter__(self) -> FeedIterator:
        convert = _converter(self.element_spec, self._sharding)
        return self._feed.iterate(convert)

    def __len__(self) -> int:
        return len(self._feed)

    @property
    def element_spec(self) -> Any:
        """The elements' structure, as `Dataset.element_spec` has it."""
        return self._feed.element_spec

    @property
    def sharding(self) -> Any:
        """How the arrays lie on devices."""
        return self._sharding

    def set_epoch(self, epoch: int) -> None:
        """Makes the next iteration that of `epoch`; then epochs go on."""
        self._feed.set_epoch(epoch)

    def state_dict(self) -> dict[str, Any]:
        """The position after the last element returned; fit for JSON.

        What was only made ready ahead of it comes again.
        """
        return self._feed.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Makes the next iteration go on where `state` was taken."""
        self._feed.load_state_dict(state)

    def __repr__(self) -> str:
        return (
            f"<JaxDataset element_spec={self.element_spec}, "
            f"sharding={self._sharding}>"
        )


def to_jax(
    dataset: Dataset,
    devices: Iterable[Any] | None,
    sharding: Any,
    prefetch: int,
    rank: int | None,
    world_size: int | None,
    drop_uneven: bool,
    seed: int | None,
) -> JaxDataset:
    """What `Dataset.to_jax` gives."""
    ahead = index("prefetch", prefetch)
    if ahead < 0:
        raise refused(
            InvalidArgumentError,
            f"prefetch must be at least 0; got {ahead}",
        )
    if devices is not None and sharding is not None:
        raise refused(
            InvalidArgumentError,
            "to_jax takes either devices or sharding; got both.\n"
            "  A sharding names its devices.",
        )
    spec = dataset.element_spec
    _feed.check_leaves(spec, _no_string)
    if sharding is None:
        sharding = _over(_devices(devices))
        if _is_spread(sharding) and _spec.has_composite(spec):
            raise refused(
                InvalidTypeError,
                "ragged and sparse values must be on one device; got "
                f"{len(sharding.device_set)} devices for elements {spec}.\n"
                "  Use padded_batch(), or devices=[one of them].",
            )
    else:
        _check_sharding(sharding, spec)
    process = Rank(jax.process_index(), jax.process_count())
    if rank is None and world_size is None:
        _feed.check_not_sharded(dataset, process)
    found = Rank.of(rank, world_size, process)
    feed = Feed(dataset, found, drop_uneven, seed, ahead)
    return JaxDataset(feed, sharding)


def _devices(given: Iterable[Any] | None) -> list[Any]:
    if given is None:
        # Of every process: each brings its part of the arrays.
        return list(jax.devices())
    found = list(given)
    if not found or not all(isinstance(d, jax.Device) for d in found):
        raise refused(
            InvalidTypeError,
            "devices must be a list of jax.Device, at least one; got "
            f"{found}.\n  See jax.devices().",
        )
    return found


def _over(devices: list[Any]) -> Any:
    """Batches cut along their first dimension over `devices`."""
    if len(devices) == 1:
        return _sharding.SingleDeviceSharding(devices[0])
    mesh = _sharding.Mesh(np.array(devices), (_AXIS,))
    return _sharding.NamedSharding(mesh, _sharding.PartitionSpec(_AXIS))


def _is_spread(sharding: Any) -> bool:
    return len(sharding.device_set) > 1


def _check_sharding(sharding: Any, spec: Any) -> None:
    """Refuses what is no sharding, nor a structure of them like `spec`."""
    if isinstance(sharding, jax.sharding.Sharding):
        return
    leaves = _spec.flatten_like(spec, sharding)
    for leaf in leaves:
        if not isinstance(leaf, jax.sharding.Sharding):
            raise refused(
                InvalidTypeError,
                "sharding must be a jax.sharding.Sharding, or a structure of "
                f"them like the elements'; got {leaf!r}",
            )


def _no_string(leaf: _spec.TensorSpec) -> str | None:
    if leaf.dtype != _dtypes.string:
        return None
    return (
        "elements for JAX must be numbers, since it has no strings; got {}.\n"
        "  Leave strings out with map(), or make numbers of them: see "
        "ps.lookup.Vocabulary and ps.strings.to_hash_bucket_fast."
    )


def _converter(spec: Any, sharding: Any) -> Convert:
    if isinstance(sharding, jax.sharding.Sharding):
        return _feed.converter(spec, lambda part: _put(part, sharding))
    # Specs come in the order in which `flatten_like` has the shardings.
    by_leaf = dict(
        zip(
            map(id, _spec.flatten(spec)),
            _spec.flatten_like(spec, sharding),
            strict=True,
        )
    )
    return _feed.converter(spec, lambda part: _put(part, by_leaf.get(id(part))))


def _put(spec: Any, sharding: Any) -> Convert | None:
    """How values of a spec are put on devices; None of other structures."""
    if not isinstance(spec, _spec.TensorSpec):
        return None
    view = _bfloat16 if spec.dtype == _dtypes.bfloat16 else np.asarray
    if not _is_spread(sharding) and sharding.is_fully_addressable:
        return lambda x: jax.device_put(view(x), sharding)
    for_scalars = sharding
    if isinstance(sharding, _sharding.NamedSharding):
        # They have no dimension to be cut.
        for_scalars = _sharding.NamedSharding(
            sharding.mesh, _sharding.PartitionSpec()
        )

    def put(x: Any) -> Any:
        array = view(x)
        if array.ndim == 0:
            return _put_one(array, for_scalars)
        try:
            return _put_one(array, sharding)
        except (ValueError, ZeroDivisionError) as error:
            raise _does_not_fit(array, sharding, error) from None

    return put


def _put_one(array: Any, sharding: Any) -> Any:
    if sharding.is_fully_addressable:
        return jax.device_put(array, sharding)
    return jax.make_array_from_process_local_data(sharding, array)


def _does_not_fit(
    array: Any, sharding: Any, error: Exception
) -> InvalidArgumentError:
    parts = len(sharding.device_set)
    if isinstance(sharding, _sharding.NamedSharding) and sharding.spec:
        parts = _parts(sharding, sharding.spec[0])
    if sharding.is_fully_addressable and parts and len(array) % parts:
        return refused(
            InvalidArgumentError,
            "the first dimension of every array must be a multiple of "
            f"{parts}, over so many devices it is cut; got shape "
            f"{array.shape}.\n"
            f"  Use batch(n, drop_remainder=True) with n a multiple of {parts},"
            " or give devices or sharding.",
        )
    return refused(
        InvalidArgumentError,
        f"arrays must fit the sharding {sharding}; got shape {array.shape}: "
        f"{error}",
    )


def _parts(sharding: Any, axes: Any) -> int:
    """Into how many parts a dimension over those axes of a mesh is cut."""
    if axes is None:
        return 1
    names = axes if isinstance(axes, tuple) else (axes,)
    return int(np.prod([sharding.mesh.shape[name] for name in names]))


def _bfloat16(x: Any) -> Any:
    # JAX brings ml_dtypes; elements may be of a time when it was not there.
    return np.asarray(x).view(jax.numpy.bfloat16)
