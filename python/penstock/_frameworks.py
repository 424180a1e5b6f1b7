"""To and from other libraries. Each is imported when it is asked for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from penstock._packages import need
from penstock._pipeline import Pipeline

if TYPE_CHECKING:
    from penstock._dataset import Dataset
    from penstock._jax import JaxDataset
    from penstock._torch import TorchDataset


class Frameworks(Pipeline):
    """The part of `Dataset` that speaks with other libraries."""

    def to_torch(
        self,
        device: Any = None,
        pin_memory: bool = False,
        *,
        rank: int | None = None,
        world_size: int | None = None,
        drop_uneven: bool = False,
        seed: int | None = None,
    ) -> TorchDataset:
        """The elements as PyTorch's tensors: an `IterableDataset`.

        Tensors lie on the memory that the engine wrote, without a copy, and are
        yours to change. Strings stay `bytes`, in lists where there are several.
        `ps.Ragged` becomes a nested tensor of jagged layout, `ps.Sparse` a
        sparse COO tensor; rows of rows, and strings, stay `ps.Ragged` and
        `ps.Sparse`.

        Iterate over it as it is, or give it to a `DataLoader(batch_size=None)`
        or `StatefulDataLoader(batch_size=None)`. Workers take the elements in
        turn, each with an engine of its own; they are not needed for speed.
        Make it once: each iteration is the next epoch, and another one begins
        with the first again. `state_dict()` and `load_state_dict()` are of the
        last iteration, after its end of the next one; with workers, save the
        state of a `StatefulDataLoader` instead.

        Under torch.distributed, rank r of n reads the elements r, r + n, … of
        this dataset: of batches, every n-th one. What is random is the same in
        every rank. Each rank computes all elements and takes its own; where
        that costs too much, shard the files yourself and say `rank=0,
        world_size=1`.

        Example:
            >>> ds = ps.Dataset.range(6).batch(4)
            >>> for batch in ds.to_torch():
            ...     print(batch)
            tensor([0, 1, 2, 3])
            tensor([4, 5])

        Args:
            device: Where tensors are put; the CPU if left out.
            pin_memory: Puts them into pinned memory, from which copies to a
                device are faster and do not wait.
            rank: Which rank this is; by default, together with `world_size`,
                that of torch.distributed when it is initialised, else of the
                variables RANK and WORLD_SIZE, else the only one.
            world_size: How many ranks there are.
            drop_uneven: Leaves out the last elements if they are too few for
                all ranks. All then take the same number of steps, as training
                with `DistributedDataParallel` must.
            seed: Of shuffles and random functions that have none. By default
                drawn; where there are several ranks, made from the pipeline.
        """
        need("torch", "to_torch", "torch")
        from penstock._torch import to_torch

        return to_torch(
            self._self(),
            device,
            pin_memory,
            rank,
            world_size,
            drop_uneven,
            seed,
        )

    def to_jax(
        self,
        devices: Iterable[Any] | None = None,
        sharding: Any = None,
        prefetch: int = 2,
        *,
        rank: int | None = None,
        world_size: int | None = None,
        drop_uneven: bool = False,
        seed: int | None = None,
    ) -> JaxDataset:
        """The elements as structures of `jax.Array`, on their devices.

        Over several devices, arrays are cut along their first dimension, the
        batch, and scalars are put on each; up to `prefetch` elements are put
        there ahead of the one that you have. On one CPU, arrays lie on the
        memory that the engine wrote where they may. By JAX's own rule 64-bit
        numbers become 32-bit ones unless `jax_enable_x64` is set.

        With several processes (`jax.distributed`), each reads every n-th
        element, as `to_torch` says, and brings its part of arrays that all of
        them share.

        Make it once: each iteration is the next epoch. `state_dict()` and
        `load_state_dict()`, of the dataset and of its iterators, are of what
        you have seen, not of what is ready.

        Example:
            >>> ds = ps.Dataset.range(8).batch(4)
            >>> for batch in ds.to_jax():
            ...     print(batch)
            [0 1 2 3]
            [4 5 6 7]

        Args:
            devices: Those to put batches on; all of them if left out.
            sharding: In place of devices, how arrays lie on them: a
                `jax.sharding.Sharding`, or a structure of them.
            prefetch: How many elements are made ready ahead, if the engine has
                them; nobody waits for that.
            rank: Which process this is; by default JAX's `process_index()`.
            world_size: How many there are; by default `process_count()`.
            drop_uneven: Leaves out the last elements if they are too few for
                all processes, which must take the same number of steps.
            seed: As that of `to_torch`.
        """
        need("jax", "to_jax", "jax")
        from penstock._jax import to_jax

        return to_jax(
            self._self(),
            devices,
            sharding,
            prefetch,
            rank,
            world_size,
            drop_uneven,
            seed,
        )

    @staticmethod
    def from_arrow(data: Any) -> Dataset:
        """The rows of an Arrow table, each a dict of its columns.

        Lists become arrays of any length, those of a fixed size arrays of that
        size; structs become dicts, dictionaries their values, dates and times
        counts of their unit. A null among floats is NaN; other nulls are
        refused. Columns are copied once, as they are.

        Example:
            >>> import pyarrow as pa
            >>> table = pa.table({"x": [1, 2], "s": ["a", "b"]})
            >>> list(ps.Dataset.from_arrow(table))
            [{'x': np.int64(1), 's': b'a'}, {'x': np.int64(2), 's': b'b'}]

        Args:
            data: A `pyarrow.Table`, record batches, a reader of them, or
                anything that gives an Arrow stream, such as a polars DataFrame.
        """
        need("pyarrow", "from_arrow", "pyarrow")
        from penstock._tables import from_arrow

        return from_arrow(data)

    @staticmethod
    def from_pandas(df: Any) -> Dataset:
        """The rows of a pandas DataFrame, each a dict of its columns.

        As `from_arrow` has it: categories become their values, times counts of
        their unit. The index is left out; `df.reset_index()` makes it a column.

        Example:
            >>> import pandas as pd
            >>> df = pd.DataFrame({"x": [1, 2], "s": ["a", "b"]})
            >>> list(ps.Dataset.from_pandas(df))
            [{'x': np.int64(1), 's': b'a'}, {'x': np.int64(2), 's': b'b'}]
        """
        need("pandas", "from_pandas", "pandas")
        need("pyarrow", "from_pandas", "pyarrow")
        from penstock._tables import from_pandas

        return from_pandas(df)

    @staticmethod
    def from_huggingface(dataset: Any) -> Dataset:
        """The rows of one split of a Hugging Face dataset, as dicts.

        As `from_arrow` has it, in the order that `select`, `shuffle` and
        `filter` gave them. Images and sounds are the bytes of their files, for
        `ps.image.decode_image` and the like. A dataset that streams is read as
        it goes, in a thread of this process, and anew by each iterator.

        Example:
            >>> import datasets
            >>> rows = datasets.Dataset.from_dict({"x": [1, 2, 3]})
            >>> list(ps.Dataset.from_huggingface(rows.select([2, 0])))
            [{'x': np.int64(3)}, {'x': np.int64(1)}]
        """
        need("datasets", "from_huggingface", "datasets")
        from penstock._tables import from_huggingface

        return from_huggingface(dataset)

    def to_tf(self) -> Any:
        """The elements as a `tf.data.Dataset`, for `model.fit` and the like.

        `ps.Ragged` becomes a RaggedTensor, `ps.Sparse` a SparseTensor. Each
        iteration is the dataset's next epoch. TensorFlow copies elements, and
        takes them one by one: batch before, not after.

        TensorFlow reads ahead as it likes, so that nobody knows which elements
        the model has seen. To resume exactly, iterate over the dataset itself:
        TensorFlow takes its arrays as they are.

        Example:
            >>> ds = ps.Dataset.range(6).batch(4)
            >>> for batch in ds.to_tf():
            ...     print(batch.numpy())
            [0 1 2 3]
            [4 5]
        """
        need("tensorflow", "to_tf", "tensorflow")
        from penstock._tensorflow import to_tf

        return to_tf(self._self())
