"""The rounds of a service to which nothing happens."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import rows
from ledger import RECORD

import penstock as ps

# Of the longest and the shortest batch of a round.
_MOST_UNLIKE = 1.7
_UNLIKE_ROUNDS = 0.1


class Rounds:
    """What each of `consumers` has of the pipeline "rounds", without faults."""

    def __init__(self, count: int, consumers: int) -> None:
        self._had: list[np.ndarray] = [np.empty(0, RECORD)] * consumers
        self._lengths: list[list[int]] = [[] for _ in range(consumers)]
        with ps.LocalService(workers=1, cpu=1) as service:
            threads = [
                threading.Thread(
                    target=self._read, args=(i, count, service.address)
                )
                for i in range(consumers)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self._check(count)

    def of(self, consumer: int) -> np.ndarray:
        """Records as its ledger has them."""
        return self._had[consumer]

    def _read(self, consumer: int, count: int, address: str) -> None:
        ds = rows.make("rounds", count, Path()).distribute(
            address,
            job="rounds",
            consumer=consumer,
            num_consumers=len(self._had),
        )
        parts: list[Any] = []
        for row, element in enumerate(ds):
            ids, is_right, _ = rows.read("rounds", element)
            assert is_right, element
            record = np.zeros(len(ids), RECORD)
            record["id"], record["row"] = ids, row
            parts.append(record)
            self._lengths[consumer].append(element.shape[1])
        self._had[consumer] = np.concatenate(parts)

    def _check(self, count: int) -> None:
        """Each id in one of them, and rounds of like batches."""
        ids = np.concatenate([each["id"] for each in self._had])
        assert len(np.unique(ids)) == len(ids) > count * 0.99, "ids are missing"
        lengths = np.array(self._lengths)  # fails if they had not as many
        longest, shortest = lengths.max(axis=0), lengths.min(axis=0)
        unlike = (longest > _MOST_UNLIKE * shortest).mean()
        assert unlike < _UNLIKE_ROUNDS, f"{unlike:.0%} of rounds are mixed"
