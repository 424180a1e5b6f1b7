"""Batches whose order tells one epoch from another."""

import penstock as ps


def numbers(n=40, batch=3):
    """Batches of shuffled numbers; without a seed, which is the hard case."""
    return ps.Dataset.range(n).shuffle(n).batch(batch)


def items(batches):
    return [int(x) for batch in batches for x in batch]
