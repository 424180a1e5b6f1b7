"""Functions that use Pillow: in the engine, bit for bit what Pillow gives."""

import functools
import inspect
import io
import warnings

import jpegs
import numpy as np
import PIL.Image
import PIL.ImageFile
import PIL.JpegImagePlugin
import pytest
from PIL import Image, ImageOps
from PIL.Image import open as open_image
from test_python_functions import outcomes, workers

import penstock as ps

Dataset = ps.Dataset
KNOWN = jpegs.plain()
SIDE = 20


def files(contents):
    return Dataset.from_tensor_slices(np.array(contents, object))


def is_native(ds):
    """Whether the engine knows what its map does."""
    return "natively, as Python for elements it does not know" in ds.describe()


def alone(ds, native):
    """What it gives; checks whether Python was needed for it."""
    iterator = iter(ds)
    yield from iterator
    assert (iterator.stats().python_ns == 0) == native


def assert_same(function, contents=KNOWN, native=True):
    """The engine gives what `function` gives, in the processes it needs."""
    ds = files(contents).map(function)
    assert is_native(ds) == native, ds.describe()
    wanted = [function(file) for file in contents]
    before = set(workers())
    for file, found, expected in zip(contents, ds, wanted, strict=True):
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected, str(file[:20]))
    if contents is KNOWN:
        assert set(workers()) <= before, "Python was needed"


# ---- The ways to write it.


def decode(file):
    import io

    import numpy as np
    from PIL import Image

    with Image.open(io.BytesIO(file)) as image:
        small = image.convert("RGB").resize((SIDE, 24), Image.BILINEAR)
        return np.asarray(small)


def by_globals(file):
    image = Image.open(io.BytesIO(file)).convert("RGB")
    return np.array(image.resize((SIDE, SIDE), Image.Resampling.LANCZOS))


def by_module(file):
    image = PIL.Image.open(io.BytesIO(file))
    return np.asarray(image.convert("L").resize((SIDE, 9)))


def by_imported_module(file):
    import PIL.Image

    stream = io.BytesIO(file)
    image = PIL.Image.open(stream).convert(mode="RGB")
    return np.asarray(image.resize(size=(9, SIDE), resample=PIL.Image.BOX))


def by_name(file):
    return np.asarray(open_image(io.BytesIO(file)).convert("RGB"))


def load(file):
    return Image.open(io.BytesIO(file)).convert("RGB")


def by_helper(file):
    return np.asarray(load(file).resize((SIDE, SIDE), Image.HAMMING))


def by_closure():
    size = (5, 6)
    filter = Image.NEAREST

    def inner(file):
        return np.asarray(load(file).resize(size, filter))

    return inner


class Loader:
    def __init__(self, side):
        self.side = side

    def __call__(self, file):
        return np.asarray(load(file).resize((self.side, self.side)))


def sized(file, size):
    return np.asarray(load(file).resize(size))


def if_mode(file):
    image = Image.open(io.BytesIO(file))
    if image.mode != "RGB":
        image = image.convert("RGB")
    return np.asarray(image.resize((8, 8)))


@pytest.mark.parametrize(
    "function",
    [
        decode,
        by_globals,
        by_module,
        by_imported_module,
        by_name,
        by_helper,
        by_closure(),
        Loader(7),
        functools.partial(sized, size=(9, 8)),
        lambda file: np.asarray(load(file).copy().resize([4, 3])),
    ],
    ids=lambda f: getattr(f, "__name__", type(f).__name__),
)
def test_it_is_known_however_it_is_written(function):
    assert_same(function)


# ---- What is done to images.


@pytest.mark.parametrize("filter", Image.Resampling)
@pytest.mark.parametrize(
    "size", [(1, 1), (3, 50), (50, 3), (31, 33), (64, 48), (140, 150)]
)
def test_resizing_with_every_filter_up_and_down(filter, size):
    def resize(file):
        image = Image.open(io.BytesIO(file)).convert("RGB")
        return np.asarray(image.resize(size, filter))

    is_known = filter <= Image.Resampling.HAMMING
    assert_same(resize, KNOWN if is_known else KNOWN[:5], is_known)


def test_gray_images_are_resized_and_converted():
    def gray(file):
        return np.asarray(Image.open(io.BytesIO(file)).convert("L"))

    def gray_twice(file):
        image = load(file).resize((19, 21)).convert("L")
        return np.asarray(image.resize((30, 11), Image.BILINEAR))

    def and_back(file):
        image = Image.open(io.BytesIO(file)).convert("L").convert("RGB")
        return np.asarray(image)

    for function in (gray, gray_twice, and_back):
        assert_same(function)


