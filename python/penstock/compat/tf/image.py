"""`tf.image`: Penstock's functions, whose results are TensorFlow's."""

from __future__ import annotations

import enum
from typing import Any

import numpy as np

from penstock import image as _image
from penstock._symbol import Symbol
from penstock.compat.tf import _arrays as arrays
from penstock.compat.tf._arithmetic import (
    binary,
    native,
    refuse_unknown_ranks,
)
from penstock.compat.tf._boxes import stateless_sample_distorted_bounding_box
from penstock.compat.tf._calls import bare, dressed, lifted
from penstock.compat.tf._filling import pad
from penstock.compat.tf._pictures import (
    crop_and_resize,
    extract_patches,
    image_gradients,
    non_max_suppression,
    psnr,
    rgb_to_yiq,
    rgb_to_yuv,
    total_variation,
    yiq_to_rgb,
    yuv_to_rgb,
)
from penstock.compat.tf._tensor import Tensor, convert
from penstock.compat.tf.io import (
    decode_and_crop_jpeg,
    decode_bmp,
    decode_gif,
    decode_image,
    decode_jpeg,
    decode_png,
    decode_webp,
    encode_jpeg,
    encode_png,
    extract_jpeg_shape,
    is_jpeg,
)
from penstock.compat.tf.random import stateless_uniform, uniform

__all__ = [
    "ResizeMethod",
    "adjust_brightness",
    "adjust_contrast",
    "adjust_gamma",
    "adjust_hue",
    "adjust_jpeg_quality",
    "adjust_saturation",
    "central_crop",
    "convert_image_dtype",
    "crop_and_resize",
    "crop_to_bounding_box",
    "decode_and_crop_jpeg",
    "decode_bmp",
    "decode_gif",
    "decode_image",
    "decode_jpeg",
    "decode_png",
    "decode_webp",
    "encode_jpeg",
    "encode_png",
    "extract_jpeg_shape",
    "extract_patches",
    "flip_left_right",
    "flip_up_down",
    "grayscale_to_rgb",
    "hsv_to_rgb",
    "image_gradients",
    "is_jpeg",
    "non_max_suppression",
    "pad_to_bounding_box",
    "per_image_standardization",
    "psnr",
    "random_brightness",
    "random_contrast",
    "random_crop",
    "random_flip_left_right",
    "random_flip_up_down",
    "random_hue",
    "random_jpeg_quality",
    "random_saturation",
    "resize",
    "resize_with_crop_or_pad",
    "resize_with_pad",
    "rgb_to_grayscale",
    "rgb_to_hsv",
    "rgb_to_yiq",
    "rgb_to_yuv",
    "rot90",
    "sample_distorted_bounding_box",
    "stateless_random_brightness",
    "stateless_random_contrast",
    "stateless_random_crop",
    "stateless_random_flip_left_right",
    "stateless_random_flip_up_down",
    "stateless_random_hue",
    "stateless_random_jpeg_quality",
    "stateless_random_saturation",
    "stateless_sample_distorted_bounding_box",
    "total_variation",
    "transpose",
    "yiq_to_rgb",
    "yuv_to_rgb",
]

adjust_brightness = lifted(_image.adjust_brightness)
adjust_contrast = lifted(_image.adjust_contrast, images="image")
adjust_hue = lifted(_image.adjust_hue)
adjust_saturation = lifted(_image.adjust_saturation)
central_crop = lifted(_image.central_crop)
convert_image_dtype = lifted(_image.convert_image_dtype)
flip_left_right = lifted(_image.flip_left_right)
flip_up_down = lifted(_image.flip_up_down)
grayscale_to_rgb = lifted(_image.grayscale_to_rgb, images="image")
hsv_to_rgb = lifted(_image.hsv_to_rgb, images="image")
per_image_standardization = lifted(_image.per_image_standardization)
random_brightness = lifted(_image.random_brightness)
random_contrast = lifted(_image.random_contrast)
random_flip_left_right = lifted(_image.random_flip_left_right)
random_flip_up_down = lifted(_image.random_flip_up_down)
random_hue = lifted(_image.random_hue)
random_saturation = lifted(_image.random_saturation)
rgb_to_grayscale = lifted(_image.rgb_to_grayscale, images="image")
rgb_to_hsv = lifted(_image.rgb_to_hsv, images="image")
rot90 = lifted(_image.rot90)
transpose = lifted(_image.transpose)


class ResizeMethod(str, enum.Enum):
    BILINEAR = "bilinear"
    NEAREST_NEIGHBOR = "nearest"
    BICUBIC = "bicubic"
    AREA = "area"
    LANCZOS3 = "lanczos3"
    LANCZOS5 = "lanczos5"
    GAUSSIAN = "gaussian"
    MITCHELLCUBIC = "mitchellcubic"


