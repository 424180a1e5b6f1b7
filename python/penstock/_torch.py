"""Datasets for PyTorch. Imported when first asked for, as PyTorch is."""

from __future__ import annotations

import importlib
import os
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock import _dtypes, _feed, _spec
from penstock._composites import Ragged, Sparse
from penstock._errors import FailedPreconditionError, InvalidArgumentError
from penstock._feed import ALONE, Convert, Feed, FeedIterator, Rank
from penstock._location import refused

torch: Any = importlib.import_module("torch")
_data: Any = importlib.import_module("torch.utils.data")

if TYPE_CHECKING:
    from penstock._dataset import Dataset


class TorchDataset(_data.IterableDataset):  # type: ignore[misc]
    """A dataset's elements as tensors: a `torch.utils.data.IterableDataset`.

    Made by `Dataset.to_torch`.
    """

    def __init__(
        self,
        dataset: Dataset,
        device: Any,
        pin_memory: bool,
        rank: Rank,
        drop_uneven: bool,
        seed: int | None,
    ) -> None:
        super().__init__()
        _feed.check_leaves(dataset.element_spec, lambda _: None)
        self._feed = Feed(dataset, rank, drop_uneven, seed)
        self._device = None if device is None else torch.device(device)
        if self._device is not None and self._device.type == "cpu":
            self._device = None
        self._pin_memory = bool(pin_memory)
        if self._pin_memory and not _has_accelerator():
            # As torch's DataLoader does: a program written for GPUs runs.
            warnings.warn(
                "pin_memory=True, but there is no accelerator: memory is not "
                "pinned",
                stacklevel=4,
            )
            self._pin_memory = False

    def __iter__(self) -> FeedIterator:
        info = _data.get_worker_info()
        if info is None:
            return self._feed.iterate(self._converter())
        if self._device is not None or self._pin_memory:
            raise refused(
                FailedPreconditionError,
                "device and pin_memory must be left out under a DataLoader "
                "with workers, which hand over memory of the CPU; got "
                f"device={self._device} and pin_memory={self._pin_memory}.\n"
                "  Use DataLoader(pin_memory=True) and tensor.to(device), or "
                "num_workers=0.",
            )
        worker = Rank(info.id, info.num_workers)
        seed = (info.seed - info.id) & 0xFFFF_FFFF_FFFF_FFFF
        return self._feed.iterate(self._converter(), worker, seed)

    def __len__(self) -> int:
        return len(self._feed)

    @property
    def element_spec(self) -> Any:
        """The elements' structure, as `Dataset.element_spec` has it."""
        return self._feed.element_spec

    def set_epoch(self, epoch: int) -> None:
        """Makes the next iteration that of `epoch`, the one after it the next.

        Call it before each epoch where ranks or workers share a shuffled
        dataset, as with torch's `DistributedSampler`.
        """
        self._feed.set_epoch(epoch)

    def state_dict(self) -> dict[str, Any]:
        """The position after the last element returned; fit for JSON.

        Raises:
            FailedPreconditionError: Workers of a DataLoader return them: see
                torchdata's `StatefulDataLoader`.
        """
        return self._feed.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Makes the next iteration go on where `state` was taken."""
        self._feed.load_state_dict(state)

    def __repr__(self) -> str:
        return (
            f"<TorchDataset element_spec={self.element_spec}, "
            f"rank={self._feed.rank.number} of {self._feed.rank.total}>"
        )

    def _converter(self) -> Convert:
        return _feed.converter(self.element_spec, self._convert_one)

    def _convert_one(self, spec: Any) -> Convert | None:
        """How values of a spec become tensors; None of other structures."""
        if isinstance(spec, _spec.TensorSpec):
            return self._convert_tensor(spec)
        if isinstance(spec, Sparse) and _is_numeric(spec.values):
            return self._convert_sparse(spec)
        if isinstance(spec, Ragged) and _is_numeric(spec.values):
            return self._convert_ragged(spec)
        return None

    def _convert_tensor(self, spec: _spec.TensorSpec) -> Convert:
        if spec.dtype == _dtypes.string:
            return _strings
        make = _bfloat16 if spec.dtype == _dtypes.bfloat16 else _number
        device = self._device
        if device is None:
            return (
                (lambda x: make(x).pin_memory()) if self._pin_memory else make
            )
        if self._pin_memory:
            # torch keeps pinned memory until the copy has been done.
            return lambda x: make(x).pin_memory().to(device, non_blocking=True)
        # Not before the copy is done may the engine write there again.
        return lambda x: make(x).to(device)

    def _convert_sparse(self, spec: Sparse) -> Convert:
        indices = self._convert_tensor(spec.indices)
        values = self._convert_tensor(spec.values)

        def convert(x: Sparse) -> Any:
            # Checked: wrong indices would be wrong addresses.
            return torch.sparse_coo_tensor(
                indices(x.indices).t(),
                values(x.values),
                x.dense_shape.tolist(),
                check_invariants=True,
            )

        return convert

    def _convert_ragged(self, spec: Ragged) -> Convert:
        values = self._convert_tensor(spec.values)
        splits = self._convert_tensor(spec.row_splits)

        def convert(x: Ragged) -> Any:
            return torch.nested.nested_tensor_from_jagged(
                values(x.values), splits(x.row_splits).to(torch.int64)
            )

        return convert


def to_torch(
    dataset: Dataset,
    device: Any,
    pin_memory: bool,
    rank: int | None,
    world_size: int | None,
    drop_uneven: bool,
    seed: int | None,
) -> TorchDataset:
    """What `Dataset.to_torch` gives."""
    if rank is None and world_size is None:
        found = _current_rank()
        _feed.check_not_sharded(dataset, found)
    else:
        found = Rank.of(rank, world_size, ALONE)
    return TorchDataset(dataset, device, pin_memory, found, drop_uneven, seed)


def _current_rank() -> Rank:
    """That of torch.distributed, or of the variables that torchrun sets."""
    distributed = torch.distributed
    if distributed.is_available() and distributed.is_initialized():
        return Rank(distributed.get_rank(), distributed.get_world_size())
    rank, world_size = os.environ.get("RANK"), os.environ.get("WORLD_SIZE")
    if not rank or not world_size:
        return ALONE
    try:
        found = Rank(int(rank), int(world_size))
    except ValueError:
        found = Rank(-1, 0)
    if not 0 <= found.number < found.total:
        raise refused(
            InvalidArgumentError,
            "the variables RANK and WORLD_SIZE must be a rank and the number "
            f"of ranks; got {rank!r} and {world_size!r}.\n"
            "  Unset them, or give rank and world_size.",
        )
    return found


def _has_accelerator() -> bool:
    accelerator = getattr(torch, "accelerator", torch.cuda)
    return bool(accelerator.is_available())


def _is_numeric(spec: Any) -> bool:
    """Whether it is one tensor of numbers: rows of rows are not."""
    return isinstance(spec, _spec.TensorSpec) and spec.dtype != _dtypes.string


def _number(x: Any) -> Any:
    # Over the same memory: the tensor keeps the array, the array its frame.
    return torch.from_numpy(np.asarray(x))


def _bfloat16(x: Any) -> Any:
    # numpy may know it as ml_dtypes' or, without that, as words of 16 bits.
    words = np.asarray(x).view(np.int16)
    return torch.from_numpy(words).view(torch.bfloat16)


def _strings(x: Any) -> Any:
    return x.tolist() if isinstance(x, np.ndarray) else x
