"""How the Python functions of a pipeline get to the workers of a service."""

from __future__ import annotations

import os
from collections.abc import Iterable

from penstock import _code, _engine, _named
from penstock._captures import RowsCapture
from penstock._local_service import accept
from penstock._packed import pickled
from penstock._pipeline import Json
from penstock._python import FunctionCapture


def ship(
    captures: Iterable[_engine.Capture],
    code: Iterable[str | os.PathLike[str]] | None,
    pickle: bool,
    address: str,
) -> tuple[Json, list[_engine.Capture]]:
    """Fields of a Distribution, and what they name.

    Args:
        captures: Of the pipeline; functions that stay here may be among them.
        code: Modules that go along.
        pickle: Whether functions that have no name go as pickles.
        address: Of the service: one of this process's own accepts the code.
    """
    archive = None if code is None else _code.make(code)
    functions: list[Json] = []
    sent: list[_engine.Capture] = []
    for capture in captures:
        if not isinstance(capture, FunctionCapture):
            continue
        entry: Json = {"function": capture.id}
        try:
            document = _named.write(capture.packed(), archive)
        except _named.NoNameError as error:
            if not pickle:
                entry["refusal"] = _advice(str(error))
                functions.append(entry)
                continue
            document = pickled(capture.data())
        sent.append(RowsCapture.of_bytes(document))
        functions.append({**entry, "document": sent[-1].id})
    body: Json = {"functions": functions}
    if archive is not None:
        sent.append(RowsCapture.of_bytes(archive.archive))
        body["code"] = {
            "archive": sent[-1].id,
            "sha256": archive.sha256,
            "contents": list(archive.contents),
        }
        accept(address, archive)
    return body, sent


def _advice(why: str) -> str:
    return (
        f"It cannot go to workers by its name: {why}.\n  Or write it with "
        "Penstock's functions, move it behind distribute(), or send it as a "
        "pickle: distribute(..., pickle=True), to workers that were started "
        "with --allow-pickle."
    )
