"""Images in pipelines: bad files, randomness, rows of different sizes."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps

_FOLDER = Path(__file__).parents[2] / "src/penstock/functions/testdata"
_GOLDEN = dict(np.load(_FOLDER / "image_golden.npz"))
_FILES = {
    name: array.tobytes()
    for name, array in _GOLDEN.items()
    if name.startswith("file_") and name != "file_text"
}


def _image(height: int, width: int, seed: int = 0) -> np.ndarray:
    random = np.random.default_rng(seed)
    return random.integers(0, 256, (height, width, 3), np.uint8)


def _outcomes(dataset: ps.Dataset, count: int) -> list[Any]:
    """Shapes, or messages of errors."""
    rows = iter(dataset)
    found: list[Any] = []
    for _ in range(count):
        try:
            found.append(np.shape(next(rows)))
        except ps.InvalidArgumentError as error:
            found.append(str(error))
    return found


def test_a_bad_file_is_an_error_of_its_row_alone() -> None:
    good = ps.image.encode_jpeg(_image(5, 7))
    files = [good, b"", good[:200], b"no image", good]
    ds = ps.Dataset.from_list(files).map(ps.image.decode_jpeg)
    shapes = _outcomes(ds, 5)
    assert shapes[0] == shapes[4] == (5, 7, 3)
    for message in shapes[1:4]:
        assert "expected JPEG data" in message


@pytest.mark.parametrize("name", sorted(_FILES))
def test_damaged_bytes_are_pixels_or_errors_never_worse(name: str) -> None:
    contents = _FILES[name]
    random = np.random.default_rng(zlib.crc32(name.encode()))
    files = []
    for _ in range(60):
        damaged = bytearray(contents)
        for _ in range(random.integers(1, 4)):
            at = random.integers(len(damaged))
            damaged[at] = random.integers(256)
        files.append(bytes(damaged))
    function = ps.image.decode_image
    ds = ps.Dataset.from_list(files).map(lambda x: function(x))
    assert len(_outcomes(ds, len(files))) == len(files)


@pytest.mark.parametrize("name", sorted(_FILES))
def test_truncated_files_end(name: str) -> None:
    contents = _FILES[name]
    cuts = sorted({len(contents) * i // 50 for i in range(50)})
    files = [contents[:cut] for cut in cuts]
    ds = ps.Dataset.from_list(files).map(lambda x: ps.image.decode_image(x))
    found = _outcomes(ds, len(files))
    assert all(isinstance(each, str) for each in found[:40])
    if "jpeg" in name:
        ds = ps.Dataset.from_list(files).map(
            lambda x: ps.image.decode_jpeg(x, try_recover_truncated=True)
        )
        assert len(_outcomes(ds, len(files))) == len(files)


def _png_of(height: int, width: int) -> bytes:
    """A PNG whose header says so, and that has no pixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        crc = zlib.crc32(kind + data)
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", crc)
        )

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(b""))
        + chunk(b"IEND", b"")
    )


def _gif_of(height: int, width: int) -> bytes:
    return (
        b"GIF89a"
        + struct.pack("<HHBBB", 1, 1, 0x80, 0, 0)
        + bytes(6)
        + b"\x2c"
        + struct.pack("<HHHHB", 0, 0, width, height, 0)
        + b"\x02\x01\x00\x00;"
    )


def _bmp_of(height: int, width: int) -> bytes:
    head = struct.pack("<2sIHHI", b"BM", 54, 0, 0, 54)
    return head + struct.pack(
        "<IiiHHIIiiII", 40, width, height, 1, 24, *[0] * 6
    )


@pytest.mark.parametrize("make", [_png_of, _gif_of, _bmp_of])
@pytest.mark.parametrize("size", [(65500, 65500), (0, 5)])
def test_a_header_takes_no_memory(make: Any, size: tuple[int, int]) -> None:
    with pytest.raises(ps.InvalidArgumentError, match=r"2\^29|PNG data"):
        ps.image.decode_image(make(*size))


