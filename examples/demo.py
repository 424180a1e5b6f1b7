"""What `make demo` shows: a real pipeline, what it did, and that it survives.

Makes TFRecord and text files in a temporary directory, reads them through a
pipeline with shuffle, map, filter and batch, says what limits one that decodes
photographs and tunes it, kills the engine in mid-run, has a dispatcher and
workers run the pipeline and kills those, too, and counts every element at the
end.
"""

from __future__ import annotations

import os
import shutil
import signal
import struct
import sys
import tempfile
import textwrap
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

import penstock as ps
from penstock.run import Result, report

FILES = 8
RECORDS_PER_FILE = 25_000
RECORDS = FILES * RECORDS_PER_FILE
BATCH = 256
PHOTOGRAPHS = 96


def crc32c(rows: np.ndarray) -> np.ndarray:
    """The masked CRC-32C of each row of bytes, as TFRecord files hold it."""
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ 0x82F63B78, table >> 1)
    crc = np.full(len(rows), 0xFFFFFFFF, np.uint32)
    for column in rows.T:
        crc = table[(crc ^ column) & 0xFF] ^ (crc >> 8)
    crc = crc ^ np.uint32(0xFFFFFFFF)
    return ((crc >> 15) | (crc << 17)) + np.uint32(0xA282EAD8)


def write_tfrecords(path: Path, ids: range) -> None:
    """A record per id: its decimal digits, twelve of them."""
    payload = np.frombuffer(
        b"".join(b"%012d" % i for i in ids), np.uint8
    ).reshape(len(ids), 12)
    length = np.frombuffer(struct.pack("<Q", 12), np.uint8)
    head = crc32c(length[None, :]).view(np.uint8)
    columns = [
        np.broadcast_to(length, (len(ids), 8)),
        np.broadcast_to(head, (len(ids), 4)),
        payload,
        crc32c(payload).view(np.uint8).reshape(len(ids), 4),
    ]
    path.write_bytes(np.concatenate(columns, axis=1).tobytes())


def make_data(directory: Path) -> None:
    for number in range(FILES):
        first = number * RECORDS_PER_FILE
        write_tfrecords(
            directory / f"train-{number:02d}.tfrecord",
            range(first, first + RECORDS_PER_FILE),
        )
    lines = "".join(f"sentence number {i}\n" for i in range(50_000))
    (directory / "corpus.txt").write_text(lines)


def make_pipeline(directory: Path) -> ps.Dataset:
    records = ps.Dataset.list_files(
        str(directory / "train-*.tfrecord"), shuffle=True, seed=7
    ).interleave(ps.TFRecordDataset, cycle_length=4, block_length=16)
    weights = ps.Dataset.random(seed=1).map(lambda x: (x % 1000) / 1000)
    return (
        ps.Dataset.zip((records, weights))
        .shuffle(10_000, seed=3)
        .map(lambda record, weight: (record, ps.cast(weight, ps.float32)))
        .filter(lambda record, weight: weight < 0.9)
        .batch(BATCH)
        .prefetch()
    )


def make_photographs() -> list[bytes]:
    """JPEG files of 512 x 384: smooth colours, and some grain."""
    random = np.random.default_rng(1)
    files = []
    for _ in range(PHOTOGRAPHS):
        coarse = random.integers(0, 230, (12, 16, 3), np.uint8)
        pixels = coarse.repeat(32, axis=0).repeat(32, axis=1)
        pixels += random.integers(0, 25, (384, 512, 1), np.uint8)
        files.append(bytes(ps.image.encode_jpeg(pixels)))
    return files


def small(file: bytes) -> Any:
    image = ps.image.resize(ps.image.decode_jpeg(file, channels=3), (160, 160))
    return ps.cast(image, ps.float32) / 255


def rate(ds: ps.Dataset, skip: int) -> float:
    """Elements a second, after the first `skip`."""
    iterator = iter(ds)
    for _ in range(skip):
        next(iterator)
    start, count = time.monotonic(), 0
    while time.monotonic() < start + 1:
        next(iterator)
        count += 1
    return count / (time.monotonic() - start)


def show_tuning() -> None:
    """A pipeline as first written, what limits it, and what tune() does."""
    files = ps.Dataset.from_tensor_slices(make_photographs())
    ds = files.map(small, num_parallel_calls=1).repeat().batch(32)
    tuned = ds.tune(memory="1GB", seconds=3)
    epoch = PHOTOGRAPHS // 32
    before, after = rate(ds, 0), rate(tuned, 2 * epoch)
    print(f"  as written: {before:,.0f} batches/s")
    print(f"  {tuned.explanation.verdict}")
    print(textwrap.indent(str(tuned.diff(ds)), "  "))
    print(f"  tuned: {after:,.0f} batches/s from the second epoch on")


