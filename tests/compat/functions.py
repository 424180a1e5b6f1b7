"""Functions of tensors, called with values and in `map`.

Each case is the text of a function and of its arguments, in `tf` and `np`;
`golden/functions.json` has what TensorFlow gives, or that it raises.
"""

import json
from pathlib import Path

import cases_images
import cases_numbers
import cases_ragged
import cases_signals
import cases_sparse
import cases_texts
import numpy as np

GOLDEN = Path(__file__).parent / "golden" / "functions.json"

BOX = "tf.reshape(tf.range(24), [2, 3, 4])"
ROWS = "tf.ragged.constant([[1, 2, 3], [], [4], [5, 6]])"
DEEP = "tf.ragged.constant([[[1, 2], [3]], [], [[4], [], [5, 6]]])"
PAIRS = "tf.RaggedTensor.from_row_splits([[1, 2], [3, 4], [5, 6]], [0, 1, 3])"
WORDS = "tf.ragged.constant([['a', 'b'], ['c'], []])"

PLACES = [
    ("lambda x, i: tf.gather(x, i)", "[5, 6, 7]", "[2, 0]"),
    ("lambda x, i: tf.gather(x, i)", "[5, 6, 7]", "[2, -1]"),
    ("lambda x, i: tf.gather(x, i)", "[5, 6, 7]", "[3]"),
    ("lambda x, i: tf.gather(x, i)", "tf.zeros([0])", "[0]"),
    ("lambda x, i: tf.gather(x, i)", "tf.zeros([0])",
     "tf.zeros([0], tf.int32)"),
    ("lambda x, i: tf.gather(x, i, axis=-1)", BOX, "[[3, 0]]"),
    ("lambda x, i: tf.gather(x, i, batch_dims=1)", "[[5, 6], [7, 8]]",
     "[1, 0]"),
    ("lambda x, i: tf.gather(x, i, batch_dims=1)", BOX, "[[0, 2], [1, 1]]"),
    ("lambda x, i: tf.gather(x, i, batch_dims=1)", BOX, "[[0, 2], [1, 3]]"),
    ("lambda x, i: tf.gather(x, i, batch_dims=1)", BOX, "[[0, -1], [1, 1]]"),
    ("lambda x, i: tf.gather(x, i, batch_dims=-1)", BOX, "[[0, 2], [1, 1]]"),
    ("lambda x, i: tf.gather(x, i, axis=2, batch_dims=1)", BOX,
     "[[0, 2], [1, 3]]"),
    ("lambda x, i: tf.gather(x, i, axis=2, batch_dims=1)", BOX, "[3, 0]"),
    ("lambda x, i: tf.gather(x, i, axis=-1, batch_dims=2)", BOX,
     "[[[0], [2], [1]], [[3], [3], [0]]]"),
    ("lambda x, i: tf.gather(x, i)", ROWS, "[2, 0, 0]"),
    ("lambda x, i: tf.gather(x, i)", DEEP, "[2, 0]"),
    ("lambda x, i: tf.gather(x, i)", "['x', 'y']",
     "tf.ragged.constant([[1], [0, 1]])"),
    ("lambda x, i: tf.gather_nd(x, i)", BOX, "[[1, 2], [0, 0]]"),
    ("lambda x, i: tf.gather_nd(x, i)", BOX, "[[1, 3], [0, 0]]"),
    ("lambda x, i: tf.gather_nd(x, i)", BOX, "[[1, -1], [0, 0]]"),
    ("lambda x, i: tf.gather_nd(x, i, batch_dims=1)", BOX, "[[2], [0]]"),
    ("lambda x, i: tf.gather_nd(x, i, batch_dims=1)", BOX,
     "[[[2, 3], [0, 1]], [[1, 1], [2, 0]]]"),
    ("lambda x, i: tf.gather_nd(x, i, batch_dims=1)", BOX, "[[3], [0]]"),
    ("lambda x, i: tf.gather_nd(x, i, batch_dims=2)", BOX,
     "[[[1], [2], [3]], [[0], [0], [3]]]"),
    ("lambda x, m: tf.boolean_mask(x, m, axis=1)", BOX, "[True, False, True]"),
    ("lambda x, m: tf.boolean_mask(x, m, axis=1)", BOX,
     "tf.reshape(tf.range(12), [3, 4]) % 5 > 2"),
    ("lambda x, m: tf.boolean_mask(x, m, axis=2)", BOX,
     "[True, False, True, True]"),
    ("lambda x, m: tf.boolean_mask(x, m, axis=1)", BOX, "[True, False]"),
    ("lambda x, m: tf.boolean_mask(x, m)", "[1, 2, 3]", "True"),
    ("lambda x, m: tf.ragged.boolean_mask(x, m)", "[[1, 2], [3, 4]]",
     "[[True, False], [True, True]]"),
    ("lambda x: tf.ragged.boolean_mask(x, x > 2)", ROWS),
    ("lambda x: tf.ragged.boolean_mask(x, x > 2)", DEEP),
    ("lambda x, m: tf.ragged.boolean_mask(x, m)", ROWS,
     "[True, False, False, True]"),
    ("lambda i, v: tf.scatter_nd(i, v, [4])", "[[1], [3]]", "[7, 8]"),
    ("lambda i, v: tf.scatter_nd(i, v, [4])", "[[1], [4]]", "[7, 8]"),
    ("lambda i, v: tf.scatter_nd(i, v, [4])", "[[1], [1]]", "[7, 8]"),
    ("lambda v: tf.scatter_nd([[1], [3]], v, [4])", "[7, 8]"),
    ("lambda v: tf.scatter_nd([[1], [1]], v, [4])", "[7, 8]"),
    ("lambda x, n: tf.repeat(x, n)", "[5, 6, 7]", "[2, 0, 3]"),
    ("lambda x, n: tf.repeat(x, n)", "[5, 6, 7]", "[2]"),
    ("lambda x, n: tf.repeat(x, n)", "[5, 6, 7]", "2"),
    ("lambda x, n: tf.repeat(x, n, axis=1)", "[[5, 6], [7, 8]]", "[2, 1]"),
    ("lambda x, n: tf.repeat(x, n, axis=0)", "[['a', 'b'], ['c', 'd']]",
     "[0, 2]"),
    ("lambda x, y: tf.searchsorted(x, y)", "[[1, 3], [2, 4]]",
     "[[0, 3, 9], [3, 3, 3]]"),
    ("lambda x, y: tf.searchsorted(x, y, 'right', tf.int64)",
     "[[[1.0, 3.0]], [[2.0, 4.0]]]", "[[[3.0]], [[1.0]]]"),
    ("lambda x, y: tf.searchsorted(x, y)", "[1, 3, 5]", "3"),
    ("lambda x, y: tf.searchsorted(x, y)", "[1, 3, 5]", "[[3, 4]]"),
    ("lambda x, y: tf.searchsorted(x, y)", "[1, 3, 5]", "[[3], [4]]"),
]  # fmt: skip

