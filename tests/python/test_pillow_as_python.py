"""Functions that use Pillow: what Python would notice besides the pixels."""

import dataclasses
import functools
import io

import jpegs
import numpy as np
import pytest
from PIL import Image
from test_pillow import (
    KNOWN,
    Loader,
    alone,
    assert_same,
    files,
    is_native,
    load,
)

import penstock as ps

Dataset = ps.Dataset


# ---- Files that are read for their errors.


def is_good(file):
    try:
        Image.open(io.BytesIO(file)).load()
    except Exception:
        return False
    return True


def opens(file):
    try:
        Image.open(io.BytesIO(file))
    except Exception:
        return False
    return True


def converts(file):
    try:
        Image.open(io.BytesIO(file)).convert("L")
    except Exception:
        return False
    return True


def size_of_loaded(file):
    try:
        image = Image.open(io.BytesIO(file))
        image.load()
    except Exception:
        return -1, -1
    return image.size


def has_colours(file):
    try:
        return 2 if Image.open(io.BytesIO(file)).mode == "RGB" else 1
    except Exception:
        return 0


@pytest.mark.parametrize(
    "function", [is_good, opens, converts, size_of_loaded, has_colours]
)
def test_files_are_read_though_nothing_of_them_is_used(function):
    cut = KNOWN[20][: len(KNOWN[20]) * 2 // 3]
    contents = [*KNOWN[:30], cut, *jpegs.bad().values(), KNOWN[31]]
    ds = files(contents).map(function)
    assert is_native(ds), ds.describe()
    assert list(ds) == [function(file) for file in contents]
    assert len(set(map(function, contents))) > 1
    known = [file for file in KNOWN if Image.open(io.BytesIO(file)).mode != "L"]
    list(alone(files(known).map(function), native=True))


def test_files_that_are_bad_are_left_out():
    def check(file, label):
        Image.open(io.BytesIO(file)).load()
        return label

    cut = KNOWN[20][: len(KNOWN[20]) * 2 // 3]
    contents = [KNOWN[0], b"bad", KNOWN[1], cut]
    labels = Dataset.from_tensor_slices([5, 6, 7, 8])
    ds = Dataset.zip((files(contents), labels)).map(check)
    assert is_native(ds), ds.describe()
    assert list(ds.ignore_errors()) == [5, 7]


# ---- Numbers of Python's, and arrays that change.


def boxes_of(file, boxes):
    width, height = Image.open(io.BytesIO(file)).size
    return boxes / width, height * boxes, boxes - (width - height) // 2


def boxes_by_array(file, boxes):
    height, width = np.asarray(load(file)).shape[:2]
    scale = np.array([width, height, width, height], np.float32)
    whole = np.array([width, 7])
    boxes = boxes * 1
    boxes /= width
    return boxes / scale, whole


def odd_sides(file, boxes):
    image = load(file).crop((0, 0, 5, 6))
    return boxes / image.width, -(image.width % 3) + round(image.height) * 2


@pytest.mark.parametrize("function", [boxes_of, boxes_by_array, odd_sides])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sizes_take_the_type_of_what_they_meet(function, dtype):
    boxes = np.arange(len(KNOWN) * 4, dtype=dtype).reshape(-1, 4)
    rows = Dataset.from_tensor_slices(boxes)
    ds = Dataset.zip((files(KNOWN), rows)).map(function)
    assert is_native(ds), ds.describe()
    for file, row, found in zip(KNOWN, boxes, ds, strict=True):
        for each, wanted in zip(found, function(file, row), strict=True):
            assert each.dtype == np.asarray(wanted).dtype
            np.testing.assert_array_equal(each, wanted)


@pytest.mark.parametrize(
    "function",
    [
        lambda file: np.float32(3) * (load(file).width / load(file).height),
        lambda file: load(file).width // (load(file).height - 1),
        lambda file: np.uint8(3) * (load(file).width % 3),
        lambda file: np.asarray([[load(file).width, 1.5]]),
        lambda file: max(load(file).size),
        lambda file: 1 if load(file).width == 55 else 0,
        lambda file: 1 if isinstance(load(file).width, int) else 0,
        lambda file: 1 if isinstance(load(file), Loader) else 0,
        lambda file: 1 if isinstance(io.BytesIO(file), bytes) else 0,
        lambda file: load(file).width ** 2,
        lambda file: len(str([load(file)])) > 0,
        lambda file: len(repr(io.BytesIO(file))) > 0,
    ],
)
def test_what_is_not_known_of_sizes_and_types_runs_as_python(function):
    contents = KNOWN[40:43]
    ds = files(contents).map(function)
    assert "runs as Python" in ds.describe()
    for found, file in zip(ds, contents, strict=True):
        wanted = np.asarray(function(file))
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted)


MEAN = np.array([0.485, 0.456, 0.406])


def in_place(file):
    pixels = np.array(load(file).resize((6, 5)), dtype=np.float32)
    pixels /= 255
    pixels -= MEAN
    return pixels


def in_place_of_bytes(file):
    image = load(file).resize((6, 5))
    first, second = np.array(image), np.array(image)
    first //= 2
    first += 3
    return first - second


def in_place_later(file):
    pixels = np.asarray(load(file).resize((6, 5)), np.float32)
    same = pixels
    pixels -= MEAN
    return same


def in_place_of_any_size(file):
    pixels = np.asarray(load(file)) / np.float32(255)
    pixels -= MEAN.astype(np.float32)
    return pixels


@pytest.mark.parametrize(
    "function",
    [in_place, in_place_of_bytes, in_place_later, in_place_of_any_size],
)
def test_arrays_keep_their_type_when_they_change(function):
    assert_same(function)


def in_place_of_pillows(file):
    pixels = np.asarray(load(file).resize((6, 5)))
    pixels += 1
    return pixels


def test_what_is_read_only_stays_so():
    with pytest.raises(ValueError, match="read-only"):
        in_place_of_pillows(KNOWN[0])
    with pytest.raises(ps.PenstockError, match="ValueError"):
        list(files(KNOWN[:2]).map(in_place_of_pillows))


# ---- Functions that nothing can stand in for.


def draw_noise():
    noise = Image.effect_noise((4, 4), 50)
    return sum(noise.getpixel((0, i)) << (8 * i) for i in range(4))


def gray(file):
    return np.asarray(load(file).convert("L").resize((4, 4))).astype(np.int64)


class Noisy:
    def draw(self):
        return draw_noise()

    def by_method(self, file):
        return gray(file) ^ self.draw()

    def by_import(self, file):
        return gray(file) ^ self.late()

    def late(self):
        import PIL.Image as Other

        return (lambda: Other.effect_noise((4, 4), 50).getpixel((0, 0)))()


DRAWS = {"noise": draw_noise}


def by_default(file, draw=draw_noise):
    return gray(file) ^ draw()


def by_container(file):
    return gray(file) ^ DRAWS["noise"]()


def by_argument(draw, file):
    return gray(file) ^ draw()


@pytest.mark.parametrize(
    "function",
    [
        Noisy().by_method,
        Noisy().by_import,
        by_default,
        by_container,
        functools.partial(by_argument, draw_noise),
        functools.partial(by_argument, Noisy().draw),
    ],
)
def test_what_draws_through_pillow_draws_for_each_element(function):
    ds = files([KNOWN[0]] * 20).map(function)
    assert "runs as Python" in ds.describe()
    assert len({x.tobytes() for x in ds}) > 1


class Filtering:
    def __call__(self, file):
        return np.asarray(load(file).resize((5, 4), self.filter()))

    def filter(self):
        return Image.Resampling.BOX if self.is_box() else Image.NEAREST

    def is_box(self):
        return True


def test_constants_of_pillows_may_be_used_anywhere():
    assert_same(Filtering())


@dataclasses.dataclass
class Dataclassed:
    side: int

    def __call__(self, file):
        return np.asarray(load(file).resize((self.side, self.side)))


def test_dataclasses_may_be_functions():
    assert_same(Dataclassed(6))


@pytest.mark.parametrize(
    "draw",
    [
        lambda x: x + ps.random_int((), 0, 9),
        lambda x: ps.image.random_flip_left_right(x),
    ],
)
def test_what_draws_beside_pillow_runs_as_python(draw):
    def noisy(file):
        return draw(np.asarray(load(file).resize((6, 5))))

    known = files(KNOWN[:2]).map(noisy)
    assert not is_native(known)
    assert "draws random numbers" in known.describe()


def scaled(file):
    return np.asarray(load(file).resize((60, 50))) / np.float32(255)


@pytest.mark.parametrize(
    "function",
    [
        lambda file: np.exp(scaled(file)),
        lambda file: np.log1p(scaled(file)),
        lambda file: scaled(file) ** 2.2,
        lambda file: scaled(file) - scaled(file).mean(axis=(0, 1)),
        lambda file: np.sum(scaled(file), axis=(0, 1)),
    ],
)
def test_what_would_be_rounded_otherwise_runs_as_python(function):
    ds = files(KNOWN[-3:]).map(function)
    assert "rounds" in ds.describe()
    for file, found in zip(KNOWN[-3:], ds, strict=True):
        np.testing.assert_array_equal(found, function(file))


def test_whole_numbers_are_added_up():
    assert_same(lambda file: np.asarray(load(file)).mean(axis=(0, 1)))
    assert_same(lambda file: np.asarray(load(file)).sum())