# Three frames of 2 x 3 pixels, each of one color: (50 i, i, 9).
ANIMATION = bytes.fromhex(
    "4749463839610300020081000000000900000000000000000021ff0b4e45545343415045"
    "322e30030100000021f90400010000002c00000000030002000008060001081c18100021"
    "f90401010001002c00000000030002008132010900000000000000000008060001081c18"
    "100021f90401010001002c00000000030002008164020900000000000000000008060001"
    "081c1810003b"
)


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32"])
def test_animations_may_be_expanded(dtype: str) -> None:
    first = ps.image.decode_image(ANIMATION, dtype=dtype)
    assert first.shape == (2, 3, 3)
    frames = ps.image.decode_image(
        ANIMATION, dtype=dtype, expand_animations=True
    )
    assert frames.shape == (3, 2, 3, 3)
    assert frames.dtype == np.dtype(dtype)
    assert np.array_equal(frames[0], first)
    scale = {"uint8": 1, "uint16": 256, "float32": np.float32(1 / 255)}[dtype]
    for i in range(3):
        assert np.allclose(frames[i] / scale, [50 * i, i, 9])


def test_stills_and_animations_in_one_dataset() -> None:
    still = ps.image.encode_png(np.zeros((4, 5, 1), np.uint8))
    files = [still, ANIMATION, ANIMATION, still]
    ds = ps.Dataset.from_tensor_slices(files).map(
        lambda x: ps.image.decode_image(x, expand_animations=True)
    )
    assert ds.element_spec == ps.TensorSpec(None, np.uint8)
    assert [x.shape for x in ds] == [
        (4, 5, 1), (3, 2, 3, 3), (3, 2, 3, 3), (4, 5, 1),
    ]  # fmt: skip


def test_other_bytes_say_what_was_expected() -> None:
    with pytest.raises(ps.InvalidArgumentError, match="begin like none"):
        ps.image.decode_image(b"cat.jpg")
    with pytest.raises(ps.InvalidArgumentError, match="channels must be 0, 1"):
        ps.image.decode_jpeg(b"", channels=2)
    with pytest.raises(ps.InvalidArgumentError, match="ratio must be"):
        ps.image.decode_jpeg(b"", ratio=3)
    with pytest.raises(ps.InvalidArgumentError, match="scalar string"):
        ps.image.decode_jpeg(np.zeros(3))


def test_a_jpeg_without_tables_does_not_take_those_of_another() -> None:
    file = ps.image.encode_jpeg(np.full((9, 9, 3), 50, np.uint8))
    begin = file.index(b"\xff\xdb")  # of the first table
    end = begin + 2 + int.from_bytes(file[begin + 2 : begin + 4], "big")
    without = file[:begin] + file[end:]
    ds = ps.Dataset.from_list([file, without] * 50).map(ps.image.decode_jpeg)
    assert len(list(ds.ignore_errors())) == 50


def test_rows_of_different_sizes_become_a_batch() -> None:
    images = [_image(4 + i, 9 - i, i) for i in range(5)]
    files = [ps.image.encode_png(image) for image in images]
    ds = ps.Dataset.from_list(files).map(ps.image.decode_png)
    for got, want in zip(ds, images, strict=True):
        np.testing.assert_array_equal(got, want)
    ds = ds.map(lambda x: ps.image.resize(x, (3, 2), "nearest")).batch(5)
    assert next(iter(ds)).shape == (5, 3, 2, 3)


def test_sizes_may_be_values_of_the_row() -> None:
    ds = ps.Dataset.range(1, 4).map(
        lambda n: ps.image.resize(np.ones((2, 2, 3)), (n, 2 * n))
    )
    assert _outcomes(ds, 3) == [(1, 2, 3), (2, 4, 3), (3, 6, 3)]
    ds = ps.Dataset.range(1).map(
        lambda n: ps.image.resize(np.ones((2, 2, 3)), (n, n))
    )
    assert "must be from 1" in _outcomes(ds, 1)[0]