def resize(
    images: Any, size: Any, method: Any = "bilinear",
    preserve_aspect_ratio: bool = False, antialias: bool = False,
    name: Any = None,
) -> Tensor:  # fmt: skip
    """Images of another size; float32, but for the nearest neighbour.

    Example:
        >>> tf.image.resize(np.zeros((4, 6, 3), np.uint8), [2, 3]).shape
        TensorShape([2, 3, 3])
    """
    how = method.value if isinstance(method, ResizeMethod) else str(method)
    x = convert(images)
    refuse_unknown_ranks([x])
    made: Tensor = dressed(
        _image.resize(
            x._value, _size(size), how, preserve_aspect_ratio, antialias
        )
    )
    return made


def _size(size: Any) -> Any:
    found = convert(size)._value
    return found if isinstance(found, Symbol) else found.astype(np.int64)


def _integers(*values: Any) -> list[Any] | None:
    """Python's integers; None if some are known only with an element."""
    found = []
    for value in values:
        item = bare(value)
        if isinstance(item, Symbol):
            return None
        found.append(int(item))
    return found


def crop_to_bounding_box(
    image: Any, offset_height: Any, offset_width: Any, target_height: Any,
    target_width: Any, name: Any = None,
) -> Tensor:  # fmt: skip
    """The part of an image in a box."""
    x = convert(image)
    refuse_unknown_ranks([x])
    known = _integers(offset_height, offset_width, target_height, target_width)
    if known is not None:
        made: Tensor = dressed(_image.crop_to_bounding_box(x._value, *known))
        return made
    rows = slice(offset_height, offset_height + target_height)
    columns = slice(offset_width, offset_width + target_width)
    part = x[..., rows, columns, slice(None)]
    dims = [*x.shape.as_list()[:-3], None, None, x.shape[-1]]
    for place, given in ((-3, target_height), (-2, target_width)):
        size = _integers(given)
        dims[place] = None if size is None else size[0]
    part.set_shape(dims)
    return part


def pad_to_bounding_box(
    image: Any, offset_height: Any, offset_width: Any, target_height: Any,
    target_width: Any, name: Any = None,
) -> Tensor:  # fmt: skip
    """An image with zeros around it."""
    x = convert(image)
    refuse_unknown_ranks([x])
    known = _integers(offset_height, offset_width, target_height, target_width)
    if known is not None:
        made: Tensor = dressed(_image.pad_to_bounding_box(x._value, *known))
        return made
    dims = arrays.shape(x)
    after_height = target_height - offset_height - dims[-3]
    after_width = target_width - offset_width - dims[-2]
    pairs: list[Any] = [[0, 0]] * (x.ndim - 3)
    pairs += [[offset_height, after_height], [offset_width, after_width]]
    return pad(x, [*pairs, [0, 0]])


def resize_with_crop_or_pad(
    image: Any, target_height: Any, target_width: Any, name: Any = None
) -> Tensor:
    """An image cut or filled up evenly at its edges."""
    x = convert(image)
    refuse_unknown_ranks([x])
    known = _integers(target_height, target_width)
    if known is None:
        arrays.python_only("resize_with_crop_or_pad to a computed size")
        raise AssertionError
    made: Tensor = dressed(_image.resize_with_crop_or_pad(x._value, *known))
    return made


def resize_with_pad(
    image: Any, target_height: int, target_width: int, method: Any = "bilinear",
    antialias: bool = False,
) -> Tensor:  # fmt: skip
    """An image as large as fits, with zeros around it."""
    from penstock.compat.tf._reductions import FUNCTIONS

    x = convert(image)
    height, width = (
        arrays.cast(arrays.shape(x)[i], "float32") for i in (-3, -2)
    )
    ratio = FUNCTIONS["maximum"](
        width / float(target_width), height / float(target_height)
    )
    high, wide = height / ratio, width / ratio
    above = native("floor", (float(target_height) - high) / 2.0)
    left = native("floor", (float(target_width) - wide) / 2.0)
    sizes = [
        arrays.cast(native("floor", size), "int32") for size in (high, wide)
    ]
    small = resize(x, arrays.stack(sizes), method, antialias=antialias)
    zero = Tensor(np.zeros((), np.int32))
    offsets = [
        binary("maximum", zero, arrays.cast(offset, "int32"))
        for offset in (above, left)
    ]
    made = pad_to_bounding_box(
        small, offsets[0], offsets[1], target_height, target_width
    )
    dims = [*x.shape.as_list()[:-3], target_height, target_width]
    made.set_shape([*dims, x.shape[-1]])
    return made


def adjust_gamma(image: Any, gamma: Any = 1, gain: Any = 1) -> Tensor:
    x = convert(image)
    pixels = convert_image_dtype(x, "float32")
    bright = binary("power", pixels, arrays.cast(gamma, "float32"))
    made: Tensor = convert_image_dtype(
        bright * arrays.cast(gain, "float32"), x.dtype, saturate=True
    )
    return made


