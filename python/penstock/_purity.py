"""Whether a Python function may be recorded.

A recording calls the function once, so it is right only if every call would do
the same: the globals and closure values that it touches must be values, pure
functions, or functions of which the same holds. This is read off the
function's bytecode; nothing is called.

Values are numbers, strings, arrays, and tuples, lists and dicts of these: they
are taken as they are when recorded, as a Python function sent to another
process would take them. A function that changes one is refused, and the change
undone.
"""

from __future__ import annotations

import builtins
import dataclasses
import enum
import functools
import inspect
import operator
import sys
import types
from typing import Any

import numpy as np

from penstock import _foreign
from penstock._adapted import Adapted
from penstock._bytecode import Load, RefusalError, loads
from penstock._errors import UnsupportedFunctionError
from penstock._location import refused, shown_line
from penstock._methods import MAKERS, users_methods

_PURE_BUILTINS = frozenset(
    {
        abs,
        all,
        any,
        bool,
        bytes,
        complex,
        dict,
        divmod,
        enumerate,
        filter,
        float,
        frozenset,
        int,
        isinstance,
        issubclass,
        iter,
        len,
        list,
        map,
        max,
        min,
        next,
        object,
        pow,
        range,
        repr,
        reversed,
        round,
        set,
        slice,
        sorted,
        str,
        sum,
        tuple,
        zip,
    }
)
# They tell of a symbolic value what is not so of the value.
_TELLING_BUILTINS = frozenset({getattr, hasattr, type})
_PURE_MODULES = frozenset(
    {"functools", "itertools", "math", "operator", "typing", "collections"}
)
# Functions of numpy that depend on more than their arguments.
_IMPURE_NUMPY = frozenset(
    {
        "empty",
        "empty_like",
        "fromfile",
        "genfromtxt",
        "load",
        "loadtxt",
        "memmap",
        "save",
        "savetxt",
        "savez",
        "savez_compressed",
    }
)
_FUNCTION_KINDS = (
    type,
    types.FunctionType,
    types.MethodType,
    types.BuiltinFunctionType,
    functools.partial,
    np.ufunc,
)
_UNKNOWN = object()

# Name, container, and a copy of it as it was when looked at.
Containers = list[tuple[str, Any, Any]]
# Larger arrays are not copied to see whether they change.
_MAX_ARRAY_BYTES = 1 << 20


# Far from Python's own limit: a finalizer that runs there cannot do its work.
_MAX_DEPTH = 100


class TooDeepError(Exception):
    """What a function reaches is nested deeper than anybody looks."""


_RANDOM_ADVICE = (
    "Use ps.random_uniform, ps.random_normal or ps.random_int, which draw anew "
    "for each element."
)


@dataclasses.dataclass
class Reached:
    """What a function reaches.

    Attributes:
        containers: Recording it must not change them.
        is_foreign: Whether it must be recorded with stand-ins (`_foreign`).
    """

    containers: Containers
    is_foreign: bool


def check(
    function: Any, may_be_foreign: bool = False, is_adapted: bool = False
) -> Reached:
    """Raises UnsupportedFunctionError unless `function` may be recorded.

    Or TooDeepError.

    Args:
        function: Of the user.
        may_be_foreign: Whether it may reach what has stand-ins.
        is_adapted: Whether it is called with values of `penstock.compat`, which
            are of the same types as when it runs as Python.
    """
    checker = _Checker(may_be_foreign, is_adapted)
    try:
        checker.check(function)
    except RefusalError as refusal:
        where = f" ({refusal.where})" if refusal.where else ""
        name = getattr(function, "__qualname__", repr(function))
        name = name.rpartition("<locals>.")[2]
        raise refused(
            UnsupportedFunctionError,
            f"function {name}{where} cannot be recorded as a native function: "
            f"{refusal.name}: {refusal.reason}.\n  {refusal.advice}",
        ) from None
    return Reached(checker.containers, checker.is_foreign)


def put_back(containers: Containers) -> str | None:
    """Undoes what a recording did to what its function had captured.

    Returns:
        The name of something that it had changed, if so.
    """
    changed = None
    for name, container, before in containers:
        if not _is_same(container, before):
            _restore(container, before)
            changed = changed or name
    return changed