NORMS = [
    (f"lambda x: tf.norm(x, {how})", "[[1.0, -2.0, 3.0], [4.0, 5.0, 6.0]]")
    for how in (
        "ord=1",
        "ord=2",
        "ord=3",
        "ord=2.5, axis=1",
        "ord=np.inf",
        "ord=np.inf, axis=0, keepdims=True",
        "axis=[0, 1]",
        "ord='fro', axis=(0, 1)",
        "ord='fro', axis=(0, 1), keepdims=True",
        "ord=1, axis=(0, 1)",
        "ord=1, axis=(1, 0)",
        "ord=np.inf, axis=(-2, -1)",
        "ord=np.inf, axis=(0, 1), keepdims=True",
        "ord=2, axis=(0, 1)",
        "ord=3, axis=(0, 1)",
        "ord='fro'",
        "ord='fro', axis=1",
        "ord=0",
        "ord=-1",
        "ord='nuc'",
    )
] + [("lambda x: tf.norm(x)", "[3, 4]")]

FORMATS = [
    ("lambda x: tf.strings.format('<{}>', x)", value)
    for value in (
        "7",
        "'a'",
        "['a\\n', '\"']",
        "b'\\xff\\x01'",
        "tf.range(10)",
        "tf.range(6)",
        "tf.range(7)",
        "tf.reshape(tf.range(100), [10, 10])",
        BOX,
        "[[1.5, 0.1], [1e10, -1 / 3]]",
        "tf.constant([[1.5, 0.1], [1e10, -1 / 3]], tf.float64)",
        "tf.constant([1.5, 0.1], tf.float16)",
        "[1e-7, 123456789.0, np.inf, -np.inf, np.nan, 0.0]",
        "1 / 3",
        "[True, False]",
        "tf.zeros([0])",
    )
] + [
    ("lambda x: tf.strings.format('{} {}', (x, x), summarize=1)",
     "tf.range(5)"),
    ("lambda x: tf.strings.format('{}', x, summarize=-1)", "tf.range(9)"),
    ("lambda x: tf.strings.format('% {}', x, '%')", "tf.range(2)"),
    ("lambda x: tf.strings.format('{} {}', [x])", "tf.range(2)"),
]  # fmt: skip

