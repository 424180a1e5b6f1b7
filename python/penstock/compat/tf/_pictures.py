"""`tf.image`: what is made of other functions: colours, patches, boxes."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from penstock._symbol import Symbol
from penstock.compat.tf import _arrays as arrays
from penstock.compat.tf._arithmetic import native, unary
from penstock.compat.tf._filling import pad
from penstock.compat.tf._reductions import reduce_mean, reduce_sum
from penstock.compat.tf._tensor import Tensor, convert

# ---- Colours.

_KERNELS = {
    "rgb_to_yiq": [
        [0.299, 0.59590059, 0.2115],
        [0.587, -0.27455667, -0.52273617],
        [0.114, -0.32134392, 0.31119955],
    ],
    "yiq_to_rgb": [
        [1, 1, 1],
        [0.95598634, -0.27201283, -1.10674021],
        [0.6208248, -0.64720424, 1.70423049],
    ],
    "rgb_to_yuv": [
        [0.299, -0.14714119, 0.61497538],
        [0.587, -0.28886916, -0.51496512],
        [0.114, 0.43601035, -0.10001026],
    ],
    "yuv_to_rgb": [
        [1, 1, 1],
        [0, -0.394642334, 2.03206185],
        [1.13988303, -0.58062185, 0],
    ],
}


def _colours(name: str, images: Any) -> Any:
    x = convert(images)
    kernel = np.array(_KERNELS[name], x.dtype.dtype)
    parts = x[..., None] * Tensor(kernel)
    return reduce_sum(parts, -2)


def rgb_to_yiq(images: Any) -> Any:
    """Colours as brightness and two differences, as NTSC has them."""
    return _colours("rgb_to_yiq", images)


def yiq_to_rgb(images: Any) -> Any:
    return _colours("yiq_to_rgb", images)


def rgb_to_yuv(images: Any) -> Any:
    """Colours as brightness and two differences, as PAL has them."""
    return _colours("rgb_to_yuv", images)


def yuv_to_rgb(images: Any) -> Any:
    return _colours("yuv_to_rgb", images)


# ---- Differences.


def image_gradients(image: Any) -> tuple[Any, Any]:
    """The differences to the next row and column; the last ones are 0."""
    x = convert(image)
    if x.shape.rank != 4:
        raise ValueError(
            f"image_gradients takes a batch of images; got shape {x.shape}"
        )
    down = x[:, 1:] - x[:, :-1]
    right = x[:, :, 1:] - x[:, :, :-1]
    nothing: Any = [[0, 0]] * 4
    below, beside = builtins.list(nothing), builtins.list(nothing)
    below[1] = beside[2] = [0, 1]
    return pad(down, below), pad(right, beside)


def total_variation(images: Any, name: Any = None) -> Any:
    """The sum of the sizes of all differences between neighbours."""
    x = convert(images)
    down = x[..., 1:, :, :] - x[..., :-1, :, :]
    right = x[..., :, 1:, :] - x[..., :, :-1, :]
    axes = None if x.ndim == 3 else [1, 2, 3]
    return reduce_sum(unary("abs", down), axes) + reduce_sum(
        unary("abs", right), axes
    )


def psnr(a: Any, b: Any, max_val: Any, name: Any = None) -> Any:
    """How large the signal is against the noise, in decibels."""
    from penstock.compat.tf.image import convert_image_dtype

    one, two = convert(a), convert(b)
    most = convert_image_dtype(convert(max_val, hint=one.dtype), "float32")
    if not one.dtype.is_floating:
        most = convert_image_dtype(arrays.cast(max_val, one.dtype), "float32")
    first = convert_image_dtype(one, "float32")
    second = convert_image_dtype(two, "float32")
    off = first - second
    mean = reduce_mean(off * off, [-3, -2, -1])
    ten = float(np.log(10.0))
    loud = unary("log", most, "float") * (20.0 / ten)
    noise = unary("log", mean, "float") * (10.0 / ten)
    return loud - noise


# ---- Parts.


def extract_patches(
    images: Any, sizes: Any, strides: Any, rates: Any, padding: str,
    name: Any = None,
) -> Any:  # fmt: skip
    """Parts of images, each as one vector, where they begin.

    Example:
        >>> x = tf.reshape(tf.range(16), [1, 4, 4, 1])
        >>> patches = tf.image.extract_patches(
        ...     x, [1, 2, 2, 1], [1, 2, 2, 1], [1, 1, 1, 1], "VALID")
        >>> patches[0, 0, 1].numpy()
        array([2, 3, 6, 7], dtype=int32)
    """
    x = convert(images)
    if x.shape.rank != 4 or padding not in ("SAME", "VALID"):
        raise ValueError(
            "extract_patches takes a batch of images, and SAME or VALID; got "
            f"shape {x.shape} and {padding!r}"
        )
    for axis, place in ((1, 1), (2, 3)):
        x = _runs(
            x, place, int(sizes[axis]), int(strides[axis]), int(rates[axis]),
            padding,
        )  # fmt: skip
    x = arrays.transpose(x, [0, 1, 3, 2, 4, 5])
    dims = arrays.shape(x, "int64")
    depth = dims[3] * dims[4] * dims[5]
    made = arrays.reshape(x, arrays.stack([dims[0], dims[1], dims[2], depth]))
    known = x.shape.as_list()
    channels = known[5]
    last = (
        None if channels is None else int(sizes[1]) * int(sizes[2]) * channels
    )
    made.set_shape([*known[:3], last])
    return made


def _runs(
    x: Any, axis: int, size: int, stride: int, rate: int, padding: str
) -> Any:
    """A dimension as two: where a part begins, and its items."""
    known = x.shape[axis]
    length: Any = arrays.shape(x, "int64")[axis] if known is None else known
    width = (size - 1) * rate + 1
    if padding == "SAME":
        count = -(-length // stride)
        missing = (count - 1) * stride + width - length
        if known is None:
            missing = native("maximum", missing, Tensor(np.int64(0)))
        else:
            missing = max(missing, 0)
        pairs: Any = [[0, 0]] * x.ndim
        pairs[axis] = [missing // 2, missing - missing // 2]
        x = pad(x, pairs)
    else:
        count = (length - width + stride) // stride
        if known is None:
            count = native("maximum", count, Tensor(np.int64(0)))
        else:
            count = max(count, 0)
    starts = arrays.cast(arrays.range(count), "int64") * stride
    items = arrays.cast(arrays.range(size), "int64") * rate
    return arrays.take(x, starts[:, None] + items[None, :], axis)


def crop_and_resize(
    image: Any, boxes: Any, box_indices: Any, crop_size: Any,
    method: str = "bilinear", extrapolation_value: Any = 0.0,
    name: Any = None,
) -> Any:  # fmt: skip
    """Parts of images, all of one size, float32.

    A box is [y1, x1, y2, x2], of which 1 is the last row or column; what lies
    outside is `extrapolation_value`.
    """
    if method not in ("bilinear", "nearest"):
        raise ValueError(f"method must be bilinear or nearest; got {method!r}")
    x = arrays.cast(convert(image), "float32")
    places = arrays.cast(convert(boxes), "float32")
    of = arrays.cast(convert(box_indices), "int64")
    high, wide = (int(s) for s in np.asarray(crop_size).reshape(-1))
    dims = arrays.shape(x, "int64")
    rows = _grid(places[:, 0], places[:, 2], high, dims[1])
    columns = _grid(places[:, 1], places[:, 3], wide, dims[2])
    flat = arrays.reshape(
        x, arrays.stack([dims[0] * dims[1] * dims[2], dims[3]])
    )
    first = of[:, None, None] * dims[1] * dims[2]

    def pixels(row: Any, column: Any) -> Any:
        at = first + row[:, :, None] * dims[2] + column[:, None, :]
        return arrays.gather(flat, at)

    if method == "nearest":
        found = pixels(_whole(rows, dims[1]), _whole(columns, dims[2]))
    else:
        top, down, low = _neighbours(rows, dims[1])
        left, right, part = _neighbours(columns, dims[2])
        part = part[:, None, :, None]
        above = pixels(top, left)
        above = above + (pixels(top, right) - above) * part
        below = pixels(down, left)
        below = below + (pixels(down, right) - below) * part
        found = above + (below - above) * low[:, :, None, None]
    inside = native(
        "logical_and",
        _inside(rows, dims[1])[:, :, None],
        _inside(columns, dims[2])[:, None, :],
    )
    other = arrays.cast(extrapolation_value, "float32")
    return arrays.where(inside[..., None], found, other)


def _grid(begin: Any, end: Any, count: int, size: Any) -> Any:
    """The places of `count` rows of each box, among `size` rows."""
    last = arrays.cast(size - 1, "float32")
    if count == 1:
        return ((begin + end) * 0.5 * last)[:, None]
    step = (end - begin) * last / float(count - 1)
    steps = arrays.cast(arrays.range(count), "float32")
    return (begin * last)[:, None] + steps[None, :] * step[:, None]


def _inside(at: Any, size: Any) -> Any:
    last = arrays.cast(size - 1, "float32")
    return native("logical_and", at >= 0.0, at <= last)


def _clipped(at: Any, size: Any) -> Any:
    whole = arrays.cast(at, "int64")
    zero = Tensor(np.int64(0))
    return native("minimum", native("maximum", whole, zero), size - 1)


def _neighbours(at: Any, size: Any) -> tuple[Any, Any, Any]:
    """The rows before and after a place, and how far it is between them."""
    low = unary("floor", at)
    return (
        _clipped(low, size),
        _clipped(unary("ceil", at), size),
        at - low,
    )


def _whole(at: Any, size: Any) -> Any:
    """The nearest row; of two, the one away from 0."""
    return _clipped(unary("floor", at + 0.5), size)


def non_max_suppression(
    boxes: Any, scores: Any, max_output_size: Any, iou_threshold: Any = 0.5,
    score_threshold: Any = float("-inf"), name: Any = None,
) -> Tensor:  # fmt: skip
    """The boxes of the best scores that do not overlap, as places, int32."""
    given = [convert(boxes), convert(scores)]
    if any(isinstance(each._value, Symbol) for each in given):
        arrays.python_only("tf.image.non_max_suppression")
    corners, marks = (each._value for each in given)
    low = np.minimum(corners[:, :2], corners[:, 2:])
    high = np.maximum(corners[:, :2], corners[:, 2:])
    areas = np.prod(high - low, 1)
    kept: list[int] = []
    limit, most = float(iou_threshold), int(max_output_size)
    for i in np.argsort(-marks, kind="stable"):
        if len(kept) >= most or not marks[i] > float(score_threshold):
            break
        begin = np.maximum(low[i], low[kept])
        shared = np.prod(np.maximum(np.minimum(high[i], high[kept]) - begin, 0),
                         1)  # fmt: skip
        union = areas[i] + areas[kept] - shared
        with np.errstate(all="ignore"):
            overlap = np.where(union > 0, shared / union, 0)
        if not np.any(overlap > limit):
            kept.append(int(i))
    return Tensor(np.array(kept, np.int32))
