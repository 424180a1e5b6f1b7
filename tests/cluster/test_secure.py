"""A service with certificates and words, and what those hear who lack them."""

import json
import os
import shutil
import subprocess
import time
import urllib.error
import urllib.request

import pytest
from servers import Secrets, dispatcher, run, wait_until, worker

import penstock as ps

# Nobody may wait for what cannot work.
AT_ONCE_SECONDS = 8.0


@pytest.fixture(scope="module")
def secrets(tmp_path_factory):
    return Secrets(tmp_path_factory.mktemp("secrets"))


@pytest.fixture(scope="module")
def others(tmp_path_factory):
    """Of another CA."""
    return Secrets(tmp_path_factory.mktemp("others"))


@pytest.fixture(scope="module")
def secure(secrets):
    """A dispatcher and a worker with TLS and words."""
    with (
        dispatcher(*secrets.server_flags) as head,
        worker(head.address, "--cpu", "1", *secrets.server_flags) as hand,
    ):
        assert "ready at" in hand.line, hand.log
        yield head


@pytest.fixture(scope="module")
def plain():
    with (
        dispatcher("--http", "0") as head,
        worker(head.address, "--cpu", "1") as hand,
    ):
        assert "ready at" in hand.line, hand.log
        yield head


def credentials(secrets, **changes):
    given = {
        "ca": secrets["ca.pem"],
        "cert": secrets["client.pem"],
        "key": secrets["client.key"],
        "token_file": secrets.tokens,
    }
    return ps.Credentials(**{**given, **changes})


def read(address, given=None):
    ds = ps.Dataset.range(100).distribute(address, credentials=given)
    return sorted(int(x) for x in ds)


def refusal(address, given=None):
    """What a reader hears, which must be at once."""
    start = time.monotonic()
    with pytest.raises(ps.PenstockError) as raised:
        read(address, given)
    assert time.monotonic() - start < AT_ONCE_SECONDS
    return str(raised.value)


def test_reads_with_certificates_and_a_word(secrets, secure):
    assert read(secure.address, credentials(secrets)) == list(range(100))


def test_reads_with_what_the_environment_says(secrets, secure, monkeypatch):
    monkeypatch.setenv("PENSTOCK_TLS_CA", secrets["ca.pem"])
    monkeypatch.setenv("PENSTOCK_TLS_CERT", secrets["client.pem"])
    monkeypatch.setenv("PENSTOCK_TLS_KEY", secrets["client.key"])
    monkeypatch.setenv("PENSTOCK_TOKEN_FILE", secrets.write("word", "red\n"))
    assert read(secure.address) == list(range(100))


def test_words_are_replaced_while_somebody_reads(tmp_path):
    secrets = Secrets(tmp_path)
    mine = secrets.write("mine", "consumer:red\n")
    with (
        dispatcher(*secrets.server_flags) as head,
        worker(head.address, "--cpu", "1", *secrets.server_flags) as hand,
    ):
        assert "ready at" in hand.line, hand.log
        ds = ps.Dataset.range(100_000).batch(10)
        ds = ds.distribute(
            head.address, credentials=credentials(secrets, token_file=mine)
        )
        rows = iter(ds)
        got = [next(rows) for _ in range(100)]
        secrets.write(
            "tokens",
            "consumer:red\nconsumer:rose\nworker:blue\nworker:sky\n",
        )
        secrets.write("mine", "consumer:rose\n")
        got += [next(rows) for _ in range(100)]
        # From here on the words that streams began with are nobody's.
        secrets.write("tokens", "worker:sky\nconsumer:rose\nadmin:green\n")
        got += list(rows)
        assert sorted(int(x) for each in got for x in each) == list(
            range(100_000)
        )
        # The worker is heard of under its new word.
        listed = run("workers", head.address, *secrets.admin_flags)
        assert hand.address in listed.stdout, listed.stderr


def test_plain_to_tls(secure):
    said = refusal(secure.address)
    assert "expects TLS" in said
    assert "ps.Credentials" in said


def test_tls_to_plain(secrets, plain):
    said = refusal(plain.address, credentials(secrets))
    assert "does not speak TLS" in said


def test_an_unknown_ca(secrets, others, secure):
    said = refusal(secure.address, credentials(others))
    assert "is not accepted" in said
    assert others["ca.pem"] in said
    said = refusal(
        secure.address,
        credentials(
            secrets, cert=others["client.pem"], key=others["client.key"]
        ),
    )
    assert "does not accept the caller's certificate" in said