FRAMES = [
    (f"lambda x: tf.signal.frame(x, {how})", BOX)
    for how in (
        "3, 1",
        "2, 1, axis=1",
        "2, 1, axis=0",
        "2, 2, axis=-2, pad_end=True",
        "2, 2, axis=-2, pad_end=True, pad_value=9",
        "3, 2, True",
        "7, 2",
        "7, 2, pad_end=True",
    )
]

# fmt: off
RAGGED = [
    ("lambda x, y: tf.concat([x, y], 0)", ROWS, "tf.ragged.constant([[7]])"),
    ("lambda x, y: tf.concat([x, y], 0)", ROWS, "[[7, 8]]"),
    ("lambda x, y: tf.concat([x, y, x], 1)", ROWS, "[[7], [8], [9], [10]]"),
    ("lambda x, y: tf.concat([x, y], -1)", ROWS,
     "tf.ragged.constant([[7], [], [8, 9], []])"),
    ("lambda x, y: tf.concat([x, y], 1)", ROWS, "tf.ragged.constant([[7]])"),
    ("lambda x, y: tf.concat([x, y], 1)", WORDS, "[['x'], ['y'], ['z']]"),
    ("lambda x: tf.concat([x, x], 0)", DEEP),
    ("lambda x: tf.concat([x, x], 1)", DEEP),
    ("lambda x: tf.concat([x, x], 2)", DEEP),
    ("lambda x: tf.concat([x, x], 2)", PAIRS),
    ("lambda x: tf.concat([x, x], 3)", PAIRS),
    ("lambda x, y: tf.stack([x, y])", ROWS, "tf.ragged.constant([[7]])"),
    ("lambda x: tf.stack([x, x], 1)", ROWS),
    ("lambda x: tf.stack([x, x], 2)", ROWS),
    ("lambda x, y: tf.ragged.stack([x, y])", "[1, 2]", "[3]"),
    ("lambda x, y: tf.ragged.stack([x, y])", "[[1, 2]]", "[[3], [4]]"),
    ("lambda x: tf.ragged.stack([x, x], 1)", "[1, 2]"),
    ("lambda x: tf.ragged.range(x)", "[2, 0, 3]"),
    ("lambda x: tf.ragged.range(x, x + 5, 2)", "[2, 0]"),
    ("lambda x: tf.ragged.range(x, 0, -1)", "[2, 0, 3]"),
    *[
        (f"lambda x: tf.expand_dims(x, {axis})", text)
        for axis in (0, 1, 2, -1)
        for text in (ROWS, PAIRS)
    ],
    *[
        (f"lambda x: x[{key}]", ROWS)
        for key in (
            "0", "-1", "3", "4", "1:3", ":-1", "2:", "::2", "::-1", "3:1",
            "9:", "tf.constant(2)", "tf.constant(1):", ":, :2", ":, 1:",
            ":, -2:", ":, :-1", ":, ::2", ":, ::-1", ":, ::-2", "1:, 1:",
            "..., :2", "...", "0, 1", "0, :2", ":, 0", "tf.newaxis",
            ":, tf.newaxis", ":, 1:0", ":, tf.constant(1):",
        )
    ],
    *[
        (f"lambda x: x[{key}]", DEEP)
        for key in (
            "2", "0, 1", "0, 1, 0", ":, :1", ":, :, :1", ":, 1:, ::-1",
            "..., :1", "1:", "::-1", "2, 1:", "2, :, :1", ":, :, 0",
        )
    ],
    *[
        (f"lambda x: x[{key}]", PAIRS)
        for key in ("1", "1, 0", ":, :1", ":, :, 0", "..., 1", "1, :, 1")
    ],
    *[
        (f"lambda x: x.merge_dims({axes})", text)
        for axes in ("0, 1", "1, 2", "0, 2", "0, -1", "-2, -1", "1, 1")
        for text in (DEEP, PAIRS)
    ],
    ("lambda x: x.merge_dims(1, 0)", DEEP),
    *[
        (f"lambda x: x.{name}", text)
        for name in (
            "row_lengths()", "row_starts()", "row_limits()", "value_rowids()",
            "nrows()", "bounding_shape()", "bounding_shape(1)",
            "nested_row_splits", "nested_row_lengths()", "flat_values",
            "to_tensor()", "to_tensor(-1)",
            "with_row_splits_dtype(tf.int32)", "with_flat_values(x.flat_values"
            " * 2)",
        )
        for text in (ROWS, DEEP, PAIRS)
    ],
    ("lambda x: x.row_lengths(2)", DEEP),
    ("lambda x: x.to_tensor(shape=[None, 2])", ROWS),
    ("lambda x: x.to_tensor(0, shape=[5, 4])", ROWS),
    ("lambda x: x.to_tensor(shape=[2, 2, 1])", DEEP),
    ("lambda x: x.to_sparse()", ROWS),
    ("lambda x: tf.RaggedTensor.from_sparse(x.to_sparse())", ROWS),
    ("lambda x: tf.RaggedTensor.from_row_starts([1, 2, 3], x)", "[0, 0, 2]"),
    ("lambda x: tf.RaggedTensor.from_row_limits([1, 2, 3], x)", "[0, 2, 3]"),
    ("lambda x: tf.RaggedTensor.from_row_lengths([1, 2, 3], x)", "[0, 2, 1]"),
    ("lambda x: tf.RaggedTensor.from_value_rowids([1, 2, 3], x)", "[0, 2, 2]"),
    ("lambda x: tf.RaggedTensor.from_value_rowids([1, 2, 3], x, 5)",
     "tf.constant([0, 2, 2], tf.int64)"),
    ("lambda x: tf.RaggedTensor.from_uniform_row_length(x, 2)",
     "[1, 2, 3, 4]"),
    ("lambda x: tf.RaggedTensor.from_nested_row_splits(x, [[0, 2], [0, 1, 4]])",
     "[1, 2, 3, 4]"),
    ("lambda x: tf.RaggedTensor.from_nested_row_lengths(x, [[2], [1, 3]])",
     "[1, 2, 3, 4]"),
    ("lambda x: tf.RaggedTensor.from_tensor(x, padding=0)",
     "[[1, 0, 2, 0], [0, 0, 0, 0], [3, 0, 0, 0]]"),
    ("lambda x: tf.RaggedTensor.from_tensor(x, lengths=[1, 0, 3])",
     "[[1, 0, 2, 0], [0, 0, 0, 0], [3, 0, 0, 0]]"),
    ("lambda x: tf.RaggedTensor.from_tensor(x, ragged_rank=2)", BOX),
    ("lambda x: tf.RaggedTensor.from_tensor(x)", BOX),
    *[
        (f"lambda x: {expression}", text)
        for expression in (
            "x + 1", "2 * x", "x - x", "x / 2", "x // 2", "x % 2", "x > 2",
            "x == 3", "-x if False else tf.abs(x)", "tf.add(x, 1)",
            "tf.maximum(x, 2)", "tf.cast(x, tf.float32)", "tf.size(x)",
            "tf.rank(x)", "tf.reduce_sum(x)", "tf.reduce_max(x)",
            "tf.reduce_sum(x, -1)", "tf.reduce_max(x, -1)",
            "tf.reduce_min(x, -1)", "tf.reduce_mean(tf.cast(x, tf.float32))",
        )
        for text in (ROWS, DEEP, PAIRS)
    ],
    ("lambda x, y: x + y", ROWS, "[[10], [20], [30], [40]]"),
    ("lambda x, y: x * y", PAIRS, "[10, 20]"),
    ("lambda x, y: y + x", WORDS, "'-'"),
    ("lambda x: tf.reduce_sum(x, 1)", ROWS),
    ("lambda x: tf.reduce_sum(x, 0)", ROWS),
    ("lambda x: tf.reduce_prod(x, 1)", ROWS),
    ("lambda x: tf.reduce_max(tf.cast(x, tf.float32), 1)", ROWS),
    ("lambda x: tf.reduce_min(x, 0)", ROWS),
    ("lambda x: tf.reduce_any(x > 4, 1)", ROWS),
    ("lambda x: tf.reduce_all(x > 4, 1)", ROWS),
    ("lambda x: tf.reduce_mean(tf.cast(x, tf.float32), 1)", ROWS),
    ("lambda x: tf.reduce_mean(tf.cast(x, tf.float32), 0)", ROWS),
]

