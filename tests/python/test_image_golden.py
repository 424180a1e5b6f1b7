"""Images: the same results as TensorFlow's, kept in image_golden.npz."""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps

_FOLDER = Path(__file__).parents[2] / "src/penstock/functions/testdata"
_GOLDEN = dict(np.load(_FOLDER / "image_golden.npz"))
_CASES = json.loads(_GOLDEN["cases"].tobytes())
_CUTS = json.loads(_GOLDEN["cuts"].tobytes())
_CALLS = sorted({case["call"] for case in _CASES})


def _value(argument: Any) -> Any:
    if isinstance(argument, str) and argument.startswith("@"):
        array = _GOLDEN[argument[1:]]
        return array.tobytes() if argument.startswith("@file_") else array
    return argument


def _wrong(case: dict[str, Any]) -> str | None:
    """What is wrong with a case's result, if anything."""
    function = getattr(ps.image, case["call"])
    want = case["want"]
    try:
        got = function(*map(_value, case["args"]), **case["kwargs"])
    except ps.InvalidArgumentError as error:
        return None if want is None else str(error)
    if isinstance(got, bytes) and want is not None:
        written = ["bytes", [len(got)], zlib.crc32(got)]
        return None if written == want else f"got {written}, want {want}"
    got = np.asarray(got)
    if want is None:
        return f"no error but {got.dtype}{got.shape}"
    if isinstance(want, list):
        found = [str(got.dtype), list(got.shape), zlib.crc32(got.tobytes())]
        return None if found == want else f"got {found}, want {want}"
    array = _GOLDEN[want]
    if got.shape != array.shape or got.dtype != array.dtype:
        return f"{got.dtype}{got.shape}, not {array.dtype}{array.shape}"
    worst = float(np.abs(got.astype(np.float64) - array).max(initial=0))
    return None if worst <= case["tolerance"] else f"differs by {worst}"


@pytest.mark.parametrize("call", _CALLS)
def test_results_are_those_of_tensorflow(call: str) -> None:
    wrong = {
        f"{call} {case['args']} {case['kwargs']}": found
        for case in _CASES
        if case["call"] == call and (found := _wrong(case)) is not None
    }
    assert not wrong, "\n".join(f"{k}: {v}" for k, v in wrong.items())


@pytest.mark.parametrize("number", range(len(_CUTS)))
def test_a_cut_file_is_an_error_where_it_is_one(number: int) -> None:
    cut = _CUTS[number]
    contents = _value(cut["file"])
    function = getattr(ps.image, cut["call"])
    options = cut["kwargs"]
    files = [contents[:size] for size in range(len(contents) + 1)]
    ds = ps.Dataset.from_list(files).map(lambda x: function(x, **options))
    rows = iter(ds)
    got: list[int | None] = []
    for _ in files:
        try:
            got.append(zlib.crc32(next(rows).tobytes()))
        except ps.InvalidArgumentError:
            got.append(None)
    differ = [i for i in range(len(got)) if got[i] != cut["want"][i]]
    # All pixels are there, and only the mark of a JPEG's end is not: an error
    # in TensorFlow alone.
    whole = len(contents) - 2
    if contents.endswith(b"\xff\xd9") and got[whole] == got[-1]:
        differ = [i for i in differ if i != whole]
    assert not differ
