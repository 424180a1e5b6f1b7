"""One way to write a pipeline for two systems.

Both have tf.data's names, nearly: what differs is here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any


class Ours:
    is_ours = True

    def __init__(self) -> None:
        import penstock as ps

        self._ps = ps
        self.Dataset = ps.Dataset
        self.TFRecordDataset = ps.TFRecordDataset
        self.TextLineDataset = ps.TextLineDataset
        self.image = ps.image
        self.decode_jpeg = ps.image.decode_jpeg
        self.strings = ps.strings
        self.cast = ps.cast
        self.float32 = ps.float32
        self.int64 = ps.int64
        self.sin = ps.sin
        self.mean = ps.mean
        self.size = ps.size
        self.decode_raw = ps.io.decode_raw
        self.reshape = ps.reshape

    def flip(self, image: Any, seed: int) -> Any:
        return self._ps.image.random_flip_left_right(image, seed=seed)

    def python(self, function: Callable[[Any], Any]) -> Any:
        spec = self._ps.TensorSpec((), self._ps.int64)
        return self._ps.python_function(function, output_signature=spec)

    def zip(self, datasets: Sequence[Any]) -> Any:
        return self._ps.Dataset.zip(tuple(datasets))

    def keeping(self, dataset: Any, folder: str) -> Any:
        """Rows may be kept in the folder, where that helps."""
        return dataset.with_options(self._ps.Options(kept_directory=folder))

    def finished(self, dataset: Any, is_tuned: bool = False) -> Any:
        """As it is measured: settings stay as they are, unless `is_tuned`."""
        options = self._ps.Options(autotune=is_tuned)
        return dataset.with_options(options)


class Peers:
    is_ours = False

    def __init__(self) -> None:
        import tensorflow as tf

        self._tf = tf
        self.Dataset = tf.data.Dataset
        self.TFRecordDataset = tf.data.TFRecordDataset
        self.TextLineDataset = tf.data.TextLineDataset
        self.image = tf.image
        self.decode_jpeg = tf.io.decode_jpeg
        self.strings = tf.strings
        self.cast = tf.cast
        self.float32 = tf.float32
        self.int64 = tf.int64
        self.sin = tf.sin
        self.mean = tf.reduce_mean
        self.size = tf.size
        self.decode_raw = tf.io.decode_raw
        self.reshape = tf.reshape

    def flip(self, image: Any, seed: int) -> Any:
        return self._tf.image.random_flip_left_right(image, seed=seed)

    def python(self, function: Callable[[Any], Any]) -> Any:
        tf = self._tf

        def call(x: Any) -> Any:
            return tf.ensure_shape(
                tf.numpy_function(function, [x], tf.int64, stateful=False), ()
            )

        return call

    def zip(self, datasets: Sequence[Any]) -> Any:
        return self._tf.data.Dataset.zip(tuple(datasets))

    def keeping(self, dataset: Any, folder: str) -> Any:
        del folder  # It keeps nothing by itself.
        return dataset

    def finished(self, dataset: Any, is_tuned: bool = True) -> Any:
        return dataset