# fmt: on

TABLES = [
    (f"lambda x: tf.lookup.StaticVocabularyTable({made}, 5).lookup(x)", keys)
    for made, keys in (
        ("None", "['a', 'b', '']"),
        ("None", "tf.ragged.constant([['a'], ['b', 'c']])"),
        ("None", "[1, 2]"),
        ("tf.lookup.KeyValueTensorInitializer(['a', 'b'], "
         "tf.constant([7, 9], tf.int64))", "['b', 'a', 'x', 'y']"),
        ("tf.lookup.KeyValueTensorInitializer(['a', 'b'], "
         "tf.constant([1, 0], tf.int64))", "['b', 'a', 'x', 'y']"),
        ("tf.lookup.KeyValueTensorInitializer(['a', 'b'], [0, 1])", "['a']"),
        ("tf.lookup.KeyValueTensorInitializer(tf.constant([5, 6], tf.int64), "
         "tf.constant([7, 9], tf.int64))", "tf.constant([6, 7, 8], tf.int64)"),
    )
] + [
    ("lambda x: tf.lookup.StaticVocabularyTable(None, 5).size() + x",
     "tf.constant(0, tf.int64)"),
    ("lambda x: tf.lookup.StaticVocabularyTable(tf.lookup."
     "KeyValueTensorInitializer(tf.constant([5, 6], tf.int64), "
     "tf.constant([0, 1], tf.int64)), 3, tf.int32).lookup(x)", "[6, 7, 8]"),
]  # fmt: skip

