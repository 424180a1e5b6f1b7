"""Cases of `functions.py`: signals."""

WAVE = "tf.constant(np.sin(np.arange(40) ** 1.3), tf.float32)"
BLOCK = "tf.constant(np.cos(np.arange(48) ** 1.1).reshape(2, 4, 6), tf.float32)"
DOUBLE = f"tf.cast({BLOCK}, tf.float64)"
COMPLEX = f"tf.cast({BLOCK}, tf.complex64) * (1 + 2j)"
WIDE = f"tf.cast({BLOCK}, tf.complex128)"

# fmt: off
CASES = [
    *[
        (f"lambda x: tf.signal.{word}{end}(x)", text)
        for word in ("fft", "ifft", "irfft")
        for end in ("", "2d", "3d")
        for text in (COMPLEX, WIDE)
    ],
    *[
        (f"lambda x: tf.signal.rfft{end}(x)", text)
        for end in ("", "2d", "3d")
        for text in (BLOCK, DOUBLE)
    ],
    ("lambda x: tf.signal.fft(x)", BLOCK),
    ("lambda x: tf.signal.rfft(x, [8])", BLOCK),
    ("lambda x: tf.signal.rfft(x, [4])", BLOCK),
    ("lambda x: tf.signal.irfft(x, [8])", COMPLEX),
    ("lambda x: tf.signal.irfft(x, [7])", COMPLEX),
    ("lambda x: tf.signal.rfft2d(x, [3, 8])", BLOCK),
    *[
        (f"lambda x: tf.signal.{name}(x{axes})", BLOCK)
        for name in ("fftshift", "ifftshift")
        for axes in ("", ", 1", ", [0, 2]")
    ],
    *[
        (f"lambda x: tf.signal.{name}(x, {how})", BLOCK)
        for name in ("dct", "idct")
        for how in (
            "1", "2", "3", "4", "2, norm='ortho'", "3, norm='ortho'",
            "4, norm='ortho'", "1, norm='ortho'", "2, n=4", "2, n=9", "5",
        )
    ],
    *[
        (f"lambda x: tf.signal.{call} * x", "2.0")
        for call in (
            "kaiser_window(8)", "kaiser_window(9, beta=5.0)",
            "vorbis_window(8)", "vorbis_window(7)", "hann_window(8)",
            "linear_to_mel_weight_matrix()",
            "linear_to_mel_weight_matrix(8, 33, 16000, 80.0, 7600.0)",
            "linear_to_mel_weight_matrix(8, 33, 8000, 80.0, 7600.0)",
        )
    ],
    ("lambda x: tf.signal.overlap_and_add(x, 2)", BLOCK),
    ("lambda x: tf.signal.overlap_and_add(x, 7)", BLOCK),
    ("lambda x: tf.abs(tf.signal.stft(x, 16, 8))", WAVE),
    ("lambda x: tf.signal.inverse_stft(tf.signal.stft(x, 16, 8), 16, 8)",
     WAVE),
    ("lambda x: tf.signal.inverse_stft(tf.signal.stft(x, 16, 8), 16, 8, "
     "window_fn=tf.signal.inverse_stft_window_fn(8))", WAVE),
    ("lambda x: tf.signal.inverse_stft(tf.signal.stft(x, 12, 4), 12, 4, 16, "
     "window_fn=None)", WAVE),
    ("lambda x: tf.signal.mfccs_from_log_mel_spectrograms(x)", BLOCK),
    ("lambda x: tf.audio.encode_wav(x[:, None], 16000)", WAVE),
    ("lambda x: tf.audio.encode_wav(x * 2.0, 8000)", BLOCK + "[0]"),
    ("lambda x: tf.audio.encode_wav(x, 8000)", WAVE),
    ("lambda x: tf.audio.decode_wav(tf.audio.encode_wav(x[:, None], 16000))",
     WAVE),
]
# fmt: on

GROUPS = {"signals": CASES}