def test_images_are_cropped():
    def crop(file):
        return np.asarray(load(file).crop((3, 2, 20, 9)))

    def crop_around(file):
        return np.asarray(load(file).crop((-5, -1.5, 12, 10.5)))

    def crop_center(file):
        image = load(file)
        width, height = image.size
        left, upper = (width - 6) // 2, (height - 4) // 2
        image = image.crop((left, upper, left + 6, upper + 4))
        return np.asarray(image.resize((7, 7)))

    for function in (crop, crop_around, crop_center):
        assert_same(function)


@pytest.mark.parametrize("method", Image.Transpose)
def test_images_are_turned(method):
    def turn(file):
        return np.asarray(load(file).resize((6, 5)).transpose(method))

    def turn_gray(file):
        image = Image.open(io.BytesIO(file)).convert("L")
        return np.asarray(image.transpose(method))

    assert_same(turn)
    assert_same(turn_gray)


def test_images_are_flipped():
    def flip(file):
        return np.asarray(ImageOps.flip(load(file)))

    def mirror(file):
        return np.asarray(ImageOps.mirror(ImageOps.grayscale(load(file))))

    assert_same(flip)
    assert_same(mirror)


def test_arrays_are_computed_with():
    mean = np.array([0.5, 0.4, 0.3], np.float32)

    def normalize(file):
        image = load(file).resize((6, 5))
        pixels = np.asarray(image, dtype=np.float32) / 255.0
        return ((pixels - mean) / np.float32(0.2)).transpose(2, 0, 1)

    assert_same(normalize)


def test_what_comes_with_the_image_stays_with_it():
    def pair(file, label):
        with Image.open(io.BytesIO(file)) as image:
            image.load()
            return {"x": np.asarray(image.convert("RGB").resize((4, 4))),
                    "y": label + 1, "size": image.size}  # fmt: skip

    labels = np.arange(len(KNOWN))
    ds = Dataset.zip((files(KNOWN), Dataset.from_tensor_slices(labels)))
    ds = ds.map(pair)
    assert is_native(ds)
    assert ds.element_spec["x"] == ps.TensorSpec((4, 4, 3), ps.uint8)
    for i, row in enumerate(ds):
        wanted = pair(KNOWN[i], labels[i])
        np.testing.assert_array_equal(row["x"], wanted["x"])
        assert (row["y"], row["size"]) == (wanted["y"], wanted["size"])


# ---- What the engine does not know.


def test_other_files_are_pillows():
    unusual = jpegs.unusual()
    mixed = []
    for i, file in enumerate(unusual.values()):
        mixed += [*KNOWN[i : i + 3], file]
    assert_same(decode, mixed)
    assert_same(decode, list(unusual.values()))


def test_images_of_other_modes_are_pillows():
    assert_same(if_mode, [*KNOWN, *jpegs.unusual().values()])


def test_a_function_may_refuse_other_modes():
    def strict(file):
        image = Image.open(io.BytesIO(file))
        if image.mode != "RGB":
            raise ValueError(f"expected RGB; got {image.mode}")
        return np.asarray(image.resize((8, 8)))

    ds = files([KNOWN[0], KNOWN[3], KNOWN[1]]).map(strict)
    assert is_native(ds)
    first, error, last = outcomes(iter(ds))
    np.testing.assert_array_equal(first, strict(KNOWN[0]))
    assert "for element 1 (from 0): ValueError: expected RGB; got L" in str(
        error
    )
    np.testing.assert_array_equal(last, strict(KNOWN[1]))


def test_images_that_say_how_to_turn_them_are_pillows():
    def upright(file):
        image = ImageOps.exif_transpose(Image.open(io.BytesIO(file)))
        return np.asarray(image.convert("RGB").resize((9, 7)))

    assert_same(upright, list(KNOWN))


def test_what_pillow_refuses_is_an_error_of_its_element():
    bad = list(jpegs.bad().values())
    contents = [KNOWN[0]]
    for file in bad:
        contents += [file, KNOWN[1]]
    found = outcomes(iter(files(contents).map(decode)))
    assert len(found) == len(contents)
    for i, (file, each) in enumerate(zip(contents, found, strict=True)):
        try:
            wanted = decode(file)
        except Exception as error:
            assert isinstance(each, ps.PenstockError)
            kind = type(error).__name__
            assert f"in decode, for element {i} (from 0): {kind}" in str(each)
            assert "in decode" in str(each)
        else:
            np.testing.assert_array_equal(each, wanted)
    assert sum(isinstance(each, ps.PenstockError) for each in found) >= 4
    kept = list(files(contents).map(decode).ignore_errors())
    assert len(kept) == sum(isinstance(x, np.ndarray) for x in found)