PARSED = [
    (f"lambda x: {call}", value)
    for call in (
        "tf.io.serialize_tensor(x)",
        "tf.io.parse_tensor(tf.io.serialize_tensor(x), x.dtype)",
        "tf.ensure_shape(tf.io.parse_tensor(tf.io.serialize_tensor(x), "
        "x.dtype), [None, 2])[:, 0]",
        "tf.reshape(tf.io.parse_tensor(tf.io.serialize_tensor(x), x.dtype), "
        "[2, -1])",
        "tf.cast(tf.io.parse_tensor(tf.io.serialize_tensor(x), x.dtype), "
        "tf.float32) / 255.0",
        "tf.transpose(tf.io.parse_tensor(tf.io.serialize_tensor(x), x.dtype))",
        "tf.io.parse_tensor(tf.io.serialize_tensor(x), x.dtype)[0]",
        "tf.shape(tf.io.parse_tensor(tf.io.serialize_tensor(x), x.dtype))",
        "tf.reduce_sum(tf.io.parse_tensor(tf.io.serialize_tensor(x), x.dtype))",
        "tf.expand_dims(tf.io.parse_tensor(tf.io.serialize_tensor(x), "
        "x.dtype), -1)",
        "tf.concat([tf.io.parse_tensor(tf.io.serialize_tensor(x), x.dtype), x]"
        ", 0)",
        "tf.image.resize(tf.io.parse_tensor(tf.io.serialize_tensor(x[None]), "
        "x.dtype), [1, 1])",
        "tf.io.parse_tensor(tf.io.serialize_tensor(x), tf.complex64)",
        "tf.squeeze(tf.io.parse_tensor(tf.io.serialize_tensor(x[None]), "
        "x.dtype), 0)",
        "tf.gather(tf.io.parse_tensor(tf.io.serialize_tensor(x), x.dtype), 1)",
        "tf.one_hot(tf.io.parse_tensor(tf.io.serialize_tensor(x), x.dtype), 9)",
        "tf.reduce_mean(tf.cast(tf.io.parse_tensor(tf.io.serialize_tensor(x), "
        "x.dtype), tf.float32), axis=-1)",
    )
    for value in ("[[1, 2], [3, 4]]", "[[1.5, 2.0]]")
]

