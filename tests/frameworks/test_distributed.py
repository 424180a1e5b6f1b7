"""Several processes of torch.distributed share one dataset."""

import json
import os
import socket

import torch
import torch.multiprocessing as mp

import penstock as ps

RANKS = 2
ROWS = 37


def make():
    """Shuffled without a seed, and of a length that no rank knows."""
    rows = ps.Dataset.range(ROWS).shuffle(ROWS).filter(lambda x: x >= 0)
    return rows.map(lambda x: (x, ps.cast(x, ps.float32) / ROWS)).batch(3)


def train(rank, port, folder):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.distributed.init_process_group("gloo", rank=rank, world_size=RANKS)
    torch.manual_seed(0)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    feed = make().to_torch(drop_uneven=True)
    seen = []
    for epoch in range(2):
        feed.set_epoch(epoch)
        seen.append([])
        for ids, x in feed:
            optimizer.zero_grad()
            model(x[:, None]).square().mean().backward()
            optimizer.step()
            seen[-1].append(ids.tolist())
    weights = [p.tolist() for p in model.parameters()]
    with open(f"{folder}/{rank}.json", "w") as file:
        json.dump({"seen": seen, "weights": weights}, file)
    torch.distributed.destroy_process_group()


def test_ranks_take_the_same_number_of_steps(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    mp.spawn(train, (port, str(tmp_path)), nprocs=RANKS)
    found = [
        json.loads((tmp_path / f"{rank}.json").read_text())
        for rank in range(RANKS)
    ]
    assert found[0]["weights"] == found[1]["weights"]
    orders = []
    for epoch in range(2):
        batches = [run["seen"][epoch] for run in found]
        assert len(batches[0]) == len(batches[1]) == 6
        ids = [i for steps in batches for batch in steps for i in batch]
        assert len(set(ids)) == len(ids)
        assert len(ids) >= ROWS - RANKS * 3
        orders.append(ids)
    assert orders[0] != orders[1]
