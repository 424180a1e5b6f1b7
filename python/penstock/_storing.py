"""Datasets kept in files: save, load, snapshot."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock import _spec
from penstock._errors import (
    AlreadyExistsError,
    DataLossError,
    InvalidTypeError,
    NotFoundError,
)
from penstock._location import refused
from penstock._pipeline import Pipeline

if TYPE_CHECKING:
    from penstock._dataset import Dataset

# In the directory of a saved dataset.
_DATA = "elements"
_ABOUT = "dataset.json"
_VERSION = 1


class Storing(Pipeline):
    """The part of `Dataset` that writes to files and reads them again."""

    def save(self, path: Any, name: Any = None) -> None:
        """Writes all elements to a directory, for `Dataset.load`.

        Example:
            >>> import tempfile
            >>> folder = tempfile.mkdtemp() + "/squares"
            >>> ps.Dataset.range(4).map(lambda x: x * x).save(folder)
            >>> [int(x) for x in ps.Dataset.load(folder)]
            [0, 1, 4, 9]

        Args:
            path: A directory, made if it is not there.
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
        kept = self.cache(os.path.join(folder, _DATA))
        count = kept.reduce(np.int64(0), lambda n, *_: n + 1)
        message = {
            "version": _VERSION,
            "element_spec": self._spec_message,
            "elements": int(count),
        }
        partial = about + ".partial"
        with open(partial, "w") as file:
            json.dump(message, file)
        os.replace(partial, about)

    @staticmethod
    def load(path: Any, element_spec: Any = None, name: Any = None) -> Dataset:
        """The elements that `save` wrote.

        Example:
            >>> import tempfile
            >>> folder = tempfile.mkdtemp()
            >>> ps.Dataset.from_tensor_slices({"a": [1, 2]}).save(folder)
            >>> list(ps.Dataset.load(folder))
            [{'a': np.int64(1)}, {'a': np.int64(2)}]

        Args:
            path: The directory.
            element_spec: Of the elements, if it is to be checked.
            name: Not used.
        """
        from penstock._files import TFRecordDataset
        from penstock._nested import read_records

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
        records = TFRecordDataset(_data_file(folder))
        return read_records(records, found).assert_cardinality(elements)

    def snapshot(self, path: Any, name: Any = None) -> Dataset:
        """Keeps the elements in a directory, by what the pipeline computes.

        The first whole pass writes, later ones read, as with `cache`; a
        pipeline that computes something else has files of its own.

        Example:
            >>> import tempfile
            >>> folder = tempfile.mkdtemp()
            >>> ds = ps.Dataset.range(3).snapshot(folder)
            >>> [int(x) for x in ds], [int(x) for x in ds]
            ([0, 1, 2], [0, 1, 2])
        """
        from penstock._dataset import Dataset

        assert isinstance(self, Dataset)
        folder = os.path.join(_folder(path), self.fingerprint())
        os.makedirs(folder, exist_ok=True)
        return self.cache(os.path.join(folder, _DATA))


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
