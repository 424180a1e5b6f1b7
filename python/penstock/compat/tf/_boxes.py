"""A random box of an image that a seed alone decides."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock._errors import InvalidArgumentError
from penstock._location import refused
from penstock.compat.tf import _arrays as arrays
from penstock.compat.tf._arithmetic import native, unary
from penstock.compat.tf._reductions import reduce_any
from penstock.compat.tf._tensor import Tensor, convert
from penstock.compat.tf.random import stateless_uniform

_ZERO = Tensor(np.zeros((), np.float64))


def stateless_sample_distorted_bounding_box(
    image_size: Any, bounding_boxes: Any, seed: Any,
    min_object_covered: Any = 0.1, aspect_ratio_range: Any = None,
    area_range: Any = None, max_attempts: Any = None,
    use_image_if_no_bounding_boxes: Any = None, name: Any = None,
) -> tuple[Any, Any, Any]:  # fmt: skip
    """A box that holds part of an object: (begin, size, bboxes).

    Of all attempts, which are computed together, the first that is fit; the
    whole image if none is.

    Example:
        >>> begin, size, box = tf.image.stateless_sample_distorted_bounding_box(
        ...     [40, 30, 3], [[[0.0, 0.0, 1.0, 1.0]]], seed=[1, 2])
        >>> begin.shape, int(size[2]), box.shape
        (TensorShape([3]), -1, TensorShape([1, 1, 4]))
    """
    given = convert(image_size)
    boxes = arrays.reshape(convert(bounding_boxes), [-1, 4])
    if boxes.shape[0] == 0 and not use_image_if_no_bounding_boxes:
        raise refused(
            InvalidArgumentError,
            "no bounding boxes were given; use "
            "use_image_if_no_bounding_boxes=True",
        )
    sizes = arrays.cast(given, "float64")
    high, wide = sizes[0], sizes[1]
    count = 100 if max_attempts is None else int(max_attempts)
    draws = stateless_uniform([count, 4], seed, dtype="float64")
    tall, broad, is_fit = _shapes(
        draws,
        high,
        wide,
        [0.75, 1.33] if aspect_ratio_range is None else aspect_ratio_range,
        [0.05, 1.0] if area_range is None else area_range,
    )
    top = unary("floor", draws[:, 2] * native("maximum", high - tall, _ZERO))
    left = unary("floor", draws[:, 3] * native("maximum", wide - broad, _ZERO))
    covered = _covered(
        (top, left, top + tall, left + broad),
        arrays.cast(boxes, "float64"),
        (high, wide),
        arrays.cast(convert(min_object_covered), "float64"),
    )
    if use_image_if_no_bounding_boxes:
        is_alone = arrays.shape(boxes, "int64")[0] == 0
        covered = native("logical_or", covered, is_alone)
    good = native("logical_and", is_fit, covered)
    return _first(good, (top, left, tall, broad), (high, wide), given.dtype)


def _shapes(
    draws: Any, high: Any, wide: Any, aspects: Any, areas: Any
) -> tuple[Any, Any, Any]:
    """Heights and widths of all attempts, and which are within the limits."""
    low, most = (float(a) for a in np.asarray(aspects))
    aspect = low + draws[:, 0] * (most - low)
    least, largest = (high * wide * float(a) for a in np.asarray(areas))
    short = unary("round", unary("sqrt", least / aspect))
    long = unary("round", unary("sqrt", largest / aspect))
    is_wide = unary("round", long * aspect) > wide
    fitting = unary("floor", (wide + 0.5 - 1e-7) / aspect)
    long = native("minimum", arrays.where(is_wide, fitting, long), high)
    short = native("minimum", short, long)
    tall = short + unary("floor", draws[:, 1] * (long - short + 1.0))
    broad = unary("round", tall * aspect)
    for is_off, by in (
        (tall * broad < least, 1.0),
        (tall * broad > largest, -1.0),
    ):
        tall = arrays.where(is_off, tall + by, tall)
        broad = arrays.where(is_off, unary("round", tall * aspect), broad)
    area = tall * broad
    is_fit: Any = None
    for holds in (
        area >= least, area <= largest, tall <= high, broad <= wide,
        tall > 0.0, broad > 0.0,
    ):  # fmt: skip
        is_fit = (
            holds if is_fit is None else native("logical_and", is_fit, holds)
        )
    return tall, broad, is_fit


def _covered(box: Any, objects: Any, sizes: Any, least: Any) -> Any:
    """Whether a box holds as much as it must of one of the objects."""
    high, wide = sizes
    scale = arrays.stack([high, wide, high, wide])
    pixels = unary("trunc", objects * scale[None, :])
    y1, x1, y2, x2 = (pixels[:, i][None, :] for i in range(4))
    top, left, bottom, right = (edge[:, None] for edge in box)
    rows = native("minimum", bottom, y2) - native("maximum", top, y1)
    columns = native("minimum", right, x2) - native("maximum", left, x1)
    shared = native("maximum", rows, _ZERO) * native("maximum", columns, _ZERO)
    area = (y2 - y1) * (x2 - x1)
    is_object = area >= 1.0
    enough = native("logical_and", is_object, shared >= least * area)
    return reduce_any(enough, 1)


def _first(
    good: Any, parts: Any, sizes: Any, dtype: Any
) -> tuple[Any, Any, Any]:
    at = native("argmax", arrays.cast(good, "int64"), axis=0)
    is_any = reduce_any(good)
    high, wide = sizes
    whole = (_ZERO, _ZERO, high, wide)
    top, left, tall, broad = (
        arrays.where(is_any, arrays.take(part, at), other)
        for part, other in zip(parts, whole, strict=True)
    )
    zero, rest = _ZERO, _ZERO - 1.0
    begin = arrays.cast(arrays.stack([top, left, zero]), dtype)
    size = arrays.cast(arrays.stack([tall, broad, rest]), dtype)
    edges = [
        top / high,
        left / wide,
        (top + tall) / high,
        (left + broad) / wide,
    ]
    box = arrays.cast(arrays.stack(edges), "float32")
    return begin, size, arrays.reshape(box, [1, 1, 4])
