"""A trainer: reads a job's rows, notes them in a ledger, saves checkpoints.

Run with a file that says what to read. Each row is in the ledger before the
next one is asked for. Words on its input: "save FILE" and "end".
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
import rows
from ledger import RECORD


def listen(words: queue.SimpleQueue[str]) -> None:
    for line in sys.stdin:
        words.put(line.strip())
    words.put("end")


def save(iterator: Any, path: str, noted: int) -> None:
    """A checkpoint, with how many rows of the ledger come before it."""
    text = json.dumps({"state": iterator.state_dict(), "noted": noted})
    with open(path + ".new", "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.rename(path + ".new", path)


def run(spec: dict[str, Any]) -> None:
    kind = spec["kind"]
    ds = rows.make(kind, spec["count"], Path(spec["files"]))
    ds = ds.distribute(
        spec["address"],
        job=spec["job"],
        reader=spec["reader"],
        num_readers=spec["readers"],
        order="deterministic" if kind == "ordered" else None,
        compression=spec.get("compression"),
    )
    iterator = iter(ds)
    if spec["restore"]:
        saved = json.loads(Path(spec["restore"]).read_text())
        iterator.load_state_dict(saved["state"])
    words: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=listen, args=(words,), daemon=True).start()
    noted = 0
    begin = time.monotonic()
    has_ended = False
    ledger = os.open(spec["ledger"], os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    while True:
        if has_ended or not words.empty():
            word, *rest = words.get().split(" ", 1)
            if word == "end":
                return
            save(iterator, rest[0], noted)
            continue
        try:
            element = next(iterator)
        except StopIteration:
            has_ended = True
            Path(spec["ended"]).touch()
            continue
        ids, is_right, who = rows.read(kind, element)
        if not is_right:
            raise AssertionError(f"wrong bytes in row {ids[:4]}")
        record = np.empty(len(ids), RECORD)
        record["id"], record["who"] = ids, who
        record["at"] = time.monotonic()
        os.write(ledger, record.tobytes())
        noted += len(ids)
        early = begin + noted / spec["rate"] - time.monotonic()
        if early > 0:
            time.sleep(early)


def main() -> int:
    spec = json.loads(Path(sys.argv[1]).read_text())
    try:
        run(spec)
    except Exception:
        Path(spec["error"]).write_text(traceback.format_exc())
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