GROUPS = {
    "places": PLACES,
    "norms": NORMS,
    "formats": FORMATS,
    "frames": FRAMES,
    "ragged": RAGGED,
    "tables": TABLES,
    "parsed": PARSED,
    **cases_numbers.GROUPS,
    **cases_images.GROUPS,
    **cases_ragged.GROUPS,
    **cases_texts.GROUPS,
    **cases_signals.GROUPS,
    **cases_sparse.GROUPS,
}


def cases():
    """Name, function and arguments of each."""
    for cases in GROUPS.values():
        for function, *arguments in cases:
            yield " | ".join((function, *arguments)), function, arguments


def run(tf, function, arguments):
    """What a function gives for values; None: it raises."""
    names = {"tf": tf, "np": np}
    try:
        given = [eval(text, names) for text in arguments]
        given = [
            x if hasattr(x, "row_splits") else tf.convert_to_tensor(x)
            for x in given
        ]
        return describe(eval(function, names)(*given))
    except Exception:
        return None


def describe(found):
    """dtype, shape and values; of several tensors, each."""
    if isinstance(found, (tuple, list)):
        return {"parts": [describe(part) for part in found]}
    if hasattr(found, "row_splits"):
        return {
            "splits": [describe(s) for s in found.nested_row_splits],
            "values": describe(found.flat_values),
        }
    if hasattr(found, "dense_shape"):
        parts = (found.indices, found.values, found.dense_shape)
        return {"sparse": [describe(part) for part in parts]}
    import arithmetic

    return arithmetic.describe(found)


def write(tf):
    found = {name: run(tf, *rest) for name, *rest in cases()}
    text = ",\n".join(
        f"{json.dumps(name)}: {json.dumps(value)}"
        for name, value in found.items()
    )
    GOLDEN.write_text("{\n" + text + "\n}\n")
