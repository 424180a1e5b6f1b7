"""Images: decoding, resizing, cropping, flips and colours, in the engine.

Names and results are those of `tf.image` and `tf.io.decode_*`. An image is
height x width x channels; functions that take several have them along a first
dimension.

Example:
    >>> pixels = np.zeros((40, 30, 3), np.uint8)
    >>> files = ps.Dataset.from_tensors(ps.image.encode_jpeg(pixels))
    >>> ds = files.map(lambda file: ps.image.resize(
    ...     ps.image.decode_jpeg(file, channels=3), (8, 8)))
    >>> next(iter(ds.batch(1))).shape
    (1, 8, 8, 3)
"""

from __future__ import annotations

from penstock import _image_functions
from penstock._image_functions import *  # noqa: F403

__all__ = [*_image_functions.__all__]