def refuse_changes(function: Any, name: str) -> None:
    """Raises because the recording of `function` changed `name`."""
    raise refused(
        UnsupportedFunctionError,
        f"function {getattr(function, '__qualname__', function)!r} "
        "cannot be recorded as a native function: it changes "
        f"{name}. Return what it computes instead.",
    )


def _copy(container: Any) -> Any:
    if isinstance(container, np.ndarray):
        return container.copy()
    if isinstance(container, dict):
        return list(container.items())
    return list(container)


def _is_same(container: Any, before: Any) -> bool:
    if isinstance(container, np.ndarray):
        if container.dtype == object:
            return all(map(operator.is_, container.flat, before.flat))
        return bool(container.tobytes() == before.tobytes())
    now = _copy(container)
    if len(now) != len(before):
        return False
    if isinstance(container, dict):
        return all(
            a is b and x is y
            for (a, x), (b, y) in zip(now, before, strict=True)
        )
    return all(map(operator.is_, now, before))


def _restore(container: Any, before: Any) -> None:
    if isinstance(container, np.ndarray):
        container[...] = before
    elif isinstance(container, list):
        container[:] = before
    elif isinstance(container, set):
        container.clear()
        container.update(before)
    else:
        container.clear()
        for key, value in before:
            container[key] = value


def _call_method(value: Any) -> types.FunctionType | None:
    """The `__call__` that the user wrote for the class of `value`."""
    found = inspect.getattr_static(type(value), "__call__", None)
    return found if isinstance(found, types.FunctionType) else None


def unwrap(function: Any) -> Any:
    """The plain function inside partials, methods and callable objects."""
    while True:
        if isinstance(function, functools.partial):
            function = function.func
        elif isinstance(function, Adapted):
            function = function.function
        elif isinstance(function, types.MethodType):
            function = function.__func__
        elif not hasattr(function, "__code__") and not isinstance(
            function, type
        ):
            call = _call_method(function)
            if call is None:
                return function
            function = call
        else:
            return function


