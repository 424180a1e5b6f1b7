"""`tf.audio`: WAV files. A function that decodes one runs as Python."""

from __future__ import annotations

import io as _bytes
import wave
from typing import Any

import numpy as np

from penstock._errors import InvalidArgumentError
from penstock._location import refused
from penstock._symbol import Symbol
from penstock.compat.tf import _arrays as arrays
from penstock.compat.tf._tensor import Tensor, convert

__all__ = ["decode_wav", "encode_wav"]


def decode_wav(
    contents: Any,
    desired_channels: int = -1,
    desired_samples: int = -1,
    name: Any = None,
) -> tuple[Tensor, Tensor]:
    """The samples of 16-bit WAV data as (samples, channels), and their rate."""
    data = convert(contents)
    if isinstance(data._value, Symbol):
        arrays.python_only("tf.audio.decode_wav")
    try:
        with wave.open(_bytes.BytesIO(data.numpy())) as file:
            channels, width = file.getnchannels(), file.getsampwidth()
            rate = file.getframerate()
            frames = file.readframes(file.getnframes())
    except (wave.Error, EOFError) as error:
        raise refused(
            InvalidArgumentError, f"expected WAV data; got {error}"
        ) from None
    if width != 2:
        raise refused(
            InvalidArgumentError,
            f"expected samples of 16 bits; got {8 * width}",
        )
    whole = len(frames) // (2 * channels) * channels
    samples = np.frombuffer(frames, "<i2", whole).reshape(-1, channels)
    audio = samples.astype(np.float32) / np.float32(32768)
    if desired_channels > 0:
        audio = audio[:, np.arange(desired_channels) % channels]
    if desired_samples > 0:
        audio = audio[:desired_samples]
        missing = desired_samples - len(audio)
        audio = np.pad(audio, [(0, missing), (0, 0)])
    return Tensor(np.ascontiguousarray(audio)), Tensor(np.array(rate, np.int32))


def encode_wav(audio: Any, sample_rate: Any, name: Any = None) -> Tensor:
    """Samples, (samples, channels) of -1 to 1, as 16-bit WAV data."""
    given, rate = convert(audio), convert(sample_rate)
    if isinstance(given._value, Symbol) or isinstance(rate._value, Symbol):
        arrays.python_only("tf.audio.encode_wav")
    samples = given._value
    if samples.ndim != 2 or samples.dtype != np.float32:
        raise refused(
            InvalidArgumentError,
            "expected samples of (samples, channels), tf.float32; got "
            f"{given.dtype} of shape {given.shape}",
        )
    scaled = samples * np.float32(32768)
    # Halves go away from zero, as roundf has it.
    whole = np.copysign(np.floor(np.abs(scaled) + np.float32(0.5)), scaled)
    text = _bytes.BytesIO()
    with wave.open(text, "wb") as file:
        file.setnchannels(samples.shape[1])
        file.setsampwidth(2)
        file.setframerate(int(rate))
        file.writeframes(np.clip(whole, -32768, 32767).astype("<i2").tobytes())
    return convert(text.getvalue())
