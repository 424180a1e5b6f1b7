"""What code does, read off its bytecode; nothing is called."""

from __future__ import annotations

import dataclasses
import dis
import types
from collections.abc import Iterator

from penstock._location import shown_line

_LOADS = frozenset(
    {"LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_CLASSDEREF"}
)
_ATTRIBUTES = frozenset({"LOAD_ATTR", "LOAD_METHOD"})
# Between the load of a name and that of its attribute.
_FILLERS = frozenset({"CACHE", "EXTENDED_ARG", "NOP", "PRECALL", "PUSH_NULL"})
_REFUSED = {
    "STORE_GLOBAL": "it assigns to a global",
    "DELETE_GLOBAL": "it deletes a global",
    "STORE_ATTR": "it assigns to an attribute",
    "DELETE_ATTR": "it deletes an attribute",
}
_ADVICE = (
    "Only functions that compute with their arguments, constants and "
    "Penstock's or numpy's functions can run in the engine in this version; "
    "pass what changes as an element (from_generator, zip) instead."
)


class RefusalError(Exception):
    """Why a function cannot be recorded, and of what that is said."""

    def __init__(
        self, name: str, reason: str, where: str = "", advice: str = _ADVICE
    ) -> None:
        super().__init__(reason)
        self.name = name
        self.reason = reason
        self.where = where  # file:line
        self.advice = advice


@dataclasses.dataclass
class Load:
    """A name that code loads, and the attributes that it takes of it."""

    kind: str  # "global", "cell", "local" or "import"
    name: str
    attributes: list[str]
    where: str  # file:line


def loads(code: types.CodeType, captured: set[str]) -> Iterator[Load]:
    """The names that `code` loads, each with the attributes taken of it."""
    instructions = [
        i for i in dis.get_instructions(code) if i.opname not in _FILLERS
    ]
    line = code.co_firstlineno
    imports: dict[str, str] = {}
    for at, instruction in enumerate(instructions):
        opname = instruction.opname
        line = line_of(instruction) or line
        where = shown_line(code.co_filename, line)
        if opname in _REFUSED:
            raise RefusalError(str(instruction.argval), _REFUSED[opname], where)
        if opname == "STORE_DEREF" and instruction.argval in captured:
            raise RefusalError(
                str(instruction.argval),
                "it assigns to a variable of the function around it",
                where,
            )
        attributes = []
        for following in instructions[at + 1 :]:
            if following.opname not in _ATTRIBUTES:
                break
            attributes.append(str(following.argval))
        name = instruction.argval
        if opname in _LOADS:
            kind = "cell" if "DEREF" in opname else "global"
            yield Load(kind, name, attributes, where)
        elif opname == "IMPORT_NAME":
            # `from m import a, b` takes names one by one; `import m` is kept
            # in a variable, whose attributes are then those of the module.
            names = [
                str(i.argval)
                for i in instructions[at + 1 :]
                if i.opname == "IMPORT_FROM"
            ]
            is_from = instructions[at - 1].argval is not None
            for imported in names if is_from else ():
                yield Load("import", name, [imported], where)
            following = instructions[at + 1]
            if following.opname == "STORE_FAST":
                # `import a.b` gives a.
                imports[following.argval] = name.partition(".")[0]
            elif not is_from:
                # `import a.b as c`, or for a function inside this one.
                yield Load("import", name, [], where)
        elif opname.startswith("LOAD_FAST"):
            last = name[-1] if isinstance(name, tuple) else name
            if last in imports:
                yield Load("import", imports[last], attributes, where)
            else:
                yield Load("local", last, attributes, where)


def names_on_line(frame: types.FrameType) -> list[str]:
    """The names that the line of `frame` uses."""
    line = None
    names = []
    for instruction in dis.get_instructions(frame.f_code):
        line = line_of(instruction) or line
        if line == frame.f_lineno and isinstance(instruction.argval, str):
            names.append(instruction.argval)
    return names


def line_of(instruction: dis.Instruction) -> int | None:
    """The source line of an instruction, if it says."""
    positions = getattr(instruction, "positions", None)
    if positions is not None:
        found: int | None = positions.lineno
        return found
    return instruction.starts_line