class _Checker:
    """One walk over a function and all that it reaches."""

    def __init__(self, may_be_foreign: bool, is_adapted: bool) -> None:
        self._may_be_foreign = may_be_foreign
        self._is_adapted = is_adapted
        self.is_foreign = False
        # Whether what is looked at has a twin (`_foreign.Twins`), or is itself
        # called while it is recorded.
        self._has_twin = may_be_foreign
        # By identity, and whether it has a twin; kept alive, so that none is
        # another's afterwards.
        self._seen: dict[tuple[int, bool], Any] = {}
        self._seen_code: set[tuple[int, int, bool]] = set()
        self.containers: Containers = []
        self._depth = 0
        self._whole: Any = None  # what is checked
        # Classes of objects that it has or makes, whether it may make them, and
        # names that it uses: what it calls by them is not known where it does.
        self._classes: dict[type, bool] = {}
        self._names: set[str] = set()
        # Whether generators are used as sources, not called.
        self._serves_generators = False

    def check(self, function: Any) -> None:
        code = getattr(unwrap(function), "__code__", None)
        if code is not None and _is_generator(code):
            raise RefusalError(
                "the function",
                "generators and coroutines are no functions of an element",
                shown_line(code.co_filename, code.co_firstlineno),
            )
        self._whole = function
        self._value("the function", function)
        self._has_twin = False
        self._methods()

    def _methods(self) -> None:
        """Refuses methods that may be called, or not."""
        seen = {id(_call_method(self._whole))}
        while True:
            found = [
                (f"{kind.__name__}.{name}", method)
                for kind, is_made in self._classes.items()
                for name, method in users_methods(kind)
                if (name in self._names or name.startswith("__"))
                and (is_made or name not in MAKERS)
                and id(method) not in seen
            ]
            if not found:
                return
            for name, method in found:
                seen.add(id(method))
                self._function(name, method)

    def _value(self, name: str, value: Any) -> None:
        """Refuses `value`, which the function reaches as `name`, or not."""
        if (id(value), self._has_twin) in self._seen:
            return
        self._seen[id(value), self._has_twin] = value
        if self._depth == _MAX_DEPTH:
            raise TooDeepError
        self._depth += 1
        self._look_into(name, value)
        self._depth -= 1

    def _without_twin(self, name: str, value: Any) -> None:
        """As `_value`, of what is called itself."""
        before = self._has_twin
        self._has_twin = False
        self._value(name, value)
        self._has_twin = before

    def _is_foreign(self, name: str, value: Any) -> bool:
        """Whether a stand-in will know what may be done with `value`."""
        if not self._may_be_foreign or not _foreign.is_known(value):
            return False
        if _is_numpy(value):
            return True  # numpy's are pure, and known with and without one.
        if not self._has_twin:
            raise RefusalError(
                name,
                "where it is used, nothing can stand in for it (only functions "
                "that are called by their own names are looked through)",
            )
        self.is_foreign = True
        return True

    def _look_into(self, name: str, value: Any) -> None:
        if self._is_foreign(name, value):
            return
        if _is_random(value):
            raise RefusalError(
                name,
                "it would draw once, for all elements alike",
                advice=_RANDOM_ADVICE,
            )
        if isinstance(value, (list, dict, set)):
            self.containers.append((name, value, _copy(value)))
        if (
            isinstance(value, np.ndarray)
            and value.flags.writeable
            and value.nbytes <= _MAX_ARRAY_BYTES
        ):
            self.containers.append((name, value, _copy(value)))
        if isinstance(value, Adapted):
            self._value(name, value.function)
            return
        if isinstance(value, enum.Enum) or _is_namedtuple(type(value)):
            self._classes.setdefault(type(value), False)
        if _is_constant(value) or _is_ours(value):
            return
        if isinstance(value, (tuple, list, set, frozenset)):
            for item in value:
                self._without_twin(f"an item of {name}", item)
        elif isinstance(value, dict):
            for key, item in value.items():
                self._without_twin(f"a key of {name}", key)
                self._without_twin(f"{name}[{key!r}]", item)
        elif _is_numpy(value) and not isinstance(
            value, (type, types.ModuleType)
        ):
            self._builtin(name, value)
        elif isinstance(value, types.FunctionType):
            self._function(name, value)
        elif isinstance(value, types.MethodType):
            self._function(name, value.__func__, value.__self__)
        elif isinstance(value, functools.partial):
            self._value(name, value.func)
            self._without_twin(f"the arguments of {name}", value.args)
            self._without_twin(f"the arguments of {name}", value.keywords)
        elif isinstance(value, types.ModuleType):
            if not _is_pure_module(value):
                raise RefusalError(
                    name,
                    f"module {value.__name__} may give something else at each "
                    "call",
                )
        elif isinstance(value, type):
            self._class(name, value)
        elif isinstance(value, types.BuiltinFunctionType):
            self._builtin(name, value)
        elif dataclasses.is_dataclass(value) or _call_method(value) is not None:
            self._object(name, value)
        else:
            raise RefusalError(
                name,
                f"{_article(value)} may change between calls",
            )

    def _object(self, name: str, value: Any) -> None:
        self._classes.setdefault(type(value), False)
        if dataclasses.is_dataclass(value):
            for field in dataclasses.fields(value):
                part = getattr(value, field.name, None)
                self._without_twin(f"{name}.{field.name}", part)
        call = _call_method(value)
        if call is not None:
            before = self._has_twin
            self._has_twin = before and value is self._whole
            self._function(name, call, value)
            self._has_twin = before

    def _builtin(self, name: str, value: Any) -> None:
        if isinstance(value, types.BuiltinFunctionType):
            self._refuse_telling(name, value)
            if value in _PURE_BUILTINS or value in _TELLING_BUILTINS:
                return
            if (value.__module__ or "").lstrip("_") in _PURE_MODULES:
                return
        if _is_numpy(value) and _is_pure_numpy(value):
            return
        raise RefusalError(
            name,
            f"{getattr(value, '__name__', value)!r} is not known to give the "
            "same for the same arguments",
        )

    def _refuse_telling(self, name: str, value: Any) -> None:
        if value in _TELLING_BUILTINS and not self._is_adapted:
            raise RefusalError(
                name,
                "it would tell of a symbolic value what is not so of the value",
            )

    def _class(self, name: str, value: type) -> None:
        self._refuse_telling(name, value)
        if (
            issubclass(value, enum.Enum)
            or _is_namedtuple(value)
            or dataclasses.is_dataclass(value)
        ):
            self._classes[value] = not issubclass(value, enum.Enum)
        if (
            value in _PURE_BUILTINS
            or value in _TELLING_BUILTINS
            or issubclass(value, (enum.Enum, BaseException, np.generic))
            or value in (np.dtype, np.ndarray)
            or value.__module__ in _PURE_MODULES
        ):
            return
        if _is_namedtuple(value):
            return
        if dataclasses.is_dataclass(value):
            hook = getattr(value, "__post_init__", None)
            if hook is not None:
                self._without_twin(f"{name}.__post_init__", hook)
            return
        raise RefusalError(
            name,
            f"class {value.__qualname__} is neither a named tuple nor a "
            "dataclass",
        )

    def _function(
        self, name: str, function: Any, receiver: Any = _UNKNOWN
    ) -> None:
        key = (id(function), id(receiver), self._has_twin)
        if key in self._seen_code:
            return
        self._seen_code.add(key)
        code = function.__code__
        if _is_generator(code) and self._serves_generators:
            return  # A source, which runs as Python whatever it does.
        what = f"a default of {name}"
        self._without_twin(what, function.__defaults__ or ())
        self._without_twin(what, function.__kwdefaults__ or {})
        closure: dict[str, Any] = {}
        cells = function.__closure__ or ()
        for variable, cell in zip(code.co_freevars, cells, strict=True):
            try:
                closure[variable] = cell.cell_contents
            except ValueError:
                closure[variable] = _UNKNOWN  # not yet assigned
        known = {}
        if receiver is not _UNKNOWN and code.co_argcount:
            known[code.co_varnames[0]] = receiver
        self._code(code, function.__globals__, closure, known)

    def _code(
        self,
        code: types.CodeType,
        namespace: dict[str, Any],
        closure: dict[str, Any],
        known: dict[str, Any],
    ) -> None:
        self._names.update(code.co_names)
        if "from_generator" in code.co_names:
            self._serves_generators = True
        for load in loads(code, set(closure)):
            value = self._resolve(load, namespace, closure, known)
            try:
                self._chain(load, value)
            except RefusalError as refusal:
                refusal.where = refusal.where or load.where
                raise
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                # Its own variables hide those of the same name outside.
                inner = {
                    name: closure.get(name, _UNKNOWN)
                    for name in constant.co_freevars
                }
                for name in constant.co_freevars:
                    if name in known:
                        inner[name] = known[name]
                self._code(constant, namespace, inner, {})

    def _resolve(
        self,
        load: Load,
        namespace: dict[str, Any],
        closure: dict[str, Any],
        known: dict[str, Any],
    ) -> Any:
        if load.name.startswith("@"):
            return _UNKNOWN  # pytest's, in functions with assertions
        if load.kind == "import":
            return self._imported(load)
        if load.kind == "local":
            return known.get(load.name, _UNKNOWN)
        if load.kind == "cell":
            if load.name in closure:
                return closure[load.name]
            return known.get(load.name, _UNKNOWN)
        if load.name in namespace:
            return namespace[load.name]
        # A name that does not exist is the recording's error to raise.
        return getattr(builtins, load.name, _UNKNOWN)

    def _imported(self, load: Load) -> Any:
        module = sys.modules.get(load.name)
        if module is None and self._may_be_foreign:
            module = _foreign.imported(load.name)
        if module is None:
            raise RefusalError(
                load.name, "it is imported while the function runs"
            )
        return module

    def _chain(self, load: Load, value: Any) -> None:
        """Checks what `a.b.c` comes to, going on as long as it is known."""
        if value is _UNKNOWN:
            return
        name = load.name
        is_own = True
        for attribute in load.attributes:
            is_module = isinstance(value, types.ModuleType)
            if is_module and _foreign.is_constant(value, attribute):
                return
            if self._is_foreign(name, value):
                return
            is_own = False
            if isinstance(value, types.ModuleType):
                if _is_ours(value):
                    return
                inner = getattr(value, attribute, _UNKNOWN)
                if not _may_be_read(value, inner):
                    self._value(name, value)
            elif _is_constant(value) or isinstance(
                value, (tuple, list, dict, set, frozenset)
            ):
                break  # A method or an attribute of a value.
            elif isinstance(value, _FUNCTION_KINDS) or _is_ours(value):
                break  # `function.attribute`: judged by the function.
            else:
                inner = _attribute(value, attribute)
                if inner is _UNKNOWN:
                    self._value(name, value)
                    raise RefusalError(
                        f"{name}.{attribute}",
                        f"{_article(value)}'s attributes may be computed "
                        "anew at each call",
                    )
            value = inner
            name = f"{name}.{attribute}"
            if value is _UNKNOWN:
                return
        if is_own:
            self._value(name, value)
        else:
            self._without_twin(name, value)