def test_damaged_files_are_what_pillow_makes_of_them():
    contents = jpegs.damaged(300)
    found = outcomes(iter(files(contents).map(decode)))
    errors = 0
    for file, each in zip(contents, found, strict=True):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                wanted = decode(file)
        except Exception as error:
            errors += 1
            assert type(error).__name__ in str(each)
        else:
            np.testing.assert_array_equal(each, wanted)
    assert 20 < errors < 200


def test_a_function_that_catches_errors_does_so():
    def forgiving(file):
        try:
            image = Image.open(io.BytesIO(file)).convert("RGB")
        except OSError:
            return np.full((4, 4, 3), 7, np.uint8)
        return np.asarray(image.resize((4, 4)))

    bad = list(jpegs.bad().values())
    assert_same(forgiving, [KNOWN[3], *bad, *KNOWN[4:6]])


def test_what_is_caught_while_it_is_recorded_is_not_believed():
    def forgiving(file):
        try:
            return np.asarray(load(file).resize((4, 4)).rotate(10))
        except Exception:
            return np.zeros((4, 4, 3), np.uint8)

    assert_same(forgiving, KNOWN[:4], native=False)


def test_large_images_are_pillows(monkeypatch):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 5)
    with pytest.warns(Image.DecompressionBombWarning):
        wanted = decode(jpegs.jpeg(jpegs.picture(2, 4)))
    small, large = (jpegs.jpeg(jpegs.picture(h, 4)) for h in (1, 2))
    found = list(alone(files([small]).map(decode), native=True))
    np.testing.assert_array_equal(found[0], decode(small))
    found = list(alone(files([large, small]).map(decode), native=False))
    np.testing.assert_array_equal(found[0], wanted)


def test_a_limit_of_no_pixels_is_one(monkeypatch):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 0)
    ds = files(KNOWN[:1]).map(lambda file: np.asarray(load(file)))
    assert is_native(ds)
    assert len(list(alone(ds, native=False))) == 1


def test_another_result_than_the_recorded_one_is_an_error():
    def changing(file):
        try:
            return np.asarray(load(file).resize((4, 4)))
        except Exception:
            return np.zeros(3)

    ds = files([KNOWN[0], b"bad", KNOWN[1]]).map(changing)
    good, error, after = outcomes(iter(ds))
    assert good.shape == after.shape == (4, 4, 3)
    assert "for element 1 (from 0): what it returned" in str(error)


@pytest.mark.parametrize(
    "function",
    [
        lambda file: np.asarray(Image.open(io.BytesIO(file))),
        lambda file: np.asarray(load(file).rotate(3)),
        lambda file: np.asarray(load(file).resize((3, 3), box=(0, 0, 2, 2))),
        lambda file: np.asarray(Image.new("RGB", (2, 3))),
        lambda file: np.asarray(load(file).getpixel((0, 0))),
        lambda file: np.frombuffer(io.BytesIO(file).read(3), np.uint8),
        lambda file: np.asarray(
            load(file) if file[:1] == b"x" else load(file).resize((2, 2))
        ),
        lambda file: np.array(len(f"{load(file).size}")),
        lambda file: (np.asarray(load(file)), int(load(file).width > 8))[0],
    ],
)
def test_what_is_not_known_runs_as_python(function):
    contents = KNOWN[40:43]
    ds = files(contents).map(function)
    assert "runs as Python" in ds.describe()
    for found, file in zip(ds, contents, strict=True):
        np.testing.assert_array_equal(found, function(file))


def test_a_result_that_depends_on_the_mode_runs_as_python():
    def by_mode(file):
        image = Image.open(io.BytesIO(file))
        if image.mode == "RGBA":
            image = image.convert("RGB")
        return np.asarray(image)

    ds = files(KNOWN[:3]).map(by_mode)
    assert "runs as Python" in ds.describe()


def test_a_pillow_that_is_not_known_runs_as_python(monkeypatch):
    monkeypatch.setattr(Image, "__version__", "99.0.0")
    ds = files(KNOWN[:2]).map(decode)
    assert "knows Pillow 10 to 13; got 99.0.0" in ds.describe()


@pytest.mark.parametrize(
    ("of", "name"),
    [
        (Image, "open"),
        (Image.Image, "convert"),
        (Image.Image, "crop"),
        (Image.Image, "load"),
        (Image.Image, "transpose"),
        (Image.Image, "size"),
        (Image.Image, "__array_interface__"),
        (Image.Image, "_new"),
        (ImageOps, "mirror"),
        (PIL.ImageFile.ImageFile, "load"),
        (PIL.JpegImagePlugin.JpegImageFile, "_open"),
    ],
)
def test_a_pillow_that_was_changed_runs_as_python(monkeypatch, of, name):
    assert is_native(files(KNOWN[:2]).map(decode))
    own = inspect.getattr_static(of, name)
    changed = (
        property(lambda self: own.fget(self))
        if isinstance(own, property)
        else lambda *args, **kwargs: own(*args, **kwargs)
    )
    monkeypatch.setattr(of, name, changed)
    ds = files(KNOWN[:2]).map(decode)
    assert f"{name} is not Pillow's own" in ds.describe()


