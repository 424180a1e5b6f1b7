"""Cases of `functions.py`: functions of numbers."""

UNIT = "[-0.9, -0.25, 0.0, 0.5, 0.75]"
REAL = "[-3.5, -0.25, 0.0, 0.5, 40.0]"
LARGE = "[1.0, 1.5, 20.0]"
DOUBLE = "tf.constant([-0.9, -0.25, 0.0, 0.5, 0.75], tf.float64)"
GRID = "[[1.0, 2.0, 3.0], [3.0, 0.5, 1.0]]"
COMPLEX = "tf.constant([1 + 2j, -1.5j], tf.complex64)"

# fmt: off
MADE = [
    *[
        (f"lambda x: tf.math.{name}(x)", text)
        for name in (
            "acos", "asin", "atan", "asinh", "atanh", "cosh", "erf", "erfc",
            "rint", "sinh", "softplus", "softsign", "log_sigmoid",
            "reciprocal_no_nan", "zero_fraction", "is_non_decreasing",
            "is_strictly_increasing", "real", "imag", "conj",
        )
        for text in (UNIT, DOUBLE)
    ],
    *[
        (f"lambda x: tf.{name}(x)", UNIT)
        for name in ("acos", "asin", "atan", "asinh", "atanh", "cosh", "sinh")
    ],
    ("lambda x: tf.math.acosh(x)", LARGE),
    ("lambda x: tf.acosh(x)", LARGE),
    ("lambda x: tf.math.lgamma(x)", LARGE),
    ("lambda x: tf.math.lgamma(x)", "[0.5, -1.5, 0.0, -2.0]"),
    ("lambda x: tf.math.acos(x)", "[1, 0]"),
    ("lambda x: tf.math.softplus(x)", REAL),
    ("lambda x: tf.math.log_sigmoid(x)", REAL),
    ("lambda x: tf.math.real(x)", COMPLEX),
    ("lambda x: tf.math.imag(x)", COMPLEX),
    ("lambda x: tf.math.conj(x)", COMPLEX),
    ("lambda x: tf.math.angle(x)", COMPLEX),
    ("lambda x, y: tf.complex(x, y)", "[1.0, 2.0]", "[0.5, -1.0]"),
    *[
        (f"lambda x, y: {call}", "[0.0, 1.5, -2.0, 0.0]",
         "[1.0, 0.0, -3.0, 0.0]")
        for call in (
            "tf.math.atan2(x, y)", "tf.atan2(y, x)", "tf.math.xdivy(x, y)",
        )
    ],
    *[
        (f"lambda x, y: tf.math.{name}(x, y)", "[0.0, 1.5, 2.0]",
         "[0.0, 0.5, 3.0]")
        for name in ("xlogy", "xlog1py", "xdivy")
    ],
    *[
        (f"lambda x, y: tf.{name}(x, y)", "[7, -7, 7, -7]", "[2, 2, -2, -2]")
        for name in ("truncatediv", "truncatemod", "realdiv")
    ],
    ("lambda x: tf.scalar_mul(2.0, x)", REAL),
    ("lambda x: tf.math.scalar_mul(x, x)", REAL),
    ("lambda x: tf.math.polyval([1.0, 2.5, 3.0], x)", REAL),
    ("lambda x: tf.math.polyval([], x)", REAL),
    *[
        (f"lambda x: tf.math.{call}", GRID)
        for call in (
            "log_softmax(x)", "log_softmax(x, axis=0)", "l2_normalize(x)",
            "l2_normalize(x, 1)", "l2_normalize(x * 0.0, [0, 1])",
            "reduce_euclidean_norm(x)", "reduce_euclidean_norm(x, 1, True)",
            "is_non_decreasing(x)", "cumprod(x)", "cumprod(x, 1)",
            "cumprod(x, 1, exclusive=True)", "cumprod(x, -1, reverse=True)",
            "cumprod(x, 1, True, True)", "zero_fraction(x)",
            "in_top_k([2, 1], x, 1)", "in_top_k([0, 0], x, 2)",
            "in_top_k([0, 5], x, 2)",
        )
    ],
    ("lambda x: tf.math.reduce_euclidean_norm(x)", "[3, 4, 5]"),
    ("lambda x: tf.math.accumulate_n([x, x])", GRID),
    ("lambda x: tf.clip_by_norm(x, 2.0)", GRID),
    ("lambda x: tf.clip_by_norm(x, 2.0, axes=1)", GRID),
    ("lambda x: tf.clip_by_norm(x, 200.0)", GRID),
    ("lambda x, y: tf.clip_by_global_norm([x, y], 2.0)[0][1]", GRID, REAL),
    ("lambda x, y: tf.clip_by_global_norm([x, y], 200.0)[1]", GRID, REAL),
]