def _is_namedtuple(kind: type) -> bool:
    return issubclass(kind, tuple) and hasattr(kind, "_fields")


def _is_generator(code: types.CodeType) -> bool:
    return bool(
        code.co_flags
        & (
            inspect.CO_GENERATOR
            | inspect.CO_COROUTINE
            | inspect.CO_ASYNC_GENERATOR
        )
    )


def _article(value: Any) -> str:
    kind = type(value)
    return f"a {kind.__module__}.{kind.__qualname__}"


def _is_random(value: Any) -> bool:
    """Whether `value` is made to give something else at each call."""
    module = _module_of(value)
    return module in ("random", "secrets") or module.startswith("numpy.random")


def _module_of(value: Any) -> str:
    """The name of the module that `value`, or else its class, is of."""
    module = (
        value.__name__
        if isinstance(value, types.ModuleType)
        else getattr(value, "__module__", None)
    )
    return module if isinstance(module, str) else type(value).__module__


def _may_be_read(module: types.ModuleType, inner: Any) -> bool:
    """Whether an attribute of `module` can be judged by itself.

    Constants can, and the functions and classes of a user's own module; those
    of the standard library may call anything.
    """
    if _is_pure_module(module) or isinstance(inner, types.ModuleType):
        return True
    if isinstance(inner, (types.FunctionType, type)):
        top = module.__name__.partition(".")[0]
        return top not in sys.stdlib_module_names
    return _is_constant(inner)


