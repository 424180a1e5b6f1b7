"""`tf.train.Checkpoint`: where iterators are, kept in files."""

from __future__ import annotations

import json
import os
import re
from typing import Any

from penstock._errors import DataLossError, InvalidTypeError, NotFoundError
from penstock._location import refused

_SUFFIX = ".penstock.json"
_INDEX = "checkpoint"
_VERSION = 1


class _Status:
    """What `restore` gives: all is restored, or it raised."""

    def assert_consumed(self) -> _Status:
        return self

    def assert_existing_objects_matched(self) -> _Status:
        return self

    def assert_nontrivial_match(self) -> _Status:
        return self

    def expect_partial(self) -> _Status:
        return self


class Checkpoint:
    """Objects whose states are saved together: iterators, or others.

    An object has `state_dict()` and `load_state_dict(state)`, and its state is
    fit for JSON.

    Example:
        >>> import tempfile
        >>> iterator = iter(tf.data.Dataset.range(9))
        >>> checkpoint = tf.train.Checkpoint(iterator=iterator)
        >>> _ = next(iterator), next(iterator)
        >>> path = checkpoint.save(tempfile.mkdtemp() + "/ckpt")
        >>> _ = next(iterator), next(iterator)
        >>> _ = checkpoint.restore(path)
        >>> next(iterator).numpy()
        np.int64(2)
    """

    def __init__(self, root: Any = None, **kwargs: Any) -> None:
        given = dict(kwargs)
        if root is not None:
            given["root"] = root
        for name, each in given.items():
            if not (
                hasattr(each, "state_dict") and hasattr(each, "load_state_dict")
            ):
                raise refused(
                    InvalidTypeError,
                    "a checkpoint holds iterators, or objects with "
                    f"state_dict() and load_state_dict(); got {each!r} as "
                    f"{name!r}",
                )
            setattr(self, name, each)
        self._parts = given
        self._saves = 0

    def write(self, file_prefix: Any, options: Any = None) -> str:
        """Writes the states to a file of that name; gives the name."""
        path = os.fspath(file_prefix)
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        states = {name: each.state_dict() for name, each in self._parts.items()}
        message = {"version": _VERSION, "saves": self._saves, "states": states}
        partial = path + _SUFFIX + ".partial"
        with open(partial, "w") as file:
            json.dump(message, file)
        os.replace(partial, path + _SUFFIX)
        return str(path)

    def save(self, file_prefix: Any, options: Any = None) -> str:
        """Writes the states under the next number; gives the file's name."""
        self._saves += 1
        path = self.write(f"{os.fspath(file_prefix)}-{self._saves}")
        _write_index(os.path.dirname(path), [path])
        return path

    def read(self, save_path: Any, options: Any = None) -> _Status:
        """Puts objects where they were."""
        path = os.fspath(save_path)
        try:
            with open(path + _SUFFIX) as file:
                message = json.load(file)
            if message["version"] != _VERSION:
                raise ValueError(f"version {message['version']!r}")
            states, saves = message["states"], int(message["saves"])
            if not set(self._parts) <= set(states):
                raise ValueError(f"states of {sorted(states)} only")
        except FileNotFoundError:
            raise refused(
                NotFoundError,
                f"restore needs a checkpoint; there is none called {path}",
            ) from None
        except (ValueError, KeyError, TypeError) as error:
            raise refused(
                DataLossError,
                f"{path} must be what a checkpoint of "
                f"{sorted(self._parts)} wrote; got {error}",
            ) from None
        for name, each in self._parts.items():
            each.load_state_dict(states[name])
        self._saves = saves
        return _Status()

    def restore(self, save_path: Any, options: Any = None) -> _Status:
        """As `read`; without a path, nothing."""
        return _Status() if save_path is None else self.read(save_path)


def _write_index(folder: str, paths: list[str]) -> None:
    """Writes the names of checkpoints down, the latest one first."""
    names = [os.path.basename(path) for path in paths]
    lines = [f'model_checkpoint_path: "{names[-1]}"']
    lines += [f'all_model_checkpoint_paths: "{name}"' for name in names]
    partial = os.path.join(folder, _INDEX + ".partial")
    with open(partial, "w") as file:
        file.write("\n".join(lines) + "\n")
    os.replace(partial, os.path.join(folder, _INDEX))


def latest_checkpoint(
    checkpoint_dir: Any, latest_filename: str | None = None
) -> str | None:
    """The name of the latest checkpoint in a directory; None: there is none."""
    found = _read_index(os.fspath(checkpoint_dir), latest_filename or _INDEX)
    return found[-1] if found else None


def _read_index(folder: str, index: str = _INDEX) -> list[str]:
    try:
        with open(os.path.join(folder, index)) as file:
            text = file.read()
    except FileNotFoundError:
        return []
    names = re.findall(r'^all_model_checkpoint_paths: "(.*)"$', text, re.M)
    paths = [os.path.join(folder, name) for name in names]
    return [path for path in paths if os.path.exists(path + _SUFFIX)]


class CheckpointManager:
    """Checkpoints in a directory, of which only the latest are kept.

    Example:
        >>> import tempfile
        >>> iterator = iter(tf.data.Dataset.range(9))
        >>> manager = tf.train.CheckpointManager(
        ...     tf.train.Checkpoint(iterator=iterator), tempfile.mkdtemp(), 2)
        >>> for _ in range(3):
        ...     _ = next(iterator), manager.save()
        >>> [path[-6:] for path in manager.checkpoints]
        ['ckpt-2', 'ckpt-3']
    """

    def __init__(
        self, checkpoint: Checkpoint, directory: Any, max_to_keep: int | None,
        keep_checkpoint_every_n_hours: Any = None,
        checkpoint_name: str = "ckpt", step_counter: Any = None,
        checkpoint_interval: Any = None, init_fn: Any = None,
        last_checkpoint_step: Any = None,
    ) -> None:  # fmt: skip
        if max_to_keep is not None and max_to_keep <= 0:
            raise ValueError(
                f"max_to_keep must be None or 1 and more; got {max_to_keep}"
            )
        self._checkpoint = checkpoint
        self._directory = os.fspath(directory)
        self._most = max_to_keep
        self._prefix = os.path.join(self._directory, checkpoint_name)
        self._init = init_fn
        self._paths = _read_index(self._directory)

    @property
    def directory(self) -> str:
        return str(self._directory)

    @property
    def checkpoint(self) -> Checkpoint:
        return self._checkpoint

    @property
    def checkpoints(self) -> list[str]:
        return list(self._paths)

    @property
    def latest_checkpoint(self) -> str | None:
        return self._paths[-1] if self._paths else None

    def save(
        self, checkpoint_number: int | None = None, check_interval: Any = True,
        options: Any = None,
    ) -> str:  # fmt: skip
        """Writes a checkpoint, and removes the oldest if there are too many."""
        if checkpoint_number is None:
            self._checkpoint._saves += 1
            checkpoint_number = self._checkpoint._saves
        path = self._checkpoint.write(f"{self._prefix}-{checkpoint_number}")
        self._paths = [p for p in self._paths if p != path] + [path]
        while self._most is not None and len(self._paths) > self._most:
            os.remove(self._paths.pop(0) + _SUFFIX)
        _write_index(self._directory, self._paths)
        return path

    def restore_or_initialize(self) -> str | None:
        """Restores the latest checkpoint, if there is one; gives its name."""
        if self.latest_checkpoint is not None:
            self._checkpoint.restore(self.latest_checkpoint)
        elif self._init is not None:
            self._init()
        return self.latest_checkpoint
