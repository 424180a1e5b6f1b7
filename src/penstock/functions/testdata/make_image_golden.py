"""Writes image_golden.npz: what TensorFlow gives for images.

    python make_image_golden.py     (with tensorflow 2.21, pillow 12)

`cases` is JSON, a list of {"call", "args", "kwargs", "want", "tolerance"}: a
function of penstock.image, its arguments ("@name" is the array of that name),
and the result: the name of an array, or [dtype, shape, CRC-32] where it is
exact (of a written file, ["bytes", [length], CRC-32]), or null for an error.
`cuts` is JSON too: for every
length of a file, the result's CRC-32, or null for an error.
"""

import io
import itertools
import json
import os
import zlib
from pathlib import Path

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np
import tensorflow as tf
from PIL import Image

arrays = {}
cases = []
cuts = []


def keep(name, value):
    arrays[name] = np.asarray(value)
    return "@" + name


def file(name, contents):
    return keep(name, np.frombuffer(contents, np.uint8))


def photo(height, width, channels=3, seed=0):
    """Smooth noise at several scales: what photographs are to a codec."""
    random = np.random.default_rng(seed)
    out = np.zeros((height, width, channels))
    for size, weight in ((2, 90), (5, 60), (16, 30), (64, 8)):
        small = random.normal(size=(size, size, channels))
        big = tf.image.resize(small, (height, width), "bicubic").numpy()
        out += weight * big
    return np.clip(out + 128, 0, 255).astype(np.uint8)


def pil(pixels, kind, mode=None, **options):
    out = io.BytesIO()
    squeezed = pixels[:, :, 0] if pixels.shape[2] == 1 else pixels
    Image.fromarray(squeezed, mode).save(out, kind, **options)
    return out.getvalue()


def value_of(argument):
    if isinstance(argument, str) and argument.startswith("@"):
        array = arrays[argument[1:]]
        if argument.startswith("@file_"):
            return array.tobytes()
        return tf.constant(array)
    return argument


def run(function, args, kwargs):
    try:
        return function(*map(value_of, args), **kwargs).numpy()
    except (tf.errors.OpError, TypeError, ValueError):
        return None


def case(call, function, args, kwargs=None, tolerance=0):
    kwargs = kwargs or {}
    as_tf = dict(kwargs)
    if isinstance(as_tf.get("dtype"), str):
        as_tf["dtype"] = tf.as_dtype(as_tf["dtype"])
    result = run(function, args, as_tf)
    want = None
    if isinstance(result, bytes):
        want = ["bytes", [len(result)], zlib.crc32(result)]
    elif result is not None and tolerance == 0:
        crc = zlib.crc32(result.tobytes())
        want = [str(result.dtype), list(result.shape), crc]
    elif result is not None:
        want = f"want_{len(cases)}"
        arrays[want] = result
    cases.append(
        {
            "call": call,
            "args": args,
            "kwargs": kwargs,
            "want": want,
            "tolerance": tolerance,
        }
    )


