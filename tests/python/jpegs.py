"""JPEG files as Pillow meets them, and some that it does not like."""

import io

import numpy as np
from PIL import Image


def picture(height, width, channels=3, seed=0):
    """Smooth colours with edges and noise."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width]
    waves = [
        127 + 127 * np.sin(x / (3 + 5 * c) + y / (7 + c)) for c in range(3)
    ]
    pixels = np.stack(waves[:channels], axis=-1)
    pixels += rng.normal(0, 12, pixels.shape)
    pixels[height // 3 : height // 2, : width // 2] = 250
    pixels = pixels.clip(0, 255).astype(np.uint8)
    return pixels[..., 0] if channels == 1 else pixels


def jpeg(pixels, **options):
    """The bytes of a file; options are those of Image.save."""
    image = pixels if isinstance(pixels, Image.Image) else None
    file = io.BytesIO()
    (image or Image.fromarray(pixels)).save(file, "JPEG", **options)
    return file.getvalue()


def segment(marker, data):
    return b"\xff" + bytes([marker]) + (len(data) + 2).to_bytes(2, "big") + data


def with_segment(file, marker, data):
    """`file` with another segment after its first bytes."""
    return file[:2] + segment(marker, data) + file[2:]


def exif(orientation=6):
    found = Image.Exif()
    found[0x0112] = orientation
    return found.tobytes()


SIZES = [
    (1, 1), (1, 9), (9, 1), (2, 3), (7, 8), (8, 8), (15, 17), (16, 16),
    (33, 31), (64, 48), (97, 55), (40, 130), (130, 40),
]  # fmt: skip


def plain():
    """Files that the engine knows."""
    files = []
    for i, (height, width) in enumerate(SIZES):
        for subsampling in ("4:4:4", "4:2:2", "4:2:0"):
            files.append(
                jpeg(
                    picture(height, width, seed=i),
                    quality=(95, 75, 30)[i % 3],
                    subsampling=subsampling,
                    progressive=i % 2 == 1,
                    optimize=i % 3 == 1,
                )
            )
        files.append(jpeg(picture(height, width, 1, seed=i), quality=80))
    photo = picture(70, 90)
    files += [
        jpeg(photo, restart_marker_blocks=3),
        jpeg(photo, restart_marker_rows=1, progressive=True),
        jpeg(photo, exif=exif()),
        jpeg(photo, icc_profile=b"profile" * 30),
        jpeg(photo, comment="a comment", dpi=(300, 300)),
        jpeg(photo, keep_rgb=True),
        jpeg(photo, quality=100),
        jpeg(photo, quality=1),
        jpeg(photo) + b"after the end",
        with_segment(jpeg(photo), 0xED, photoshop()),
        with_segment(jpeg(photo), 0xE7, b"whatever"),
        with_segment(jpeg(photo), 0xE1, b"http://ns.adobe.com/xap/1.0/\0<x/>"),
    ]
    return files


def photoshop():
    resource = b"8BIM\x04\x04\0\0" + (5).to_bytes(4, "big") + b"12345\0"
    return b"Photoshop 3.0\0" + resource


def unusual():
    """Files that Pillow reads and the engine leaves to it."""
    photo = picture(30, 40)
    made = {}
    for format in ("PNG", "GIF", "BMP", "WEBP", "TIFF"):
        file = io.BytesIO()
        Image.fromarray(photo).save(file, format)
        made[format] = file.getvalue()
    file = io.BytesIO()
    Image.fromarray(photo).convert("P").save(file, "PNG", transparency=3)
    made["palette"] = file.getvalue()
    made["CMYK"] = jpeg(Image.fromarray(photo).convert("CMYK"))
    plain = jpeg(photo)
    made["junk between segments"] = plain[:2] + b"\xff\xff" + plain[2:]
    made["short EXIF"] = with_segment(plain, 0xE1, b"Exif\0\0II*\0\x08\0\0\0")
    made["two images"] = mpo(photo)
    return made


def damaged(count, seed=0):
    """Files with a few bytes that are wrong."""
    rng = np.random.default_rng(seed)
    plain = [
        jpeg(picture(40, 50), quality=60),
        jpeg(picture(40, 50), progressive=True),
        jpeg(picture(33, 20), restart_marker_blocks=2, exif=exif()),
    ]
    made = []
    for i in range(count):
        file = bytearray(plain[i % len(plain)])
        for at in rng.integers(0, len(file), rng.integers(1, 4)):
            file[at] = rng.choice([0, 255, file[at] ^ 1, rng.integers(256)])
        if rng.random() < 0.2:
            file = file[: rng.integers(len(file))]
        made.append(bytes(file))
    return made


def mpo(photo):
    file = io.BytesIO()
    image = Image.fromarray(photo)
    image.save(file, "MPO", save_all=True, append_images=[image])
    return file.getvalue()


def bad():
    """Files that Pillow refuses."""
    plain = jpeg(picture(64, 64), quality=95)
    return {
        "nothing": b"",
        "text": b"no image at all",
        "no end": plain[:-2],
        "truncated": plain[: len(plain) // 2],
        "header alone": plain[:30],
        "short JFIF": with_segment(plain, 0xE0, b"JFIF"),
        "short Adobe": with_segment(plain, 0xEE, b"Adobe"),
        "short ICC": with_segment(plain, 0xE2, b"ICC_PROFILE\0\1"),
        "unknown marker": plain[:2] + b"\xff\x05\0\2" + plain[2:],
    }