SEGMENTS = [
    ("lambda x: tf.math.bincount(x)", "[1, 1, 3, 0]"),
    ("lambda x: tf.math.bincount(x, minlength=6)", "[1, 1, 3, 0]"),
    ("lambda x: tf.math.bincount(x, maxlength=2)", "[1, 1, 3, 0]"),
    ("lambda x: tf.math.bincount(x, dtype=tf.float32)", "[1, 1, 3, 0]"),
    ("lambda x: tf.math.bincount(x, [0.5, 1.0, 2.0, 4.0])", "[1, 1, 3, 0]"),
    ("lambda x: tf.math.bincount(x)", "[1, -1]"),
    ("lambda x: tf.math.bincount(x, axis=-1)", "[[1, 1], [2, 0]]"),
    ("lambda x: tf.math.bincount(x, axis=-1, binary_output=True)",
     "[[1, 1], [2, 0]]"),
    ("lambda x: tf.math.bincount(x)", "[[1, 1], [2, 0]]"),
    ("lambda x: tf.histogram_fixed_width(x, [0.0, 5.0], nbins=5)",
     "[-1.0, 0.0, 1.5, 2.0, 5.0, 15.0]"),
    ("lambda x: tf.histogram_fixed_width_bins(x, [0.0, 5.0], nbins=5)",
     "[-1.0, 0.0, 1.5, 2.0, 5.0, 15.0]"),
    ("lambda x: tf.math.confusion_matrix(x, [2, 1, 1])", "[2, 1, 0]"),
    ("lambda x: tf.math.confusion_matrix(x, [2, 1, 1], 4)", "[2, 1, 0]"),
    ("lambda x: tf.math.confusion_matrix(x, [2, 1, 1], 2)", "[2, 1, 0]"),
    ("lambda x: tf.math.confusion_matrix(x, x, weights=[1, 2, 3])",
     "[2, 1, 0]"),
    *[
        (f"lambda x, i: tf.math.segment_{how}(x, i)", text, ids)
        for how in ("sum", "prod", "max", "min", "mean")
        for text, ids in (
            ("[1.0, 2.0, 3.0, 4.0]", "[0, 0, 2, 2]"),
            ("[[1, 2], [3, 4], [5, 7]]", "[0, 0, 1]"),
        )
    ],
    ("lambda x, i: tf.math.segment_sum(x, i)", "[1, 2]", "[1, 0]"),
    *[
        (f"lambda x, i: tf.math.unsorted_segment_{how}(x, i, 4)", text, ids)
        for how in ("sum", "prod", "max", "min", "mean", "sqrt_n")
        for text, ids in (
            ("[1.0, 2.0, 3.0, 4.0]", "[2, 0, 2, 0]"),
            ("[[1.0, 2.0], [3.0, 4.0], [5.0, 7.0]]", "[1, 3, 1]"),
            ("[[1.0, 2.0], [3.0, 4.0]]", "[[1, 3], [3, -1]]"),
        )
    ],
    ("lambda x, i: tf.math.unsorted_segment_sum(x, i, 1)", "[1, 2]", "[1, 0]"),
    ("lambda x: tf.math.invert_permutation(x)", "[2, 0, 1]"),
    ("lambda x: tf.math.invert_permutation(x)", "[2, 0, 2]"),
    ("lambda x: tf.unravel_index(x, [3, 4])", "[5, 11]"),
    ("lambda x: tf.unravel_index(x, [3, 4])", "[12]"),
    ("lambda x: tf.unique_with_counts(x)", "[4, 1, 4, 2, 4]"),
    ("lambda x: tf.unique_with_counts(x)", "['b', 'a', 'b']"),
    ("lambda x, p: tf.dynamic_partition(x, p, 3)", "[1, 2, 3, 4]",
     "[0, 2, 0, 2]"),
    ("lambda x, p: tf.dynamic_partition(x, p, 2)", "[[1, 2], [3, 4]]",
     "[1, 0]"),
    ("lambda x, y: tf.dynamic_stitch([[0, 2], [1]], [x, y])", "[5, 6]", "[7]"),
    ("lambda x, y: tf.dynamic_stitch([1, [0, 2]], [x, y])", "[5, 6]",
     "[[7, 8], [9, 1]]"),
    ("lambda x, n: tf.reverse_sequence(x, n, seq_axis=1, batch_axis=0)",
     "[[1, 2, 3], [4, 5, 6]]", "[2, 3]"),
    ("lambda x, n: tf.reverse_sequence(x, n, seq_axis=0, batch_axis=1)",
     "[[1, 2, 3], [4, 5, 6]]", "[2, 0, 1]"),
    ("lambda x, n: tf.reverse_sequence(x, n, seq_axis=2)",
     "tf.reshape(tf.range(12), [2, 3, 2])", "[2, 1]"),
    *[
        (f"lambda x, y: tf.einsum('{how}', x, y)", "[[1.0, 2.0], [3.0, 4.0]]",
         "[[0.5, 1.0], [1.5, 2.0]]")
        for how in ("ij,jk->ik", "ij,ij->", "ij,kj->ki", "i j, i j -> i")
    ],
    ("lambda x: tf.einsum('ii->i', x)", "[[1, 2], [3, 4]]"),
    ("lambda x: tf.bitcast(x, tf.uint32)", "[1.0, -2.5]"),
    ("lambda x: tf.bitcast(x, tf.uint8)", "[1.0, -2.5]"),
    ("lambda x: tf.bitcast(x, tf.int32)",
     "tf.constant([[1, 2, 3, 4], [5, 6, 7, 8]], tf.uint8)"),
    ("lambda x: tf.bitcast(x, tf.int32)", "tf.constant([1, 2, 3], tf.uint8)"),
    *[
        (f"lambda x: tf.tensor_scatter_nd_{how}(x, {i}, {v})", x)
        for how in ("add", "sub", "max", "min")
        for x, i, v in (
            ("[1, 2, 3]", "[[0], [2], [0]]", "[7, -9, 2]"),
            ("[[1, 2], [3, 4]]", "[[1], [1]]", "[[5, -6], [1, 1]]"),
            ("[[1, 2], [3, 4]]", "[[1, 2]]", "[5]"),
        )
    ],
]

