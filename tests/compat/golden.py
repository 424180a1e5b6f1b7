"""The pipelines, and golden files: what TensorFlow gave for them.

`pipelines` has input pipelines as they are published for TensorFlow. Each
module has `build(tf, folder)`: a dict of datasets, by name. It is called with
TensorFlow, or with `penstock.compat.tf`, and must not know which. How datasets
are compared is said in `COMPARE`: see `comparing.py`.
"""

import functools
import importlib.util
import json
import sys
from pathlib import Path

import numpy as np
from comparing import collect, is_random, is_text, summary

HERE = Path(__file__).parent
GOLDEN = HERE / "golden"
NAMES = sorted(path.stem for path in (HERE / "pipelines").glob("*.py"))


@functools.cache
def module_of(name):
    spec = importlib.util.spec_from_file_location(
        f"published_{name}", HERE / "pipelines" / f"{name}.py"
    )
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where TensorFlow's AutoGraph looks
    spec.loader.exec_module(module)
    return module


def how_of(module, dataset):
    return getattr(module, "COMPARE", {}).get(dataset)


def write(name, built, module):
    arrays, about = {}, {}
    for dataset, made in built.items():
        elements = collect(made)
        how = how_of(module, dataset)
        if is_random(how):
            about[dataset] = {"summary": summary(elements, how)}
            continue
        about[dataset] = {"elements": len(elements)}
        for i, element in enumerate(elements):
            for path, array in element.items():
                if is_text(array):
                    about[dataset].setdefault("strings", {})[f"{i}/{path}"] = {
                        "shape": list(array.shape),
                        "items": [
                            bytes(x).decode("latin-1")
                            for x in array.reshape(-1)
                        ],
                    }
                else:
                    arrays[f"{dataset}/{i}/{path}"] = array
    GOLDEN.mkdir(exist_ok=True)
    arrays["about"] = np.array(json.dumps(about, sort_keys=True))
    np.savez_compressed(GOLDEN / f"{name}.npz", **arrays)


def read(name):
    """By dataset: its elements, or the summary of random ones."""
    with np.load(GOLDEN / f"{name}.npz") as file:
        arrays = {key: file[key] for key in file.files}
    about = json.loads(str(arrays.pop("about")))
    found = {}
    for dataset, said in about.items():
        if "summary" in said:
            found[dataset] = said["summary"]
            continue
        elements = [{} for _ in range(said["elements"])]
        for key, text in said.get("strings", {}).items():
            i, _, path = key.partition("/")
            items = np.empty(len(text["items"]), object)
            items[:] = [x.encode("latin-1") for x in text["items"]]
            elements[int(i)][path] = items.reshape(text["shape"])
        for key, array in arrays.items():
            of, _, rest = key.partition("/")
            i, _, path = rest.partition("/")
            if of == dataset:
                elements[int(i)][path] = array
        found[dataset] = elements
    return found
