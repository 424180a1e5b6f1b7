"""A first pipeline: numbers, filtered, shuffled and batched; then resumed.

Run it with `python examples/first.py`, or look at where its time goes with
`penstock run examples/first.py:dataset --seconds 3`.
"""

import numpy as np

import penstock as ps

dataset = (
    ps.Dataset.range(100_000)
    .map(lambda i: {"id": i, "value": ps.cast(i, ps.float32) / 2})
    .filter(lambda row: row["id"] % 3 == 0)
    .shuffle(1_000, seed=7)
    .batch(64, drop_remainder=True)
    .prefetch()
)


def main() -> None:
    print(dataset.describe())
    iterator = iter(dataset)
    first = next(iterator)
    print("first batch:", first["id"][:5], first["value"][:5])
    state = iterator.state_dict()
    following = next(iterator)
    iterator.load_state_dict(state)
    again = next(iterator)
    print("resumed exactly:", np.array_equal(following["id"], again["id"]))


if __name__ == "__main__":
    main()
