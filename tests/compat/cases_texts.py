"""Cases of `functions.py`: strings."""

WORDS = "tf.ragged.constant([['a', 'b', 'c'], ['d'], []])"
DEEP = "tf.ragged.constant([[['a', 'b'], ['c']], [], [['d']]])"
LETTERS = "['a\u00e4\u20ac', '', 'b\U0001f600c']"

# fmt: off
CASES = [
    *[
        (f"lambda x: tf.strings.ngrams(x, {how})", text)
        for how in (
            "2", "[2, 1], '|'", "3, pad_values=('L', 'R')",
            "3, pad_values='x', padding_width=1", "5, pad_values='x'",
            "3, preserve_short_sequences=True", "0",
        )
        for text in ("['a', 'b', 'c']", "[['a', 'b', 'c'], ['d', 'e', 'f']]",
                     WORDS, DEEP)
    ],
    *[
        (f"lambda x: tf.strings.unicode_{name}_with_offsets(x, 'UTF-8')", text)
        for name in ("split", "decode")
        for text in ("'a\u00e4\u20ac'", LETTERS, "b'a\\xff'", "''")
    ],
    *[
        (f"lambda x: tf.strings.unicode_transcode(x, {how})", text)
        for how in (
            "'UTF-8', 'UTF-16-BE'", "'UTF-8', 'UTF-32-BE'", "'UTF-8', 'UTF-8'",
            "'UTF-8', 'UTF-8', errors='ignore'",
            "'UTF-8', 'UTF-8', errors='strict'",
            "'UTF-8', 'UTF-8', replacement_char=32",
            "'UTF-8', 'UTF-8', replace_control_characters=True",
            "'ISO-8859-1', 'UTF-8'", "'UTF-8', 'ISO-8859-1'",
        )
        for text in (LETTERS, "[b'a\\xffb', b'\\x01\\n']", "'x'")
    ],
    ("lambda x: tf.strings.unicode_transcode(x, 'UTF-8', 'UTF-16-BE')", WORDS),
    ("lambda x, i: tf.strings.unsorted_segment_join(x, i, 3, ':')",
     "['a', 'b', 'c']", "[1, 0, 1]"),
    ("lambda x, i: tf.strings.unsorted_segment_join(x, i, 1)",
     "[['a', 'b'], ['c', 'd']]", "[0, 0]"),
    ("lambda x, i: tf.strings.unsorted_segment_join(x, i, 1)",
     "['a', 'b']", "[0, 3]"),
    *[
        (f"lambda x: tf.strings.reduce_join(x, {how})", text)
        for how in ("axis=-1", "axis=1, separator='-'", "axis=0",
                    "axis=0, separator='-'", "separator='-'")
        for text in (WORDS, "[['a', 'b'], ['c', 'd']]")
    ],
    ("lambda x: tf.strings.reduce_join(x, -1, separator='-')", DEEP),
]
# fmt: on

GROUPS = {"texts": CASES}
