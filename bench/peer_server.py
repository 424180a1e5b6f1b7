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
    from tensorflow.core.protobuf import service_config_pb2

    service = tf.data.experimental.service
    kind, *rest, parent = sys.argv[1:]
    if kind == "dispatcher":
        server = service.DispatchServer(service.DispatcherConfig(port=0))
        address = server.target.removeprefix("grpc://")
    else:
        config = service.WorkerConfig(dispatcher_address=rest[0], port=0)
        # By default each shared pipeline keeps 10 GiB, and several of them are
        # more than the machine has.
        server = service.WorkerServer(
            service_config_pb2.WorkerConfig(
                **config._asdict(), cross_trainer_cache_size_bytes=1 << 30
            )
        )
        address = rest[0]
    print(address, file=answers, flush=True)
    while os.getppid() == int(parent):
        time.sleep(0.2)


if __name__ == "__main__":
    main()