def decoding():
    jpegs = {}
    sizes = [(1, 1), (7, 5), (8, 16), (33, 47)]
    for height, width in sizes:
        pixels = photo(height, width)
        stem = f"{height}x{width}"
        jpegs[f"420_{stem}"] = pil(pixels, "JPEG", quality=85)
        jpegs[f"444_{stem}"] = pil(pixels, "JPEG", quality=90, subsampling=0)
    pixels = photo(33, 47)
    jpegs["422"] = pil(pixels, "JPEG", quality=80, subsampling=1)
    jpegs["gray"] = pil(pixels[:, :, :1], "JPEG", quality=85)
    jpegs["progressive"] = pil(pixels, "JPEG", quality=85, progressive=True)
    jpegs["cmyk"] = pil(photo(33, 47, 4), "JPEG", mode="CMYK", quality=85)
    exif = Image.Exif()
    exif[0x0112] = 6  # turned by a quarter
    jpegs["turned"] = pil(pixels, "JPEG", quality=85, exif=exif)
    for name, contents in jpegs.items():
        at = file(f"file_jpeg_{name}", contents)
        for channels in (0, 1, 3):
            case("decode_jpeg", tf.io.decode_jpeg, [at], {"channels": channels})
        case("decode_image", tf.io.decode_image, [at], {"channels": 3})
        case("extract_jpeg_shape", tf.io.extract_jpeg_shape, [at])
        case("is_jpeg", tf.io.is_jpeg, [at])
    for name in ("420_33x47", "422", "progressive", "cmyk", "gray"):
        at = f"@file_jpeg_{name}"
        for ratio in (2, 4, 8):
            case("decode_jpeg", tf.io.decode_jpeg, [at], {"ratio": ratio})
        for options in (
            {"fancy_upscaling": False},
            {"dct_method": "INTEGER_ACCURATE"},
            {"dct_method": "INTEGER_FAST"},
        ):
            case("decode_jpeg", tf.io.decode_jpeg, [at], options)
        for window in (
            [0, 0, 33, 47], [0, 0, 1, 1], [32, 46, 1, 1], [5, 7, 20, 30],
            [16, 16, 16, 16], [1, 33, 32, 14], [0, 0, 34, 47], [3, 3, 0, 4],
        ):  # fmt: skip
            crop = tf.io.decode_and_crop_jpeg
            case("decode_and_crop_jpeg", crop, [at, window])
    for dtype in ("uint16", "float32"):
        at = "@file_jpeg_420_33x47"
        case("decode_image", tf.io.decode_image, [at], {"dtype": dtype})

    gray, rgb = photo(9, 13, 1), photo(9, 13, 3)
    rgba = photo(9, 13, 4)
    wide = photo(9, 13, 3, seed=1).astype(np.uint16) * 255 + photo(9, 13)
    pngs = {
        "gray": pil(gray, "PNG"),
        "rgb": pil(rgb, "PNG"),
        "rgba": pil(rgba, "PNG"),
        "gray_alpha": pil(photo(9, 13, 2), "PNG", mode="LA"),
        "one": pil(rgb[:1, :1], "PNG"),
        "wide": tf.io.encode_png(wide).numpy(),
        "wide_gray": tf.io.encode_png(wide[:, :, :1]).numpy(),
        "wide_rgba": tf.io.encode_png(
            np.concatenate([wide, wide[:, :, :1]], 2)
        ).numpy(),
    }
    palette = Image.fromarray(rgb).quantize(13)
    for name, options in (("palette", {}), ("clear", {"transparency": 3})):
        out = io.BytesIO()
        palette.save(out, "PNG", **options)
        pngs[name] = out.getvalue()
    out = io.BytesIO()
    Image.fromarray(gray[:, :, 0]).convert("1").save(out, "PNG")
    pngs["bits"] = out.getvalue()
    for name, contents in pngs.items():
        at = file(f"file_png_{name}", contents)
        for channels, dtype in itertools.product(
            (0, 1, 3, 4), ("uint8", "uint16")
        ):
            options = {"channels": channels, "dtype": dtype}
            case("decode_png", tf.io.decode_png, [at], options)
        case("decode_image", tf.io.decode_image, [at], {"dtype": "float32"})
        case("decode_image", tf.io.decode_image, [at], {"dtype": "uint8"})

    bmps = {"gray": gray, "rgb": rgb, "rgba": rgba, "one": rgb[:1, :1]}
    for name, pixels in bmps.items():
        at = file(f"file_bmp_{name}", pil(pixels, "BMP"))
        case("decode_bmp", tf.io.decode_bmp, [at])
        case("decode_image", tf.io.decode_image, [at])
    out = io.BytesIO()
    frames = [Image.fromarray(photo(9, 13, seed=s)) for s in range(3)]
    frames[0].save(out, "GIF", save_all=True, append_images=frames[1:])
    at = file("file_gif_three", out.getvalue())
    case("decode_gif", tf.io.decode_gif, [at])
    options = {"expand_animations": False}
    case("decode_image", tf.io.decode_image, [at], options)
    for name, pixels in {"rgb": rgb, "rgba": rgba}.items():
        for lossless in (False, True):
            contents = pil(pixels, "WEBP", lossless=lossless)
            at = file(f"file_webp_{name}_{lossless}", contents)
            case("decode_webp", tf.io.decode_webp, [at])
    at = file("file_text", b"a,b,c\n1,2,3\n")
    for kind in ("jpeg", "png", "gif", "bmp", "image", "webp"):
        function = getattr(tf.io, f"decode_{kind}")
        case(f"decode_{kind}", function, [at])