CONTROL = [
    ("lambda x: tf.foldr(lambda a, b: a - b, x)", "[1, 2, 4]"),
    ("lambda x: tf.foldr(lambda a, b: a - b, x, 10)", "[1, 2, 4]"),
    ("lambda x: tf.scan(lambda a, b: a + b, x)", "[1, 2, 4]"),
    ("lambda x: tf.scan(lambda a, b: a + b, x, reverse=True)", "[1, 2, 4]"),
    ("lambda x: tf.scan(lambda a, b: a + b, x, initializer=10)", "[1, 2, 4]"),
    ("lambda x: tf.scan(lambda a, b: (a[0] + b, a[1] * b), x, (0, 1))",
     "[1, 2, 4]"),
    ("lambda x: tf.vectorized_map(lambda a: a * 2, x)", "[1, 2, 4]"),
    *[
        (f"lambda x: tf.switch_case(x, {how})", number)
        for how in (
            "[lambda: x + 1, lambda: x * 2]",
            "{1: lambda: x, 0: lambda: x - 2}, default=lambda: x * 7",
            "{3: lambda: x, 1: lambda: x - 2}",
            "[(0, lambda: x + 5), (1, lambda: x + 6)]",
        )
        for number in ("0", "1", "2", "3")
    ],
    ("lambda x: tf.tuple([x, x + 1])", "3"),
    ("lambda x: tf.identity_n([x, x + 1])", "3"),
    ("lambda x: tf.shape_n([x, x[0]])", "[[1, 2]]"),
    ("lambda x: tf.as_string(x)", "[1, 2]"),
]

# What an assertion lets through is given; others raise.
ASSERTIONS = [
    (f"lambda x: (tf.debugging.{call}, x)[1]", "[1.0, 2.0]")
    for call in (
        "assert_negative(x)", "assert_negative(-x)", "assert_non_positive(x)",
        "assert_non_positive(-x)", "assert_near(x, x + 1e-8)",
        "assert_near(x, x + 0.1)", "assert_near(x, x + 0.1, atol=0.2)",
        "assert_near(x, x * 1.1, rtol=0.2)", "assert_integer(x)",
        "assert_integer(tf.cast(x, tf.int32))", "assert_rank_at_least(x, 1)",
        "assert_rank_at_least(x, 2)", "assert_rank_in(x, [0, 1])",
        "assert_rank_in(x, [0, 2])", "assert_scalar(x)",
        "assert_scalar(x[0])", "assert_type(x, tf.float32)",
        "assert_type(x, tf.int32)", "assert_same_float_dtype([x, x])",
        "assert_same_float_dtype([x, tf.cast(x, tf.float64)])",
        "assert_proper_iterable([x])", "assert_proper_iterable(x)",
        "assert_proper_iterable(3)", "assert_shapes([(x, (2,))])",
        "assert_shapes([(x, (3,))])", "assert_shapes([(x, ('N',))])",
        "assert_shapes([(x, ('N',)), (x[1:], ('N',))])",
        "assert_shapes([(x, ('N',)), (x[None], (1, 'N'))])",
        "assert_shapes([(x, (1, 2))])", "assert_shapes([(x[None], (..., 2))])",
        "assert_shapes([(x[None], (1, ...))])",
        "assert_shapes([(x[None], (2, ...))])",
        "assert_shapes([(x, ()), (x, (2,))])", "is_numeric_tensor(x)",
        "enable_check_numerics() if False else x",
    )
]
# fmt: on

GROUPS = {
    "made": MADE,
    "segments": SEGMENTS,
    "control": CONTROL,
    "assertions": ASSERTIONS,
}
