"""`tf.sparse`: the basics."""

from __future__ import annotations

from penstock.compat.tf._composites import SparseTensor, from_dense, to_dense

__all__ = ["SparseTensor", "from_dense", "to_dense"]