def _attribute(value: Any, name: str) -> Any:
    found = inspect.getattr_static(value, name, _UNKNOWN)
    if isinstance(found, types.FunctionType):
        return types.MethodType(found, value)
    if isinstance(found, staticmethod):
        return found.__func__
    if isinstance(found, classmethod):
        return types.MethodType(found.__func__, type(value))
    if isinstance(found, types.MemberDescriptorType):  # a slot
        return getattr(value, name, _UNKNOWN)
    if hasattr(type(found), "__get__"):
        return _UNKNOWN
    return found


def _is_constant(value: Any) -> bool:
    if value is None or value is Ellipsis or value is NotImplemented:
        return True
    if isinstance(value, np.ndarray):
        return value.dtype != object or all(
            isinstance(item, (str, bytes)) for item in value.reshape(-1)
        )
    return isinstance(
        value,
        (
            bool,
            int,
            float,
            complex,
            str,
            bytes,
            range,
            slice,
            enum.Enum,
            np.generic,
            np.dtype,
        ),
    )


def _is_ours(value: Any) -> bool:
    from penstock._pipeline import Pipeline
    from penstock._symbol import Symbol

    if isinstance(value, (Pipeline, Symbol)):
        return True
    return _module_of(value).partition(".")[0] == "penstock"


def _is_numpy(value: Any) -> bool:
    if isinstance(value, np.ufunc):
        return True
    module = getattr(value, "__module__", None) or ""
    return isinstance(module, str) and module.partition(".")[0] == "numpy"


def _is_pure_numpy(value: Any) -> bool:
    module = getattr(value, "__module__", None) or ""
    if "random" in module:
        return False
    return getattr(value, "__name__", "") not in _IMPURE_NUMPY


def _is_pure_module(module: types.ModuleType) -> bool:
    name = module.__name__
    if name.partition(".")[0] == "numpy":
        return not name.startswith("numpy.random")
    return name in _PURE_MODULES or _is_ours(module)