def adjust_jpeg_quality(
    image: Any, jpeg_quality: Any, dct_method: str = "", name: Any = None
) -> Tensor:
    """An image as it is after it was a JPEG of that quality, from 0 to 100."""
    x = convert(image)
    quality = _integers(jpeg_quality)
    if quality is None:
        arrays.python_only("tf.image.adjust_jpeg_quality by a computed number")
        raise AssertionError
    pixels = convert_image_dtype(x, "uint8", saturate=True)
    text = encode_jpeg(pixels, quality=quality[0])
    again = decode_jpeg(text, channels=x.shape[-1] or 0, dct_method=dct_method)
    again.set_shape(x.shape)
    made: Tensor = convert_image_dtype(again, x.dtype, saturate=True)
    return made


def random_jpeg_quality(
    image: Any, min_jpeg_quality: int, max_jpeg_quality: int, seed: Any = None
) -> Tensor:
    """`adjust_jpeg_quality` by a random number; such a function is Python."""
    _check_qualities(min_jpeg_quality, max_jpeg_quality)
    drawn = uniform([], min_jpeg_quality, max_jpeg_quality, "int32", seed)
    return adjust_jpeg_quality(image, drawn)


def stateless_random_jpeg_quality(
    image: Any, min_jpeg_quality: int, max_jpeg_quality: int, seed: Any
) -> Tensor:
    _check_qualities(min_jpeg_quality, max_jpeg_quality)
    drawn = stateless_uniform(
        [], seed, min_jpeg_quality, max_jpeg_quality, "int32"
    )
    return adjust_jpeg_quality(image, drawn)


def _check_qualities(low: int, high: int) -> None:
    if not 0 <= low < high <= 100:
        raise ValueError(
            "qualities must be from 0 to 100, the first one less than the "
            f"other; got {low} and {high}"
        )


def random_crop(
    value: Any, size: Any, seed: Any = None, name: Any = None
) -> Tensor:
    """A part of `value` of that size, from a random place."""
    x = convert(value)
    dims = arrays._items(size, x.ndim)
    starts = [
        uniform([], 0, arrays.shape(x)[i] - dim + 1, "int32", seed)
        for i, dim in enumerate(dims)
    ]
    return arrays.slice_(x, starts, dims)


def sample_distorted_bounding_box(
    image_size: Any, bounding_boxes: Any, seed: Any = 0,
    min_object_covered: Any = 0.1, aspect_ratio_range: Any = None,
    area_range: Any = None, max_attempts: Any = None,
    use_image_if_no_bounding_boxes: Any = None, name: Any = None,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """A random box that holds part of an object: (begin, size, bboxes)."""
    made: tuple[Tensor, Tensor, Tensor] = dressed(
        _image.sample_distorted_bounding_box(
            convert(image_size)._value,
            convert(bounding_boxes)._value,
            seed or None,
            min_object_covered,
            aspect_ratio_range,
            area_range,
            max_attempts,
            use_image_if_no_bounding_boxes,
        )
    )
    return made


# ---- What a seed alone decides.


def _factor(seed: Any, low: Any, high: Any) -> Tensor:
    return stateless_uniform([], seed, low, high)


def stateless_random_brightness(image: Any, max_delta: Any, seed: Any) -> Any:
    return adjust_brightness(image, _factor(seed, -max_delta, max_delta))


def stateless_random_contrast(
    image: Any, lower: Any, upper: Any, seed: Any
) -> Any:
    return adjust_contrast(image, _factor(seed, lower, upper))


def stateless_random_saturation(
    image: Any, lower: Any, upper: Any, seed: Any = None
) -> Any:
    return adjust_saturation(image, _factor(seed, lower, upper))


def stateless_random_hue(image: Any, max_delta: Any, seed: Any) -> Any:
    return adjust_hue(image, _factor(seed, -max_delta, max_delta))


def stateless_random_flip_left_right(image: Any, seed: Any) -> Any:
    x = convert(image)
    return arrays.where(_factor(seed, 0.0, 1.0) < 0.5, flip_left_right(x), x)


def stateless_random_flip_up_down(image: Any, seed: Any) -> Any:
    x = convert(image)
    return arrays.where(_factor(seed, 0.0, 1.0) < 0.5, flip_up_down(x), x)


def stateless_random_crop(
    value: Any, size: Any, seed: Any, name: Any = None
) -> Tensor:
    """A part of `value` of that size, from a place that `seed` decides."""
    x = convert(value)
    dims = arrays._items(size, x.ndim)
    units = stateless_uniform([x.ndim], seed, dtype="float64")
    starts = [
        arrays.cast(
            units[i] * arrays.cast(arrays.shape(x)[i] - dim + 1, "float64"),
            "int32",
        )
        for i, dim in enumerate(dims)
    ]
    return arrays.slice_(x, starts, dims)