def encoding():
    jpeg = [{"quality": quality} for quality in (0, 1, 10, 50, 75, 95, 100)]
    jpeg += [
        {},
        {"progressive": True},
        {"optimize_size": True, "quality": 40},
        {"chroma_downsampling": False},
        {"density_unit": "cm", "x_density": 10, "y_density": 20},
        {"xmp_metadata": "<x:xmpmeta/>"},
    ]
    sizes = [(1, 1), (1, 9), (9, 1), (7, 5), (8, 16), (33, 47)]
    for (height, width), channels in itertools.product(sizes, (1, 3)):
        pixels = photo(height, width, channels, seed=4)
        at = keep(f"write_{height}x{width}x{channels}", pixels)
        for options in jpeg:
            case("encode_jpeg", tf.io.encode_jpeg, [at], options)
    for channels in (1, 3):
        at = f"@write_7x5x{channels}"
        for form in ("", "grayscale", "rgb"):
            case("encode_jpeg", tf.io.encode_jpeg, [at], {"format": form})
    for (height, width), channels in itertools.product(sizes, (1, 2, 3, 4)):
        stem = f"{height}x{width}x{channels}"
        pixels = photo(height, width, channels, seed=4)
        wide = pixels.astype(np.uint16) * 251 + pixels[::-1] // 2
        for at in (
            keep(f"write_{stem}", pixels),
            keep(f"write_wide_{stem}", wide),
        ):
            for level in (-1, 0, 1, 6, 9):
                options = {"compression": level}
                case("encode_png", tf.io.encode_png, [at], options)
    bad = {
        "flat": photo(4, 5)[:, :, 0],
        "empty": photo(4, 5)[:0],
        "five": photo(4, 5, 5),
        "none": photo(4, 5)[:, :, :0],
        "floats": photo(4, 5).astype(np.float32),
    }
    for name, pixels in bad.items():
        at = keep(f"write_bad_{name}", pixels)
        for kind in ("jpeg", "png"):
            case(f"encode_{kind}", getattr(tf.io, f"encode_{kind}"), [at])
    for options in (
        {"quality": 101},
        {"quality": -1},
        {"format": "cmyk"},
        {"density_unit": "mile"},
    ):
        case("encode_jpeg", tf.io.encode_jpeg, ["@write_7x5x3"], options)
    for level in (-2, 10):
        options = {"compression": level}
        case("encode_png", tf.io.encode_png, ["@write_7x5x3"], options)
    case("encode_jpeg", tf.io.encode_jpeg, ["@write_7x5x2"])
    case("encode_jpeg", tf.io.encode_jpeg, ["@write_wide_7x5x3"])


def truncation():
    tiny = photo(16, 16)
    files = {
        "jpeg": (pil(tiny, "JPEG", quality=30), tf.io.decode_jpeg),
        "png": (pil(tiny[:5, :4], "PNG"), tf.io.decode_png),
        "bmp": (pil(tiny[:3, :3], "BMP"), tf.io.decode_bmp),
    }
    # Not try_recover_truncated, nor progressive files: some of their cuts make
    # TensorFlow loop for ever.
    options = [{}]
    recover = [{"acceptable_fraction": 0.4}]
    for name, (contents, function) in files.items():
        at = file(f"file_cut_{name}", contents)
        for kwargs in options + recover * (name == "jpeg"):
            results = []
            for size in range(len(contents) + 1):
                try:
                    got = function(contents[:size], **kwargs).numpy()
                    results.append(zlib.crc32(got.tobytes()))
                except tf.errors.InvalidArgumentError:
                    results.append(None)
            call = f"decode_{name.split('_')[0]}"
            cuts.append(
                {"call": call, "file": at, "kwargs": kwargs, "want": results}
            )


