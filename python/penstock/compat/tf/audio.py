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

__all__ = ["decode_wav"]


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