def sign(secrets, name, days, key="client.key"):
    """A certificate of the same CA for the client's key."""
    signed = str(secrets.folder / name)
    request = subprocess.run(
        ["openssl", "req", "-new", "-key", secrets[key], "-subj", "/"],
        check=True,
        capture_output=True,
    )
    subprocess.run(
        [
            *("openssl", "x509", "-req", "-days", str(days), "-out", signed),
            *("-CA", secrets["ca.pem"], "-CAkey", secrets["ca.key"]),
        ],
        input=request.stdout,
        check=True,
        capture_output=True,
    )
    return signed


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")
def test_an_expired_certificate(secrets, secure):
    fresh = sign(secrets, "fresh.pem", 1)
    given = credentials(secrets, cert=fresh)
    assert read(secure.address, given) == list(range(100))
    old = sign(secrets, "old.pem", 0)
    wait_until(lambda: int(time.time()) > os.stat(old).st_mtime)
    said = refusal(secure.address, credentials(secrets, cert=old))
    assert "does not accept the caller's certificate" in said
    assert "expired" in said


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")
def test_an_expired_server(tmp_path):
    expired = Secrets(tmp_path)
    old = sign(expired, "certs/server.pem", 0, "server.key")
    wait_until(lambda: int(time.time()) > os.stat(old).st_mtime)
    for command in ("dispatcher", "worker"):
        refused = run(
            command,
            *expired.server_flags,
            PENSTOCK_WORKER_DISPATCHER="localhost:1",
        )
        assert refused.returncode == 2
        assert "has expired" in refused.stderr


@pytest.mark.parametrize(
    ("word", "problem"),
    [
        ("purple", "is not one of the server's"),
        ("worker:blue", "for the role worker, which may not do this"),
        ("blue", "needs the role consumer"),
    ],
)
def test_a_wrong_word(secrets, secure, word, problem):
    path = secrets.write("word", word)
    said = refusal(secure.address, credentials(secrets, token_file=path))
    assert problem in said
    assert f"{secure.address} does not let the caller" in said
    assert "purple" not in said


@pytest.mark.parametrize("command", ["workers", "jobs", "state", "top"])
def test_a_consumers_word_for_people(secrets, secure, command):
    path = secrets.write("mine", "consumer:red\n")
    refused = run(command, secure.address, *secrets.admin_flags[:-1], path)
    assert refused.returncode == 1
    assert f"{secure.address} does not let the caller in" in refused.stderr
    assert "for the role consumer" in refused.stderr
    assert "needs a word for admin" in refused.stderr


def test_no_word(secrets, secure):
    said = refusal(secure.address, credentials(secrets, token_file=""))
    assert "expected a token" in said
    assert "PENSTOCK_TOKEN_FILE" in said


def test_the_port_of_the_pages(plain):
    said = refusal(plain.pages.removeprefix("http://"))
    assert "--http" in said


def test_the_address_of_a_worker(plain):
    with worker(plain.address, "--cpu", "1") as hand:
        assert "is no dispatcher" in refusal(hand.address)
        with worker(hand.address, "--cpu", "1") as lost:
            assert lost.process.wait(20) == 1
            assert "is no dispatcher" in lost.log


@pytest.mark.parametrize("address", ["http://head:5050", "grpc://head:5050/"])
def test_addresses_of_other_schemes(address):
    with pytest.raises(ps.InvalidArgumentError, match="penstock://") as raised:
        ps.Dataset.range(3).distribute(address)
    assert address.rstrip("/") in str(raised.value)
    for made in (
        lambda: ps.from_registered(address, "a"),
        lambda: ps.unregister(address, "a"),
    ):
        with pytest.raises(ps.InvalidArgumentError, match="penstock://"):
            made()
    refused = run("jobs", address)
    assert refused.returncode == 1
    assert "host:port, or penstock://host:port; got" in refused.stderr
    refused = run("worker", "--dispatcher", address)
    assert refused.returncode == 2
    assert "--dispatcher: expected HOST:PORT" in refused.stderr


def test_a_port_where_nobody_listens(caplog):
    with dispatcher() as head:
        address = head.address
        assert head.end() == 0
    with pytest.raises(ps.UnavailableError, match="nobody answers") as raised:
        read(address)
    assert address in str(raised.value)
    # It may be about to start, so the reader waits; but not in silence.
    assert "nobody answers" in caplog.text


def test_a_worker_that_readers_do_not_believe(secrets, others):
    flags = secrets.server_flags
    with (
        dispatcher(*flags) as head,
        # It believes the dispatcher, and shows others' certificate.
        worker(
            head.address,
            *("--cpu", "1", "--tls-ca", secrets["ca.pem"]),
            *("--tls-cert", others["server.pem"]),
            *("--tls-key", others["server.key"]),
            *("--token-file", secrets.tokens),
        ) as hand,
    ):
        wait_until(lambda: hand.process.poll() is not None)
        assert hand.process.returncode == 1
        assert "does not accept the caller's certificate" in hand.log


