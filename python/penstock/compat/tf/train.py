"""`tf.train`: Examples without the protobuf package; checkpoints."""

from __future__ import annotations

from penstock.compat.tf._checkpoint import (
    Checkpoint,
    CheckpointManager,
    latest_checkpoint,
)
from penstock.compat.tf._protos import (
    BytesList,
    Example,
    Feature,
    FeatureList,
    FeatureLists,
    Features,
    FloatList,
    Int64List,
    SequenceExample,
)

__all__ = [
    "BytesList",
    "Checkpoint",
    "CheckpointManager",
    "Example",
    "Feature",
    "FeatureList",
    "FeatureLists",
    "Features",
    "FloatList",
    "Int64List",
    "SequenceExample",
    "latest_checkpoint",
]
