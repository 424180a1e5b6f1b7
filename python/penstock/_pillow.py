"""Pillow's images while a function that uses them is recorded.

What is here is known to give, in the engine, the pixels that Pillow gives. It
is known of 8-bit JPEG files, by whose header the engine tells them apart for
each element; an element that it does not know is computed by Pillow.
"""

from __future__ import annotations

import importlib
import operator
import re
import sys
import types
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from penstock import _foreign, _recording
from penstock._caught import is_asked_by_user
from penstock._dtypes import DType
from penstock._foreign import refuse
from penstock._recording import attr_to_json
from penstock._sides import Side
from penstock._symbol import Symbol, call, refuse_type, step_of

# Versions of Pillow that the engine was compared with.
_VERSIONS = range(10, 14)
# Pillow warns of larger images, unless it is told otherwise.
_MAX_PIXELS = 89478485
_BICUBIC = 3
_FILTERS = range(6)
_MODES = ("L", "RGB")
# Modes that images have, besides "RGB"; those that the engine does not know
# come first, since they tell more.
OTHER_MODES = ("CMYK", "RGBA", "P", "LA", "I;16", "1", "L")


def _version() -> tuple[int, ...]:
    """That of Pillow; () if it is a variant."""
    version = str(getattr(sys.modules["PIL.Image"], "__version__", ""))
    if re.fullmatch(r"\d+\.\d+\.\d+", version) is None:
        return ()
    return tuple(map(int, version.split(".")))


def why_unknown() -> str | None:
    """Why this Pillow is none that the engine knows; None if it is."""
    module = sys.modules["PIL.Image"]
    version = _version()
    if not version or version[0] not in _VERSIONS:
        return (
            f"the engine knows Pillow {_VERSIONS.start} to "
            f"{_VERSIONS.stop - 1}; got {getattr(module, '__version__', '?')}"
        )
    if not getattr(module.core, "HAVE_LIBJPEGTURBO", False):
        return (
            "this Pillow decodes JPEG with another library than libjpeg-turbo"
        )
    changed = _changed()
    return f"{changed} is not Pillow's own" if changed else None


def _changed() -> str | None:
    """A name of Pillow's that has become somebody else's; None if none has."""
    image = importlib.import_module("PIL.Image")
    file = importlib.import_module("PIL.ImageFile")
    jpeg = importlib.import_module("PIL.JpegImagePlugin")
    ops = importlib.import_module("PIL.ImageOps")
    for module, names in ((image, ("open",)), (ops, tuple(_OPS))):
        for name in names:
            if not _is_of(module, getattr(module, name, None)):
                return f"{module.__name__}.{name}"
    # All of the classes, since methods call one another.
    for module, kind in (
        (image, image.Image),
        (file, file.ImageFile),
        (jpeg, jpeg.JpegImageFile),
    ):
        inside = vars(kind)
        names = tuple(inside) + (_METHODS if module is image else ())
        for name in names:
            is_plain = name not in _METHODS and not _is_function(inside[name])
            if not is_plain and not _is_of(module, inside.get(name)):
                return f"{module.__name__}.{kind.__name__}.{name}"
    opener = image.OPEN.get("JPEG")  # None: Pillow has opened nothing yet.
    if opener is not None and not _is_of(jpeg, opener[0]):
        return "PIL.Image.OPEN['JPEG']"
    return None


def _is_function(value: Any) -> bool:
    kinds = (types.FunctionType, property, classmethod, staticmethod)
    return isinstance(value, kinds)


def _is_of(module: Any, value: Any) -> bool:
    """Whether a function or a property was written in `module`."""
    if isinstance(value, property):
        value = value.fget
    code = getattr(getattr(value, "__func__", value), "__code__", None)
    return code is not None and code.co_filename == module.__file__


@dataclass
class Assumption:
    """The mode that files are taken to have, where a function needs one."""

    mode: str = "RGB"
    is_used: bool = False
    files: list[_File] = field(default_factory=list)

    def finish(self) -> None:
        """Has every file read as far as the function reads it.

        A step is run whether its value is used or not: what Pillow may raise
        for a file is then not missed.
        """
        for file in self.files:
            file.finish()