@pytest.mark.parametrize("flip", ["left_right", "up_down"])
@pytest.mark.parametrize("is_fresh", [False, True])
def test_images_of_a_batch_are_flipped_one_by_one(
    flip: str, is_fresh: bool
) -> None:
    random = getattr(ps.image, f"random_flip_{flip}")
    plain = getattr(ps.image, f"flip_{flip}")
    images = np.stack([_image(5, 4) for _ in range(64)])
    ds = ps.Dataset.from_tensors(images)
    if is_fresh:  # computed just before, and so flipped where it lies
        ds = ds.map(lambda x: random(x + np.uint8(0)))
    else:
        ds = ds.map(random)
    [batch] = ds
    flipped = (batch == plain(images)).all(axis=(1, 2, 3))
    same = (batch == images).all(axis=(1, 2, 3))
    assert (flipped != same).all()
    assert 4 < flipped.sum() < 60


RANDOM = {
    "random_crop": lambda x: ps.image.random_crop(x, (3, 3)),
    "random_flip_left_right": ps.image.random_flip_left_right,
    "random_flip_up_down": ps.image.random_flip_up_down,
    "random_resized_crop": lambda x: ps.image.random_resized_crop(x, (4, 4)),
    "random_brightness": lambda x: ps.image.random_brightness(x, 0.4),
    "random_contrast": lambda x: ps.image.random_contrast(x, 0.2, 1.8),
    "random_hue": lambda x: ps.image.random_hue(x, 0.4),
    "random_saturation": lambda x: ps.image.random_saturation(x, 0.2, 1.8),
}


@pytest.mark.parametrize("name", sorted(RANDOM))
def test_random_functions_differ_by_row_and_repeat_by_state(name: str) -> None:
    function = RANDOM[name]
    repeated = ps.Dataset.from_tensors(_image(8, 9)).repeat(20)
    rows = iter(repeated.map(function))
    state = rows.state_dict()
    first = [row.tobytes() for row in rows]
    assert len(set(first)) > 1
    again = iter(repeated.map(function, num_parallel_calls=2))
    again.load_state_dict(state)
    assert [row.tobytes() for row in again] == first


def test_a_cropped_jpeg_is_a_part_of_it() -> None:
    image = np.zeros((64, 48, 3), np.uint8)
    image[:] = 128
    file = ps.image.encode_jpeg(image)
    ds = ps.Dataset.from_tensors(file).repeat(50)
    ds = ds.map(lambda x: ps.image.decode_random_resized_crop(x, (8, 9)))
    for row in ds:
        assert row.shape == (8, 9, 3)
        np.testing.assert_allclose(row, 128, atol=1)


def test_boxes_cover_what_they_must() -> None:
    box = np.array([[[0.4, 0.4, 0.6, 0.6]]], np.float32)

    def sample(_: Any) -> Any:
        return ps.image.sample_distorted_bounding_box(
            np.array([100, 80, 3]), box, min_object_covered=0.9
        )

    for begin, size, found in ps.Dataset.range(50).map(sample):
        y, x, _ = begin
        height, width, rest = size
        assert rest == -1
        top, left = max(y, 40), max(x, 32)
        bottom, right = min(y + height, 60), min(x + width, 48)
        assert (bottom - top) * (right - left) >= 0.9 * 20 * 16 - 1e-3
        want = [y / 100, x / 80, (y + height) / 100, (x + width) / 80]
        np.testing.assert_allclose(found[0, 0], want, rtol=1e-5)


def test_scaled_decoding_stays_near_the_full_one() -> None:
    smooth = ps.cast(
        ps.image.resize(_image(5, 5), (300, 400), "bicubic"), "uint8"
    )
    file = ps.image.encode_jpeg(smooth)
    scaled = ps.image.decode_resized(file, (32, 40))
    full = ps.image.resize(ps.image.decode_jpeg(file), (32, 40), antialias=True)
    assert float(np.abs(scaled - full).mean()) < 4