def test_a_worker_with_another_name_than_its_certificate(secrets):
    flags = [*secrets.server_flags, "--listen", "127.0.0.2:0", "--cpu", "1"]
    with (
        dispatcher(*secrets.server_flags) as head,
        worker(head.address, *flags) as hand,
    ):
        wait_until(lambda: " joined " in hand.log)
        said = refusal(head.address, credentials(secrets))
        assert f"the worker at {hand.address} cannot be read from" in said
        assert "be for '127.0.0.2'" in said


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({}, ""),
        ({"--tls-ca": "", "--tls-cert": "", "--tls-key": ""}, "expects TLS"),
        ({"--token-file": ""}, "expected a token"),
        ({"--token-file": "worker:purple\nconsumer:red\n"}, "not one of the"),
        (
            {"--token-file": "worker:red\nconsumer:red\n"},
            "needs the role worker",
        ),
        ({"--token-file": "worker:blue\n"}, "one for consumer"),
    ],
)
def test_what_a_worker_hears(secrets, secure, change, problem):
    flags = dict(
        zip(secrets.server_flags[::2], secrets.server_flags[1::2], strict=True)
    )
    if change.get("--token-file"):
        flags["--token-file"] = secrets.write("w", change["--token-file"])
    else:
        flags.update(change)
    given = [word for flag in flags.items() if flag[1] for word in flag]
    with worker(secure.address, "--cpu", "1", *given) as hand:
        if problem:
            assert hand.process.wait(20) in (1, 2)
            assert problem in hand.log
        else:
            wait_until(lambda: " joined " in hand.log)
            assert hand.end() == 0


def test_a_reader_without_the_workers_word(secrets, secure):
    """The gate of the worker is its own."""
    with (
        dispatcher(*secrets.server_flags) as head,
        worker(
            head.address,
            *secrets.server_flags[:-1],
            secrets.write("hand", "consumer:other\nworker:blue\n"),
        ) as hand,
    ):
        said = refusal(head.address, credentials(secrets))
        assert "is not one of the server's" in said
        assert f"{hand.address} does not let the caller in" in said
        assert "call_refused" in hand.log


def replace(old, new):
    """As an operator should: at once, not in parts."""
    shutil.copy(new, f"{old}.new")
    os.rename(f"{old}.new", old)


def test_words_and_certificates_change(tmp_path):
    (tmp_path / "old").mkdir()
    (tmp_path / "new").mkdir()
    old = Secrets(tmp_path / "old")
    new = Secrets(tmp_path / "new")
    with (
        dispatcher(*old.server_flags) as head,
        worker(head.address, "--cpu", "1", *old.server_flags) as hand,
    ):
        assert read(head.address, credentials(old)) == list(range(100))
        other = "consumer:violet\nworker:blue\nadmin:green\n"
        old.write("tokens", other)
        stale = old.write("word", "red")
        said = refusal(head.address, credentials(old, token_file=stale))
        assert "is not one of the server's" in said
        assert read(head.address, credentials(old)) == list(range(100))
        # Another CA: both servers take it up within 10 s.
        for name in ("ca.pem", "server.pem", "server.key"):
            replace(old[name], new[name])
        new.write("tokens", other)

        def is_taken_up():
            try:
                return read(head.address, credentials(new)) == list(range(100))
            except (ps.FailedPreconditionError, ps.UnavailableError):
                return False  # the second if they change while it looks why

        wait_until(is_taken_up, 60)
        assert hand.end() == 0, hand.log


def page(server, path):
    with urllib.request.urlopen(server.pages + path, timeout=10) as found:
        return found.read().decode()


def test_windows_of_a_worker(tmp_path):
    with dispatcher() as head:
        flags = (
            "--cpu",
            "1",
            "--http",
            "0",
            "--tags",
            "fast",
            "--tags",
            "near",
        )
        flags = (*flags, "--allow", str(tmp_path))
        with worker(head.address, *flags) as hand:
            wait_until(lambda: " joined " in hand.log)
            assert page(hand, "/healthz") == "ok\n"
            assert read(head.address) == list(range(100))
            metrics = page(hand, "/metrics")
            assert "\npenstock_worker_joined 1\n" in metrics
            state = json.loads(page(hand, "/state"))
            assert state["address"] == hand.address
            assert state["tags"] == ["fast", "near"]
            assert int(state["computed"]) > 0
            shown = run("state", hand.address)
            assert f"worker {hand.address}" in shown.stdout, shown.stderr
            assert str(tmp_path) in shown.stdout
            assert json.loads(run("state", hand.address, "--json").stdout)
            listed = run("workers", head.address)
            assert "fast,near" in listed.stdout
            wrong = run("jobs", hand.address)
            assert wrong.returncode == 1
            assert "is no dispatcher" in wrong.stderr
    with worker("127.0.0.1:1", "--http", "0") as hand:
        with pytest.raises(urllib.error.HTTPError, match="503"):
            page(hand, "/healthz")
        assert hand.end(10) == 0


