"""`tf.signal`: transforms, windows and mel scales. Transforms need values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from penstock._symbol import Symbol
from penstock.compat.tf import _arrays as arrays
from penstock.compat.tf._arithmetic import refuse_dtype
from penstock.compat.tf._tensor import Tensor, convert
from penstock.compat.tf._types import as_dtype


def known(name: str, given: Any) -> Any:
    """The array of a tensor; a function with a symbol is Python."""
    found = convert(given)
    if isinstance(found._value, Symbol):
        arrays.python_only(f"tf.signal.{name}")
    return found._value


# ---- Fourier.


def _complex_of(dtype: Any) -> Any:
    small = dtype in (np.float32, np.complex64)
    return np.complex64 if small else np.complex128


def _make_complex(name: str, function: Any, rank: int) -> Callable[..., Any]:
    def call(input: Any, name: Any = None) -> Tensor:
        x = known(call.__name__, input)
        if x.dtype.kind != "c":
            refuse_dtype(f"tf.signal.{call.__name__}", convert(input).dtype)
        found = function(x, axes=tuple(range(-rank, 0)))
        return Tensor(found.astype(x.dtype))

    call.__name__ = call.__qualname__ = name
    return call


def _make_real(name: str, function: Any, rank: int) -> Callable[..., Any]:
    is_inverse = name.startswith("i")

    def call(
        input_tensor: Any, fft_length: Any = None, name: Any = None
    ) -> Tensor:
        x = known(call.__name__, input_tensor)
        if (x.dtype.kind == "c") != is_inverse:
            refuse_dtype(
                f"tf.signal.{call.__name__}", convert(input_tensor).dtype
            )
        sizes = None
        if fft_length is not None:
            sizes = np.asarray(fft_length).reshape(-1).tolist()
        found = function(x, s=sizes, axes=tuple(range(-rank, 0)))
        wide = _complex_of(x.dtype)
        if is_inverse:
            wide = np.float32 if wide == np.complex64 else np.float64
        return Tensor(found.astype(wide))

    call.__name__ = call.__qualname__ = name
    return call


TRANSFORMS: dict[str, Callable[..., Any]] = {
    **{
        f"{word}{end}": _make_complex(f"{word}{end}", function, rank)
        for word, function in (("fft", np.fft.fftn), ("ifft", np.fft.ifftn))
        for rank, end in ((1, ""), (2, "2d"), (3, "3d"))
    },
    **{
        f"{word}{end}": _make_real(f"{word}{end}", function, rank)
        for word, function in (("rfft", np.fft.rfftn), ("irfft", np.fft.irfftn))
        for rank, end in ((1, ""), (2, "2d"), (3, "3d"))
    },
}


def fftshift(x: Any, axes: Any = None, name: Any = None) -> Tensor:
    """The zero frequency put in the middle."""
    along = None if axes is None else np.asarray(axes).tolist()
    return Tensor(np.fft.fftshift(known("fftshift", x), along))


def ifftshift(x: Any, axes: Any = None, name: Any = None) -> Tensor:
    along = None if axes is None else np.asarray(axes).tolist()
    return Tensor(np.fft.ifftshift(known("ifftshift", x), along))


# ---- Cosines.


def _basis(kind: int, size: int) -> Any:
    """The matrix of a cosine transform: rows are items, columns results."""
    at, of = np.arange(size)[:, None], np.arange(size)[None, :]
    if kind == 1:
        made = 2 * np.cos(np.pi * at * of / (size - 1))
        made[0], made[-1] = made[0] / 2, made[-1] / 2
        return made
    if kind == 2:
        return 2 * np.cos(np.pi * (2 * at + 1) * of / (2 * size))
    if kind == 3:
        made = 2 * np.cos(np.pi * at * (2 * of + 1) / (2 * size))
        made[0] /= 2
        return made
    return 2 * np.cos(np.pi * (2 * at + 1) * (2 * of + 1) / (4 * size))


def dct(
    input: Any, type: int = 2, n: Any = None, axis: int = -1, norm: Any = None,
    name: Any = None,
) -> Tensor:  # fmt: skip
    """The cosine transform of the last dimension, of type 1 to 4."""
    if type not in (1, 2, 3, 4) or axis != -1 or norm not in (None, "ortho"):
        raise ValueError(
            "dct is of type 1 to 4, of axis -1, with norm None or 'ortho'; got "
            f"type={type}, axis={axis}, norm={norm!r}"
        )
    x = known("dct", input)
    if n is not None:
        size = int(n)
        x = x[..., :size]
        widths = [(0, 0)] * (x.ndim - 1) + [(0, size - x.shape[-1])]
        x = np.pad(x, widths)
    size = x.shape[-1]
    if type == 1 and (norm == "ortho" or size < 2):
        raise ValueError("dct of type 1 needs 2 items, and no norm")
    basis = _basis(type, size)
    if norm == "ortho":
        basis = basis * np.sqrt(0.5 / size)
        if type == 2:
            basis[:, 0] *= np.sqrt(0.5)
        elif type == 3:
            basis[0] *= np.sqrt(2.0)
    return Tensor((x.astype(np.float64) @ basis).astype(x.dtype))


def idct(
    input: Any, type: int = 2, n: Any = None, axis: int = -1, norm: Any = None,
    name: Any = None,
) -> Tensor:  # fmt: skip
    """What a cosine transform was made of, but for its scale."""
    other = {1: 1, 2: 3, 3: 2, 4: 4}.get(type, type)
    return dct(input, other, n, axis, norm)


# ---- Windows.


def kaiser_window(
    window_length: Any, beta: Any = 12.0, dtype: Any = "float32",
    name: Any = None,
) -> Tensor:  # fmt: skip
    made = np.kaiser(int(window_length), float(np.asarray(beta)))
    return Tensor(made.astype(as_dtype(dtype).dtype))


def vorbis_window(
    window_length: Any, dtype: Any = "float32", name: Any = None
) -> Tensor:
    size = int(window_length)
    turn = np.sin(np.pi / size * (np.arange(size) + 0.5)) ** 2
    return Tensor(np.sin(np.pi / 2 * turn).astype(as_dtype(dtype).dtype))


# ---- Frames put together again.


def overlap_and_add(signal: Any, frame_step: Any, name: Any = None) -> Tensor:
    """Frames laid over each other, as many steps apart, and added."""
    x = known("overlap_and_add", signal)
    step = int(np.asarray(frame_step))
    count, length = x.shape[-2:]
    size = step * (count - 1) + length if count else 0
    made = np.zeros((*x.shape[:-2], size), x.dtype)
    for i in range(count):
        made[..., i * step : i * step + length] += x[..., i, :]
    return Tensor(made)


def inverse_stft_window_fn(
    frame_step: int, forward_window_fn: Any = None, name: Any = None
) -> Any:
    """A window that makes good what the forward one does to the sum."""
    from penstock.compat.tf.signal import hann_window

    forward = forward_window_fn or hann_window

    def window(frame_length: int, dtype: Any) -> Tensor:
        length, step = int(frame_length), int(frame_step)
        values = np.asarray(forward(length, dtype=dtype))
        count = -(-length // step)
        squares = np.pad(values**2, (0, count * step - length))
        total = squares.reshape(count, step).sum(0)
        return Tensor(values / np.tile(total, count)[:length])

    return window


def inverse_stft(
    stfts: Any, frame_length: Any, frame_step: Any, fft_length: Any = None,
    window_fn: Any = "hann", name: Any = None,
) -> Tensor:  # fmt: skip
    """The signal that spectra of frames were made of."""
    from penstock.compat.tf.signal import hann_window

    length, step = int(frame_length), int(frame_step)
    size = (
        1 << (length - 1).bit_length() if fft_length is None
        else int(fft_length)
    )  # fmt: skip
    frames = np.asarray(TRANSFORMS["irfft"](stfts, [size]))[..., :length]
    missing = length - frames.shape[-1]
    if missing:
        frames = np.pad(frames, [(0, 0)] * (frames.ndim - 1) + [(0, missing)])
    window = hann_window if window_fn == "hann" else window_fn
    if window is not None:
        weights = np.asarray(window(length, dtype=Tensor(frames).dtype))
        frames = frames * weights
    return overlap_and_add(Tensor(frames), step)


# ---- Mel.


def _mel(hertz: Any) -> Any:
    kind = hertz.dtype.type
    return kind(1127.0) * np.log(kind(1.0) + hertz / kind(700.0))


def linear_to_mel_weight_matrix(
    num_mel_bins: Any = 20, num_spectrogram_bins: Any = 129,
    sample_rate: Any = 8000, lower_edge_hertz: Any = 125.0,
    upper_edge_hertz: Any = 3800.0, dtype: Any = "float32", name: Any = None,
) -> Tensor:  # fmt: skip
    """The matrix that makes mel bins of a spectrum's."""
    bins, spectrum = int(num_mel_bins), int(num_spectrogram_bins)
    rate = float(np.asarray(sample_rate))
    low, high = float(lower_edge_hertz), float(upper_edge_hertz)
    if bins <= 0 or not 0 <= low < high or high > rate / 2:
        raise ValueError(
            "linear_to_mel_weight_matrix needs bins, and edges from 0 up to "
            f"half of the rate, {rate / 2}; got {bins} bins, {low} and {high}"
        )
    # The first bin of the spectrum is a constant, which no mel bin has.
    kind = as_dtype(dtype).dtype.type
    hertz = np.linspace(0.0, rate / 2, spectrum, dtype=kind)[1:]
    places = _mel(hertz)[:, None]
    edges = np.linspace(_mel(kind(low)), _mel(kind(high)), bins + 2, dtype=kind)
    left, middle, right = edges[:-2], edges[1:-1], edges[2:]
    rise = (places - left) / (middle - left)
    fall = (right - places) / (right - middle)
    made = np.maximum(kind(0.0), np.minimum(rise, fall))
    return Tensor(np.pad(made, [(1, 0), (0, 0)]))


def mfccs_from_log_mel_spectrograms(
    log_mel_spectrograms: Any, name: Any = None
) -> Tensor:
    """The cepstral coefficients of logarithms of mel spectra."""
    x = known("mfccs_from_log_mel_spectrograms", log_mel_spectrograms)
    made = np.asarray(dct(Tensor(x)))
    return Tensor((made / np.sqrt(2.0 * x.shape[-1])).astype(x.dtype))
