"""Writes golden.txt: what numpy 2 gives for every function over all dtypes.

    python make_golden.py > golden.txt

Dtypes are numpy's short names (i1, u8, f2, c16, b1); items are hexadecimal
bytes, little-endian. Lines:

    set SET DTYPE ITEMS
    unary NAME SET DTYPE RESULT
    binary NAME SET DTYPE SET DTYPE RESULT    over every pair of items
    weak NAME SET DTYPE KIND VALUE RESULT     items with a Python scalar
    kaew NAME SET DTYPE KIND VALUE RESULT     a Python scalar with items
    cast SET DTYPE DTYPE RESULT
    reduce NAME SET DTYPE AXIS RESULT         the items as a (3, 4) array

RESULT is "error", or the dtype and then "=HASH" (exact: FNV-1a of the items,
every NaN made the same NaN and every zero positive) or "~ITEMS" (equal within
rounding).
"""

import sys
import warnings

import numpy as np

warnings.simplefilter("ignore")

INTS = [
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]
FLOATS = ["float16", "float32", "float64"]
COMPLEX = ["complex64", "complex128"]
DTYPES = ["bool"] + INTS + FLOATS + COMPLEX


def edges(name):
    if name == "bool":
        return np.array([False, True])
    if name in INTS:
        info = np.iinfo(name)
        picked = [0, 1, 2, 3, 7, 100, info.max, info.max - 1]
        if info.min < 0:
            picked += [-1, -2, -7, info.min, info.min + 1]
        return np.array(picked, dtype=name)
    if name in FLOATS:
        info = np.finfo(name)
        picked = [
            0,
            1,
            -1,
            0.5,
            2.5,
            -2.5,
            3,
            -7.25,
            100,
            np.inf,
            -np.inf,
            np.nan,
            info.max,
            info.tiny,
        ]
        return np.array(picked, dtype=name)
    return np.array(
        [0, 1, -1, 1j, 2 + 1j, -4 + 8j, complex(np.inf, 1), complex(np.nan, 0)],
        dtype=name,
    )


def plain(name):
    """Finite and not zero: where results are rounded, or depend on the processor."""
    if name == "bool":
        return np.array([True])
    if name in INTS:
        return np.array([1, 2, 3, 7], dtype=name)
    if name in FLOATS:
        return np.array([1, 0.5, 2.5, -7.25], dtype=name)
    return np.array([1, 1j, 2 + 1j, -4 + 8j], dtype=name)


def exponents(name):
    if name == "bool":
        return np.array([False, True])
    if name in INTS:
        return np.array([0, 1, 2, 3, 7], dtype=name)
    if name in FLOATS:
        return np.array([-1, 0.5, 3], dtype=name)
    return np.array([1, 2, 0.5 + 1j], dtype=name)


def table(name):
    rng = np.random.default_rng(7)
    if name == "bool":
        return rng.integers(0, 2, (3, 4)).astype(bool)
    if name in INTS:
        return rng.integers(
            0 if name.startswith("u") else -9, 10, (3, 4)
        ).astype(name)
    if name in FLOATS:
        return rng.uniform(-3, 3, (3, 4)).astype(name)
    return (
        rng.uniform(-3, 3, (3, 4)) + 1j * rng.uniform(-3, 3, (3, 4))
    ).astype(name)


SETS = {"v": edges, "p": plain, "e": exponents, "t": table}


def raw(array):
    return np.ascontiguousarray(array).tobytes().hex()


def short(dtype):
    return np.dtype(dtype).str[1:]