def test_drain_by_hand():
    with dispatcher() as head, worker(head.address, "--cpu", "1") as hand:
        wait_until(lambda: " joined " in hand.log)
        asked = run("drain", head.address, hand.address)
        assert asked.returncode == 0, asked.stderr
        assert hand.process.wait(30) == 0
        assert "ending drained=yes" in hand.log
        assert "worker_drain" in head.log
        wait_until(lambda: "worker_left" in head.log)


class TestAllowedFiles:
    @pytest.fixture
    def folders(self, tmp_path):
        for name in ("in", "out"):
            (tmp_path / name).mkdir()
            (tmp_path / name / "a.txt").write_text(f"{name}\n")
        (tmp_path / "in" / "link.txt").symlink_to(tmp_path / "out" / "a.txt")
        return tmp_path

    @pytest.fixture
    def address(self, folders):
        flags = ("--cpu", "1", "--allow", str(folders / "in"))
        with dispatcher() as head, worker(head.address, *flags):
            yield head.address

    def lines(self, address, names):
        ds = ps.TextLineDataset([str(name) for name in names])
        return sorted(bytes(x).decode() for x in ds.distribute(address))

    def test_inside(self, address, folders):
        assert self.lines(address, [folders / "in" / "a.txt"]) == ["in"]

    @pytest.mark.parametrize(
        "name", ["out/a.txt", "in/../out/a.txt", "in/link.txt", "out/none"]
    )
    def test_outside(self, address, folders, name):
        with pytest.raises(ps.PermissionDeniedError) as raised:
            self.lines(address, [folders / name])
        assert "--allow" in str(raised.value)
        assert str(folders / name) in str(raised.value)

    def test_patterns(self, address, folders):
        for pattern in ("out/*.txt", "in/*.txt"):
            ds = ps.Dataset.list_files(str(folders / pattern))
            ds = ds.flat_map(ps.TextLineDataset).distribute(address)
            with pytest.raises(ps.PermissionDeniedError, match="--allow"):
                list(ds)


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        ([], "expected --dispatcher HOST:PORT"),
        (
            ["--dispatcher", "localhost:1", "--alow", "/"],
            "did you mean --allow?",
        ),
        (
            ["--dispatcher", "localhost:1", "--allow", "/none"],
            "--allow: expected a folder",
        ),
        (
            ["--dispatcher", "localhost:1", "--listen", "0.0.0.0:0"],
            "--advertise HOST",
        ),
        (
            [
                "--dispatcher",
                "localhost:1",
                "--listen",
                "0.0.0.0:0",
                "--advertise",
                "y",
            ],
            "expected --allow DIR",
        ),
        (
            [
                *("--dispatcher", "localhost:1", "--listen", "0.0.0.0:0"),
                *("--advertise", "y", "--allow", "/"),
            ],
            "`penstock certs DIR`",
        ),
        (
            ["--dispatcher", "localhost:1", "--http", "0.0.0.0:0"],
            "other machines",
        ),
        (["--dispatcher", "localhost:1", "here"], "expected flags; got 'here'"),
    ],
)
def test_what_a_worker_refuses(args, problem):
    refused = run("worker", *args)
    assert refused.returncode == 2
    assert problem in refused.stderr


def test_settings_from_everywhere(tmp_path):
    config = tmp_path / "penstock.toml"
    config.write_text("[worker]\nallow = ['/none']\n[up]\nworkers = 1000\n")
    refused = run(
        "worker",
        PENSTOCK_WORKER_CONFIG=str(config),
        PENSTOCK_WORKER_DISPATCHER="localhost:1",
    )
    assert refused.returncode == 2
    assert "--allow: expected a folder" in refused.stderr
    refused = run("up", "--config", str(config))
    assert refused.returncode == 2
    assert f"workers in {config}:4: expected at most 256" in refused.stderr
    refused = run("up", "--listen", "0.0.0.0:1")
    assert refused.returncode == 2
    assert "this machine" in refused.stderr
