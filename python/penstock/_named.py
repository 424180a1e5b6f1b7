"""Functions that travel by name: what a worker is told instead of a pickle.

A document says which function of which module, with which plain values it is
called besides its elements, and how. Reading one runs no code but that of the
module, which must be one that came along.
"""

from __future__ import annotations

import base64
import dataclasses
import functools
import importlib
import inspect
import json
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from penstock import _spec
from penstock._adapted import Adapted
from penstock._code import Code
from penstock._packed import Packed

# How a document begins; no pickle does.
MAGIC = b"PSNAMED1"


class NoNameError(Exception):
    """Why a function cannot travel by name: what is expected, and found."""


def write(packed: Packed, code: Code | None) -> bytes:
    """The document of a function; NoNameError if it has none."""
    function, arguments, keywords = _unwrap(packed.function)
    module, name = _place_of(function, code)
    types = {
        **_spec.types_of(packed.inputs),
        **_spec.types_of(packed.outputs),
    }
    for each in types.values():
        _check_type(each, code)
    document = {
        "module": module,
        "function": name,
        "arguments": [_to_json(each) for each in arguments],
        "keywords": {key: _to_json(each) for key, each in keywords.items()},
        "name": packed.name,
        "inputs": _spec.to_json(packed.inputs),
        "outputs": _spec.to_json(packed.outputs),
        "use": packed.use,
        "has_rng": packed.has_rng,
    }
    return MAGIC + json.dumps(document, sort_keys=True).encode()


def read(data: bytes, is_own: Callable[[str], bool]) -> Packed:
    """What `write` wrote.

    Args:
        data: The document.
        is_own: Whether a module, a full name, came along.
    """
    document = json.loads(data[len(MAGIC) :])
    module, name = document["module"], document["function"]
    if not isinstance(name, str) or not is_own(module):
        raise PermissionError(
            f"a function must be of code that came along; got {module}:{name}"
        )
    function = getattr(importlib.import_module(module), name, None)
    # Not what the module has imported: that is no code that was accepted.
    if not inspect.isfunction(function) or not is_own(function.__module__):
        raise PermissionError(
            f"expected a function that the module defines; got {module}:{name}"
        )
    bound: Callable[..., Any] = function
    if document["arguments"] or document["keywords"]:
        bound = functools.partial(
            function,
            *map(_from_json, document["arguments"]),
            **{k: _from_json(v) for k, v in document["keywords"].items()},
        )
    return Packed(
        bound,
        document["name"],
        _structure(document["inputs"], is_own),
        _structure(document["outputs"], is_own),
        document["use"],
        document["has_rng"],
    )


def _unwrap(
    function: Any,
) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """What a partial is of, and what it adds."""
    arguments: tuple[Any, ...] = ()
    keywords: dict[str, Any] = {}
    while isinstance(function, functools.partial):
        arguments = (*function.args, *arguments)
        keywords = {**function.keywords, **keywords}
        function = function.func
    return function, arguments, keywords


def _place_of(function: Any, code: Code | None) -> tuple[str, str]:
    """The module and the name of a function that can be found by them."""
    if isinstance(function, Adapted):
        raise NoNameError(
            "functions over the values of penstock.compat go as pickles only"
        )
    if not inspect.isfunction(function):
        raise NoNameError(
            "only functions, and functools.partial of them, have names that "
            f"workers can look up; got {type(function).__name__}"
        )
    module, name = function.__module__, function.__qualname__
    if module == "__main__":
        raise NoNameError(
            f"{name} is of the program itself, which workers cannot import. "
            'Put it into a module, and give distribute(code=["that_module"])'
        )
    if "<" in name or "." in name:
        raise NoNameError(
            f"{module}:{name} is made inside of a function or class, and has "
            "no name of its own. Define it at the top level of its module; "
            "what it captures can be given with functools.partial"
        )
    if getattr(sys.modules.get(module), name, None) is not function:
        raise NoNameError(
            f"{module}:{name} is not what the module has by that name"
        )
    if code is None or not code.has(module):
        top = module.partition(".")[0]
        raise NoNameError(
            f"{module}:{name} must be of code that goes along. Give "
            f'distribute(code=["{top}"])'
        )
    return module, name


def _check_type(cls: type, code: Code | None) -> None:
    module, colon, name = _spec.type_name(cls).partition(":")
    if not colon:
        return
    if code is None or not code.has(module) or "." in name:
        raise NoNameError(
            f"its elements are of class {module}:{name}, which must be at the "
            "top level of code that goes along too"
        )


def _structure(message: Any, is_own: Callable[[str], bool]) -> Any:
    """The structure of an ElementSpec message, of classes that came along."""
    types: dict[str, type] = {}

    def visit(part: Any) -> None:
        if isinstance(part, dict):
            name = part.get("type_name")
            if isinstance(name, str) and ":" in name:
                types[name] = _class_of(name, is_own)
            for each in part.values():
                visit(each)
        elif isinstance(part, list):
            for each in part:
                visit(each)

    visit(message)
    return _spec.from_json(message, types)


def _class_of(name: str, is_own: Callable[[str], bool]) -> type:
    module, _, qualname = name.partition(":")
    found: Any = None
    if is_own(module):
        found = getattr(importlib.import_module(module), qualname, None)
    is_named = isinstance(found, type) and (
        dataclasses.is_dataclass(found)
        or (issubclass(found, tuple) and hasattr(found, "_fields"))
    )
    if not is_named or not is_own(found.__module__):
        raise PermissionError(
            "elements must be of named tuples and dataclasses that came along; "
            f"got {name}"
        )
    cls: type = found
    return cls


# ---- Plain values as JSON: what JSON lacks is an object with one key.


def _to_json(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        if type(value) in (type(None), bool, int, float, str):
            return value
    elif isinstance(value, bytes):
        return {"bytes": base64.b64encode(value).decode()}
    elif type(value) is list:
        return [_to_json(each) for each in value]
    elif type(value) is tuple:
        return {"tuple": [_to_json(each) for each in value]}
    elif type(value) is dict:
        return {"dict": [[_to_json(k), _to_json(v)] for k, v in value.items()]}
    elif isinstance(value, np.generic | np.ndarray) and value.dtype.kind in (
        "biufc"
    ):
        array = np.ascontiguousarray(value)
        data = base64.b64encode(array.tobytes()).decode()
        is_scalar = isinstance(value, np.generic)
        shape = None if is_scalar else list(value.shape)
        return {"array": [array.dtype.str, shape, data]}
    raise NoNameError(
        "a partial's arguments must be plain values (numbers, strings, lists, "
        f"dicts, arrays of numbers); got {type(value).__name__}"
    )


def _from_json(value: Any) -> Any:
    if isinstance(value, list):
        return [_from_json(each) for each in value]
    if not isinstance(value, dict):
        return value
    ((kind, given),) = value.items()
    if kind == "bytes":
        return base64.b64decode(given)
    if kind == "tuple":
        return tuple(map(_from_json, given))
    if kind == "dict":
        return {_from_json(k): _from_json(v) for k, v in given}
    dtype, shape, data = given
    array = np.frombuffer(base64.b64decode(data), np.dtype(dtype)).copy()
    return array[0] if shape is None else array.reshape(shape)