def resizing():
    images = {
        "bytes": photo(17, 23),
        "floats": photo(17, 23).astype(np.float32) / 7,
        "gray": photo(17, 23, 1),
        "four": photo(17, 23, 4),
        "one": photo(1, 1),
        "several": np.stack([photo(6, 5, seed=s) for s in range(3)]),
        "words": photo(9, 8).astype(np.int32) * 1000,
    }
    methods = (
        "bilinear", "nearest", "bicubic", "area", "lanczos3", "lanczos5",
        "gaussian", "mitchellcubic",
    )  # fmt: skip
    sizes = ([5, 29], [17, 22], [40, 11], [1, 1], [16, 24])
    for name, image in images.items():
        at = keep(f"image_{name}", image)
        for method, antialias in itertools.product(methods, (False, True)):
            exact = method == "nearest" or (
                method == "bilinear" and not antialias
            )
            tolerance = 0 if exact else 2e-5 * float(image.max())
            options = {"method": method, "antialias": antialias}
            for size in sizes if name == "bytes" else sizes[:1]:
                args = [at, size]
                case("resize", tf.image.resize, args, options, tolerance)
    for size in ([8, 8], [40, 30], [3, 100]):
        case(
            "resize",
            tf.image.resize,
            ["@image_bytes", size],
            {"preserve_aspect_ratio": True},
        )
    case("resize", tf.image.resize, ["@image_bytes", [0, 4]])


def geometry():
    for name in ("bytes", "floats", "several"):
        at = f"@image_{name}"
        for call, args in (
            ("crop_to_bounding_box", [1, 2, 3, 2]),
            ("crop_to_bounding_box", [0, 0, 99, 2]),
            ("pad_to_bounding_box", [3, 4, 30, 40]),
            ("pad_to_bounding_box", [30, 4, 30, 40]),
            ("resize_with_crop_or_pad", [5, 40]),
            ("resize_with_crop_or_pad", [40, 4]),
            ("resize_with_crop_or_pad", [0, 4]),
            ("central_crop", [0.5]),
            ("central_crop", [0.87]),
            ("central_crop", [0.0]),
            ("flip_left_right", []),
            ("flip_up_down", []),
            ("transpose", []),
            ("rot90", []),
            ("rot90", [2]),
            ("rot90", [-1]),
        ):
            case(call, getattr(tf.image, call), [at, *args])


def colours():
    keep("image_units", photo(17, 23).astype(np.float32) / 255)
    keep("image_shorts", photo(9, 8).astype(np.int16) * 99)
    grays = np.repeat(photo(4, 5, 1), 3, 2)
    keep("image_grays", grays.astype(np.float32) / 255)
    for name, call, number in itertools.product(
        ("bytes", "units", "several", "grays"),
        (
            "adjust_brightness",
            "adjust_contrast",
            "adjust_saturation",
            "adjust_hue",
        ),
        (-0.3, 0.2, 1.7),
    ):
        if number < 0 and call in ("adjust_contrast", "adjust_saturation"):
            continue
        if number > 1 and call == "adjust_hue":
            continue
        # Truncation to integers makes a rounding error a whole step.
        tolerance = 1e-5 if name in ("units", "grays") else 1
        args = [f"@image_{name}", number]
        case(call, getattr(tf.image, call), args, {}, tolerance)
    for name in ("units", "grays"):
        at = f"@image_{name}"
        case("rgb_to_hsv", tf.image.rgb_to_hsv, [at], {}, 1e-6)
        case("hsv_to_rgb", tf.image.hsv_to_rgb, [at], {}, 1e-6)
    for name in ("bytes", "units", "several", "shorts"):
        at = f"@image_{name}"
        tolerance = 1e-6 if name == "units" else 1
        gray = tf.image.rgb_to_grayscale
        case("rgb_to_grayscale", gray, [at], {}, tolerance)
        standard = tf.image.per_image_standardization
        case("per_image_standardization", standard, [at], {}, 2e-5)
        for dtype, saturate in itertools.product(
            ("uint8", "int8", "uint16", "int16", "int32", "float32", "float64"),
            (False, True),
        ):
            if (name, dtype) == ("units", "int32"):
                continue  # floats cannot hold its ends
            options = {"dtype": dtype, "saturate": saturate}
            convert = tf.image.convert_image_dtype
            case("convert_image_dtype", convert, [at], options)
    one = tf.image.grayscale_to_rgb
    case("grayscale_to_rgb", one, ["@image_gray"])
    case("grayscale_to_rgb", one, ["@image_bytes"])


decoding()
encoding()
truncation()
resizing()
geometry()
colours()
arrays["cases"] = np.frombuffer(json.dumps(cases).encode(), np.uint8)
arrays["cuts"] = np.frombuffer(json.dumps(cuts).encode(), np.uint8)
path = Path(__file__).with_name("image_golden.npz")
np.savez_compressed(path, **arrays)
print(f"{len(cases)} cases, {path.stat().st_size} bytes")