class _File:
    """An image file: an element's bytes, and what is asked of them."""

    def __init__(self, stream: _foreign.Bytes, assumption: Assumption) -> None:
        self.contents: Symbol = stream.contents
        self._stream = stream
        self._is_loaded = False
        self.is_closed = False
        self._assumption = assumption
        limit = sys.modules["PIL.Image"].MAX_IMAGE_PIXELS
        self.max_pixels = (
            _MAX_PIXELS if limit is None else min(int(limit), _MAX_PIXELS)
        )
        self._guards: dict[str, Any] = {}
        # Attributes of all calls that read it.
        self._calls: list[dict[str, Any]] = []
        self._has_pixels = False
        assumption.files.append(self)

    def load(self) -> None:
        """Pixels are read here, once, and not when the file is opened."""
        if self._is_loaded:
            return
        if self.is_closed or self._stream.is_closed:
            refuse("an image that is used after its file was closed")
        self._is_loaded = True

    def guard(self, name: str, value: Any) -> None:
        """Files of which this does not hold are not known."""
        self._guards[name] = attr_to_json(value)
        for attrs in self._calls:
            attrs[name] = self._guards[name]

    def assumed_mode(self) -> str:
        self._assumption.is_used = True
        if self._assumption.mode in _MODES:
            self.guard("file_mode", self._assumption.mode)
        return self._assumption.mode

    def call(self, name: str, **attrs: Any) -> Symbol:
        recording = self.contents._recording
        messages = {key: attr_to_json(value) for key, value in attrs.items()}
        messages["max_pixels"] = attr_to_json(self.max_pixels)
        messages.setdefault("file_mode", attr_to_json(""))
        messages.update(self._guards)
        self._calls.append(messages)
        args = [step_of(recording, self.contents)]
        return Symbol(recording, recording.add_call(name, args, messages))

    def finish(self) -> None:
        if self._is_loaded and not self._has_pixels:
            self.pixels("RGB")
        elif not self._calls:
            self.call("image.pillow_size")

    def pixels(self, mode: str, **attrs: Any) -> Symbol:
        self._has_pixels = True
        return self.call("image.pillow_open", mode=mode, **attrs)


class Image:
    """What stands in for a `PIL.Image.Image`.

    Its pixels are not computed before they are needed: those of a file are
    converted and resized while they are decoded.
    """

    def __init__(
        self,
        file: _File,
        mode: str | None,
        pixels: Symbol | None = None,
    ) -> None:
        self._file = file
        self._mode = mode  # None: the file's own, which nobody asked for
        self._pixels = pixels  # None: those of the file, in that mode
        self._is_closed = False

    # ---- What it is.

    @property
    def mode(self) -> str:
        return self._mode or self._file.assumed_mode()

    @property
    def size(self) -> tuple[Any, Any]:
        if self._pixels is not None:
            height, width = self._pixels.shape[:2]
            return width, height
        size = self._file.call("image.pillow_size")
        return Side(size[0], _MAX_PIXELS), Side(size[1], _MAX_PIXELS)

    @property
    def width(self) -> Any:
        return self.size[0]

    @property
    def height(self) -> Any:
        return self.size[1]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return refuse(f"PIL.Image.Image.{name}")

    def __array__(self, *_: Any, **__: Any) -> Any:
        return refuse("this conversion of an image to an array")

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        if is_asked_by_user():
            refuse_type()
        return type(self)

    def __repr__(self) -> str:
        return str(refuse("an image as text"))

    def __eq__(self, other: object) -> bool:
        return bool(refuse("a comparison of images"))

    def __hash__(self) -> int:
        return int(refuse("a look-up of an image"))

    def __enter__(self) -> Image:
        return self

    def __exit__(self, *_: Any) -> None:
        if self._is_file():
            self._file.is_closed = True

    def close(self) -> None:
        self.__exit__()
        self._is_closed = True

    def load(self) -> None:
        if self._is_closed:
            refuse("an image that is used after it was closed")
        if self._is_file():
            self._file.load()

    def _is_file(self) -> bool:
        """Whether nothing was done to it since it was opened."""
        return self._mode is None and self._pixels is None

    def to_array(self) -> Symbol:
        """What numpy makes of it."""
        self.load()
        if self.mode not in _MODES:
            refuse(f"an array of an image of mode {self.mode!r}")
        return self._computed()

    # ---- What is done to it.

    def _computed(self) -> Symbol:
        """Its pixels; of a mode that is not known, others of their size."""
        if self._pixels is None:
            self._pixels = self._file.pixels(_known(self.mode))
        return self._pixels

    def _with(self, pixels: Symbol) -> Image:
        return Image(self._file, self.mode, pixels)

    def copy(self) -> Image:
        self.load()
        return Image(self._file, self._mode, self._pixels)

    def convert(
        self, mode: str | None = None, *args: Any, **kwargs: Any
    ) -> Image:
        if mode not in _MODES or args or kwargs:
            refuse("this conversion of an image")
        self.load()
        if self._is_file():
            return Image(self._file, mode)
        if _known(self.mode) == mode:
            return Image(self._file, mode, self._pixels)
        pixels = call(
            "image.pillow_convert", (self._computed(),), {"mode": mode}
        )
        return Image(self._file, mode, pixels)

    def resize(
        self,
        size: Any,
        resample: Any = None,
        box: Any = None,
        reducing_gap: Any = None,
    ) -> Image:
        if box is not None or reducing_gap is not None:
            refuse("box or reducing_gap of Image.resize")
        self.load()
        sides = [_integer(side, "a size") for side in size]
        filter = (
            _BICUBIC if resample is None else _integer(resample, "a filter")
        )
        if filter not in _FILTERS or len(sides) != 2 or min(sides) < 1:
            refuse("this filter or size of Image.resize")
        attrs = {
            "size": tuple(sides),
            "filter": filter,
            "order_by_size": _version()[0] >= 13,
        }
        if self._pixels is None:
            return self._with(self._file.pixels(_known(self.mode), **attrs))
        return self._with(call("image.pillow_resize", (self._pixels,), attrs))

    def crop(self, box: Any = None) -> Image:
        if box is None:
            return self.copy()
        self.load()
        sides = [_side(side) for side in box]
        if len(sides) != 4:
            refuse("this box of Image.crop")
        attrs: dict[str, Any] = {"max_pixels": self._file.max_pixels}
        if not any(isinstance(side, Symbol) for side in sides):
            left, upper, right, lower = sides
            if right <= left or lower <= upper:
                refuse("this box of Image.crop")
            attrs["size"] = (right - left, lower - upper)
        pixels = call("image.pillow_crop", (self._computed(), sides), attrs)
        return self._with(pixels)

    def transpose(self, method: Any) -> Image:
        self.load()
        number = _integer(method, "a method")
        if number not in range(len(_TRANSPOSED)):
            refuse("this method of Image.transpose")
        return self._with(_TRANSPOSED[number](self._computed()))


