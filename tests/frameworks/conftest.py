"""Tests with other frameworks: `make test-frameworks` runs them.

Elsewhere those whose packages are not installed are left out.
"""

import importlib.util
import sys
from pathlib import Path

# complaints.py, pipelines.py and shuffled.py, which tests import by their own
# names.
sys.path.insert(0, str(Path(__file__).parents[1] / "python"))
sys.path.insert(0, str(Path(__file__).parent))

NEEDS = {
    "test_tables.py": ("pandas", "pyarrow", "datasets"),
    "test_tensorflow.py": ("tensorflow",),
    "test_torch.py": ("torch", "torchdata"),
    "test_torch_workers.py": ("torch", "torchdata"),
    "test_distributed.py": ("torch",),
}

collect_ignore = [
    name
    for name, packages in NEEDS.items()
    if any(importlib.util.find_spec(package) is None for package in packages)
]


def pytest_collection_modifyitems(items):
    """TensorFlow's tests come last: once it has threads, nobody should fork."""
    items.sort(key=lambda item: item.path.name == "test_tensorflow.py")
