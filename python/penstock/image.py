"""Images: decoding, resizing, cropping, flips and colours, in the engine.

Names and results are those of `tf.image` and `tf.io.decode_*`. An image is
height x width x channels; functions that take several have them along a first
dimension.

Decoders give uint8 from 0 to 255, and resizing makes float32 of that in the
same range. Functions of colours take floats as 0 to 1: change colours before
resizing, or divide by 255 first.

Example:
    >>> pixels = np.zeros((40, 30, 3), np.uint8)
    >>> files = ps.Dataset.from_tensors(ps.image.encode_jpeg(pixels))
    >>> ds = files.map(lambda file: ps.image.resize(
    ...     ps.image.decode_jpeg(file, channels=3), (8, 8)))
    >>> next(iter(ds.batch(1))).shape
    (1, 8, 8, 3)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from penstock import _functions, _image_functions, _names, _record
from penstock._image_functions import *  # noqa: F403
from penstock._image_functions import (
    adjust_brightness,
    adjust_contrast,
    adjust_hue,
    adjust_saturation,
)

__all__ = [
    "random_brightness",
    "random_contrast",
    "random_hue",
    "random_saturation",
    "sample_distorted_bounding_box",
    *_image_functions.__all__,
]


def random_brightness(
    image: Any, max_delta: float, seed: int | None = None
) -> Any:
    """adjust_brightness() by a number from [-max_delta, max_delta).

    Example:
        >>> ps.image.random_brightness(np.zeros((2, 2, 3)), 0.1).shape
        (2, 2, 3)

    Args:
        image: height x width x channels. Floats from 0 to 1; integers stand for
            them, the largest of their dtype for 1.
        max_delta: At least 0; 1 is the whole range.
        seed: If every random call of a function has one, all runs of a program
            are equal; left out, one is drawn for each dataset.
    """
    _check_delta(max_delta, 1e9)
    return adjust_brightness(image, _between(-max_delta, max_delta, seed))


def random_contrast(
    image: Any, lower: float, upper: float, seed: int | None = None
) -> Any:
    """adjust_contrast() by a factor from [lower, upper).

    Example:
        >>> ps.image.random_contrast(np.zeros((2, 2, 3)), 0.9, 1.1).shape
        (2, 2, 3)

    Args:
        image: height x width x channels. Floats from 0 to 1; integers stand for
            them, the largest of their dtype for 1.
        lower: The least factor; at least 0.
        upper: The end, above `lower`.
        seed: If every random call of a function has one, all runs of a program
            are equal; left out, one is drawn for each dataset.
    """
    _check_factors(lower, upper)
    return adjust_contrast(image, _between(lower, upper, seed))


def random_saturation(
    image: Any, lower: float, upper: float, seed: int | None = None
) -> Any:
    """adjust_saturation() by a factor from [lower, upper).

    Example:
        >>> ps.image.random_saturation(np.zeros((2, 2, 3)), 0.9, 1.1).shape
        (2, 2, 3)

    Args:
        image: height x width x 3. Floats from 0 to 1; integers stand for
            them, the largest of their dtype for 1.
        lower: The least factor; at least 0.
        upper: The end, above `lower`.
        seed: If every random call of a function has one, all runs of a program
            are equal; left out, one is drawn for each dataset.
    """
    _check_factors(lower, upper)
    return adjust_saturation(image, _between(lower, upper, seed))


def random_hue(image: Any, max_delta: float, seed: int | None = None) -> Any:
    """adjust_hue() by a number from [-max_delta, max_delta).

    Example:
        >>> ps.image.random_hue(np.zeros((2, 2, 3)), 0.1).shape
        (2, 2, 3)

    Args:
        image: height x width x 3. Floats from 0 to 1; integers stand for
            them, the largest of their dtype for 1.
        max_delta: From 0 to 0.5.
        seed: If every random call of a function has one, all runs of a program
            are equal; left out, one is drawn for each dataset.
    """
    _check_delta(max_delta, 0.5)
    return adjust_hue(image, _between(-max_delta, max_delta, seed))


def sample_distorted_bounding_box(
    image_size: Any,
    bounding_boxes: Any,
    seed: int | None = None,
    min_object_covered: float = 0.1,
    aspect_ratio_range: Sequence[float] | None = None,
    area_range: Sequence[float] | None = None,
    max_attempts: int | None = None,
    use_image_if_no_bounding_boxes: bool | None = None,
) -> tuple[Any, Any, Any]:
    """A random box that holds part of an object: (begin, size, bboxes).

    Example:
        >>> boxes = np.array([[[0.0, 0.0, 1.0, 1.0]]], np.float32)
        >>> begin, size, box = ps.image.sample_distorted_bounding_box(
        ...     (40, 30, 3), boxes)
        >>> begin.shape, size.shape, box.shape
        ((3,), (3,), (1, 1, 4))

    Args:
        image_size: Height, width and channels.
        bounding_boxes: ymin, xmin, ymax, xmax from 0 to 1: (1, boxes, 4).
        seed: If every random call of a function has one, all runs of a program
            are equal; left out, one is drawn for each dataset.
        min_object_covered: The part of a box that must be inside.
        aspect_ratio_range: Width by height, from and to: (0.75, 1.33).
        area_range: The part of the image's area, from and to: (0.05, 1).
        max_attempts: After so many, 100, it is the whole image.
        use_image_if_no_bounding_boxes: The whole image is the object if there
            are no boxes, which is an error otherwise.
    """
    attrs = {
        "seed": seed,
        "min_object_covered": min_object_covered,
        "aspect_ratio_range": aspect_ratio_range,
        "area_range": area_range,
        "max_attempts": max_attempts,
        "use_image_if_no_bounding_boxes": use_image_if_no_bounding_boxes,
    }
    begin, size, box = _record.call_parts(
        "image.sample_distorted_bounding_box",
        (image_size, bounding_boxes),
        attrs,
        count=3,
    )
    return begin, size, box


def _between(low: float, high: float, seed: int | None) -> Any:
    return _functions.random_uniform((), low, high, seed=seed)


def _check_delta(max_delta: float, most: float) -> None:
    if not 0 <= max_delta <= most:
        raise ValueError(
            f"max_delta must be from 0 to {most:g}; got {max_delta}"
        )


def _check_factors(lower: float, upper: float) -> None:
    if not 0 <= lower < upper:
        raise ValueError(
            f"factors must be 0 <= lower < upper; got {lower} and {upper}"
        )


if not TYPE_CHECKING:
    __getattr__ = _names.in_images(__name__, __all__)
