"""`tf.bitwise`."""

from __future__ import annotations

from penstock.compat.tf._reductions import BITWISE

__all__ = [
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "invert",
    "left_shift",
    "right_shift",
]

bitwise_and = BITWISE["bitwise_and"]
bitwise_or = BITWISE["bitwise_or"]
bitwise_xor = BITWISE["bitwise_xor"]
invert = BITWISE["invert"]
left_shift = BITWISE["left_shift"]
right_shift = BITWISE["right_shift"]
