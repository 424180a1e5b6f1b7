"""Cases of `functions.py`: functions of ragged tensors, as in their guide."""

DIGITS = "tf.ragged.constant([[3, 1, 4, 1], [], [5, 9, 2], [6], []])"
WORDS = (
    "tf.ragged.constant([['So', 'long'], "
    "['thanks', 'for', 'all', 'the', 'fish']])"
)

# fmt: off
CASES = [
    *[
        (f"lambda x: {call}", DIGITS)
        for call in (
            "tf.add(x, 3)",
            "tf.reduce_mean(tf.cast(x,tf.float32), axis=1)",
            "tf.concat([x, [[5, 3],[1,1],[2,2],[3,3],[4,4]]], axis=0)",
            "tf.tile(x, [1, 2])",
            "tf.map_fn(tf.math.square, x)",
            "x[0]",
            "x[:, :2]",
            "x[:, -2:]",
            "x + 3",
            "x + tf.ragged.constant([[1, 2, 3, 4], [], [5, 6, 7], [8], []])",
            "tf.ragged.map_flat_values(lambda v: v * 2 + 1, x)",
            "tf.where(x > 2, x, -x)",
            "tf.equal(x, 1)",
            "tf.math.log(tf.cast(x,tf.float32))",
            "tf.sigmoid(tf.cast(x,tf.float32))",
            "tf.round(tf.cast(x,tf.float32)/2)",
            "tf.one_hot(x, 10)",
            "tf.clip_by_value(x, 2, 4)",
            "tf.math.floormod(x, 2)",
            "tf.logical_not(x > 2)",
            "tf.logical_and(x > 2, x < 5)",
            "tf.zeros_like(x)",
            "tf.ones_like(x, dtype=tf.float32)",
            "tf.identity(x)",
            "tf.squeeze(x[:1], 0)",
            "tf.reverse(x, [0])",
            "tf.math.argmax(x, 1)",
            "tf.unstack(x[:2])",
            "tf.split(x[:4], 2)",
            "tf.strings.as_string(x)",
            "tf.bitwise.bitwise_and(x, 1)",
            "tf.math.reduce_std(tf.cast(x, tf.float32)[2:4], 1)",
            "tf.sparse.to_dense(x.to_sparse())",
            "x.row_splits",
            "tf.sort(x)",
            "tf.saturate_cast(x, tf.uint8)",
            "tf.math.softmax(tf.cast(x,tf.float32))",
            "tf.expand_dims(x,0)",
            "tf.maximum(x, x)",
            "tf.pow(x, 2)",
            "-x",
            "abs(x)",
            "~(x>2)",
            "tf.less(x, 3)",
            "tf.strings.to_number(tf.strings.as_string(x))",
            "tf.math.count_nonzero(x > 2)",
            "tf.math.add_n([x,x])",
            "tf.stop_gradient(x)",
            "tf.where(x > 2)", "tf.where(x > 2, 1, x)", "tf.where(True, x, x)",
            "tf.reverse(x, [1])", "tf.tile(x, [2, 1])", "tf.split(x, [2, 3])",
            "tf.map_fn(tf.reduce_sum, x, fn_output_signature=tf.int32)",
        )
    ],
    *[
        (f"lambda x: {call}", WORDS)
        for call in (
            "tf.strings.substr(x, 0, 2)",
            "x.to_tensor(default_value='', shape=[None, 10])",
            "tf.strings.join(['_', x])",
            "tf.strings.length(x)",
            "tf.strings.upper(x)",
            "tf.strings.to_hash_bucket_fast(x, 100)",
            "tf.strings.regex_replace(x,'l','L')",
            "tf.strings.reduce_join(x, axis=1, separator=' ')",
            "tf.strings.split(x).to_tensor()",
            "tf.strings.unicode_split(x,'UTF-8')",
            "tf.strings.bytes_split(x)",
            "tf.strings.lower(x)",
            "tf.strings.strip(x)",
            "tf.io.encode_base64(x)",
            "tf.strings.regex_full_match(x,'l.*')",
        )
    ],
    ("lambda x: tf.strings.split(x)", "['a b', 'c']"),
    ("lambda x: tf.strings.split(x)", "[['a b', 'c'], ['d', 'e f g']]"),
]
# fmt: on

GROUPS = {"guide": CASES}
