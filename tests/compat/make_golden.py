"""Runs the pipelines under TensorFlow and keeps what they give.

Run it, with TensorFlow, numpy and this package to be imported, when a pipeline
or its inputs change:

    PYTHONPATH=python .venv-frameworks/bin/python tests/compat/make_golden.py
"""

import os
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
sys.path.insert(0, str(Path(__file__).parent))

import golden
from inputs import make_inputs


def main():
    import arithmetic
    import functions
    import tensorflow as tf

    wanted = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        make_inputs(folder)
        for name in golden.NAMES:
            if not wanted or name in wanted:
                module = golden.module_of(name)
                golden.write(name, module.build(tf, folder), module)
                print(name, flush=True)
    if not wanted or "arithmetic" in wanted:
        arithmetic.write(tf)
    if not wanted or "functions" in wanted:
        functions.write(tf)


if __name__ == "__main__":
    main()