def _known(mode: str) -> str:
    """`mode`, or some other that is known."""
    return mode if mode in _MODES else "RGB"


def _swapped(pixels: Symbol) -> Symbol:
    axes = (1, 0, 2) if pixels.ndim == 3 else (1, 0)
    return pixels.transpose(axes)


# By the numbers of PIL.Image.Transpose.
_TRANSPOSED: tuple[Callable[[Symbol], Symbol], ...] = (
    lambda x: x[:, ::-1],  # FLIP_LEFT_RIGHT
    lambda x: x[::-1],  # FLIP_TOP_BOTTOM
    lambda x: _swapped(x)[::-1],  # ROTATE_90
    lambda x: x[::-1, ::-1],  # ROTATE_180
    lambda x: _swapped(x)[:, ::-1],  # ROTATE_270
    _swapped,  # TRANSPOSE
    lambda x: _swapped(x)[::-1, ::-1],  # TRANSVERSE
)


def _integer(value: Any, what: str) -> int:
    try:
        return operator.index(value)
    except Exception:
        return int(refuse(f"{what} that is no whole number"))


def _side(value: Any) -> Any:
    """A side of a box, as Pillow rounds it."""
    if isinstance(value, Side):
        return value.value
    if isinstance(value, Symbol):
        if value.shape != () or not _is_integer(value.dtype):
            refuse("a box of other values than whole numbers")
        return value.astype("int64")
    return round(float(value))


def _is_integer(dtype: DType) -> bool:
    return dtype.wire_name.startswith(("INT", "UINT"))


# ---- Functions.


def _open(file: Any, *args: Any, **kwargs: Any) -> Image:
    if not isinstance(file, _foreign.Bytes) or args or kwargs:
        refuse("PIL.Image.open of something else than an element's bytes")
    unknown = why_unknown()
    if unknown is not None:
        refuse(f"PIL.Image.open ({unknown})")
    if file.is_closed:
        refuse("PIL.Image.open of a stream that was closed")
    recording = file.contents._recording
    return Image(_File(file, _assumptions[recording]), None)


def _flip(image: Image) -> Image:
    return image.transpose(1)


def _mirror(image: Image) -> Image:
    return image.transpose(0)


def _grayscale(image: Image) -> Image:
    return image.convert("L")


def _exif_transpose(image: Image, **kwargs: Any) -> Image:
    if kwargs:
        refuse("in_place of ImageOps.exif_transpose")
    image._file.guard("has_no_orientation", True)
    return image.copy()


# What is taken to be Pillow's.
_METHODS = (
    "__array_interface__",
    "__enter__",
    "__exit__",
    "close",
    "convert",
    "copy",
    "crop",
    "height",
    "load",
    "mode",
    "resize",
    "size",
    "tobytes",
    "transpose",
    "width",
)
_OPS = {
    "flip": _flip,
    "mirror": _mirror,
    "grayscale": _grayscale,
    "exif_transpose": _exif_transpose,
}


def stand_in(value: Any) -> Any:
    """What stands in for a function of Pillow's, or None."""
    image = sys.modules.get("PIL.Image")
    if image is not None and value is getattr(image, "open", None):
        return _open
    ops = sys.modules.get("PIL.ImageOps")
    if ops is not None:
        for name, function in _OPS.items():
            if value is getattr(ops, name, None):
                return function
    return None


_assumptions: weakref.WeakKeyDictionary[_recording.Recording, Assumption]
_assumptions = weakref.WeakKeyDictionary()


def assume(recording: _recording.Recording, mode: str) -> Assumption:
    """Has files of a recording be of `mode`; tells whether that matters."""
    found = _assumptions[recording] = Assumption(mode)
    return found
