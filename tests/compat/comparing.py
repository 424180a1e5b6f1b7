"""Elements of a dataset, and whether two datasets give the same ones.

How a dataset of a pipeline is compared is said in its module's `COMPARE`:

  nothing           exactly, element by element
  {"atol": x}       numbers within x of each other
  "ranges"          what is random: number of elements, shapes and dtypes, and
                    numbers within the other's range, made wider by its width
  {"rows": [path]}  the same, and the rows of these components, in any order
"""

import hashlib

import numpy as np


def flatten(element, path=""):
    """The arrays of an element by their places in it."""
    if isinstance(element, dict):
        parts = sorted(element.items())
    elif isinstance(element, (tuple, list)):
        parts = enumerate(element)
    else:
        return {path: np.asarray(element)}
    found = {}
    for key, part in parts:
        found.update(flatten(part, f"{path}.{key}" if path else str(key)))
    return found


def collect(dataset):
    return [flatten(element) for element in dataset.as_numpy_iterator()]


def is_text(array):
    return array.dtype.kind in "OSU"


def is_random(how):
    return how == "ranges" or (how is not None and "rows" in how)


def summary(elements, how):
    """What is kept of random elements."""
    found = {}
    for path in elements[0] if elements else ():
        arrays = [element[path] for element in elements]
        found[path] = {
            "shapes": [list(array.shape) for array in arrays],
            "dtype": "string" if is_text(arrays[0]) else str(arrays[0].dtype),
        }
        if "rows" in how and path in how["rows"]:
            rows = sorted(row.tobytes() for array in arrays for row in array)
            text = b"".join(rows)
            found[path]["rows"] = hashlib.sha256(text).hexdigest()
        if not is_text(arrays[0]):
            numbers = np.concatenate([a.reshape(-1) for a in arrays])
            found[path]["range"] = [
                float(numbers.min()),
                float(numbers.max()),
            ]
    return found


def check_ranges(mine, theirs, where):
    assert sorted(mine) == sorted(theirs), where
    for path, want in theirs.items():
        got = mine[path]
        assert got["dtype"] == want["dtype"], (where, path)
        assert got["shapes"] == want["shapes"], (where, path)
        assert got.get("rows") == want.get("rows"), (where, path)
        if "range" in want:
            low, high = want["range"]
            width = high - low
            assert got["range"][0] >= low - width, (where, path)
            assert got["range"][1] <= high + width, (where, path)


def check_elements(mine, theirs, how, where):
    assert len(mine) == len(theirs), where
    for i, (got, want) in enumerate(zip(mine, theirs, strict=True)):
        assert sorted(got) == sorted(want), (where, i)
        for path in want:
            check_array(got[path], want[path], how, (where, i, path))


def check_array(got, want, how, where):
    if is_text(want):
        assert is_text(got), where
        assert [bytes(x) for x in got.reshape(-1)] == [
            bytes(x) for x in want.reshape(-1)
        ], where
        assert got.shape == want.shape, where
        return
    assert got.dtype == want.dtype, where
    assert got.shape == want.shape, where
    if how is None:
        np.testing.assert_array_equal(got, want, err_msg=str(where))
    else:
        np.testing.assert_allclose(
            got.astype(np.float64),
            want.astype(np.float64),
            rtol=0,
            err_msg=str(where),
            **how,
        )
