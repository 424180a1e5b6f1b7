"""The native functions of penstock.image.

Made from the engine's list by `penstock functions --python image`; not edited.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock import _record
from penstock._dtypes import DType

__all__ = [
    "decode_and_crop_jpeg",
    "decode_bmp",
    "decode_gif",
    "decode_image",
    "decode_jpeg",
    "decode_png",
    "decode_resized",
    "decode_webp",
    "encode_jpeg",
    "encode_png",
    "extract_jpeg_shape",
    "is_jpeg",
    "resize",
]


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

    Args:
        contents: The bytes of a file.
        channels: Those of the result; 0 means the file's own.
    """
    return _record.call("image.decode_bmp", (contents,), {"channels": channels})


def decode_gif(contents: Any) -> Any:
    """The frames of a GIF file: frames x height x width x 3 of uint8.

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
        expand_animations: Only False: of an animation, the first frame.
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


def decode_resized(
    contents: Any,
    size: Any,
    channels: int = 3,
    method: str = "bilinear",
    antialias: bool = False,
) -> Any:
    """A JPEG file's pixels at another size, as float32, decoded at 1/2, 1/4 or 1/8 where that is enough.

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


def is_jpeg(contents: Any) -> Any:
    """Whether the bytes begin as those of a JPEG file do.

    Example:
        >>> bool(ps.image.is_jpeg(b"GIF89a"))
        False

    Args:
        contents: The bytes of a file.
    """
    return _record.call("image.is_jpeg", (contents,))


def resize(
    images: Any,
    size: Any,
    method: str = "bilinear",
    preserve_aspect_ratio: bool = False,
    antialias: bool = False,
) -> Any:
    """Images of another size, as float32; of method "nearest", in their own dtype.

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
