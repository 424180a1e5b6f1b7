"""`penstock meta` on stores of format 1, which are written here by hand.

The format is what older and newer versions agree on: what writes it here shares
no code with the engine.
"""

import json
import sqlite3
import struct
import subprocess
from pathlib import Path

import pytest

from penstock._engine import binary_path

_MASK = 2**64 - 1

_HEAD = (
    "CREATE TABLE head (id INTEGER PRIMARY KEY, format INTEGER NOT NULL, "
    "term INTEGER NOT NULL, holder BLOB NOT NULL, sequence INTEGER NOT NULL, "
    "records INTEGER NOT NULL, live_bytes INTEGER NOT NULL, "
    "digest INTEGER NOT NULL, crc INTEGER NOT NULL) STRICT"
)
_RECORD = (
    "CREATE TABLE record (key BLOB PRIMARY KEY, term INTEGER NOT NULL, "
    "crc INTEGER NOT NULL, value BLOB NOT NULL) STRICT, WITHOUT ROWID"
)


def crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 * (crc & 1))
    return crc ^ 0xFFFFFFFF


def mix(x: int) -> int:
    x = (x + 0x9E3779B97F4A7C15) & _MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK
    return x ^ (x >> 31)


def combine(seed: int, value: int) -> int:
    return mix(seed ^ mix(value ^ 0x2545F4914F6CDD1D))


def hash_bytes(data: bytes) -> int:
    hashed = combine(0, len(data))
    whole = len(data) // 8 * 8
    for i in range(0, whole, 8):
        hashed = mix(hashed ^ int.from_bytes(data[i : i + 8], "little"))
    return mix(hashed ^ int.from_bytes(data[whole:], "little"))


def varint(value: int) -> bytes:
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def signed(value: int) -> int:
    return value - 2**64 if value >= 2**63 else value


def write_store(directory: Path, records: dict[bytes, bytes]) -> None:
    """Writes a store at term 3 of "me", whose last commit is the fifth."""
    directory.mkdir()
    db = sqlite3.connect(directory / "store.db")
    db.execute("PRAGMA auto_vacuum = INCREMENTAL")
    db.execute("PRAGMA journal_mode = WAL")
    db.execute(_HEAD)
    db.execute(_RECORD)
    digest = live = 0
    for key, value in records.items():
        crc = crc32c(struct.pack("<3Q", len(key), len(value), 3) + key + value)
        digest = (digest + combine(hash_bytes(key), crc)) & _MASK
        live += len(key) + len(value)
        db.execute("INSERT INTO record VALUES (?, 3, ?, ?)", (key, crc, value))
    fields = [1, 3, None, 5, len(records), live, digest]
    crc = crc32c(
        b"".join(
            varint(2) + b"me" if field is None else varint(field)
            for field in fields
        )
    )
    db.execute(
        "INSERT INTO head VALUES (0, 1, 3, ?, 5, ?, ?, ?, ?)",
        (b"me", len(records), live, signed(digest), crc),
    )
    db.commit()
    db.close()


def meta(*arguments: object) -> tuple[int, str]:
    result = subprocess.run(
        [binary_path(), "meta", *map(str, arguments)],
        capture_output=True,
        text=True,
    )
    return result.returncode, result.stdout + result.stderr


@pytest.fixture
def store(tmp_path: Path) -> Path:
    records = {b"job/%d" % i: b"value %d" % i for i in range(20)}
    write_store(tmp_path / "store", {**records, b'\x00\xff"': b""})
    return tmp_path / "store"


def damage(store: Path) -> None:
    db = store / "store.db"
    data = db.read_bytes()
    assert data.count(b"value 7") == 1
    db.write_bytes(data.replace(b"value 7", b"valve 7"))


def test_help_has_an_example() -> None:
    status, said = meta("--help")
    assert status == 0
    assert "penstock meta check /var/lib/penstock" in said
    assert "Exit codes: 0" in said


@pytest.mark.parametrize(
    "arguments",
    [[], ["check"], ["salvage", "x"], ["check", "x", "--all"], ["drop", "x"]],
)
def test_wrong_usage(arguments: list[str]) -> None:
    status, said = meta(*arguments)
    assert status == 2
    assert "expected" in said
    assert "penstock meta --help" in said


def test_check_of_a_whole_store(store: Path) -> None:
    status, said = meta("check", store, "--json")
    assert status == 0, said
    assert json.loads(said) == {
        "directory": str(store),
        "is_whole": True,
        "records": 21,
        "live_bytes": 263,
        "file_bytes": (store / "store.db").stat().st_size,
        "term": 3,
        "holder": "me",
        "last_commit": 5,
        "acknowledged_commit": 0,
        "records_by_term": {"3": 21},
        "damaged": 0,
        "damaged_keys": [],
        "problems": [],
    }
    status, said = meta("check", store)
    assert status == 0
    assert said.startswith(f"{store}: whole\n  records  21, of 263 bytes")


def test_check_of_a_damaged_store(store: Path) -> None:
    damage(store)
    status, said = meta("check", store, "--json")
    assert status == 1
    found = json.loads(said)
    assert found["damaged_keys"] == ["job/7"]
    assert found["records"] == 20
    assert not found["is_whole"]
    status, said = meta("check", store)
    assert status == 1
    assert 'damaged records:\n  "job/7"\n' in said
    assert f"penstock meta salvage {store} NEW" in said


def test_salvage(store: Path, tmp_path: Path) -> None:
    damage(store)
    new = tmp_path / "new"
    status, said = meta("salvage", store, new, "--json")
    assert status == 1, said
    assert json.loads(said) == {
        "directory": str(new),
        "is_complete": False,
        "records": 20,
        "expected_records": 21,
        "term": 4,
        "damaged": 1,
        "damaged_keys": ["job/7"],
        "lost_commits": 0,
        "gap": None,
    }
    status, said = meta("check", new, "--json")
    assert status == 0, said
    assert json.loads(said)["records"] == 20


def test_salvage_of_a_whole_store_is_complete(
    store: Path, tmp_path: Path
) -> None:
    status, said = meta("salvage", store, tmp_path / "new")
    assert (status, said) == (0, f"{tmp_path}/new: 21 records, term 4\n")


def test_no_store_there(tmp_path: Path) -> None:
    for arguments in (["check", tmp_path], ["salvage", tmp_path, tmp_path]):
        status, said = meta(*arguments)
        assert status == 2
        assert "expected a store; found no" in said


def test_salvage_keeps_what_is_there(store: Path, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    status, said = meta("salvage", store, tmp_path / "there")
    assert status == 2
    assert "expected a directory that is not there yet" in said


def test_an_unknown_format(store: Path) -> None:
    db = sqlite3.connect(store / "store.db")
    db.execute("UPDATE head SET format = 9")
    db.commit()
    db.close()
    status, said = meta("check", store)
    assert status == 1
    assert "expected a store of format 1; found 9" in said
