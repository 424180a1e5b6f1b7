"""The native functions of penstock.image.

Made from the engine's list by `penstock functions --python image`; not edited.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock import _record
from penstock._dtypes import DType

__all__ = [
    "adjust_brightness",
    "adjust_contrast",
    "adjust_hue",
    "adjust_saturation",
    "central_crop",
    "convert_image_dtype",
    "crop_to_bounding_box",
    "decode_and_crop_jpeg",
    "decode_bmp",
    "decode_gif",
    "decode_image",
    "decode_jpeg",
    "decode_png",
    "decode_random_resized_crop",
    "decode_resized",
    "decode_webp",
    "encode_jpeg",
    "encode_png",
    "extract_jpeg_shape",
    "flip_left_right",
    "flip_up_down",
    "grayscale_to_rgb",
    "hsv_to_rgb",
    "is_jpeg",
    "normalize",
    "pad_to_bounding_box",
    "per_image_standardization",
    "random_crop",
    "random_flip_left_right",
    "random_flip_up_down",
    "random_resized_crop",
    "resize",
    "resize_with_crop_or_pad",
    "rgb_to_grayscale",
    "rgb_to_hsv",
    "rot90",
    "transpose",
]


def adjust_brightness(image: Any, delta: Any) -> Any:
    """An image with a number added to each value, in its own dtype.

    Example:
        >>> image = np.full((1, 1, 1), 100, np.uint8)
        >>> int(ps.image.adjust_brightness(image, 0.1)[0, 0, 0])
        125

    Args:
        image: height x width x channels, or several of them along a first
            dimension. Floats from 0 to 1; integers stand for them, the largest
            of their dtype for 1.
        delta: What is added, from -1 to 1.
    """
    return _record.call("image.adjust_brightness", (image, delta))


def adjust_contrast(image: Any, contrast_factor: Any) -> Any:
    """An image with its distances from each channel's mean scaled.

    Example:
        >>> image = np.array([[[0.25], [0.75]]])
        >>> ps.image.adjust_contrast(image, 2.0)[:, :, 0]
        array([[0., 1.]])

    Args:
        image: height x width x channels, or several of them along a first
            dimension. Floats from 0 to 1; integers stand for them, the largest
            of their dtype for 1.
        contrast_factor: 1 changes nothing.
    """
    return _record.call("image.adjust_contrast", (image, contrast_factor))


def adjust_hue(image: Any, delta: Any) -> Any:
    """An RGB image with its hues turned.

    Example:
        >>> image = np.array([[[1.0, 0.0, 0.0]]])
        >>> ps.image.adjust_hue(image, 0.5)
        array([[[0., 1., 1.]]])

    Args:
        image: height x width x channels, or several of them along a first
            dimension. Floats from 0 to 1; integers stand for them, the largest
            of their dtype for 1.
        delta: From -1 to 1, which are whole turns.
    """
    return _record.call("image.adjust_hue", (image, delta))


def adjust_saturation(image: Any, saturation_factor: Any) -> Any:
    """An RGB image with its saturation scaled.

    Example:
        >>> image = np.array([[[1.0, 0.5, 0.0]]])
        >>> ps.image.adjust_saturation(image, 0.0)
        array([[[1., 1., 1.]]])

    Args:
        image: height x width x channels, or several of them along a first
            dimension. Floats from 0 to 1; integers stand for them, the largest
            of their dtype for 1.
        saturation_factor: 1 changes nothing.
    """
    return _record.call("image.adjust_saturation", (image, saturation_factor))


def central_crop(image: Any, central_fraction: float) -> Any:
    """The middle of an image.

    Example:
        >>> ps.image.central_crop(np.zeros((8, 6, 3)), 0.5).shape
        (4, 4, 3)

    Args:
        image: height x width x channels, or several of them along a first
            dimension.
        central_fraction: The part of height and width to keep; as many
            pixels go on either side.
    """
    return _record.call(
        "image.central_crop",
        (image,),
        {
            "central_fraction": central_fraction,
        },
    )


def convert_image_dtype(image: Any, dtype: Any, saturate: bool = False) -> Any:
    """An image in another dtype, scaled so that its range stays.

    Example:
        >>> image = np.array([[[0, 255]]], np.uint8)
        >>> ps.image.convert_image_dtype(image, ps.float32)
        array([[[0., 1.]]], dtype=float32)

    Args:
        image: height x width x channels, or several of them along a first
            dimension. Floats from 0 to 1; integers stand for them, the largest
            of their dtype for 1.
        dtype: That of the result.
        saturate: Integers out of the result's range become its ends instead
            of wrapping around; floats always do.
    """
    return _record.call(
        "image.convert_image_dtype",
        (image,),
        {
            "dtype": DType.of(dtype),
            "saturate": saturate,
        },
    )


def crop_to_bounding_box(
    image: Any,
    offset_height: int,
    offset_width: int,
    target_height: int,
    target_width: int,
) -> Any:
    """A part of an image.

    Example:
        >>> image = np.arange(6).reshape(2, 3, 1)
        >>> ps.image.crop_to_bounding_box(image, 1, 1, 1, 2)[:, :, 0]
        array([[4, 5]])

    Args:
        image: height x width x channels, or several of them along a first
            dimension.
        offset_height: The first row.
        offset_width: The first column.
        target_height: Rows of the result.
        target_width: Columns of the result.
    """
    return _record.call(
        "image.crop_to_bounding_box",
        (image,),
        {
            "offset_height": offset_height,
            "offset_width": offset_width,
            "target_height": target_height,
            "target_width": target_width,
        },
    )


def decode_and_crop_jpeg(
    contents: Any,
    crop_window: Any,
    channels: int = 0,
    ratio: int = 1,
    fancy_upscaling: bool = True,
    try_recover_truncated: bool = False,
    acceptable_fraction: float = 1.0,
    dct_method: str = "",
) -> Any:
    """A part of a JPEG file's pixels; the rest is not decoded.

    Example:
        >>> contents = ps.image.encode_jpeg(np.zeros((9, 9, 3), np.uint8))
        >>> ps.image.decode_and_crop_jpeg(contents, (1, 2, 3, 4)).shape
        (3, 4, 3)

    Args:
        contents: The bytes of a file.
        crop_window: y, x, height and width, in pixels of the result.
        channels: Those of the result: 1 (gray), 3 (RGB), or 0: the file's
            own.
        ratio: 1, 2, 4 or 8: height and width are divided by it, which is
            much faster.
        fancy_upscaling: Smooths colours that were stored at half the size.
        try_recover_truncated: Fills what a truncated file lacks, instead of
            an error.
        acceptable_fraction: The part of a truncated file's rows that is
            enough; the rest is black.
        dct_method: "INTEGER_FAST", as if not given, or "INTEGER_ACCURATE".
    """
    return _record.call(
        "image.decode_and_crop_jpeg",
        (contents, crop_window),
        {
            "channels": channels,
            "ratio": ratio,
            "fancy_upscaling": fancy_upscaling,
            "try_recover_truncated": try_recover_truncated,
            "acceptable_fraction": acceptable_fraction,
            "dct_method": dct_method,
        },
    )


def decode_bmp(contents: Any, channels: int = 0) -> Any:
    """The pixels of a BMP file: height x width x channels of uint8.

    Example:
        >>> head = b"BM" + bytes(8) + b"\\x36" + bytes(7)
        >>> size = b"\\1\\0\\0\\0\\1\\0\\0\\0\\1\\0\\x18" + bytes(25)
        >>> ps.image.decode_bmp(head + size + b"\\3\\2\\1\\0")
        array([[[1, 2, 3]]], dtype=uint8)

    Args:
        contents: The bytes of a file.
        channels: Those of the result; 0 means the file's own.
    """
    return _record.call("image.decode_bmp", (contents,), {"channels": channels})


def decode_gif(contents: Any) -> Any:
    """The frames of a GIF file: frames x height x width x 3 of uint8.

    Example:
        >>> gif = (b"GIF89a\\1\\0\\1\\0\\x80\\0\\0\\7\\x08\\x09\\0\\0\\0"
        ...        b",\\0\\0\\0\\0\\1\\0\\1\\0\\0\\2\\2D\\1\\0;")
        >>> ps.image.decode_gif(gif)
        array([[[[7, 8, 9]]]], dtype=uint8)

    Args:
        contents: The bytes of a file.
    """
    return _record.call("image.decode_gif", (contents,))


def decode_image(
    contents: Any,
    channels: int = 0,
    dtype: Any = "uint8",
    expand_animations: bool = False,
) -> Any:
    """The pixels of a JPEG, PNG, GIF, BMP or WebP file, told apart by its first bytes.

    Example:
        >>> contents = ps.image.encode_png(np.zeros((2, 3, 1), np.uint8))
        >>> ps.image.decode_image(contents).shape
        (2, 3, 1)

    Args:
        contents: The bytes of a file.
        channels: Those of the result; 0 means the file's own.
        dtype: That of the result: uint8, uint16 or float32 (0 to 1).
        expand_animations: Whether a GIF or WebP file gives all its frames,
            in a first dimension; otherwise the first frame.
    """
    return _record.call(
        "image.decode_image",
        (contents,),
        {
            "channels": channels,
            "dtype": DType.of(dtype),
            "expand_animations": expand_animations,
        },
    )


def decode_jpeg(
    contents: Any,
    channels: int = 0,
    ratio: int = 1,
    fancy_upscaling: bool = True,
    try_recover_truncated: bool = False,
    acceptable_fraction: float = 1.0,
    dct_method: str = "",
) -> Any:
    """The pixels of a JPEG file: height x width x channels of uint8.

    Example:
        >>> contents = ps.image.encode_jpeg(np.zeros((2, 3, 3), np.uint8))
        >>> ps.image.decode_jpeg(contents).shape
        (2, 3, 3)

    Args:
        contents: The bytes of a file.
        channels: Those of the result: 1 (gray), 3 (RGB), or 0: the file's
            own.
        ratio: 1, 2, 4 or 8: height and width are divided by it, which is
            much faster.
        fancy_upscaling: Smooths colours that were stored at half the size.
        try_recover_truncated: Fills what a truncated file lacks, instead of
            an error.
        acceptable_fraction: The part of a truncated file's rows that is
            enough; the rest is black.
        dct_method: "INTEGER_FAST", as if not given, or "INTEGER_ACCURATE".
    """
    return _record.call(
        "image.decode_jpeg",
        (contents,),
        {
            "channels": channels,
            "ratio": ratio,
            "fancy_upscaling": fancy_upscaling,
            "try_recover_truncated": try_recover_truncated,
            "acceptable_fraction": acceptable_fraction,
            "dct_method": dct_method,
        },
    )


def decode_png(contents: Any, channels: int = 0, dtype: Any = "uint8") -> Any:
    """The pixels of a PNG file: height x width x channels.

    Example:
        >>> contents = ps.image.encode_png(np.zeros((2, 3, 1), np.uint8))
        >>> ps.image.decode_png(contents, channels=3).shape
        (2, 3, 3)

    Args:
        contents: The bytes of a file.
        channels: Those of the result; 0 means the file's own.
        dtype: That of the result: uint8 or uint16.
    """
    return _record.call(
        "image.decode_png",
        (contents,),
        {
            "channels": channels,
            "dtype": DType.of(dtype),
        },
    )


def decode_random_resized_crop(
    contents: Any,
    size: Any,
    scale: Sequence[float] = (0.08, 1.0),
    ratio: Sequence[float] = (3 / 4, 4 / 3),
    channels: int = 3,
    antialias: bool = False,
    seed: int | None = None,
) -> Any:
    """random_resized_crop of a JPEG file, of which only that part is decoded.

    The result is float32 from 0 to 255: divide it by 255 before colours are
    changed, and for what was trained on 0 to 1.

    Example:
        >>> contents = ps.image.encode_jpeg(np.zeros((9, 9, 3), np.uint8))
        >>> ps.image.decode_random_resized_crop(contents, (4, 4)).shape
        (4, 4, 3)

    Args:
        contents: The bytes of a JPEG file.
        size: Height and width of the result.
        scale: The part of the image's area, from and to.
        ratio: Width by height of the part, from and to.
        channels: Those of the result: 1 (gray), 3 (RGB), or 0: the file's
            own.
        antialias: Averages over all pixels that a smaller image leaves out.
        seed: If every random call of a function has one, all runs of a
            program are equal; left out, one is drawn for each dataset.
    """
    return _record.call(
        "image.decode_random_resized_crop",
        (contents, size),
        {
            "scale": scale,
            "ratio": ratio,
            "channels": channels,
            "antialias": antialias,
            "seed": seed,
        },
    )


def decode_resized(
    contents: Any,
    size: Any,
    channels: int = 3,
    method: str = "bilinear",
    antialias: bool = False,
) -> Any:
    """A JPEG file's pixels at another size, decoded at 1/2, 1/4 or 1/8 if possible.

    The result is float32 from 0 to 255. It is decoded at the smallest of these
    sizes that is not below the one asked for, and resized the rest of the way.

    Example:
        >>> contents = ps.image.encode_jpeg(np.zeros((9, 9, 3), np.uint8))
        >>> ps.image.decode_resized(contents, (2, 4)).shape
        (2, 4, 3)

    Args:
        contents: The bytes of a JPEG file.
        size: Height and width of the result.
        channels: Those of the result: 1 (gray), 3 (RGB), or 0: the file's
            own.
        method: "bilinear", "nearest", "bicubic", "area", "lanczos3",
            "lanczos5", "gaussian" or "mitchellcubic".
        antialias: Averages over all pixels that a smaller image leaves out.
    """
    return _record.call(
        "image.decode_resized",
        (contents, size),
        {
            "channels": channels,
            "method": method,
            "antialias": antialias,
        },
    )


def decode_webp(contents: Any, channels: int = 0) -> Any:
    """The frames of a WebP file: frames x height x width x channels.

    Example:
        >>> webp = (b"RIFF\\x1a\\0\\0\\0WEBPVP8L\\x0d\\0\\0\\0\\x2f\\0\\0\\0\\x10"
        ...         b"\\x07\\x10\\x11\\x11\\x88\\x88\\xfe\\x07\\0")
        >>> ps.image.decode_webp(webp).shape
        (1, 1, 1, 4)

    Args:
        contents: The bytes of a file.
        channels: Those of the result; 0 means the file's own.
    """
    return _record.call(
        "image.decode_webp",
        (contents,),
        {
            "channels": channels,
        },
    )


def encode_jpeg(
    image: Any,
    format: str = "",
    quality: int = 95,
    progressive: bool = False,
    optimize_size: bool = False,
    chroma_downsampling: bool = True,
    density_unit: str = "in",
    x_density: int = 300,
    y_density: int = 300,
    xmp_metadata: str = "",
) -> Any:
    """An image as the bytes of a JPEG file.

    Example:
        >>> ps.image.encode_jpeg(np.zeros((1, 1, 3), np.uint8))[:3]
        b'\\xff\\xd8\\xff'

    Args:
        image: height x width x 1 or 3, of uint8.
        format: "grayscale" or "rgb"; if not given, by the number of
            channels.
        quality: From 0 to 100.
        progressive: Coarse first, then finer.
        optimize_size: Fewer bytes for more time; the pixels stay the same.
        chroma_downsampling: Stores colours at half the size.
        density_unit: "in" or "cm".
        x_density: Pixels per unit.
        y_density: Pixels per unit.
        xmp_metadata: Put into the file as it is.
    """
    return _record.call(
        "image.encode_jpeg",
        (image,),
        {
            "format": format,
            "quality": quality,
            "progressive": progressive,
            "optimize_size": optimize_size,
            "chroma_downsampling": chroma_downsampling,
            "density_unit": density_unit,
            "x_density": x_density,
            "y_density": y_density,
            "xmp_metadata": xmp_metadata,
        },
    )


def encode_png(image: Any, compression: int = -1) -> Any:
    """An image as the bytes of a PNG file.

    Example:
        >>> ps.image.encode_png(np.zeros((1, 1, 3), np.uint8))[:4]
        b'\\x89PNG'

    Args:
        image: height x width x 1 to 4, of uint8 or uint16.
        compression: From 0 (none) to 9; -1 means zlib's own choice.
    """
    return _record.call(
        "image.encode_png",
        (image,),
        {
            "compression": compression,
        },
    )


def extract_jpeg_shape(contents: Any, output_type: Any = "int32") -> Any:
    """Height, width and channels that a JPEG file's header says.

    Example:
        >>> contents = ps.image.encode_jpeg(np.zeros((2, 3, 3), np.uint8))
        >>> ps.image.extract_jpeg_shape(contents)
        array([2, 3, 3], dtype=int32)

    Args:
        contents: The bytes of a file.
        output_type: int32 or int64.
    """
    return _record.call(
        "image.extract_jpeg_shape",
        (contents,),
        {
            "output_type": DType.of(output_type),
        },
    )


def flip_left_right(image: Any) -> Any:
    """An image with its columns in reverse order.

    Example:
        >>> ps.image.flip_left_right(np.array([[[1], [2]]]))[:, :, 0]
        array([[2, 1]])

    Args:
        image: height x width x channels, or several of them along a first
            dimension.
    """
    return _record.call("image.flip_left_right", (image,))


def flip_up_down(image: Any) -> Any:
    """An image with its rows in reverse order.

    Example:
        >>> ps.image.flip_up_down(np.array([[[1]], [[2]]]))[:, :, 0]
        array([[2],
               [1]])

    Args:
        image: height x width x channels, or several of them along a first
            dimension.
    """
    return _record.call("image.flip_up_down", (image,))


def grayscale_to_rgb(image: Any) -> Any:
    """One channel as three equal ones.

    Example:
        >>> ps.image.grayscale_to_rgb(np.array([[[7]]]))
        array([[[7, 7, 7]]])

    Args:
        image: height x width x 1, or several of them along a first
            dimension.
    """
    return _record.call("image.grayscale_to_rgb", (image,))


def hsv_to_rgb(image: Any) -> Any:
    """RGB colours of hue, saturation and value.

    Example:
        >>> ps.image.hsv_to_rgb(np.array([[[0.0, 1.0, 0.5]]]))
        array([[[0.5, 0. , 0. ]]])

    Args:
        image: height x width x 3 of floats from 0 to 1, or several of them
            along a first dimension.
    """
    return _record.call("image.hsv_to_rgb", (image,))


def is_jpeg(contents: Any) -> Any:
    """Whether the bytes begin as those of a JPEG file do.

    Example:
        >>> bool(ps.image.is_jpeg(b"GIF89a"))
        False

    Args:
        contents: The bytes of a file.
    """
    return _record.call("image.is_jpeg", (contents,))


def normalize(image: Any, mean: Sequence[float], std: Sequence[float]) -> Any:
    """(image - mean) / std, channel by channel, as float32.

    Example:
        >>> image = np.array([[[10, 20, 30]]], np.uint8)
        >>> ps.image.normalize(image, (0, 10, 20), (10, 10, 10))
        array([[[1., 1., 1.]]], dtype=float32)

    Args:
        image: height x width x channels, or several of them along a first
            dimension.
        mean: Of each channel, in the image's own units: of uint8, from 0 to
            255.
        std: The standard deviation of each channel, in the same units.
    """
    return _record.call("image.normalize", (image,), {"mean": mean, "std": std})


def pad_to_bounding_box(
    image: Any,
    offset_height: int,
    offset_width: int,
    target_height: int,
    target_width: int,
) -> Any:
    """An image with zeros around it.

    Example:
        >>> image = np.ones((1, 1, 1), np.int64)
        >>> ps.image.pad_to_bounding_box(image, 0, 1, 1, 3)[:, :, 0]
        array([[0, 1, 0]])

    Args:
        image: height x width x channels, or several of them along a first
            dimension.
        offset_height: Rows of zeros above.
        offset_width: Columns of zeros on the left.
        target_height: Rows of the result.
        target_width: Columns of the result.
    """
    return _record.call(
        "image.pad_to_bounding_box",
        (image,),
        {
            "offset_height": offset_height,
            "offset_width": offset_width,
            "target_height": target_height,
            "target_width": target_width,
        },
    )


def per_image_standardization(image: Any) -> Any:
    """Each image with mean 0 and variance 1 (flat ones: less), as float32.

    Example:
        >>> image = np.array([[[1.0], [3.0]]])
        >>> ps.image.per_image_standardization(image)[:, :, 0]
        array([[-1.,  1.]], dtype=float32)

    Args:
        image: height x width x channels, or several of them along a first
            dimension.
    """
    return _record.call("image.per_image_standardization", (image,))


def random_crop(image: Any, size: Any, seed: int | None = None) -> Any:
    """A part of an image (of several, the same), any place as likely.

    Example:
        >>> ps.image.random_crop(np.zeros((8, 6, 3)), (4, 4)).shape
        (4, 4, 3)

    Args:
        image: height x width x channels, or several of them along a first
            dimension.
        size: Height and width of the result.
        seed: If every random call of a function has one, all runs of a
            program are equal; left out, one is drawn for each dataset.
    """
    return _record.call("image.random_crop", (image, size), {"seed": seed})


def random_flip_left_right(image: Any, seed: int | None = None) -> Any:
    """flip_left_right of each image with a probability of 1/2.

    Example:
        >>> ps.image.random_flip_left_right(np.zeros((2, 3, 1))).shape
        (2, 3, 1)

    Args:
        image: height x width x channels, or several of them along a first
            dimension.
        seed: If every random call of a function has one, all runs of a
            program are equal; left out, one is drawn for each dataset.
    """
    return _record.call(
        "image.random_flip_left_right",
        (image,),
        {
            "seed": seed,
        },
    )


def random_flip_up_down(image: Any, seed: int | None = None) -> Any:
    """flip_up_down of each image with a probability of 1/2.

    Example:
        >>> ps.image.random_flip_up_down(np.zeros((2, 3, 1))).shape
        (2, 3, 1)

    Args:
        image: height x width x channels, or several of them along a first
            dimension.
        seed: If every random call of a function has one, all runs of a
            program are equal; left out, one is drawn for each dataset.
    """
    return _record.call("image.random_flip_up_down", (image,), {"seed": seed})


def random_resized_crop(
    image: Any,
    size: Any,
    scale: Sequence[float] = (0.08, 1.0),
    ratio: Sequence[float] = (3 / 4, 4 / 3),
    antialias: bool = False,
    seed: int | None = None,
) -> Any:
    """A part of an image, of random area, shape and place, resized.

    The result is float32 in the image's own range: of uint8, 0 to 255. Colours
    are changed before, or after a division by 255.

    Example:
        >>> image = np.zeros((9, 9, 3))
        >>> ps.image.random_resized_crop(image, (4, 4)).shape
        (4, 4, 3)

    Args:
        image: height x width x channels.
        size: Height and width of the result.
        scale: The part of the image's area, from and to.
        ratio: Width by height of the part, from and to.
        antialias: Averages over all pixels that a smaller image leaves out.
        seed: If every random call of a function has one, all runs of a
            program are equal; left out, one is drawn for each dataset.
    """
    return _record.call(
        "image.random_resized_crop",
        (image, size),
        {
            "scale": scale,
            "ratio": ratio,
            "antialias": antialias,
            "seed": seed,
        },
    )


def resize(
    images: Any,
    size: Any,
    method: str = "bilinear",
    preserve_aspect_ratio: bool = False,
    antialias: bool = False,
) -> Any:
    """Images of another size.

    The result is float32 in the images' own range: of uint8, 0 to 255. By
    method "nearest" it is of their own dtype.

    Example:
        >>> ps.image.resize(np.zeros((9, 9, 3)), (2, 4)).shape
        (2, 4, 3)

    Args:
        images: height x width x channels, or several of them along a first
            dimension.
        size: Height and width of the result.
        method: "bilinear", "nearest", "bicubic", "area", "lanczos3",
            "lanczos5", "gaussian" or "mitchellcubic".
        preserve_aspect_ratio: Keeps the proportions: the largest size
            within `size`.
        antialias: Averages over all pixels that a smaller image leaves out.
    """
    return _record.call(
        "image.resize",
        (images, size),
        {
            "method": method,
            "preserve_aspect_ratio": preserve_aspect_ratio,
            "antialias": antialias,
        },
    )


def resize_with_crop_or_pad(
    image: Any,
    target_height: int,
    target_width: int,
) -> Any:
    """The middle of an image, with zeros around it where it is too small.

    Example:
        >>> image = np.arange(6).reshape(2, 3, 1)
        >>> ps.image.resize_with_crop_or_pad(image, 2, 1)[:, :, 0]
        array([[1],
               [4]])

    Args:
        image: height x width x channels, or several of them along a first
            dimension.
        target_height: Rows of the result.
        target_width: Columns of the result.
    """
    return _record.call(
        "image.resize_with_crop_or_pad",
        (image,),
        {
            "target_height": target_height,
            "target_width": target_width,
        },
    )


def rgb_to_grayscale(image: Any) -> Any:
    """An RGB image as one channel of brightness, in its own dtype.

    Example:
        >>> ps.image.rgb_to_grayscale(np.ones((2, 3, 3), np.uint8)).shape
        (2, 3, 1)

    Args:
        image: height x width x channels, or several of them along a first
            dimension. Floats from 0 to 1; integers stand for them, the largest
            of their dtype for 1.
    """
    return _record.call("image.rgb_to_grayscale", (image,))


def rgb_to_hsv(image: Any) -> Any:
    """Hue, saturation and value, from 0 to 1, of RGB colours.

    Example:
        >>> ps.image.rgb_to_hsv(np.array([[[0.0, 0.5, 0.0]]]))[0, 0, 1:]
        array([1. , 0.5])

    Args:
        image: height x width x 3 of floats from 0 to 1, or several of them
            along a first dimension.
    """
    return _record.call("image.rgb_to_hsv", (image,))


def rot90(image: Any, k: int = 1) -> Any:
    """An image turned counter-clockwise by quarters.

    Example:
        >>> ps.image.rot90(np.array([[[1], [2]]]))[:, :, 0]
        array([[2],
               [1]])

    Args:
        image: height x width x channels, or several of them along a first
            dimension.
        k: How many quarters.
    """
    return _record.call("image.rot90", (image,), {"k": k})


def transpose(image: Any) -> Any:
    """An image with rows for columns.

    Example:
        >>> ps.image.transpose(np.array([[[1], [2]]]))[:, :, 0]
        array([[1],
               [2]])

    Args:
        image: height x width x channels, or several of them along a first
            dimension.
    """
    return _record.call("image.transpose", (image,))
