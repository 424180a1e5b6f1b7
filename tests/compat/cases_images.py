"""Cases of `functions.py`: images."""

WIDE = (
    "tf.constant(np.random.RandomState(7).uniform(size=(2, 6, 7, 3)), "
    "tf.float32)"
)
ONE = WIDE + "[0]"
WHOLE = "tf.reshape(tf.range(2 * 5 * 4 * 2), [2, 5, 4, 2])"
SMOOTH = (
    "tf.constant(np.add.outer(np.arange(16) * 9, np.arange(24) * 4)[..., None]"
    " + np.array([0, 9, 3]), tf.uint8)"
)
BOXES = (
    "[[0.0, 0.0, 1.0, 1.0], [0.2, 0.1, 0.7, 0.9], [-0.2, 0.1, 0.7, 1.3], "
    "[0.8, 0.9, 0.1, 0.2]]"
)
OVERLAPS = (
    "[[0.0, 0.0, 1.0, 1.0], [0.0, 0.1, 1.0, 1.1], [0.0, -0.1, 1.0, 0.9], "
    "[0.0, 10.0, 1.0, 11.0], [1.0, 11.1, 0.0, 10.1], [0.0, 100.0, 1.0, 101.0]]"
)
SCORES = "[0.9, 0.75, 0.6, 0.95, 0.5, 0.3]"

# fmt: off
CASES = [
    *[
        (f"lambda x: tf.image.{name}(x)", text)
        for name in ("rgb_to_yiq", "yiq_to_rgb", "rgb_to_yuv", "yuv_to_rgb")
        for text in (WIDE, ONE)
    ],
    ("lambda x: tf.image.image_gradients(x)", WIDE),
    ("lambda x: tf.image.image_gradients(x)", ONE),
    ("lambda x: tf.image.total_variation(x)", WIDE),
    ("lambda x: tf.image.total_variation(x)", ONE),
    ("lambda x: tf.image.psnr(x, x * 0.9, 1.0)", WIDE),
    ("lambda x: tf.image.psnr(x, x + 1, 255)", SMOOTH),
    *[
        (f"lambda x: tf.image.extract_patches(x, [1, {a}, {b}, 1], "
         f"[1, {s}, {t}, 1], [1, {r}, {r}, 1], '{how}')", WHOLE)
        for a, b, s, t, r in (
            (2, 2, 2, 2, 1), (3, 2, 1, 2, 1), (2, 2, 1, 1, 2), (6, 1, 1, 1, 1),
            (3, 3, 2, 3, 1),
        )
        for how in ("VALID", "SAME")
    ],
    ("lambda x: tf.image.extract_patches(x, [1, 2, 2, 1], [1, 2, 2, 1], "
     "[1, 1, 1, 1], 'OTHER')", WHOLE),
    *[
        (f"lambda x, b: tf.image.crop_and_resize(x, b, [0, 1, 1, 0], {how})",
         WIDE, BOXES)
        for how in (
            "[3, 4]", "[1, 1]", "[3, 4], method='nearest'",
            "[3, 4], extrapolation_value=7.0", "[12, 1]",
        )
    ],
    ("lambda x, b: tf.image.crop_and_resize(x, b, [0, 1, 1, 5], [2, 2])",
     WIDE, BOXES),
    *[
        (f"lambda b, s: tf.image.non_max_suppression(b, s, {how})", OVERLAPS,
         SCORES)
        for how in ("3", "30", "30, 0.9", "30, 0.5, 0.4", "0")
    ],
    ("lambda x: tf.image.adjust_jpeg_quality(x, 75)", SMOOTH),
    ("lambda x: tf.image.adjust_jpeg_quality(x, 20)",
     f"tf.cast({SMOOTH}, tf.float32) / 255.0"),
    ("lambda x: tf.image.stateless_random_jpeg_quality(x, 50, 40, [1, 2])",
     SMOOTH),
    ("lambda x: tf.shape(tf.image.stateless_random_jpeg_quality(x, 50, 60, "
     "[1, 2]))", SMOOTH),
    ("lambda x: tf.shape(tf.image.random_jpeg_quality(x, 50, 60))", SMOOTH),
    *[
        ("lambda s: [tf.shape(x) for x in tf.image."
         f"stateless_sample_distorted_bounding_box(s, {how})]", "[40, 30, 3]")
        for how in (
            "[[[0.0, 0.0, 1.0, 1.0]]], [1, 2]",
            "tf.zeros([1, 0, 4]), [1, 2], use_image_if_no_bounding_boxes=True",
            "tf.zeros([1, 0, 4]), [1, 2]",
        )
    ],
    # None of the boxes can be as large: the whole image.
    ("lambda s: tf.image.stateless_sample_distorted_bounding_box(s, "
     "[[[0.0, 0.0, 1.0, 1.0]]], [1, 2], 1.0, area_range=[0.1, 0.2])",
     "[40, 30, 3]"),
    ("lambda x: tf.io.decode_compressed(x, 'ZLIB')",
     "[__import__('zlib').compress(b'abc' * 9), "
     "__import__('zlib').compress(b'')]"),
    ("lambda x: tf.io.decode_compressed(x, 'GZIP')",
     "__import__('gzip').compress(b'abc' * 9)"),
    ("lambda x: tf.io.decode_compressed(x)", "b'abc'"),
    ("lambda x: tf.io.decode_compressed(x, 'ZLIB')", "b'abc'"),
    ("lambda x: tf.io.decode_compressed(x, 'LZ4')", "b'abc'"),
]
# fmt: on

GROUPS = {"images": CASES}
