"""What is in a file, as a function."""

from __future__ import annotations

import os
from typing import Any

from penstock._errors import NotFoundError, UnsupportedFunctionError
from penstock._location import refused
from penstock._symbol import Symbol


def read_file(filename: Any) -> Any:
    """What is in a file, as bytes.

    `map(ps.io.read_file)` over names reads many files at once, in the engine,
    and gives their contents in order; a file that cannot be read is an error of
    its element. Decode in a `map` after it: a function that reads a file among
    other things runs as Python as a whole.

    Example:
        >>> import pathlib, tempfile
        >>> file = pathlib.Path(tempfile.mkdtemp()) / "a.txt"
        >>> _ = file.write_text("hello")
        >>> ps.io.read_file(file)
        b'hello'
        >>> names = ps.Dataset.from_list([str(file)])
        >>> list(names.map(ps.io.read_file).map(ps.strings.length))
        [np.int32(5)]

    Args:
        filename: A path; of a relative one, below the current folder.
    """
    if isinstance(filename, Symbol):
        raise UnsupportedFunctionError(
            "ps.io.read_file cannot be recorded with other functions. Use "
            "map(ps.io.read_file), and another map for what comes after."
        )
    path = os.fsdecode(filename)
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        raise refused(
            NotFoundError,
            f"expected a file; found none at {path}.\n"
            "  Relative paths begin at the folder of the process.",
        ) from None