def test_a_pillow_with_another_reader_of_jpeg_runs_as_python(monkeypatch):
    Image.preinit()
    own = Image.OPEN["JPEG"]
    other = (lambda *args: own[0](*args), own[1])
    monkeypatch.setitem(Image.OPEN, "JPEG", other)
    ds = files(KNOWN[:2]).map(decode)
    assert "is not Pillow's own" in ds.describe()


def test_what_must_be_native_must_need_no_python():
    with pytest.raises(ps.UnsupportedFunctionError, match="module PIL"):
        files(KNOWN[:2]).map(ps.native(decode))


def closed_stream(file):
    with io.BytesIO(file) as stream:
        image = Image.open(stream)
    return np.asarray(image.convert("RGB"))


def closed_file(file):
    with Image.open(io.BytesIO(file)) as image:
        pass
    return np.asarray(image.convert("RGB"))


def closed_image(file):
    image = load(file)
    image.close()
    return np.asarray(image)


@pytest.mark.parametrize("function", [closed_stream, closed_file, closed_image])
def test_images_that_are_closed_too_early_fail_as_they_do(function):
    with pytest.raises(Exception) as raised:
        function(KNOWN[0])
    kind = type(raised.value).__name__
    with pytest.raises(ps.PenstockError, match=f"{kind}: "):
        files(KNOWN[:2]).map(function)


def test_images_that_were_read_in_time_are_known():
    def read_before(file):
        with io.BytesIO(file) as stream, Image.open(stream) as image:
            gray = image.convert("L")
            image.load()
        gray = gray.resize((3, 4))
        return np.asarray(gray), np.asarray(image.convert("RGB")), image.size

    ds = files(KNOWN[:9]).map(read_before)
    assert is_native(ds), ds.describe()
    for file, row in zip(KNOWN, ds, strict=False):
        for found, wanted in zip(row, read_before(file), strict=True):
            np.testing.assert_array_equal(found, wanted)


# ---- As any map.


def test_python_can_be_asked_for():
    ds = files(KNOWN[:9]).map(ps.python_function(decode))
    assert "runs as Python: it is asked to" in ds.describe()
    for found, file in zip(ds, KNOWN, strict=False):
        np.testing.assert_array_equal(found, decode(file))


def test_states_are_those_of_any_map():
    contents = [*KNOWN[:20], *jpegs.unusual().values(), *KNOWN[20:40]]
    wanted = [decode(file) for file in contents]
    ds = files(contents).map(decode)
    for at in (0, 1, 19, 22, 30, 50):
        iterator = iter(ds)
        for _ in range(at):
            next(iterator)
        state = iterator.state_dict()
        for run in (ds, files(contents).map(decode)):
            again = iter(run)
            again.load_state_dict(state)
            rest = list(again)
            assert len(rest) == len(contents) - at
            for found, expected in zip(rest, wanted[at:], strict=True):
                np.testing.assert_array_equal(found, expected)


def test_a_state_is_good_for_the_same_function_as_python():
    native = files(KNOWN).map(decode)
    iterator = iter(native)
    for _ in range(7):
        next(iterator)
    python = iter(files(KNOWN).map(ps.python_function(decode)))
    python.load_state_dict(iterator.state_dict())
    np.testing.assert_array_equal(next(python), decode(KNOWN[7]))


def test_batches_and_orders():
    contents = KNOWN * 3
    contents[5] = jpegs.unusual()["PNG"]
    wanted = np.stack([decode(file) for file in contents])
    ds = files(contents).map(decode).batch(16, drop_remainder=True)
    found = np.concatenate(list(ds))
    np.testing.assert_array_equal(found, wanted[: len(found)])
    ds = files(contents).map(decode, num_parallel_calls=3, deterministic=False)
    found = sorted(x.tobytes() for x in ds)
    assert found == sorted(x.tobytes() for x in wanted)
    epochs = list(files(contents[:4]).map(decode).repeat(2))
    np.testing.assert_array_equal(epochs, np.concatenate([wanted[:4]] * 2))


def test_no_process_is_started_for_what_is_known():
    with ps.Options(name="alone"):
        ds = files(KNOWN).map(decode)
        before = workers()
        assert len(list(ds)) == len(KNOWN)
        assert workers() == before
