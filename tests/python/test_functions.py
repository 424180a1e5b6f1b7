"""The native functions, as the package offers them."""

import subprocess
from pathlib import Path

import numpy as np
import pytest

import penstock as ps
from penstock import _functions
from penstock._engine import binary_path


def test_the_wrappers_are_those_of_the_engine() -> None:
    folder = Path(_functions.__file__).parent
    for file in [folder / "_functions.py", *folder.glob("_*_functions.py")]:
        space = file.stem.removesuffix("functions").strip("_")
        made = subprocess.run(
            [binary_path(), "functions", "--python", *([space] * bool(space))],
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        assert file.read_text() == made, (
            f"run: .venv/bin/penstock functions --python {space} > {file}"
        )


UNARY = [
    "abs", "ceil", "cos", "exp", "expm1", "floor", "isfinite", "isinf",
    "isnan", "log1p", "negative", "positive", "round", "sign", "sin",
    "square", "tanh", "trunc",
]  # fmt: skip
BINARY = [
    "add", "equal", "floor_divide", "greater", "greater_equal", "less",
    "less_equal", "maximum", "minimum", "mod", "multiply", "not_equal",
    "subtract", "true_divide",
]  # fmt: skip
DTYPES = [
    np.int8, np.int32, np.int64, np.uint8, np.uint16, np.float32, np.float64,
]  # fmt: skip
VALUES = np.array([0, 1, 2, 7, 100, 127])


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("dtype", DTYPES)
def test_native_and_numpy_agree_on_one_argument(name: str, dtype: type) -> None:
    x = VALUES.astype(dtype)
    # The functions of real numbers give another dtype for small integers.
    is_real = name in ("cos", "exp", "expm1", "log1p", "sin", "tanh")
    if is_real and np.issubdtype(dtype, np.integer):
        x = x.astype(np.float64)
    with np.errstate(all="ignore"):
        want = getattr(np, name)(x)
    native = getattr(ps, name)
    (mapped,) = ps.Dataset.from_tensors(x).map(lambda v: native(v))
    for got in (native(x), mapped):
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=1e-6 if is_real else 0)


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("left", DTYPES)
@pytest.mark.parametrize("right", DTYPES)
def test_native_and_numpy_agree_on_two_arguments(
    name: str, left: type, right: type
) -> None:
    x, y = VALUES.astype(left), VALUES[::-1].astype(right)
    with np.errstate(all="ignore"):
        want = getattr(np, name)(x, y)
    native = getattr(ps, name)
    (mapped,) = ps.Dataset.from_tensors((x, y)).map(lambda a, b: native(a, b))
    assert mapped.dtype == want.dtype
    np.testing.assert_array_equal(mapped, want)