def fnv(data):
    h = 0xCBF29CE484222325
    for byte in data:
        h = ((h ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return h


def exact(array):
    array = np.array(array, copy=True)
    if array.dtype.kind == "c":
        flat = array.reshape(-1).view(array.real.dtype)
    else:
        flat = array.reshape(-1)
    if flat.dtype.kind == "f":
        flat[np.isnan(flat)] = np.nan
        flat[flat == 0] = 0
    return "=%08x" % (fnv(flat.tobytes()) & 0xFFFFFFFF)


def result(function, *args, near=False):
    try:
        out = np.asarray(function(*args))
    except (TypeError, OverflowError, ValueError):
        return "error"
    return f"{short(out.dtype)} {'~' + raw(out) if near else exact(out)}"


BINARY = """add subtract multiply true_divide floor_divide mod minimum maximum
bitwise_and bitwise_or bitwise_xor left_shift right_shift logical_and
logical_or logical_xor equal not_equal less less_equal greater
greater_equal""".split()
# sqrt of a float is exact, of a complex number it is not.
UNARY = """negative positive abs sign square floor ceil trunc round reciprocal
isnan isinf isfinite invert logical_not sqrt""".split()
NEAR = "exp log log2 log10 log1p expm1 sin cos tan tanh arctan".split()
REDUCE = "sum prod mean min max any all argmin argmax".split()
WEAK = [
    ("int", 3),
    ("int", -1),
    ("int", 300),
    ("float", 2.5),
    ("complex", 1j),
    ("bool", True),
]
WEAK_FUNCTIONS = "add subtract multiply true_divide floor_divide mod maximum bitwise_and left_shift equal less".split()


def is_complex(*dtypes):
    return any(d in COMPLEX for d in dtypes)


def unary(name, d):
    near = name in NEAR or (
        d in COMPLEX and name in ("abs", "sign", "sqrt", "reciprocal")
    )
    which = (
        "p"
        if (near and d in COMPLEX) or (name == "reciprocal" and d in INTS)
        else "v"
    )
    print(
        "unary",
        name,
        which,
        short(d),
        result(getattr(np, name), SETS[which](d), near=near),
    )


def binary(name, a, b):
    near = name == "true_divide" and is_complex(a, b)
    x_set = y_set = (
        "p" if is_complex(a, b) and name in ("multiply", "true_divide") else "v"
    )
    if name == "power":
        near = not (a in INTS + ["bool"] and b in INTS + ["bool"])
        x_set, y_set = "p" if near else "v", "e"
    if near and is_complex(a, b) and a != b and "int32" not in (a, b):
        return  # promotion is seen in other functions
    x, y = SETS[x_set](a), SETS[y_set](b)
    x, y = np.repeat(x, len(y)), np.tile(y, len(x))
    print(
        "binary",
        name,
        x_set,
        short(a),
        y_set,
        short(b),
        result(getattr(np, name), x, y, near=near),
    )


def weak(name, d, kind, value):
    if name == "true_divide" and (d in COMPLEX or kind == "complex"):
        return
    which = "p" if d in COMPLEX or kind == "complex" else "v"
    text = "1j" if kind == "complex" else repr(value)
    function, data = getattr(np, name), SETS[which](d)
    print(
        "weak", name, which, short(d), kind, text, result(function, data, value)
    )
    if name not in ("add", "multiply", "maximum", "bitwise_and", "equal"):
        print(
            "kaew",
            name,
            which,
            short(d),
            kind,
            text,
            result(function, value, data),
        )


def cast(a, b):
    which = "p" if b.startswith("u") else "t"
    data = SETS[which](a)
    if not (b.startswith("u") and a in FLOATS):  # C leaves negative ones open
        print(
            "cast",
            which,
            short(a),
            short(b),
            result(lambda v: v.reshape(-1).astype(b), data),
        )


def reduce(name, d, axis):
    near = d in FLOATS + COMPLEX
    function = getattr(np, name)
    print(
        "reduce",
        name,
        "t",
        short(d),
        axis,
        result(
            lambda v: function(v, axis=axis).reshape(-1), table(d), near=near
        ),
    )


def main():
    for name, make in SETS.items():
        for d in DTYPES:
            print("set", name, short(d), raw(make(d)))
    for d in DTYPES:
        for name in UNARY + NEAR:
            unary(name, d)
        for name in WEAK_FUNCTIONS:
            for kind, value in WEAK:
                weak(name, d, kind, value)
        for name in REDUCE:
            for axis in (None, 0, 1):
                reduce(name, d, axis)
    for a in DTYPES:
        for b in DTYPES:
            cast(a, b)
            for name in BINARY + ["power"]:
                binary(name, a, b)


if __name__ == "__main__":
    sys.exit(main())