def engine_pids() -> list[int]:
    """The processes that the package started beside this one."""
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text()
    return [
        int(pid)
        for pid in children.split()
        if Path(f"/proc/{pid}/comm").read_text().startswith("penstock")
    ]


def bar(done: float, text: str) -> None:
    if sys.stdout.isatty():
        full = round(done * 30)
        print(f"\r\x1b[K  {'█' * full}{'·' * (30 - full)} {text}", end="")
        sys.stdout.flush()


def clear() -> None:
    if sys.stdout.isatty():
        print("\r\x1b[K", end="")


def drain(ds: ps.Dataset, kill_at: int | None) -> tuple[Counter[bytes], Result]:
    """Every record with how often it came, and what the run did."""
    seen: Counter[bytes] = Counter()
    result = Result()
    iterator = iter(ds)
    start = time.monotonic()
    for records, weights in iterator:
        assert records.shape == weights.shape
        seen.update(records.tolist())
        result.elements += 1
        done = len(seen) / (RECORDS * 0.9)
        bar(min(1.0, done), f"{len(seen):,} records")
        if kill_at is not None and len(seen) > kill_at:
            kill_at = None
            for pid in engine_pids():
                os.kill(pid, signal.SIGKILL)
                clear()
                print(f"  killed the engine (process {pid})")
    result.seconds = time.monotonic() - start
    result.stats = iterator.stats()
    clear()
    return seen, result


def drain_service(directory: Path) -> tuple[Counter[bytes], int]:
    """The same records from workers, some of which are killed on the way."""
    seen: Counter[bytes] = Counter()
    files = ps.Dataset.list_files(
        str(directory / "train-*.tfrecord"), shuffle=True, seed=7
    )
    ds = files.interleave(ps.TFRecordDataset, cycle_length=4).batch(BATCH)
    killed = 0
    with ps.LocalService(workers=2) as service:
        print(f"  a dispatcher at {service.address}, two workers")
        kill_at = [RECORDS // 4, RECORDS // 2]
        for records in ds.distribute(service.address, job="demo"):
            seen.update(records.tolist())
            bar(len(seen) / RECORDS, f"{len(seen):,} records")
            if kill_at and len(seen) > kill_at[0]:
                kill_at.pop(0)
                is_worker = killed == 0
                pid = service.dispatcher_pid
                if is_worker:
                    pid = service.worker_pids[0]
                os.kill(pid, signal.SIGKILL)
                killed += 1
                clear()
                name = "a worker" if is_worker else "the dispatcher"
                print(f"  killed {name} (process {pid})")
    clear()
    return seen, killed


def main() -> int:
    directory = Path(tempfile.mkdtemp(prefix="penstock-demo-"))
    try:
        print(f"1. {RECORDS:,} TFRecords in {FILES} files, and a text file")
        make_data(directory)

        ds = make_pipeline(directory)
        print("\n2. The pipeline\n")
        print(ds.describe())
        print("3. A run, and where the time went\n")
        whole, result = drain(ds, kill_at=None)
        print(report(result))

        print("\n4. Photographs: what limits them, and what tune() does\n")
        show_tuning()

        print("\n5. The first pipeline, its engine killed in the middle")
        again, _ = drain(make_pipeline(directory), kill_at=RECORDS // 3)
        lost = len(whole.keys() - again.keys())
        twice = sum(count > 1 for count in again.values())
        extra = len(again.keys() - whole.keys())
        print(
            f"  {len(again):,} records: {lost} lost, {twice} seen twice, "
            f"{extra} that do not belong"
        )
        is_exact = whole == again and len(whole) > 0.85 * RECORDS

        lines = ps.TextLineDataset(str(directory / "corpus.txt"))
        iterator = iter(lines.shuffle(1000, seed=5).batch(100))
        for _ in range(200):
            next(iterator)
        state = iterator.state_dict()
        rest = [batch.tolist() for batch in iterator]
        resumed = iter(lines.shuffle(1000, seed=5).batch(100))
        resumed.load_state_dict(state)
        is_resumed = [batch.tolist() for batch in resumed] == rest
        print("\n6. A shuffled text pipeline, saved at batch 200 and resumed")
        print(
            f"  {len(rest)} batches left: "
            f"{'the same ones' if is_resumed else 'NOT the same ones'}; "
            f"the state is {len(str(state)):,} characters"
        )

        print("\n7. The records from workers, two processes killed on the way")
        served, _ = drain_service(directory)
        lost = RECORDS - len(served)
        twice = sum(count > 1 for count in served.values())
        print(f"  {len(served):,} records: {lost} lost, {twice} seen twice")
        is_exact = is_exact and lost == 0 and twice == 0
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    if not (is_exact and is_resumed):
        print("\nSomething is wrong: please report this.")
        return 1
    print("\nEvery element counted once. Read README.md for your own pipeline.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
