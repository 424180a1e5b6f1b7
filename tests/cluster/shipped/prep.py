"""Functions that none but Python can run."""

import json
import os
import resource
import signal
import time
from os import system  # noqa: F401  (what must not be called by name)
from typing import NamedTuple

import numpy as np

from shipped import words


class Labelled(NamedTuple):
    word: bytes
    number: int


def spell(x):
    return words.word(int(x)) + b"%d" % x


def label(x):
    return Labelled(words.word(int(x)), int(x))


def unlabel(labelled):
    return labelled.word + b"%d" % labelled.number


def last_digit(x):
    return int(str(int(x))[-1])


def is_lucky(x):
    return "7" in str(int(x))


def add_up(total, x):
    total = int(total) + (int(x) if x > 2 else 0)
    return np.int64(total), np.int64(total)


def count_to(x):
    for i in range(int(x) % 4):
        yield int(x) * 10 + i


def scale(x, by, names=()):
    return int(x) * int(by) + len(names)


def noise(x, rng):
    return rng.normal()


def fail_at_seven(x):
    if int(x) == 7:
        raise ValueError("seven is too much")
    return int(x)


def environment(x):
    return json.dumps(dict(os.environ)).encode()


def environment_of_parent(x):
    try:
        with open(f"/proc/{os.getppid()}/environ", "rb") as file:
            return file.read()
    except OSError as error:
        return type(error).__name__.encode()


def surroundings(x):
    with open("/proc/self/status") as file:
        status = dict(line.split(":\t", 1) for line in file.read().splitlines())
    found = {
        "no_new_privs": int(status["NoNewPrivs"]),
        "capabilities": int(status["CapEff"], 16) | int(status["CapPrm"], 16),
        "core": resource.getrlimit(resource.RLIMIT_CORE),
        "files": resource.getrlimit(resource.RLIMIT_NOFILE),
        "data": resource.getrlimit(resource.RLIMIT_DATA),
        "cwd": os.getcwd(),
        "home": os.environ["HOME"],
        "session": os.getsid(0) == os.getpid(),
        "pid": os.getpid(),
    }
    return json.dumps(found).encode()


def grab(x):
    return np.ones(1 << 40, np.uint8).sum()


def die_once(x, mark):
    if int(x) == 5 and not os.path.exists(mark):
        with open(mark, "w"):
            pass
        os.kill(os.getpid(), signal.SIGKILL)
    return int(x)


def die(x):
    if int(x) == 5:
        os._exit(3)
    return int(x)


def loop(x):
    while int(x) == 5:
        time.sleep(0.01)
    return int(x)


def garble(x, said):
    """Says something of its own to the worker, in the middle of a call."""
    if int(x) == 5 and os.environ.get("PENSTOCK_POOL_CONFINED"):
        os.write(3, said)
        time.sleep(60)
    return int(x)
