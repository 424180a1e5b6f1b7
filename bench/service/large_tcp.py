"""S3: batches of 9.6 MB over TCP, to a reader that is kept from memory.

The bare loop sends the same bytes from one process to another over a loopback
socket, and neither looks at them: no service over TCP can be faster here.
"""

import os
import socket
import subprocess
import sys
import time

import pictures
import serving
from workload import AbsentError, Compared

ROW = Compared(
    number="S3",
    title="service, 9.6 MB batches over TCP",
    elements_per_batch=pictures.BYTES,  # bytes: rates can be read as B/s
    must_reach=2.5,
    moonshot=None,
    share_of_bare=0.9,
)


def ours():
    # For the engine, which has not been started yet.
    os.environ["PENSTOCK_NO_LOCAL_MEMORY"] = "1"
    return {"plain": pictures.ours().distribute(serving.ours().address)}


def peer():
    return serving.peer_forms(pictures.peer())


def check(batches):
    """As far as a reading that could have used memory would have."""
    pictures.check(batches, 4 if "BENCH_SMOKE" in os.environ else 300)
    if serving.worker_mappings():
        raise AbsentError("this engine cannot be kept from shared memory")


_SENDER = """
import socket, sys
data = bytes(int(sys.argv[2]))
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as to:
    try:
        while True:
            to.sendall(data)
    except OSError:
        pass
"""


def bare(seconds=1.0):
    """Bytes a second of a socket whose two ends do nothing else."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        sender = subprocess.Popen(
            [sys.executable, "-c", _SENDER, port, str(pictures.BYTES)]
        )
        connection, _ = server.accept()
        room = memoryview(bytearray(pictures.BYTES))
        with connection:
            count = -8 * len(room)  # the first are for the window to grow
            start = time.perf_counter()
            while count <= 0 or time.perf_counter() - start < seconds:
                got = connection.recv_into(room)
                if got == 0:
                    raise ValueError("expected bytes without end; got the end")
                if count <= 0:
                    start = time.perf_counter()
                count += got
            elapsed = time.perf_counter() - start
    sender.wait()
    return [count / elapsed]
