"""Pipelines that stay with a service: readers need no code for them."""

import itertools
import json
import subprocess
import sys

import numpy as np
import pytest
import servers

import penstock as ps

Dataset = ps.Dataset

# A reader in an interpreter of its own: all that it knows are three words.
_READER = """
import json, sys
import penstock as ps

def plain(value):
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, tuple):
        return [plain(each) for each in value]
    if isinstance(value, bytes):
        return value.decode()
    return value.tolist() if hasattr(value, "tolist") else value

address, id, job = sys.argv[1:]
ds = ps.from_registered(address, id, job or None)
print(json.dumps([str(ds.element_spec), [plain(each) for each in ds]]))
"""


def read_elsewhere(address, id, job=""):
    found = subprocess.run(
        [sys.executable, "-c", _READER, address, id, job],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert found.returncode == 0, found.stderr
    return json.loads(found.stdout)


def test_a_reader_without_code(service):
    weights = np.arange(4.0)
    ds = Dataset.range(10).map(
        lambda x: {"x": x, "y": (ps.cast(x, ps.float64) * weights, x % 2)}
    )
    id = ps.register(service.address, ds)
    spec, rows = read_elsewhere(service.address, id)
    assert spec == str(ds.element_spec)
    expected = [
        {"x": i, "y": [(i * weights).tolist(), i % 2]} for i in range(10)
    ]
    assert sorted(rows, key=lambda row: row["x"]) == expected


def test_arrays_and_what_runs_beside_the_trainer(service):
    """`take` and the map after it run at the reader, with the array."""
    table = np.arange(5000.0)
    ds = Dataset.from_tensor_slices(np.arange(100)).take(50).batch(8)
    ds = ds.map(lambda x: x + ps.max(table))
    id = ps.register(service.address, ds)
    _, rows = read_elsewhere(service.address, id)
    expected = [float(i + 4999) for i in range(50)]
    assert sorted(itertools.chain(*rows)) == expected


def test_batches_are_put_together_again(service):
    table = np.arange(3000) * 2
    ds = Dataset.range(1003).filter(lambda x: x % 3 != 0).batch(10)
    ds = ds.map(lambda x: x + ps.max(table))
    id = ps.register(service.address, ds)
    _, rows = read_elsewhere(service.address, id)
    expected = [i + 5998 for i in range(1003) if i % 3]
    assert sorted(itertools.chain(*rows)) == expected
    assert sorted(len(row) for row in rows)[-2:] == [10, 10]


def test_names(service):
    one = Dataset.range(3)
    other = Dataset.range(4)
    id = ps.register(service.address, one, "three")
    assert ps.register(service.address, one, "three") == id
    assert ps.register(service.address, one) == id
    with pytest.raises(ps.AlreadyExistsError, match='"three" is another pip'):
        ps.register(service.address, other, "three")
    _, rows = read_elsewhere(service.address, "three")
    assert sorted(rows) == [0, 1, 2]
    ps.unregister(service.address, "three")
    assert ps.register(service.address, other, "three") != id
    ps.unregister(service.address, "three")


@pytest.mark.parametrize("name", ["a/b", "", "x" * 201, "0" * 32, "a b"])
def test_names_that_are_none(service, name):
    with pytest.raises((ps.InvalidArgumentError, ps.InvalidTypeError)):
        ps.register(service.address, Dataset.range(3), name)


def test_readers_of_one_job_share_it(service):
    """One of them made the pipeline, the other only knows its id."""
    ds = Dataset.range(200)
    id = ps.register(service.address, ds)
    ours = ps.from_registered(
        service.address, id, "shared", reader=0, num_readers=2
    )
    theirs = ps.from_registered(
        service.address, id, "shared", reader=1, num_readers=2
    )
    first, second = iter(ours), iter(theirs)
    got = [int(next(first)) for _ in range(3)]
    got += [int(x) for x in second]
    got += [int(x) for x in first]
    assert sorted(got) == list(range(200))


def test_a_state_goes_on(service):
    id = ps.register(service.address, Dataset.range(50).map(lambda x: x * x))
    it = iter(ps.from_registered(service.address, id, "squares"))
    got = [int(next(it)) for _ in range(20)]
    state = it.state_dict()
    it.close()
    it = iter(ps.from_registered(service.address, id, "squares"))
    it.load_state_dict(state)
    got += [int(x) for x in it]
    assert sorted(got) == [i * i for i in range(50)]


def test_unknown_ids(service):
    with pytest.raises(ps.NotFoundError, match='no pipeline "nobody" is reg'):
        ps.from_registered(service.address, "nobody")
    with pytest.raises(ps.NotFoundError, match="penstock registered"):
        ps.unregister(service.address, "nobody")
    with pytest.raises(ps.UnavailableError):
        ps.from_registered("penstock://127.0.0.1:1", "nobody")
    with pytest.raises(ps.InvalidTypeError, match="id must be a word"):
        ps.from_registered(service.address, 7)


def test_what_cannot_be_divided_is_refused_at_once(service):
    def plus_one(x):
        return int(x) + 1

    ds = Dataset.range(3).map(ps.python_function(plus_one))
    with pytest.raises(ps.InvalidArgumentError, match="native functions"):
        ps.register(service.address, ds)
    few = Dataset.range(9).filter(lambda x: x % 2 == 0)
    both = Dataset.zip((few, Dataset.range(4)))
    with pytest.raises(ps.InvalidArgumentError, match="zip"):
        ps.register(service.address, both)
    with pytest.raises(ps.InvalidTypeError, match="must be a Dataset"):
        ps.register(service.address, [1, 2])


def test_ids_survive_a_restart(tmp_path):
    state = ["--state-dir", str(tmp_path / "state")]
    with servers.dispatcher(*state) as head:
        address = head.address
        id = ps.register(address, Dataset.range(7), "seven")
        assert head.end() == 0
    listen = ["--listen", address]
    with (
        servers.dispatcher(*state, *listen) as head,
        servers.worker(head.address),
    ):
        listed = servers.run("registered", head.address, "--json")
        (found,) = json.loads(listed.stdout)["registered"]
        assert (found["plan"], found["names"]) == (id, ["seven"])
        _, rows = read_elsewhere(head.address, "seven", "job")
        assert sorted(rows) == list(range(7))


def test_the_directory_counts_where_names_are_relative(
    service, tmp_path, monkeypatch
):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.txt").write_text(f"{name}\n")

    def ids(make):
        found = []
        for name in ("one", "two"):
            monkeypatch.chdir(tmp_path / name)
            found.append(ps.register(service.address, make()))
        return found

    here = str(tmp_path / "one")
    for make in (
        lambda: Dataset.range(10),
        lambda: ps.TextLineDataset(f"{here}/a.txt"),
        lambda: Dataset.list_files(f"{here}/*").flat_map(ps.TextLineDataset),
        lambda: (
            Dataset.from_tensor_slices([f"{here}/a.txt"] * 20_000)
            .shuffle(5, seed=1)
            .interleave(ps.TextLineDataset, cycle_length=2)
        ),
    ):
        first, second = ids(make)
        assert first == second
    lines = ps.from_registered(
        service.address,
        ids(
            lambda: Dataset.list_files(f"{here}/*").flat_map(ps.TextLineDataset)
        )[1],
    )
    assert list(lines) == [b"one"]
    for make in (
        lambda: ps.TextLineDataset("a.txt"),
        lambda: Dataset.list_files("*.txt").flat_map(ps.TextLineDataset),
        lambda: ps.TextLineDataset(f"{here}/a.txt").flat_map(
            ps.TextLineDataset
        ),
    ):
        first, second = ids(make)
        assert first != second


def test_people_see_them(tmp_path):
    with servers.dispatcher("--unused-timeout-ms", "400") as head:
        assert "No registered" in servers.run("registered", head.address).stdout
        id = ps.register(head.address, Dataset.range(7), "seven")
        assert id in servers.run("state", head.address).stdout
        assert "seven" in servers.run("registered", head.address).stdout
        ended = servers.run("unregister", head.address, "seven")
        assert ended.returncode == 0, ended.stderr
        assert "No registered" in servers.run("registered", head.address).stdout
        again = servers.run("unregister", head.address, "seven")
        assert again.returncode == 1
        assert "seven" in again.stderr

        def is_gone():
            try:
                ps.from_registered(head.address, id)
            except ps.NotFoundError:
                return True
            return False

        servers.wait_until(is_gone)
