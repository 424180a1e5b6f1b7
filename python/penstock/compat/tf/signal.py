"""`tf.signal`: frames and spectra. Functions with spectra run as Python."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.compat.tf import _arrays as arrays
from penstock.compat.tf._filling import pad
from penstock.compat.tf._spectra import TRANSFORMS as _TRANSFORMS
from penstock.compat.tf._spectra import (
    dct,
    fftshift,
    idct,
    ifftshift,
    inverse_stft,
    inverse_stft_window_fn,
    kaiser_window,
    linear_to_mel_weight_matrix,
    mfccs_from_log_mel_spectrograms,
    overlap_and_add,
    vorbis_window,
)
from penstock.compat.tf._tensor import Tensor, convert
from penstock.compat.tf._types import as_dtype

__all__ = [
    *_TRANSFORMS,
    "dct",
    "fftshift",
    "frame",
    "hamming_window",
    "hann_window",
    "idct",
    "ifftshift",
    "inverse_stft",
    "inverse_stft_window_fn",
    "kaiser_window",
    "linear_to_mel_weight_matrix",
    "mfccs_from_log_mel_spectrograms",
    "overlap_and_add",
    "stft",
    "vorbis_window",
]

rfft = _TRANSFORMS["rfft"]


def _window(
    alpha: float, beta: float, length: int, periodic: bool, dtype: Any
) -> Tensor:
    count = int(length)
    if count == 1:
        return Tensor(np.ones(1, as_dtype(dtype).dtype))
    whole = count if periodic and count % 2 == 0 else count - (not periodic)
    turns = 2 * np.pi * np.arange(count) / whole
    values = alpha - beta * np.cos(turns)
    return Tensor(values.astype(as_dtype(dtype).dtype))


def hann_window(
    window_length: Any,
    periodic: bool = True,
    dtype: Any = "float32",
    name: Any = None,
) -> Tensor:
    return _window(0.5, 0.5, window_length, periodic, dtype)


def hamming_window(
    window_length: Any,
    periodic: bool = True,
    dtype: Any = "float32",
    name: Any = None,
) -> Tensor:
    return _window(0.54, 0.46, window_length, periodic, dtype)


def frame(
    signal: Any,
    frame_length: int,
    frame_step: int,
    pad_end: bool = False,
    pad_value: Any = 0,
    axis: int = -1,
    name: Any = None,
) -> Tensor:
    """Overlapping parts of a dimension, along a new one before it.

    Example:
        >>> tf.signal.frame([1, 2, 3, 4, 5], 3, 2).numpy()
        array([[1, 2, 3],
               [3, 4, 5]], dtype=int32)
    """
    x = convert(signal)
    length, step = int(frame_length), int(frame_step)
    along = int(axis) % x.ndim
    known = x.shape[along]
    samples: Any = arrays.shape(x, "int64")[along] if known is None else known
    if pad_end:
        count = -(-samples // step)
        missing = (count - 1) * step + length - samples
        if known is None:
            missing = _at_least_0(missing)
        widths: Any = [[0, 0]] * x.ndim
        widths[along] = [0, missing if known is None else max(0, missing)]
        x = pad(x, widths, constant_values=pad_value)
    else:
        count = 1 + (samples - length) // step
        count = _at_least_0(count) if known is None else max(0, count)
    starts = arrays.cast(arrays.range(count), "int64") * step
    places = starts[:, None] + arrays.cast(arrays.range(length), "int64")
    return arrays.take(x, places, along)


def _at_least_0(count: Any) -> Any:
    return arrays.where(count > 0, count, arrays.zeros_like(count))


def stft(
    signals: Any,
    frame_length: int,
    frame_step: int,
    fft_length: int | None = None,
    window_fn: Any = hann_window,
    pad_end: bool = False,
    name: Any = None,
) -> Tensor:
    """The spectra of overlapping frames."""
    frames = frame(signals, frame_length, frame_step, pad_end)
    length = int(frame_length)
    if window_fn is not None:
        frames = frames * window_fn(length, dtype=frames.dtype)
    size = fft_length or 1 << (length - 1).bit_length()
    made: Tensor = rfft(frames, [size])
    return made


def __getattr__(name: str) -> Any:
    if name in _TRANSFORMS:
        return _TRANSFORMS[name]
    from penstock.compat.tf._missing import missing

    raise missing("signal", name)
