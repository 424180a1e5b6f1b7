"""A trainer: reads a job's rows, notes them in a ledger, saves checkpoints.

Run with a file that says what to read. Each row is in the ledger before the
next one is asked for. Words on its input: "save FILE", "slow SECONDS", "end".
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

_SLOW_STEP = 0.05  # seconds that an element takes when it is slow


def listen(words: queue.SimpleQueue[str]) -> None:
    for line in sys.stdin:
        words.put(line.strip())
    words.put("end")


def save(iterator: Any, path: str, noted: int, row: int) -> None:
    """A checkpoint, with what comes before it.

    Args:
        iterator: Where it is.
        path: Of the file.
        noted: Records of this life's ledger.
        row: Elements since the first life began.
    """
    place = {"state": iterator.state_dict(), "noted": noted, "row": row}
    text = json.dumps(place)
    with open(path + ".new", "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.rename(path + ".new", path)


def run(spec: dict[str, Any]) -> None:
    kind = spec["kind"]
    ds = rows.make(kind, spec["count"], Path(spec["files"]))
    iterator = iter(ds.distribute(spec["address"], **spec["settings"]))
    row = spec["row"]
    if spec["restore"]:
        saved = json.loads(Path(spec["restore"]).read_text())
        iterator.load_state_dict(saved["state"])
        row = saved["row"]
    words: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=listen, args=(words,), daemon=True).start()
    noted = 0
    begin = time.monotonic()
    slow_until = 0.0
    has_ended = False
    ledger = os.open(spec["ledger"], os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    while True:
        if has_ended or not words.empty():
            word, *rest = words.get().split(" ", 1)
            if word == "end":
                return
            if word == "slow":
                slow_until = time.monotonic() + float(rest[0])
            else:
                save(iterator, rest[0], noted, row)
            continue
        element = next(iterator, None) if row < spec["most"] else None
        if element is None:
            has_ended = True
            Path(spec["ended"]).touch()
            continue
        ids, is_right, who = rows.read(kind, element)
        if not is_right:
            raise AssertionError(f"wrong bytes in row {ids[:4]}")
        record = np.empty(len(ids), RECORD)
        record["id"], record["who"], record["row"] = ids, who, row
        record["at"] = time.monotonic()
        os.write(ledger, record.tobytes())
        noted += len(ids)
        row += 1
        early = begin + noted / spec["rate"] - time.monotonic()
        if time.monotonic() < slow_until:
            early = max(early, _SLOW_STEP)
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
