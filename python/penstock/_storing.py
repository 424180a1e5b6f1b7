"""Datasets kept in files: save, load, snapshot."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock import _spec
from penstock._errors import (
    AlreadyExistsError,
    DataLossError,
    InvalidTypeError,
    NotFoundError,
    UnimplementedError,
)
from penstock._location import refused
from penstock._pipeline import Pipeline, append

if TYPE_CHECKING:
    from penstock._dataset import Dataset

# In the directory of a saved dataset.
_DATA = "elements"
_ABOUT = "dataset.json"
_VERSION = 1


class Storing(Pipeline):
    """The part of `Dataset` that writes to files and reads them again."""

    def save(
        self,
        path: Any,
        compression: str | None = None,
        shard_func: Callable[..., Any] | None = None,
        checkpoint_args: Any = None,
        name: Any = None,
    ) -> None:
        """Writes all elements to a directory, for `Dataset.load`.

        Example:
            >>> import tempfile
            >>> folder = tempfile.mkdtemp() + "/squares"
            >>> ps.Dataset.range(4).map(lambda x: x * x).save(folder)
            >>> [int(x) for x in ps.Dataset.load(folder)]
            [0, 1, 4, 9]

        Args:
            path: A directory, made if it is not there.
            compression: None, "GZIP" or "ZSTD".
            shard_func: The number of the file that an element goes to, from 0
                on; at most 1,000 files. Without it there is one.
            checkpoint_args: Not used.
            name: Not used.

        Raises:
            AlreadyExistsError: There is a saved dataset, or another is being
                saved there.
        """
        from penstock._dataset import Dataset

        assert isinstance(self, Dataset)
        folder = _folder(path)
        about = os.path.join(folder, _ABOUT)
        if os.path.exists(about) or os.path.exists(_data_file(folder)):
            raise refused(
                AlreadyExistsError,
                f"save needs a directory without a dataset; got {folder}, "
                "which has one",
            )
        os.makedirs(folder, exist_ok=True)
        message: dict[str, Any] = {
            "version": _VERSION,
            "element_spec": self._spec_message,
        }
        if compression or shard_func is not None:
            from penstock import _shards

            message.update(_shards.write(self, folder, compression, shard_func))
        else:
            kept = self.cache(os.path.join(folder, _DATA))
            count = kept.reduce(np.int64(0), lambda n, *_: n + 1)
            message["elements"] = int(count)
        partial = about + ".partial"
        with open(partial, "w") as file:
            json.dump(message, file)
        os.replace(partial, about)

    @staticmethod
    def load(
        path: Any,
        element_spec: Any = None,
        compression: str | None = None,
        reader_func: Callable[[Any], Any] | None = None,
        wait: bool = False,
        name: Any = None,
    ) -> Dataset:
        """The elements that `save` wrote, in the order that they had.

        Example:
            >>> import tempfile
            >>> folder = tempfile.mkdtemp()
            >>> ps.Dataset.from_tensor_slices({"a": [1, 2]}).save(folder)
            >>> list(ps.Dataset.load(folder))
            [{'a': np.int64(1)}, {'a': np.int64(2)}]

        Args:
            path: The directory.
            element_spec: Of the elements, if it is to be checked.
            compression: Not used: the directory says it.
            reader_func: Makes a dataset of the dataset of the files' datasets,
                to read them in another order. Each of these is then in memory
                as a whole.
            wait: Only False: what is there is read.
            name: Not used.
        """
        from penstock._files import TFRecordDataset
        from penstock._nested import read_records

        if wait:
            raise refused(
                UnimplementedError,
                "load reads what save has written; wait must be False; got "
                f"{wait!r}",
            )
        folder = _folder(path)
        about = os.path.join(folder, _ABOUT)
        try:
            with open(about) as file:
                message = json.load(file)
            found = _spec.from_json(message["element_spec"])
            elements = int(message["elements"])
            if message["version"] != _VERSION or elements < 0:
                raise ValueError(f"version {message['version']!r}")
        except FileNotFoundError:
            raise refused(
                NotFoundError,
                f"load needs a directory that save wrote; got {folder}, which "
                f"has no {_ABOUT}",
            ) from None
        except (ValueError, KeyError, TypeError) as error:
            raise refused(
                DataLossError, f"{about} must be what save wrote; got {error}"
            ) from None
        if element_spec is not None and element_spec != found:
            raise refused(
                InvalidTypeError,
                f"element_spec must be what was saved, {found}; got "
                f"{element_spec}",
            )
        from penstock import _shards

        if "shards" in message:
            return _shards.read(folder, message, found, reader_func)
        if reader_func is not None:
            return _shards.read_one(_data_file(folder), found, reader_func)
        records = TFRecordDataset(_data_file(folder))
        return read_records(records, found).assert_cardinality(elements)

    def snapshot(
        self,
        path: Any,
        reader_func: Callable[[Any], Any] | None = None,
        shard_func: Callable[..., Any] | None = None,
        name: Any = None,
    ) -> Dataset:
        """Keeps the elements in a directory, by what the pipeline computes.

        The first whole pass writes, later ones read, as with `cache`; a
        pipeline that computes something else has files of its own.

        Before `distribute`, workers write and read it, share by share, so that
        all epochs and jobs over what is before this call compute it once. The
        directory must be one that all workers see, and may write to.

        Example:
            >>> import tempfile
            >>> folder = tempfile.mkdtemp()
            >>> ds = ps.Dataset.range(3).snapshot(folder)
            >>> [int(x) for x in ds], [int(x) for x in ds]
            ([0, 1, 2], [0, 1, 2])
            >>> ds = ps.Dataset.range(6).snapshot(
            ...     folder,
            ...     reader_func=lambda shards: shards.flat_map(lambda ds: ds),
            ...     shard_func=lambda x: x % 2)
            >>> [int(x) for x in ds]
            [0, 2, 4, 1, 3, 5]

        Args:
            path: The directory, made if it is not there.
            reader_func: Makes a dataset of the dataset of the shards' datasets,
                to read them in another order, in the first pass as in all.
                Each of these is in memory as a whole.
            shard_func: The number of the shard that an element goes to.
                Without it, a shard is 1,000 elements that follow each other;
                with it, the first pass writes all before it gives the first.
                Its numbers are kept, too. Not used without `reader_func`.
            name: Not used.
        """
        from penstock._dataset import Dataset

        assert isinstance(self, Dataset)
        folder = os.path.join(_folder(path), self.fingerprint())
        os.makedirs(folder, exist_ok=True)
        data = os.path.join(folder, _DATA)
        if reader_func is None and shard_func is None:
            # Workers of the same user may write beside it.
            with open(data + ".shares", "a"):
                pass
            return append(
                "cache", {"filename": data, "in_shares": True}, [self]
            )
        from penstock import _shards

        kept = self.cache(data)
        return _shards.read_kept(kept, folder, reader_func, shard_func)


def _folder(path: Any) -> str:
    if not isinstance(path, (str, os.PathLike)):
        raise refused(
            InvalidTypeError,
            f"path must be a path; got {type(path).__name__}",
        )
    found = os.fspath(path)
    assert isinstance(found, str)
    return os.path.abspath(found)


def _data_file(folder: str) -> str:
    return os.path.join(folder, _DATA + ".penstock")
