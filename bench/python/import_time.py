"""What `import penstock` takes in a fresh process that has numpy.

The package is compiled to bytecode first, as every installer and every first
import leaves it, even where the environment keeps Python from writing it.
"""

import os
import subprocess
import sys
import tempfile

from workload import Cost

ROW = Cost(
    number="H3", title="import penstock, after numpy", unit="ms", limit=100
)

_TIMED = """
import numpy, time
start = time.perf_counter()
import penstock
print((time.perf_counter() - start) * 1e3)
"""


def measure(seconds):
    variables = dict(os.environ)
    variables.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory() as folder:
        variables["PYTHONPYCACHEPREFIX"] = folder
        for _ in range(2):
            printed = subprocess.run(
                [sys.executable, "-c", _TIMED],
                env=variables,
                stdout=subprocess.PIPE,
                check=True,
            ).stdout
    return float(printed)
