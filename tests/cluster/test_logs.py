"""What servers say of what they do: enough for people, and nothing secret."""

import json
import os
import signal

import pytest
from servers import Secrets, dispatcher, run, wait_until, worker

import penstock as ps

# What no line may have.
CANARIES = ("canary-consumer", "canary-worker", "canary-admin", "canary-row")


@pytest.fixture
def secrets(tmp_path):
    made = Secrets(tmp_path)
    made.write(
        "tokens",
        "consumer:canary-consumer\nworker:canary-worker\nadmin:canary-admin\n",
    )
    return made


def events(log):
    """The events of lines of JSON, and no other lines but of one's own."""
    found = []
    for line in log.splitlines():
        if not line.startswith("{"):
            assert line.startswith("penstock "), line
            continue
        found.append(json.loads(line))
    return found


def test_what_is_said(secrets, tmp_path):
    (tmp_path / "rows.txt").write_text("canary-row\n" * 50)
    flags = [*secrets.server_flags, "--log-json"]
    given = ps.Credentials(
        ca=secrets["ca.pem"],
        cert=secrets["client.pem"],
        key=secrets["client.key"],
        token_file=secrets.tokens,
    )
    with (
        dispatcher("--lease-ms", "500", *flags) as head,
        worker(head.address, "--cpu", "1", *flags) as hand,
        worker(head.address, "--cpu", "1", *flags) as lost,
    ):
        ds = ps.TextLineDataset(str(tmp_path / "rows.txt"))
        parsed = ds.map(lambda x: ps.strings.to_number(x))
        with pytest.raises(ps.PenstockError) as raised:
            list(parsed.distribute(head.address, "bad", credentials=given))
        # The reader hears what the log must not have.
        assert "canary-row" in str(raised.value)
        iterator = iter(ds.distribute(head.address, "good", credentials=given))
        next(iterator)
        state = iterator.state_dict()
        iterator.close()
        again = iter(ds.distribute(head.address, "good", credentials=given))
        again.load_state_dict(state)
        assert len(list(again)) == 49
        refused = run(
            "cancel",
            head.address,
            "good",
            *secrets.admin_flags[:-1],
            secrets.write("wrong", "canary-worker"),
        )
        assert "needs the role admin" in refused.stderr
        assert "expects TLS" in run("state", head.address).stderr
        for args in (("drain", hand.address), ("cancel", "good")):
            done = run(args[0], head.address, args[1], *secrets.admin_flags)
            assert done.returncode == 0, done.stderr
        os.kill(lost.process.pid, signal.SIGKILL)
        assert hand.process.wait(40) == 0
        wait_until(lambda: '"worker_lost"' in head.log)
        assert head.end() == 0
        said = events(head.log)
        by_worker = events(hand.log)
        logs = head.log + hand.log + lost.log
    names = [each["event"] for each in said]
    assert names[0] == "started"
    assert names[-1] == "ending"
    assert names.count("worker_joined") == 2
    for name in (
        "job_opened",
        "job_restored",
        "worker_drain",
        "worker_lost",
        "call_refused",
        "grpc",  # whom TLS has refused
    ):
        assert name in names, name
    closed = [each for each in said if each["event"] == "job_closed"]
    assert {"job": "good", "why": "cancelled"}.items() <= closed[-1].items()
    names = [each["event"] for each in by_worker]
    assert names[:2] == ["started", "joined"]
    assert "drain" in names
    assert names[-1] == "ending"
    assert not [canary for canary in CANARIES if canary in logs]


def test_words_and_silence():
    with dispatcher() as head:
        assert head.end() == 0
        assert " dispatcher started version=" in head.log
    with dispatcher("--no-log") as head:
        assert head.end() == 0
        assert head.log == ""
