"""Batches by length that workers make: every element once, resumed exactly."""

import json
import urllib.request

import pytest
from servers import dispatcher, worker

import penstock as ps

Dataset = ps.Dataset
_ROWS = 600


def sequences():
    """Element i is 1 to 20 times i."""
    return Dataset.range(_ROWS).map(lambda i: ps.fill([i * 7 % 20 + 1], i))


def by_tokens(how):
    if how == "buckets":
        return sequences().bucket_by_sequence_length(
            None, [6, 13], max_tokens=96
        )
    return sequences().batch_by_tokens(
        96, window=50 if how == "window" else None
    )


def numbers(batches):
    """Which elements came, of batches that are within their budget."""
    found = []
    for batch in batches:
        assert batch.shape[0] * batch.shape[1] <= 96
        found += batch[:, 0].tolist()
    return found


@pytest.mark.parametrize("how", ["plain", "window", "buckets"])
def test_each_element_once_and_resumed(service, how):
    ds = by_tokens(how).distribute(service.address, job=f"lengths-{how}")
    iterator = iter(ds)
    had = []
    for taken in (3, 1, 0, 8):
        had += numbers(next(iterator) for _ in range(taken))
        state = iterator.state_dict()
        for _ in range(4):
            next(iterator)
        iterator = iter(ds)
        iterator.load_state_dict(state)
    had += numbers(iterator)
    assert sorted(had) == list(range(_ROWS))


def test_boundaries_are_chosen_before(service):
    ds = sequences().distribute(service.address, job="lengths-chosen")
    with pytest.raises(ps.InvalidArgumentError, match="before distribute"):
        ps.choose_boundaries(ds)


def test_a_worker_says_what_it_pads():
    with dispatcher() as first, worker(first.address, "--http", "0") as second:
        ds = by_tokens("plain").distribute(f"penstock://{first.address}")
        batches = list(ds)
        with urllib.request.urlopen(
            f"{second.pages}/state", timeout=10
        ) as page:
            padding = json.load(page)["padding"]
        with urllib.request.urlopen(
            f"{second.pages}/metrics", timeout=10
        ) as page:
            metrics = page.read().decode()
    padded = sum(batch.size for batch in batches)
    items = sum(i * 7 % 20 + 1 for i in range(_ROWS))
    assert int(padding["padded_items"]) == padded
    assert int(padding["items"]) == items
    assert int(padding["batches"]) == len(batches)
    assert int(padding["shapes"]) == len({batch.shape for batch in batches})
    assert f"penstock_worker_padding_padded_items_total {padded}\n" in metrics
