"""What is said of a name that is not there.

Asked only then, by `__getattr__`: names that are there cost nothing. Type
checkers do not see these functions, which would make any name one of `Any`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NoReturn

# What torchvision calls what is here by another name.
_TORCHVISION = {
    "centercrop": "central_crop",
    "colorjitter": "random_brightness, random_contrast, random_saturation and "
    "random_hue",
    "convertimagedtype": "convert_image_dtype",
    "grayscale": "rgb_to_grayscale",
    "hflip": "flip_left_right",
    "horizontalflip": "flip_left_right",
    "randomhorizontalflip": "random_flip_left_right",
    "randomverticalflip": "random_flip_up_down",
    "todtype": "convert_image_dtype",
    "totensor": "convert_image_dtype(image, ps.float32)",
    "toimage": "decode_image",
    "verticalflip": "flip_up_down",
    "vflip": "flip_up_down",
}


def in_images(module: str, known: Iterable[str]) -> Callable[[str], Any]:
    """`in_module`, for who knows torchvision's names."""

    def refuse(name: str) -> NoReturn:
        other = _TORCHVISION.get(name.lower().replace("_", ""))
        if other is None:
            raise unknown(f"module {module!r}", name, known)
        raise _error(
            name, f"module {module!r} has no attribute {name!r}. Use {other}"
        )

    return refuse


def unknown(owner: str, name: str, known: Iterable[str]) -> AttributeError:
    """The error for `name`, with the name in `known` that is most like it."""
    text = f"{owner} has no attribute {name!r}"
    if not name.startswith("_"):
        import difflib

        public = {x.lower(): x for x in known if not x.startswith("_")}
        for nearest in difflib.get_close_matches(name.lower(), public, n=1):
            text += f". Did you mean {public[nearest]!r}?"
    return _error(name, text)


def _error(name: str, text: str) -> AttributeError:
    # Python would add a guess of its own, by looking through `obj`.
    error = AttributeError(text, name=name, obj=None)
    error.is_unknown_name = True  # type: ignore[attr-defined]
    return error


def is_unknown(error: Exception) -> bool:
    """Whether `unknown` made it: it would be as wrong in Python."""
    return getattr(error, "is_unknown_name", False)


def in_module(module: str, known: Iterable[str]) -> Callable[[str], Any]:
    """The `__getattr__` of a module whose public names are `known`."""

    def refuse(name: str) -> NoReturn:
        raise unknown(f"module {module!r}", name, known)

    return refuse


class Named(type):
    """The kind of a class whose names are guessed, too."""

    if not TYPE_CHECKING:

        def __getattr__(cls, name: str) -> NoReturn:
            raise unknown(f"type object {cls.__name__!r}", name, dir(cls))


def in_instance(self: object, name: str) -> NoReturn:
    """The `__getattr__` of such a class."""
    kind = type(self)
    raise unknown(f"{kind.__name__!r} object", name, dir(kind))
