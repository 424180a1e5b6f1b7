"""Cases of `functions.py`: sparse tensors, and parts of ragged ones."""

MADE = {
    "a": "tf.SparseTensor([[0, 1], [2, 0]], x, [3, 2])",
    "late": "tf.SparseTensor([[2, 0], [0, 1]], x, [3, 2])",
    "b": "tf.SparseTensor([[0, 0], [2, 0]], x, [3, 1])",
    "c": "tf.SparseTensor([[0, 1, 3], [1, 0, 2]], x, [2, 2, 4])",
    "other": "tf.SparseTensor([[0, 0], [0, 1]], x, [3, 2])",
}
ROWS = "tf.ragged.constant([[1, 2, 3], [], [4], [5, 6]])"


def _with(call):
    for name, made in MADE.items():
        call = call.replace(f"<{name}>", made)
    return f"lambda x: tf.sparse.{call}"


# fmt: off
SPARSE = [
    (_with(call), "[5, 6]")
    for call in (
        "concat(1, [<a>, <b>])", "concat(0, [<a>, <a>])",
        "concat(-1, [<a>, <other>, <b>])", "concat(0, [<a>, <b>])",
        "concat(0, [<a>, <b>], expand_nonconcat_dims=True)",
        "expand_dims(<a>)", "expand_dims(<a>, 0)", "expand_dims(<a>, 1)",
        "expand_dims(<c>, -2)", "expand_dims(<a>, 4)",
        "fill_empty_rows(<a>, 9)", "fill_empty_rows(<b>, 9)[1]",
        "map_values(tf.add, <a>, 1)", "map_values(tf.multiply, <a>, <a>)",
        "map_values(tf.multiply, <a>, <other>)",
        "reduce_sum(<a>)", "reduce_sum(<a>, 1)", "reduce_sum(<c>, [0, 2])",
        "reduce_sum(<a>, 0, keepdims=True)", "reduce_max(<a>, 1)",
        "reduce_max(<c>, -1)", "reorder(<late>)", "reorder(<a>)",
        "reset_shape(<a>)", "reset_shape(<a>, [4, 4])",
        "reset_shape(<a>, [1, 1])", "reset_shape(<c>)", "reshape(<a>, [2, 3])",
        "reshape(<a>, [2, -1])", "reshape(<c>, [-1])", "reshape(<c>, [4, 4])",
        "reshape(<a>, [4, 4])", "retain(<a>, [True, False])",
        "slice(<a>, [1, 0], [2, 2])", "slice(<a>, [0, 1], [5, 5])",
        "slice(<c>, [0, 1, 2], [2, 1, 2])", "split(<a>, 2, 1)",
        "split(<a>, 2, 0)", "split(<c>, 3, 2)", "split(<a>, 9, 0)",
        "to_indicator(<a>, 8)", "to_indicator(<a>, 6)", "transpose(<a>)",
        "transpose(<c>)", "transpose(<c>, [1, 0, 2])", "add(<a>, <a>)",
        "add(<a>, <other>)", "add(<a>, tf.ones([3, 2], tf.int32))",
        "add(<a>, <b>)", "maximum(<a>, <other>)", "minimum(<a>, <other>)",
        "sparse_dense_matmul(<a>, [[1], [2]])",
        "sparse_dense_matmul(<a>, [[1], [2], [3]], adjoint_a=True)",
        "eye(2, 3)", "eye(2, dtype=tf.int32)",
        "from_dense(tf.reshape(x, [1, 2]))",
    )
]

ROWS_OF = [
    ("lambda x: tf.ragged.map_flat_values(tf.square, x)", ROWS),
    ("lambda x: tf.ragged.map_flat_values(tf.add, x, x)", ROWS),
    ("lambda x: tf.ragged.map_flat_values(tf.add, x, y=3)", ROWS),
    ("lambda x: tf.ragged.map_flat_values(tf.add, x, x)", "[1, 2]"),
    ("lambda x: tf.ragged.row_splits_to_segment_ids(x)", "[0, 3, 3, 5]"),
    ("lambda x: tf.ragged.row_splits_to_segment_ids(x, out_type=tf.int32)",
     "tf.constant([0, 3, 3, 5], tf.int64)"),
    ("lambda x: tf.ragged.segment_ids_to_row_splits(x)", "[0, 0, 2]"),
    ("lambda x: tf.ragged.segment_ids_to_row_splits(x, 5)",
     "tf.constant([0, 0, 2], tf.int64)"),
    ("lambda x, i: tf.ragged.stack_dynamic_partitions(x, i, 3)",
     "['a', 'b', 'c']", "[2, 0, 2]"),
    ("lambda x, i: tf.ragged.stack_dynamic_partitions(x, i, 2)",
     "[[1, 2], [3, 4]]", "[1, 0]"),
]
# fmt: on

GROUPS = {"sparse": SPARSE, "rows": ROWS_OF}
