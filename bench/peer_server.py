"""One process of tf.data service: dispatcher PARENT, worker DISPATCHER PARENT.

Says its address on one line, and ends with its parent.
"""

from __future__ import annotations

import os
import sys
import time


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    import tensorflow as tf

    service = tf.data.experimental.service
    kind, *rest, parent = sys.argv[1:]
    if kind == "dispatcher":
        server = service.DispatchServer(service.DispatcherConfig(port=0))
        address = server.target.removeprefix("grpc://")
    else:
        server = service.WorkerServer(
            service.WorkerConfig(dispatcher_address=rest[0], port=0)
        )
        address = rest[0]
    print(address, file=answers, flush=True)
    while os.getppid() == int(parent):
        time.sleep(0.2)


if __name__ == "__main__":
    main()
