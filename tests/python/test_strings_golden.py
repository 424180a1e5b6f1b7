"""String functions and tables against what TensorFlow gives."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps

GOLDEN = (
    Path(__file__).parents[2]
    / "src/penstock/functions/testdata/string_golden.jsonl"
)


def _read() -> dict[str, list[dict[str, Any]]]:
    calls = defaultdict(list)
    for line in GOLDEN.read_text().splitlines():
        call = json.loads(line)
        calls[call["call"]].append(call)
    return calls


CALLS = _read()


def decoded(value: dict[str, Any]) -> Any:
    if "bytes" in value:
        return value["bytes"].encode("latin-1")
    if "strings" in value:
        items = [item.encode("latin-1") for item in value["strings"]]
        return np.array(items, object).reshape(value["shape"])
    if "values" in value:
        return ps.Ragged(decoded(value["values"]), decoded(value["row_splits"]))
    dtype = np.dtype(value["dtype"])
    items = value["items"]
    if dtype.kind == "f":
        items = [float.fromhex(item) for item in items]
    if dtype.kind == "c":
        items = [complex(*item) for item in items]
    return np.array(items, dtype).reshape(value["shape"])


def evaluate(name: str, args: list[Any], options: dict[str, Any]) -> Any:
    if name == "vocabulary":
        return ps.lookup.Vocabulary(args[1], **options).lookup(args[0])
    if name == "join":
        return ps.strings.join(args, **options)
    return getattr(ps.strings, name)(*args, **options)


def same(got: Any, want: Any) -> bool:
    if isinstance(want, ps.Ragged):
        return all(map(same, got, want))
    if isinstance(want, bytes):
        return bool(got == want)
    got = np.asarray(got)
    if got.dtype != want.dtype or got.shape != want.shape:
        return False
    if want.dtype == object:
        return got.tolist() == want.tolist()
    return bool(np.array_equal(got, want, equal_nan=want.dtype.kind in "fc"))


@pytest.mark.parametrize("name", sorted(CALLS))
def test_gives_what_tensorflow_gives(name: str) -> None:
    wrong = []
    for call in CALLS[name]:
        args = [decoded(arg) for arg in call["args"]]
        options = call.get("options", {})
        try:
            got = evaluate(name, args, options)
        except (ps.InvalidArgumentError, ps.InvalidTypeError) as error:
            if call["result"] != "error":
                wrong.append((args, options, str(error), call["result"]))
            continue
        if call["result"] == "error":
            wrong.append((args, options, got, "error"))
        elif not same(got, decoded(call["result"])):
            wrong.append((args, options, got, decoded(call["result"])))
    assert not wrong, f"{len(wrong)} of {len(CALLS[name])}; {wrong[:5]}"
